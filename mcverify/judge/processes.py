"""Make many calls, here or in processes of which one may die without harming the others."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing import (
    connection,
    forkserver,
    get_all_start_methods,
    get_context,
    parent_process,
    resource_tracker,
)
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import cloudpickle
from threadpoolctl import threadpool_limits

# A fork server imports NumPy and SciPy once, in a process without threads. Every worker is a fork
# of it and there in milliseconds; one that is spawned takes a second.
START_METHOD = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
PRELOADED = ["mcverify.judge.measure", "scipy.optimize"]
# BLAS on one thread; and memory that is given back is faulted in again with the next chunk.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)} | {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB")}

Function = Callable[..., Any]
Calls = Iterable[tuple[Any, ...]]  # their arguments
OnStep = Callable[[int, int], None]  # of a call's index and a step of it
Spread = Callable[..., Iterator[tuple[int, Any]]]


class Killed(NamedTuple):
    """What stands for the result of a call whose process died: how, and how far it had come.

    ``step`` is the last number that the call gave to ``note_step``, -1 if none.
    """

    how: str
    step: int


@contextmanager
def workers(jobs: int | None = None) -> Iterator[Spread]:
    """Inside it, spread(function, calls) yields (index of the call, result) in any order.

    With ``jobs`` of 1 the calls are made here, in order, and one that kills its process ends the
    run; otherwise in so many processes (default: one a core), but no more than there are calls. A
    process makes one call at a time, so that when it is killed, by the system or by what it runs,
    it is known which call did it: that one's result is ``Killed``, a new process takes its place,
    and no call is made a second time. BLAS runs on one thread either way, since its result may
    depend on their number in the last bit. Ctrl-C is left to the parent, and processes end with it.

    ``calls`` may be an iterator that goes on after its end, once a result has added to it.
    ``spread(…, on_step=…)`` calls on_step(index, step) here when a call begins, with a step of -1,
    and at each step that it notes. An exception in a call is raised here.

    >>> with workers(jobs=1) as spread:
    ...     dict(spread(pow, [(2, 3), (3, 2)]))
    {0: 8, 1: 9}
    """
    made = [_Worker() for _ in range(jobs or cores())]
    try:
        with threadpool_limits(1):
            yield _calls_here if jobs == 1 else partial(_calls_in, made)
    finally:
        for worker in made:
            worker.stop()


def warm_up() -> None:
    """Let the fork server, if there is one, begin with its imports while others go on here."""
    if START_METHOD == "forkserver":
        with _bare():
            forkserver.set_forkserver_preload(PRELOADED)
            forkserver.ensure_running()


def cores() -> int:
    """How many processes can run at once: the cores that this one may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:  # a container's share of them
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(allowed or 1, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed or 1


def note_step(number: int) -> None:
    """Tell how far the call has come, for who waits and for the case that its process is killed."""
    _on_step(number)


def in_worker() -> bool:
    """Whether this is one of the processes that make the calls."""
    return _in_worker


def _ignore(*_: int) -> None:
    """Where nobody asks for steps."""


_on_step: Callable[[int], None] = _ignore
_in_worker = False


def _calls_here(
    function: Function, calls: Calls, on_step: OnStep = _ignore
) -> Iterator[tuple[int, Any]]:
    global _on_step
    outer = _on_step
    for index, call in enumerate(calls):
        _on_step = partial(on_step, index)
        _on_step(-1)
        try:
            result = function(*call)
        finally:
            _on_step = outer
        yield index, result


def _calls_in(
    made: "list[_Worker]", function: Function, calls: Calls, on_step: OnStep = _ignore
) -> Iterator[tuple[int, Any]]:
    waiting = iter(enumerate(calls))
    ahead: list[tuple[int, tuple[Any, ...]]] = []  # a call, made ready while others are under way
    at_work: dict[_Worker, int] = {}

    def begin(worker: _Worker) -> None:
        for index, call in [ahead.pop()] if ahead else islice(waiting, 1):
            worker.begin(function, call)
            at_work[worker] = index
            on_step(index, -1)

    try:
        while True:
            for worker in made:
                if worker not in at_work:
                    begin(worker)
            ahead.extend(islice(waiting, 1 - len(ahead)))
            if not at_work:
                return
            ready = set(connection.wait([sign for worker in at_work for sign in worker.signs]))
            for worker in [worker for worker in at_work if not ready.isdisjoint(worker.signs)]:
                kind, value = worker.message()
                if kind == "step":
                    on_step(at_work[worker], value)
                elif kind == "error":
                    raise value
                else:
                    index = at_work.pop(worker)
                    begin(worker)
                    yield index, value
    finally:
        for worker in at_work:  # whose results nobody waits for any more
            worker.stop()


class _Worker:
    """A process that makes one call at a time, and is replaced when it has died."""

    process: Any = None

    def begin(self, function: Function, call: tuple[Any, ...]) -> None:
        """Begin a call, which must not be under way."""
        if self.process is None or not self.process.is_alive():
            self.stop()
            context: Any = get_context(START_METHOD)
            self.pipe, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs,), daemon=True)
            warm_up()
            with _bare():
                process.start()
                self.process = process
            theirs.close()
        self.step = -1
        self.signs = [self.pipe, self.process.sentinel]  # ready when it has told something or died
        self.pipe.send_bytes(cloudpickle.dumps((function, call)))

    def message(self) -> tuple[str, Any]:
        """("step", number), ("error", exception), ("result", anything) or ("result", Killed)."""
        try:
            if not self.pipe.poll():
                raise EOFError
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(1)
            code = self.process.exitcode
            self.stop()
            how = "" if code is None else signal.Signals(-code).name if code < 0 else "EXIT"
            return "result", Killed(f"{how}({code})", self.step)
        self.step = value if kind == "step" else self.step
        return kind, value

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process.close()
            self.pipe.close()
            self.process = None


@contextmanager
def _bare() -> Iterator[None]:
    """Let processes start without Ctrl-C, threads for BLAS, or the script that is running.

    A process imports that script, which would run it again, if it knew of it.
    """
    resource_tracker.ensure_running()  # which would lift the mask
    added = {name: one for name, one in ENVIRONMENT.items() if name not in os.environ}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    script = sys.modules["__main__"]
    os.environ.update(added)
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
        for name in added:
            del os.environ[name]
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


# --- in the worker ----------------------------------------------------------------------------


def _work(pipe: Any) -> None:
    """Make the calls that come through the pipe until the parent is gone."""
    global _in_worker, _on_step
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is left to the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _in_worker, _on_step = True, lambda number: pipe.send(("step", number))
    limits = None
    with suppress(EOFError, ConnectionError):
        while True:
            function, call = pipe.recv()
            # By now the libraries are there; those that come later go by the environment.
            limits = limits or threadpool_limits(1)
            pipe.send_bytes(cloudpickle.dumps(_answer(function, call)))


def _answer(function: Function, call: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "result", function(*call)
    except BaseException as error:
        error.add_note(f"in a process of its own:\n{traceback.format_exc()}")
        return "error", error


def _end_with_parent() -> None:
    """End this process when its parent is gone, to which a SIGKILL left no time to do it."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
