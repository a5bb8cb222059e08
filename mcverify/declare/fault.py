"""What is wrong with claims: the error of a broken one, and what a file's loading tells of them."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

RECORDER = "__mcverify_recorder__"  # in the names of a module that is loaded for its claims


class ClaimError(ValueError):
    """A claim that breaks a rule; the message says value, rule and repair."""


class UsageError(Exception):
    """A command line that cannot be carried out; the message says value, rule and repair."""


@dataclass(frozen=True)
class Fault:
    """A declaration that breaks a rule, in the place of its claim: who uses it is told."""

    line: int
    message: str

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ClaimError(f"line {self.line}: {self.message}")


@dataclass
class Recorder:
    """The faults in a file, noted while it is loaded.

    A declaration finds it among the names of its module, so that a broken one is noted and the
    file's other claims are read; without a recorder it raises.
    """

    faults: list[Fault] = field(default_factory=list)

    def note(self, line: int, message: str) -> Fault:
        """Note a fault, and return it."""
        fault = Fault(line, message)
        self.faults.append(fault)
        return fault


def recorder_of(function: Any) -> Recorder | None:
    """The recorder of the module that a function is defined in, if it is loaded for its claims."""
    recorder = getattr(function, "__globals__", {}).get(RECORDER)
    return recorder if isinstance(recorder, Recorder) else None
