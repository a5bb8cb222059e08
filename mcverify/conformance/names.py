"""From the text of a file and the names it leaves behind to claims and laws that got lost."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcverify.conformance.guard import reading
from mcverify.conformance.remarks import Doubt, Problem, Remark, place_of
from mcverify.declare.claim import Claim, collect_faults
from mcverify.declare.discover import _module, load

LAW = ("draw", "moments", "finite_moments", "coupled", "__str__")


def look(file: Path) -> Iterator[Remark]:
    """What the survey of a file cannot tell: names taken twice, claims never found, broken laws."""
    found = load(file)
    for fault in found.faults:
        place, _, message = fault.partition(": ")
        yield Problem(place, message)
    names, read = _names(file)
    for what, measured in read:
        text = f"{what} while it is loaded; a prediction must not come from what was measured"
        yield (Problem if measured == "results" else Doubt)(f"{file.name}:1", text)
    if any(" is not a law" in fault for fault in found.faults):
        yield from _incomplete_laws(file, names)
    yield from _taken_twice(names)
    if found.claims:
        lines = {int(fault.split(":")[1]) for fault in found.faults}
        lines |= {claim.body.__code__.co_firstlineno for claim in names.values()
                  if isinstance(claim, Claim)}
        yield from _lost(file, lines)


def _names(file: Path) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The module's names, and the tables that it reads while it is loaded."""
    with reading() as read:
        try:
            with collect_faults():
                names = dict(vars(_module(file)))
        except (Exception, SystemExit):  # of which the survey tells
            names = {}
    return names, [(what, kind) for what, kind in read if kind != "file"]


def _taken_twice(names: dict[str, Any]) -> Iterator[Remark]:
    claims = {id(value): (variable, value) for variable, value in names.items()
              if isinstance(value, Claim)}
    first: dict[str, str] = {}
    for variable, claim in claims.values():
        other = first.setdefault(claim.name, variable)
        if other != variable:
            yield Problem(place_of(claim), f"{claim.name}: both {other} and {variable} are claims "
                          "of this name, and only the last is kept; give the other one another, "
                          "e.g. dataclasses.replace(claim, name=…)")


def _incomplete_laws(file: Path, names: dict[str, Any]) -> Iterator[Remark]:
    """Classes of the file that draw but lack a part of a law."""
    for kind in names.values():
        if isinstance(kind, type) and kind.__module__ == names["__name__"] and (
                hasattr(kind, "draw")):
            has = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
            missing = [name for name in LAW if name not in has]
            if missing:
                line = _line(file, kind.__name__)
                yield Problem(f"{file.name}:{line}", f"{kind.__name__}: has no "
                              f"{', '.join(missing)}; a law has {', '.join(LAW)}: add them, as "
                              "`mcverify new NAME --law` shows")


def _line(file: Path, name: str) -> int:
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return next((node.lineno for node in nodes
                 if isinstance(node, ast.ClassDef) and node.name == name), 1)


def _lost(file: Path, lines: set[int]) -> Iterator[Remark]:
    """Functions under @claim(…) that are no claim in the end; ``lines`` are those of the others."""
    functions = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                 if isinstance(node, ast.FunctionDef) and any(map(_is_claim, node.decorator_list))]
    for node in functions:
        if node.decorator_list[0].lineno in lines:
            continue
        later = [other.lineno for other in functions
                 if other.name == node.name and other.lineno > node.lineno]
        if not later:  # of which the loading tells
            yield Problem(f"{file.name}:{node.decorator_list[0].lineno}", f"{node.name}: is not "
                          "found; a claim must stand at the top level of its file")


def _is_claim(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return "claim" in (getattr(called, "id", ""), getattr(called, "attr", ""))
