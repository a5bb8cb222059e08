"""From a Python file to the files that it imports, but for what is installed."""

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

INSTALLED = [Path(sysconfig.get_path(name)).resolve() for name in
             ("stdlib", "platstdlib", "purelib", "platlib")]
PACKAGE = Path(__file__).resolve().parents[1]
CALLS = ("import_module", "__import__")  # which import the module that a text names


@lru_cache(maxsize=256)
def imported(file: Path, changed: int) -> tuple[Path, ...]:
    """The file itself and all that it imports, also within its functions, and what those import.

    Without the standard library, installed packages and mcverify. It is looked for when it is
    asked, since no worker needs it; ``changed`` is when the file was. An import by a name that the
    program makes up is not seen.
    """
    waiting, files, before = [file], {file: None}, set(sys.modules)
    sys.path.insert(0, str(file.parent))
    try:
        while waiting:
            for place in _imports(waiting.pop()):
                if place not in files:
                    files[place] = None
                    waiting.append(place)
    finally:
        sys.path.remove(str(file.parent))
        for new in set(sys.modules) - before:  # another folder's may have the same name
            if Path(getattr(sys.modules[new], "__file__", None) or "") in files:
                del sys.modules[new]
    return tuple(files)


def _imports(file: Path) -> Iterator[Path]:
    """The files that a file itself imports; none of one that Python cannot read."""
    try:
        nodes = [*ast.walk(ast.parse(file.read_bytes()))]
    except (SyntaxError, ValueError):  # an import of it fails, which its importer may allow for
        return
    names: dict[str, None] = {}
    for node in nodes:
        for name in names_in(node):
            parts = name.split(".")
            names |= dict.fromkeys(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        if isinstance(node, ast.ImportFrom) and node.level:
            up = file.parents[min(node.level, len(file.parents)) - 1]
            folder = up.joinpath(*(node.module or "").split("."))
            for place in (folder, *(folder / alias.name for alias in node.names)):
                yield from filter(Path.is_file, (Path(f"{place}.py"), place / "__init__.py"))
    yield from filter(None, map(place_of, names))


def names_in(node: ast.AST) -> Iterator[str]:
    """The modules that a statement or a call names; what it takes from one may be one, too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func
        text = node.args[0].value
        if getattr(called, "attr", getattr(called, "id", "")) in CALLS and isinstance(text, str):
            yield text.lstrip(".")


def place_of(name: str) -> Path | None:
    """The file of a module that is not installed; None for one that is, or is not found.

    Nothing is imported, since modules of other folders may have the same names.
    """
    parts, inside = name.split("."), None
    if parts[0] == "mcverify":
        return None
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), inside)
        if spec is None and end == 1:  # of a package that is installed as it stands elsewhere
            with suppress(ImportError, ValueError):
                spec = importlib.util.find_spec(parts[0])
        place = Path(spec.origin).resolve() if spec and spec.origin else Path()
        if spec is None or any(place.is_relative_to(home) for home in INSTALLED):
            return None
        inside = spec.submodule_search_locations
        if inside is None and end < len(parts):
            return None
    return place if place.suffix == ".py" and place.is_file() else None
