"""From something found in a file to a line that says where it stands, what it is and the repair."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mcverify.declare.claim import Claim
from mcverify.declare.discover import source


@dataclass(frozen=True)
class Remark:
    """One line about a file: where (file:line), and value: rule; repair.

    >>> str(Problem("mine.py:7", "my_claim: has no controls; name one with controls="))
    'mine.py:7: problem: my_claim: has no controls; name one with controls='
    """

    place: str
    message: str
    word: ClassVar[str] = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.word}: {self.message}"


class Problem(Remark):
    """A rule is broken; a run would fail, or its verdict would mean nothing."""

    word = "problem"


class Doubt(Remark):
    """Not broken, but a run may not decide it, or may not mean what it seems to."""

    word = "warning"


class Note(Remark):
    """What a run will cost."""

    word = "note"


def place_of(claim: Claim) -> str:
    """The file and line at which a claim's body begins."""
    return f"{source(claim).name}:{claim.body.__code__.co_firstlineno}"


def place_of_function(function: Callable[..., Any], file: Path) -> str:
    """The file and line of a function, "" if it does not stand in ``file``."""
    code = getattr(function, "__code__", None)
    if code is None or Path(code.co_filename).resolve() != file:
        return ""
    return f"{file.name}:{code.co_firstlineno}"
