"""The status with which a command ends, and what it says when it cannot go on."""

import _thread
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from mcverify.cli.terminal import show
from mcverify.declare.fault import UsageError


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
    "fault of mcverify itself, 130 interrupted or out of time (what was finished is kept)."
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


def check_docstrings() -> None:
    """Raise UsageError if Python has stripped the sentences of claims."""
    if sys.flags.optimize > 1:
        raise UsageError("Python runs without docstrings (-OO, PYTHONOPTIMIZE=2), which hold the "
                         "sentences of claims; run it without that option")


def end_at_sigterm_as_at_ctrl_c() -> None:
    """Let SIGTERM raise KeyboardInterrupt, so that what was finished is kept and processes end."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def ended_when_over(seconds: float | None, over: threading.Event) -> Iterator[None]:
    """Inside it KeyboardInterrupt is raised when the time is over, which the event then tells.

    What the main thread waits for is ended as by SIGTERM.
    """
    if seconds is None:
        yield
        return
    main = threading.main_thread().ident

    def end() -> None:
        over.set()
        if main and signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
            signal.pthread_kill(main, signal.SIGTERM)
        else:
            _thread.interrupt_main()

    timer = threading.Timer(max(0.0, seconds), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def refuse(message: str) -> Exit:
    """Say in one line what is wrong with what was asked for."""
    show(f"mcverify: {' '.join(message.split())}", stderr=True)
    return Exit.BAD_USAGE


def report_faults(faults: Sequence[str]) -> Exit:
    """Say what is broken in the files that were named, if anything is."""
    for fault in faults:
        refuse(fault)
    return Exit.BAD_USAGE if faults else Exit.AS_DECLARED


def own_fault() -> Exit:
    """Say that the exception at hand is a fault of mcverify."""
    show("mcverify: this is a fault of mcverify itself, not of a claim; what was finished is kept. "
         f"Please report it with these lines:\n{traceback.format_exc().strip()}", stderr=True)
    return Exit.FAULT
