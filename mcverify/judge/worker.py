"""A process that makes one call at a time, and is replaced when it has died."""

import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import (
    connection,
    forkserver,
    get_all_start_methods,
    get_context,
    parent_process,
    resource_tracker,
)
from types import ModuleType
from typing import Any, NamedTuple

import cloudpickle
from threadpoolctl import threadpool_limits

from mcverify.judge.limit import over

# A fork server imports NumPy and SciPy once, in a process without threads. Every worker is a fork
# of it and there in milliseconds; one that is spawned takes a second.
START_METHOD = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
PRELOADED = ["mcverify.judge.measure", "scipy.optimize"]
# BLAS on one thread; and memory that is given back is faulted in again with the next chunk.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)} | {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB")}
TICK = 1.0  # seconds after which a step under a limit is looked at again

Function = Callable[..., Any]
# How far a call has come, which whoever makes it writes and others read at any time: the last
# number that it gave to note_step, -1 before, and the share of that step which is done, and since
# when it is at it, by the clock that processes share.
Noted = MutableSequence[float]


class Killed(NamedTuple):
    """What stands for the result of a call whose process died: how, and how far it had come.

    ``step`` is the last number that the call gave to ``note_step``, -1 if none, and None where it
    is lost.
    """

    how: str
    step: int | None


def note_step(number: int) -> None:
    """Tell how far the call has come, for who waits and for the case that its process is killed."""
    _noted[1] = time.monotonic()  # first: who reads both must not take a new step for an old one
    _noted[0] = number


def note_share(share: float) -> None:
    """Tell, to who waits, how much of the noted step is done, of 1."""
    _noted[0] = math.floor(_noted[0]) + min(max(share, 0.0), 0.99)


@contextmanager
def noting(noted: Noted) -> Iterator[None]:
    """Inside it steps are noted in ``noted``."""
    global _noted
    outer, _noted = _noted, noted
    try:
        yield
    finally:
        _noted = outer


def in_worker() -> bool:
    """Whether this is one of the processes that make the calls."""
    return _in_worker


_noted: Noted = [-1.0, 0.0]
_in_worker = False


class Worker:
    """A process that makes one call at a time, started with the first and when it has died."""

    process: Any = None

    def begin(self, function: Function, call: tuple[Any, ...]) -> None:
        """Begin a call, which must not be under way."""
        if self.process is None or not self.process.is_alive():
            self.stop()
            context: Any = get_context(START_METHOD)
            self.noted = context.RawArray("d", 2)
            self.pipe, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, self.noted), daemon=True)
            warm_up()
            with _bare():
                process.start()
                self.process = process
            theirs.close()
        self.noted[:] = -1.0, math.inf  # until it notes a step
        self.signs = [self.pipe, self.process.sentinel]  # ready when it has told something or died
        self.pipe.send_bytes(cloudpickle.dumps((function, call)))

    def progress(self) -> tuple[float, float]:
        """The last step of the call with its share that is done, and since when it is at it."""
        return self.noted[0], self.noted[1]

    def answer(self, limit: float | None = None) -> tuple[str, Any] | None:
        """("error", exception) or ("result", anything), which is Killed if the process has died.

        None if it is still at work; if it is at one step for over ``limit`` seconds, it is killed.
        """
        if connection.wait(self.signs, 0):
            with suppress(EOFError, OSError):
                if self.pipe.poll():
                    kind, value = self.pipe.recv()
                    return kind, value
            self.process.join(1)
            step, code = math.floor(self.noted[0]), self.process.exitcode
            how = "" if code is None else signal.Signals(-code).name if code < 0 else "EXIT"
            how += f"({code})"
        else:
            since, step = self.noted[1], math.floor(self.noted[0])
            if not limit or time.monotonic() - since <= limit:
                return None
            how = f"a body or a law took {over(limit)}"
        self.stop()
        return "result", Killed(how, step)

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process.close()
            self.pipe.close()
            self.process = None


def warm_up(also: Sequence[str] = ()) -> None:
    """Let the fork server, if there is one, begin with its imports while others go on here.

    ``also`` are modules that it imports besides, if it is not running yet.
    """
    if START_METHOD == "forkserver":
        with _bare():
            forkserver.set_forkserver_preload([*PRELOADED, *also])
            forkserver.ensure_running()


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


def _work(pipe: Any, noted: Noted) -> None:
    """Make the calls that come through the pipe until the parent is gone."""
    global _in_worker, _noted
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is left to the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _in_worker, _noted = True, noted
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
