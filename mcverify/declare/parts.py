"""From a Python file to its definitions, what it imports, and the text of each."""

import ast
import gc
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

REST = ""  # the name of what a file does besides defining
ALL = "*"  # all that a file defines
# Decorators that leave a function to who names it; others may register it somewhere.
LOCAL = {"cache", "claim", "contextmanager", "dataclass", "final", "lru_cache", "overload",
         "singledispatch", "wraps"}
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Chain = tuple[str, ...]  # a.b.c
QUOTED = (ast.Constant, ast.JoinedStr)
# Of a syntax tree what may hold more, which is not so of operators and of how a name is used.
KINDS = frozenset(each for each in vars(ast).values() if isinstance(each, type) and issubclass(
    each, ast.AST) and not issubclass(each, ast.expr_context | ast.operator | ast.unaryop
                                      | ast.boolop | ast.cmpop))


class Part(NamedTuple):
    """A definition of a file, or REST of it."""

    file: Path
    name: str


@dataclass
class Module:
    """The definitions of a file, and where the names come from that it imports."""

    file: Path
    lines: list[str] = field(default_factory=list)
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, list[tuple[str, Chain]]] = field(default_factory=dict)

    def part(self, name: str) -> list[ast.stmt]:
        """The statements of a definition."""
        return self.defined.get(name, [])


def text_of(part: Part, docstrings: bool = False) -> str:
    """The lines of a part, without comments and, unless they are asked for, docstrings."""
    return _text(part, docstrings, changed(part.file))


def words_of(part: Part) -> frozenset[str]:
    """The texts in a part that may name a file."""
    return _words(part, changed(part.file))


def module(file: Path) -> Module:
    """A file as it is now."""
    return _module(file, changed(file))


def changed(file: Path) -> int:
    """When a file was changed."""
    if _seen is None:
        return file.stat().st_mtime_ns
    if file not in _seen:
        _seen[file] = file.stat().st_mtime_ns
    return _seen[file]


_seen: dict[Path, int] | None = None


@contextmanager
def looked_at_once() -> Iterator[None]:
    """Inside it nobody looks again whether a file has changed since it was looked at.

    Nor for garbage, since syntax trees have no cycles, and to go through them takes as long.
    """
    global _seen
    outer, collects = _seen, gc.isenabled()
    _seen = {} if outer is None else outer
    gc.disable()
    try:
        yield
    finally:
        _seen = outer
        if collects:
            gc.enable()


def nodes(tree: ast.AST) -> list[ast.AST]:
    """All that a syntax tree holds, but for operators and whether a name is read or set.

    >>> [type(node).__name__ for node in nodes(ast.parse("a + 1"))]
    ['Module', 'Expr', 'BinOp', 'Name', 'Constant']
    """
    found = [tree]
    for node in found:
        found += children(node)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """What ``nodes`` finds right below a node."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if value.__class__ is list:
            found += [each for each in value if each.__class__ in KINDS]
        elif value.__class__ in KINDS:
            found.append(value)
    return found


@lru_cache(maxsize=1024)
def _module(file: Path, changed: int) -> Module:
    text = file.read_bytes()
    made = Module(file, text.decode(errors="replace").splitlines())
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        made.defined[REST] = [ast.Pass(lineno=1, end_lineno=len(made.lines))]
        return made
    for statement in tree.body:
        for name in _defined_by(statement):
            made.defined.setdefault(name, []).append(statement)
    for node in nodes(tree):
        for name, home, chain in _imports(node, file):
            made.imported.setdefault(name, []).append((home, chain))
    return made


def _defined_by(node: ast.stmt) -> list[str]:
    """The names of the parts that a statement belongs to."""
    if isinstance(node, DEFINED):
        called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
        names = {getattr(each, "attr", getattr(each, "id", "")) for each in called}
        return [node.name, *([] if names <= LOCAL else [REST])]
    if isinstance(node, ast.Assign) and all(isinstance(each, ast.Name) for each in node.targets):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return []  # a docstring
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return []
    stored = {each.id for each in ast.walk(node)
              if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return [REST, *stored, *(each.name for each in ast.walk(node) if isinstance(each, DEFINED))]


def _imports(node: ast.AST, file: Path) -> Iterator[tuple[str, str, Chain]]:
    """The names that a statement imports: each with a module, and with what it takes from that.

    A module is told by its name or, if it is relative, by its path.
    """
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or whole, whole, ()
    elif isinstance(node, ast.ImportFrom):
        home = node.module or ""
        if node.level:
            folder = file.parents[min(node.level, len(file.parents)) - 1]
            home = str(folder.joinpath(*home.split(".")) if home else folder)
        for alias in node.names:
            yield alias.asname or alias.name, home, (alias.name,)


@lru_cache(maxsize=8192)
def _text(part: Part, docstrings: bool, changed: int) -> str:
    here = module(part.file)
    return "\n".join(line for statement in here.part(part.name)
                     for line in _code(here.lines, statement, docstrings))


@lru_cache(maxsize=8192)
def _words(part: Part, changed: int) -> frozenset[str]:
    texts = {node.value for statement in module(part.file).part(part.name)
             for node in nodes(statement)
             if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(text for text in texts
                     if "." in text and len(text) < 256 and text.isprintable())


def _code(lines: list[str], statement: ast.stmt, docstrings: bool) -> Iterator[str]:
    """The lines of a statement that are no comments, and no docstrings unless asked for."""
    quoted, told = set[int](), set[int]()
    for node in nodes(statement):
        if isinstance(node, QUOTED) and node.end_lineno:
            quoted.update(range(node.lineno + 1, node.end_lineno + 1))
        if isinstance(node, DEFINED) and ast.get_docstring(node, clean=False) is not None:
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    decorators = [each.lineno for each in getattr(statement, "decorator_list", [])]
    for number in range(min([statement.lineno, *decorators]), (statement.end_lineno or 0) + 1):
        line = lines[number - 1].rstrip()
        spared = number in told and not docstrings
        bare = number not in quoted and line.lstrip()[:1] in ("", "#")
        if not (spared or bare):
            yield line


def digest(texts: list[str]) -> str:
    """Sixteen hexadecimal digits that tell texts from others.

    >>> digest(["a", "b"]) == digest(["a", "b"]) != digest(["ab"])
    True
    """
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
