"""From files and folders to the claims that stand in them."""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from mcverify.declare.claim import Claim
from mcverify.declare.fault import RECORDER, ClaimError, Recorder
from mcverify.declare.imports import imported

BUILT_IN = Path(__file__).parents[1] / "claims"
NO_CLAIMS = "holds no claims; decorate a function with @claim(…)"
ENTRY_POINTS = "mcverify.claims"  # by which an installed package offers claims


@dataclass(frozen=True)
class Found:
    """The claims of some files, and a line for each thing in them that is broken."""

    claims: tuple[Claim, ...]
    faults: tuple[str, ...]


@lru_cache
def packages() -> dict[str, tuple[str, Path]]:
    """By the name of its origin, the importable module and the file or folder of claims.

    Those are mcverify's own, and those that installed packages offer by an entry point in the group
    ``mcverify.claims``. One that cannot be found is left out.
    """
    found = {"mcverify": ("mcverify.claims", BUILT_IN.resolve())}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            spec = importlib.util.find_spec(point.value)
        except ImportError:
            continue
        if spec and spec.origin:
            file = Path(spec.origin).resolve()
            found[point.name] = (point.value, file.parent if file.stem == "__init__" else file)
    return found


def origin(claim: Claim) -> str:
    """The package that offers a claim, or the file that it stands in."""
    file = source(claim)
    return next((name for name, (_, home) in packages().items() if _in(file, home)), str(file))


def themes() -> dict[str, Path]:
    """By their names the folders of packages that hold a theme of several files."""
    return {folder.name: folder for _, home in packages().values()
            for folder in sorted(home.glob("*/")) if (folder / "__init__.py").is_file()}


def _in(file: Path, home: Path) -> bool:
    """Whether a file is one that a package offers, or in the folder that it offers."""
    return home in (file, *file.parents)


def discover(*paths: str | Path) -> list[Claim]:
    """The claims in the given files and folders, in their order; without paths, mcverify's own.

    Raises ClaimError for a file that breaks, a claim in it that breaks a rule (both with file and
    line), and for two claims of one name, since a claim's name is its results' name.
    """
    found = survey(*paths)
    if found.faults:
        raise ClaimError(found.faults[0])
    return list(found.claims)


def survey(*paths: str | Path) -> Found:
    """As discover, but what is broken is told beside the claims that are not."""
    claims: dict[str, Claim] = {}
    faults: list[str] = []
    named = {Path(path).resolve() for path in paths}
    for file in _files(paths or (BUILT_IN,)):
        found = load(file)
        # A file beside the claims of a folder may be there for them.
        faults += [fault for fault in found.faults if file in named or NO_CLAIMS not in fault]
        for claim in found.claims:
            other = claims.setdefault(claim.name, claim)
            if other is not claim:
                faults.append(f"{file.name}: two claims are named {claim.name}, the other in "
                              f"{source(other)}; rename one")
    if not (claims or faults):
        faults.append(f"{', '.join(map(str, paths))}: {NO_CLAIMS}")
    return Found(tuple(claims.values()), tuple(faults))


def source(claim: Claim) -> Path:
    """The file that a claim's body stands in."""
    return Path(inspect.unwrap(claim.body).__code__.co_filename).resolve()


_loaded: dict[int, tuple[Claim, Path]] = {}


def files_behind(claim: Claim) -> list[Path]:
    """The files that a claim may depend on: all Python files beside its own, and those that these
    import, wherever they are, but for the standard library's and those of installed packages."""
    file = source(claim)
    offered = any(_in(file, home) for _, home in packages().values())
    others = () if offered else imported(file, file.stat().st_mtime_ns)
    return sorted({*file.parent.glob("*.py"), *others})


def loaded_from(claim: Claim) -> Path | None:
    """The file by whose loading any process can get this very claim.

    None for one that was changed, typed at a prompt, or made by the script that is running, which
    loading would run again.
    """
    held, file = _loaded.get(id(claim), (None, None))
    return file if held is claim else None


def load(file: Path) -> Found:
    """The module-level claims of one file, read anew only when the file has changed."""
    return _load(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _load(file: Path, changed: int) -> Found:
    recorder = Recorder()
    try:
        names = vars(_module(file, recorder))
    except (Exception, SystemExit) as error:
        names = {}
        recorder.note(_line(error, file), f"{type(error).__name__}: {error}; mend the file")
    claims = {claim.name: claim for claim in names.values()
              if type(claim) is Claim and _belongs(claim, file)}
    for line, message in _replaced(file, claims):
        recorder.note(line, message)
    if not (claims or recorder.faults):
        recorder.note(1, NO_CLAIMS)
    _loaded.update({id(claim): (claim, file) for claim in claims.values()})
    faults = tuple(f"{file.name}:{fault.line}: {fault.message}" for fault in recorder.faults)
    return Found(tuple(claims.values()), faults)


def _replaced(file: Path, names: Iterable[str]) -> list[tuple[int, str]]:
    """The claims that a later function of the same name in the file replaces."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError):  # of which the loading has told
        return []
    found = []
    for name in names:
        nodes = [node for node in body if isinstance(node, ast.FunctionDef)
                 and node.name == name and node.decorator_list]
        found += [(node.decorator_list[0].lineno, f"{name}: the function of this name in line "
                                                  f"{nodes[-1].lineno} replaces it; rename one")
                  for node in nodes[:-1]]
    return found


def _belongs(claim: Claim, file: Path) -> bool:
    """Whether a claim found in a file is its own, and not just imported there."""
    home = source(claim)
    if home == file or claim.name != claim.body.__name__:
        return True
    built_in = _in(home, BUILT_IN.resolve())
    return built_in and all(claim is not other for other in load(home).claims)


def _files(paths: Iterable[str | Path]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [folder for folder in themes().values() if folder.parent == path.resolve()]
            files += sorted(file for folder in (path, *inside) for file in folder.glob("*.py")
                            if file.name != "__init__.py")
        elif path.is_file() and path.suffix == ".py":
            files.append(path)
        else:
            raise ClaimError(f"{path}: no such Python file or folder; name a .py file with claims")
    return list(dict.fromkeys(file.resolve() for file in files))


def _module(file: Path, recorder: Recorder) -> ModuleType:
    for module_name, home in packages().values():
        if _in(file, home):
            inside = () if file == home else file.relative_to(home).with_suffix("").parts
            return _import(".".join((module_name, *inside)), recorder)
    # Named after the whole path, so that two files of one name live side by side, and taken out of
    # sys.modules afterwards, so that nothing is ever pickled as belonging to an importable module.
    name = f"claims_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # always so for a .py file
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, RECORDER, recorder)
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
        # Modules beside the file are forgotten, too: another folder's may have the same names.
        for new in set(sys.modules) - before:
            place = getattr(sys.modules[new], "__file__", None)
            if new == name or (place and Path(place).is_relative_to(file.parent)):
                del sys.modules[new]
    return module


def _import(name: str, recorder: Recorder) -> ModuleType:
    """An importable module, as an import statement would have it, with a recorder."""
    package, _, stem = name.rpartition(".")
    if package:
        importlib.import_module(package)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    assert spec is not None  # packages has found it
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, RECORDER, recorder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    if package:
        setattr(sys.modules[package], stem, module)
    return module


def _line(error: BaseException, file: Path) -> int:
    """The line of the innermost frame that stands in the file."""
    if isinstance(error, SyntaxError):
        return error.lineno or 1
    number, trace = 1, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == file:
            number = trace.tb_lineno
        trace = trace.tb_next
    return number
