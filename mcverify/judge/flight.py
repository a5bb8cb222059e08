"""The calls that a cluster makes at a time: handed on in lots, made again when they are lost."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

import cloudpickle

from mcverify.declare.fault import UsageError
from mcverify.judge.processes import Calls, OnBegin, ignore
from mcverify.judge.worker import Function, Killed

AHEAD = 2  # lots in flight for each thread of a worker, so that none waits for the next
LOT = 0.2  # seconds that a lot is to take, beside which what dask does for it is little
LEAST = 0.1  # if there are calls for more than one
MOST = 50  # calls of a lot
LOOK_AGAIN = 2.0  # seconds after which workers are counted again
GONE = ("the scheduler of the cluster is gone; what was finished is kept, and the same command "
        "with --resume goes on")

Lot = list[tuple[int, bytes]]  # the indices of calls, and these, pickled
# What a worker returns of a lot: why it would not make the calls; their answers; its seconds.
Answered = tuple[str, list[tuple[str, Any]], float]


class Flight:
    """The calls in flight, and the workers that may make them.

    ``task`` is what a worker does with the pickled calls of a lot and a limit.
    """

    def __init__(
        self, client: Any, name: str, task: Callable[..., Answered], tell: Callable[[str], Any],
        limit: float | None,
    ) -> None:
        self.client, self.name, self.task, self.tell = client, name, task, tell
        self.limit = limit  # of a body
        self.done: SimpleQueue[Any] = SimpleQueue()  # futures
        self.lots: dict[Any, Lot] = {}  # by their futures
        self.pace = LOT  # seconds that a call takes
        self.threads: dict[str, int] = {}  # of each worker
        self.unfit: set[str] = set()
        # A lost worker had several calls, of which one may have killed it: once a lot has lost too
        # many workers, its calls are made again one by one, with no other in flight.
        self.suspects: Lot = []
        self.alone: set[int] = set()
        self.counted = -math.inf

    @property
    def room(self) -> int:
        """How many more lots are to be in flight."""
        if self.suspects:
            return 0
        if time.monotonic() - self.counted > LOOK_AGAIN:
            with _reached():
                self.threads = dict(self.client.nthreads())
            self.counted = time.monotonic()
        threads = sum(n for worker, n in self.threads.items() if worker not in self.unfit)
        return max(0, max(1, AHEAD * threads) - len(self.lots))

    @property
    def size(self) -> int:
        """How many calls make a lot."""
        return max(1, min(MOST, int(LOT / max(self.pace, 1e-4))))

    def begin(self, calls: Lot, room: int) -> None:
        """Hand on some calls, in so many lots at most, none of which is worth less than LEAST."""
        room = min(room, math.ceil(len(calls) / max(1, self.size * LEAST / LOT)))
        lots = [calls[start::room] for start in range(room)]
        fit = [worker for worker in self.threads if worker not in self.unfit]
        only = {"workers": fit, "allow_other_workers": True} if self.unfit and fit else {}
        pickled = [[call for _, call in lot] for lot in lots]
        with _reached():
            futures = self.client.map(self.task, pickled, pure=False, limit=self.limit,
                                      key=self.name, **only)
        for future, lot in zip(futures, lots, strict=True):
            self.lots[future] = lot
            future.add_done_callback(self.done.put)

    def ended(self) -> Iterator[tuple[int, tuple[str, Any]]]:
        """The answers that have come, after a wait for some until workers are counted again."""
        with suppress(Empty):
            futures = [self.done.get(timeout=LOOK_AGAIN)]
            while not self.done.empty():
                futures.append(self.done.get())
            whole = [future for future in futures if future.status == "finished"]
            with _reached():
                answers = dict(zip(whole, self.client.gather(whole) if whole else [], strict=True))
            for future in futures:
                lot = self.lots.pop(future)
                answers_of_lot = [*(self._taken(lot, answers[future]) if future in answers else
                           self._lost(lot, future))]
                future.release()  # here, since Ctrl-C during __del__ would be ignored
                yield from answers_of_lot
        if self.suspects and not self.lots:
            suspect = self.suspects.pop()
            self.alone.add(suspect[0])
            self.begin([suspect], 1)

    def _taken(self, lot: Lot, answered: Answered) -> Iterator[tuple[int, tuple[str, Any]]]:
        fault, answers, seconds = answered
        if fault:
            self._leave_out(fault)
            self.begin(lot, 1)
            return
        self.pace += 0.2 * (seconds / len(lot) - self.pace)
        yield from zip((index for index, _ in lot), answers, strict=True)

    def _lost(self, lot: Lot, future: Any) -> Iterator[tuple[int, tuple[str, Any]]]:
        """What stands for answers that have not come."""
        from distributed import KilledWorker

        if future.status != "error":
            raise UsageError(GONE)
        error = future.exception()
        if not isinstance(error, KilledWorker):
            raise error
        for index, call in lot:
            if index in self.alone:
                how = f"workers lost with it: {error.allowed_failures + 1}"
                yield index, ("result", Killed(how, None))
            else:
                self.suspects.append((index, call))

    def _leave_out(self, fault: str) -> None:
        """Give no more calls to a worker that has joined with other versions."""
        worker = fault.partition(": ")[0]
        if worker not in self.unfit:
            self.unfit.add(worker)
            self.tell(f"a worker is left out: {fault}")
        if self.unfit.issuperset(self.client.nthreads()):
            raise UsageError("no worker of the cluster is left that has what is installed here; "
                             f"install the same there and start them again ({fault})")

    def cancel(self) -> None:
        """Let go of what nobody waits for any more."""
        if self.lots and self.client.status == "running":
            self.client.cancel(list(self.lots))


def calls_there(
    client: Any, name: str, task: Callable[..., Answered], tell: Callable[[str], Any],
    function: Function, calls: Calls, on_begin: OnBegin = ignore, limit: float | None = None,
) -> Iterator[tuple[int, Any]]:
    """The spread of a cluster, after its first four arguments."""
    waiting, flight = iter(enumerate(calls)), Flight(client, name, task, tell, limit)
    try:
        while True:
            room = flight.room
            fresh = [(index, cloudpickle.dumps((function, call)))
                     for index, call in islice(waiting, room * flight.size)]
            if fresh:
                flight.begin(fresh, room)
            for index, _ in fresh:
                on_begin(index, partial(_somewhere, time.monotonic()))
            if not flight.lots:
                return
            for index, (kind, value) in flight.ended():
                if kind == "error":
                    raise value
                yield index, value
    finally:
        flight.cancel()


@contextmanager
def _reached() -> Iterator[None]:
    """Inside it a scheduler that does not answer ends the run."""
    try:
        yield
    except (OSError, CancelledError):
        raise UsageError(GONE) from None


def _somewhere(since: float) -> tuple[float, float]:
    """How far a call is, which nobody asks the other machine."""
    return math.nan, since
