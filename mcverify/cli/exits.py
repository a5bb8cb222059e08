"""With which status a command ends, and the errors that decide it."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from mcverify.declare.prediction import UsageError


class Exit(IntEnum):
    """The statuses; FAULT is that of sysexits.h for an internal error."""

    AS_DECLARED = 0
    CONTRADICTED = 1
    BAD_USAGE = 2
    UNDECIDED = 3
    FAULT = 70
    INTERRUPTED = 130


MEANING = (
    "Exit status: 0 every verdict as declared, 1 a verdict contradicts its declaration, 2 bad "
    "usage or a broken claim file, 3 none contradicts but some are inconclusive or errors, 70 a "
    "fault of mcverify itself, 130 interrupted (what was finished is kept)."
)


@contextmanager
def refused() -> Iterator[None]:
    """Inside it a ValueError, which tells what is wrong with its input, is bad usage."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Inside it a folder that cannot be written to is bad usage."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"--out {folder}: cannot be written to ({error.strerror}); choose "
                         "another folder") from None
