"""From a name in a Python file to all definitions that its value may depend on.

A definition is a top-level function, class or variable. It leads to those that it names, also by
way of imports, of packages that pass names on, and of imports within functions. What else a file
does when it is imported belongs to all its definitions. All is read off the text: a name that the
program makes up is not seen.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from mcverify.declare.imports import CALLS, PACKAGE, names_in, place_of
from mcverify.declare.parts import ALL, REST, Chain, Module, Part, changed, children, module


def reached(
    file: Path, names: Sequence[str], known: frozenset[Part] = frozenset()
) -> tuple[frozenset[Part], frozenset[str]]:
    """All parts that these definitions of a file depend on, and the packages, e.g. "numpy".

    Without those that are ``known``, and what they depend on.
    """
    waiting, parts, packages = [Part(file, name) for name in names], set(known), set[str]()
    while waiting:
        part = waiting.pop()
        if part in parts:
            continue
        parts.add(part)
        there, outside = _next(part, changed(part.file))
        waiting += there
        packages |= outside
    return frozenset(parts - known), frozenset(packages)


def defines(file: Path, name: str) -> bool:
    """Whether a file defines a name."""
    return name in module(file).defined


@lru_cache(maxsize=8192)
def _next(part: Part, changed: int) -> tuple[frozenset[Part], frozenset[str]]:
    """The parts that a part names itself, and the packages."""
    here, there, outside = module(part.file), set[Part](), set[str]()
    if part.name == ALL:
        there |= {Part(part.file, name) for name in (*here.defined, *here.imported)}
    elif part.name not in here.defined and part.name in here.imported:
        _follow(here, (part.name,), there, outside)
    else:
        there.add(Part(part.file, REST))
        for statement in here.part(part.name):
            for chain in _chains(statement):
                _follow(here, chain, there, outside)
                if chain[-1] in CALLS:
                    for name in (name for node in ast.walk(statement) for name in names_in(node)):
                        _resolve(here.file, name, (), there, outside)
        for home, _ in here.imported.get(ALL, []):
            _resolve(here.file, home, (), there, outside)
    return frozenset(there), frozenset(outside)


def _chains(node: ast.AST) -> Iterator[Chain]:
    """The names in a statement, each with the attributes that are asked of it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            yield (node.id, *reversed(names))
        else:
            waiting += children(node)


def _follow(here: Module, chain: Chain, there: set[Part], outside: set[str]) -> None:
    name, *rest = chain
    if name in here.defined:
        there.add(Part(here.file, name))
    for home, taken in here.imported.get(name, []):
        _resolve(here.file, home, (*taken, *rest), there, outside)


def _resolve(asking: Path, home: str, chain: Chain, there: set[Part], outside: set[str]) -> None:
    """Go from a module along names, to the definition that they end at."""
    file = _file_of(home, asking.parent)
    if file is None:
        if home.partition(".")[0] not in sys.stdlib_module_names:
            outside.add(home.partition(".")[0])
        return
    name = chain[0] if chain else ALL
    inner = f"{home}/{name}" if Path(home).is_absolute() else f"{home}.{name}"
    asked = module(file)
    itself = [(home, (name,)), (str(file.parent), (name,))]
    passed_on = [each for each in asked.imported.get(name, []) if each not in itself]
    if name in asked.defined or name == ALL:
        there.add(Part(file, name))
    elif passed_on:
        _follow(asked, chain, there, outside)
    elif file.name == "__init__.py" and _file_of(inner, asking.parent):
        _resolve(asking, inner, chain[1:], there, outside)
    elif "__getattr__" in asked.defined:
        there.add(Part(file, ALL))
    else:
        there.add(Part(file, REST))


@cache
def _file_of(home: str, folder: Path) -> Path | None:
    """The file of a module that is not installed; a folder is that of who imports it."""
    if Path(home).is_absolute():
        places = [Path(f"{home}.py"), Path(home, "__init__.py")]
    elif home.partition(".")[0] == "mcverify":
        place = PACKAGE.joinpath(*home.split(".")[1:])
        places = [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    else:
        sys.path.insert(0, str(folder))
        try:
            return place_of(home)
        finally:
            sys.path.remove(str(folder))
    return next(filter(Path.is_file, places), None)
