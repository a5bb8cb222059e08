"""From a Python file to the claims that stand in it, and to what is broken there."""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from mcverify.declare.claim import Claim
from mcverify.declare.fault import RECORDER, Recorder
from mcverify.declare.origins import BUILT_IN, packages, source, within

NO_CLAIMS = "holds no claims; decorate a function with @claim(…)"

_loaded: dict[int, tuple[Claim, Path]] = {}


@dataclass(frozen=True)
class Loaded:
    """The claims of some files, and a line for each thing in them that is broken."""

    claims: tuple[Claim, ...]
    faults: tuple[str, ...]


def load(file: Path) -> Loaded:
    """The module-level claims of one file, read anew only when the file has changed."""
    return _load(file, file.stat().st_mtime_ns)


def loaded_from(claim: Claim) -> Path | None:
    """The file by whose loading any process can get this very claim.

    None for one that was changed, typed at a prompt, or made by the script that is running, which
    loading would run again.
    """
    held, file = _loaded.get(id(claim), (None, None))
    return file if held is claim else None


@lru_cache(maxsize=256)
def _load(file: Path, changed: int) -> Loaded:
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
    return Loaded(tuple(claims.values()), faults)


def _replaced(file: Path, names: Iterable[str]) -> list[tuple[int, str]]:
    """The claims that a later function of the same name in the file replaces."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError):  # of which the loading has told
        return []
    lines = []
    for name in names:
        nodes = [node for node in body if isinstance(node, ast.FunctionDef)
                 and node.name == name and node.decorator_list]
        lines += [(node.decorator_list[0].lineno, f"{name}: the function of this name in line "
                                                  f"{nodes[-1].lineno} replaces it; rename one")
                  for node in nodes[:-1]]
    return lines


def _belongs(claim: Claim, file: Path) -> bool:
    """Whether a claim found in a file is its own, and not just imported there."""
    home = source(claim)
    if home == file or claim.name != claim.body.__name__:
        return True
    built_in = within(home, BUILT_IN.resolve())
    return built_in and all(claim is not other for other in load(home).claims)


def _module(file: Path, recorder: Recorder) -> ModuleType:
    for module_name, home in packages().values():
        if within(file, home):
            inside = () if file == home else file.relative_to(home).with_suffix("").parts
            return _import(".".join((module_name, *inside)), recorder)
    # Named after the whole path, so that two files of one name live side by side, and taken out of
    # sys.modules afterwards, so that nothing is ever pickled as belonging to an importable module.
    name = f"claims_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_AsItStands(name, str(file)))
    assert spec is not None  # as a loader is given
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, RECORDER, recorder)
    before, written = set(sys.modules), sys.dont_write_bytecode
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    sys.dont_write_bytecode = True  # of what stands beside the file, either
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
        sys.path.remove(str(file.parent))
        # Modules beside the file are forgotten, too: another folder's may have the same names.
        for new in set(sys.modules) - before:
            place = getattr(sys.modules[new], "__file__", None)
            if new == name or (place and Path(place).is_relative_to(file.parent)):
                del sys.modules[new]
    return module


class _AsItStands(SourceFileLoader):
    """Reads a file anew. What Python has compiled of it counts as new while the second in which
    the file was changed and the number of its bytes are the same."""

    def get_code(self, fullname: str) -> CodeType:
        """The file, compiled."""
        return self.source_to_code(self.get_data(self.path), self.path)


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
