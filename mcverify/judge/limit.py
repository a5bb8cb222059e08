"""End what runs here and takes too long, as a process of its own would be ended."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def over(seconds: float) -> str:
    """What is told of it.

    >>> over(60.0)
    'over 60 s, the most that is allowed; mend an endless loop, or allow more with --body-limit'
    """
    return (f"over {seconds:g} s, the most that is allowed; mend an endless loop, or allow more "
            "with --body-limit")


@contextmanager
def limited(seconds: float | None, what: str) -> Iterator[None]:
    """Inside it ValueError is raised if ``what`` is at work for longer; None allows all.

    Only the main thread can be interrupted, between two steps of Python.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise ValueError(f"{what} took {over(seconds)}")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)  # again for who catches all exceptions
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
