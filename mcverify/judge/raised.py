"""What a law or a body raises, and one line that says it and where."""

import traceback
from pathlib import Path

from mcverify.declare.imports import INSTALLED
from mcverify.judge.worker import in_worker

PACKAGE = Path(__file__).resolve().parents[1]
CLAIMS = PACKAGE / "claims"


def own_faults() -> tuple[type[BaseException], ...]:
    """What a law or a body may raise without ending the run, for use after ``except``.

    Ctrl-C is left to the parent, so that in a process of its own KeyboardInterrupt is a fault, too.
    """
    return (BaseException,) if in_worker() else (Exception, SystemExit)


def described(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own text breaks
        text = ""
    if "read-only" in text or "WRITEABLE" in text:
        text += "; q, k and what is made of them are shared with other claims: work on a copy"
    told = text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
    return told + _place(error)


def _place(error: BaseException) -> str:
    """Where in a file of claims or laws it happened: the innermost line of one; "" if nowhere."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename).resolve()
        own = PACKAGE in file.parents and CLAIMS not in file.parents
        if not own and file.is_file() and not any(home in file.parents for home in INSTALLED):
            place = f" ({file.name}, line {line})"
    return place
