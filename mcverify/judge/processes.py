"""From many calls to their results, in this process or in several that may die."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from loky import cpu_count
from loky.backend import get_context
from loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError
from threadpoolctl import threadpool_limits

START_METHODS = ("loky", "spawn", "fork")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB")}


class Killed(NamedTuple):
    """What stands for the result of a call whose process died: how, and how far it had come.

    ``step`` is the last number that the call gave to ``at_step``, -1 if none.
    """

    how: str
    step: int


Spread = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[tuple[int, Any]]]


@contextmanager
def workers(jobs: int | None = None, start_method: str = "loky") -> Iterator[Spread]:
    """Inside it, spread(function, calls) yields (index of the call, result) in any order.

    With ``jobs`` of 1 the calls are made here, in order, and one that kills its process ends the
    run; otherwise in so many processes (default: one a core). A process does one call at a time,
    so that when it is killed, by the system or by what it runs, it is known which call did it:
    that one's result is ``Killed``, a new process takes its place, and no call is made a second
    time. BLAS runs on one thread either way, since its result may depend on their number in the
    last bit. Ctrl-C is left to the parent.

    >>> with workers(jobs=1) as spread:
    ...     dict(spread(pow, [(2, 3), (3, 2)]))
    {0: 8, 1: 9}
    """
    if start_method not in START_METHODS:
        raise ValueError(f"start_method={start_method!r}: must be one of "
                         f"{', '.join(START_METHODS)}")
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if jobs == 1:
            yield _here
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcverify-")))
        slots = [_Slot(folder / str(number), start_method)
                 for number in range(jobs or cpu_count())]
        for slot in slots:
            stack.callback(slot.stop)
        yield lambda function, calls: _spread(slots, function, calls)


def at_step(number: int) -> None:
    """Note how far the call has come, for the case that its process is killed."""
    if _progress is not None:
        os.pwrite(_progress, b"%-20d" % number, 0)


def apart() -> bool:
    """Whether this is one of the processes that make the calls."""
    return _progress is not None


def _here(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    return ((index, function(*call)) for index, call in enumerate(calls))


def _spread(
    slots: "list[_Slot]", function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    waiting = iter(enumerate(calls))
    running: dict[Future[Any], tuple[_Slot, int]] = {}

    def begin(slot: "_Slot") -> None:
        for index, call in waiting:
            running[slot.submit(function, call)] = (slot, index)
            return

    for slot in slots:
        begin(slot)
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            slot, index = running.pop(future)
            result = slot.result(future)
            begin(slot)
            yield index, result


class _Slot:
    """One process, replaced when it dies."""

    def __init__(self, progress: Path, start_method: str) -> None:
        self.progress, self.context = progress, get_context(start_method)
        self.pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[..., Any], call: tuple[Any, ...]) -> "Future[Any]":
        if self.pool is None:
            self.progress.write_bytes(b"")
            self.pool = ProcessPoolExecutor(1, context=self.context, initializer=_begin,
                                            initargs=(str(self.progress),), env=ONE_THREAD)
        future: Future[Any] = self.pool.submit(_call, function, call)
        return future

    def result(self, future: "Future[Any]") -> Any:
        try:
            return future.result()
        except TerminatedWorkerError as error:
            self.stop()
            how = str(error).rpartition("{")[2].partition("}")[0]  # e.g. SIGKILL(-9)
            return Killed(how or "unknown", int(self.progress.read_bytes() or b"-1"))

    def stop(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=True)
            self.pool = None


# --- in the worker ----------------------------------------------------------------------------

_progress: int | None = None
_limits: Any = None


def _begin(progress: str) -> None:
    import scipy.linalg  # noqa: F401  # BLAS must be loaded to be limited

    global _progress, _limits
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    _progress = os.open(progress, os.O_WRONLY)
    _limits = threadpool_limits(1)


def _follow(parent: int) -> None:
    """End this process when its parent is gone, to which a SIGKILL left no time to do it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _call(function: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    at_step(-1)
    return function(*call)
