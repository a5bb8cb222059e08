"""What is said of a file: lines with a place, what is wrong and the repair; and their report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcverify.declare.claim import Claim
from mcverify.declare.origins import source

PROBLEM = "problem"  # a rule is broken; a run would fail, or its verdict would mean nothing
WARNING = "warning"  # a run may not decide it, or may not mean what it seems to
NOTE = "note"  # what a run will cost


@dataclass(frozen=True)
class Remark:
    """One line about a file: of which kind, where (file:line), and value: rule; repair."""

    kind: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.message}"


def about(claim: Claim, kind: str, message: str) -> Remark:
    """A remark on a claim, at its line."""
    return Remark(kind, place_of(claim), f"{claim.name}: {message}")


def place_of(claim: Claim, function: Callable[..., Any] | None = None) -> str:
    """The file and line of a function, if it stands in the claim's file; else of the claim."""
    file, code = source(claim), getattr(function, "__code__", None)
    if code is None or Path(code.co_filename).resolve() != file:
        code = claim.body.__code__
    return f"{file.name}:{code.co_firstlineno}"


def ok(remarks: Sequence[Remark]) -> bool:
    """Whether none of the remarks is a problem."""
    return not any(remark.kind == PROBLEM for remark in remarks)


def report(remarks: Sequence[Remark]) -> str:
    """The remarks as lines, problems first, and how many there are.

    >>> print(report([Remark(NOTE, "a.py:3", "…"), Remark(PROBLEM, "a.py:9", "wrong: …")]))
    a.py:9: problem: wrong: …
    a.py:3: note: …
    problems: 1, warnings: 0
    """
    kinds, order = [remark.kind for remark in remarks], (PROBLEM, WARNING, NOTE)
    return "\n".join([*map(str, sorted(remarks, key=lambda remark: order.index(remark.kind))),
                      f"problems: {kinds.count(PROBLEM)}, warnings: {kinds.count(WARNING)}"])
