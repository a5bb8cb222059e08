"""Make many calls on the machines of a dask.distributed cluster."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import cloudpickle
from threadpoolctl import threadpool_limits

from mcverify.declare.claim import Claim
from mcverify.declare.fault import UsageError
from mcverify.judge.processes import Calls, OnBegin, Spread, ignore
from mcverify.judge.remote import Luggage, luggage
from mcverify.judge.worker import Function, Killed

AHEAD = 2  # calls in flight for each that can be under way, so that no thread waits for the next
PATIENCE = 10.0  # seconds until a scheduler answers
LOOK_AGAIN = 2.0  # seconds after which machines are counted again


@contextmanager
def cluster(
    address: str, claims: Iterable[Claim] = (), tell: Callable[[str], Any] = warnings.warn
) -> Iterator[Spread]:
    """Inside it, a spread as that of ``workers`` whose calls are made by the workers of a cluster.

    ``address`` is that of a dask scheduler, or the file in which it has written it. Each thread of
    a worker makes one call at a time, in a process of its own; workers may come and go. A call
    whose worker is lost is made again by another; one that has lost more than the scheduler allows
    (distributed.scheduler.allowed-failures), the last ones while no other call was in flight,
    becomes ``Killed`` at a step that nobody knows. The files of ``claims`` are
    sent to each worker once. Raises UsageError, before any call, if nobody answers, and if a worker
    has other versions of what numbers depend on; one that joins later and has is left out,
    of which ``tell`` is told.
    """
    distributed = _dask(address)
    name, taken = f"mcverify-{uuid4().hex[:12]}", luggage(claims)
    client = _connected(distributed, address)
    try:
        client.register_plugin(_plugin(taken), name=name)
        faults = client.run(_fault_of(name))
        if told := "; ".join(f"{worker}: {fault}" for worker, fault in faults.items() if fault):
            raise UsageError(f"--scheduler {address}: workers must have what is installed here; "
                             f"install the same there and start them again ({told})")
        if not faults:
            tell("the cluster has no workers yet; waiting for some")
        with threadpool_limits(1):  # for what is judged here, as in a run without a cluster
            yield partial(_calls_there, _Flight(client, name, tell))
    finally:
        if client.status == "running":
            client.unregister_worker_plugin(name)  # which ends the processes on all machines
        client.close()


def _dask(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise UsageError(f"--scheduler {address}: needs dask.distributed, which is not installed; "
                         "pip install 'mcverify[dask]'") from None
    return distributed


def _connected(distributed: Any, address: str) -> Any:
    where = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        if "scheduler_file" in where and not Path(address).is_file():
            raise OSError("there is no such file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions, of which those that matter are compared
            return distributed.Client(**where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--scheduler {address}: no dask scheduler answers there ({error}); start "
                         "one with `dask scheduler`, which prints its address, and workers with "
                         "`dask worker ADDRESS`") from None


# What these three return is made in a function, so that it travels with its code: a worker where
# mcverify is missing, or an old one, has to say so.


def _plugin(taken: Luggage) -> Any:
    """What each worker of the cluster is given when the run begins or when it joins."""
    from distributed import WorkerPlugin

    pickled = cloudpickle.dumps(taken)

    class Plugin(WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            self.place: Any = None
            try:
                import cloudpickle

                from mcverify.judge.remote import Place

                self.place = Place(cloudpickle.loads(pickled))
                self.fault = self.place.fault
            except (ImportError, AttributeError) as error:
                self.fault = f"mcverify there is missing or another one ({error})"

        def teardown(self, worker: Any) -> None:
            if self.place is not None:
                self.place.close()

    return Plugin()


def _fault_of(name: str) -> Callable[..., str]:
    def fault(dask_worker: Any) -> str:
        return str(dask_worker.plugins[name].fault)

    return fault


def _task(name: str) -> Callable[..., tuple[str, Any]]:
    def make(pickled: bytes, limit: float | None) -> tuple[str, Any]:
        from distributed import get_worker

        worker = get_worker()
        plugin = worker.plugins[name]
        if plugin.fault:
            return "unfit", f"{worker.address}: {plugin.fault}"
        answer: tuple[str, Any] = plugin.place.make(pickled, limit)
        return answer

    return make


# --- while calls are made ---------------------------------------------------------------------


class _Flight:
    """The calls that are in flight, and the workers that may make them."""

    def __init__(self, client: Any, name: str, tell: Callable[[str], Any]) -> None:
        self.client, self.name, self.task, self.tell = client, name, _task(name), tell
        self.done: SimpleQueue[Any] = SimpleQueue()  # futures
        self.calls: dict[Any, tuple[int, bytes]] = {}  # by their futures
        self.threads: dict[str, int] = {}  # of each worker
        self.unfit: set[str] = set()
        # A lost worker was given several calls, of which one may have killed it: once a call has
        # lost too many, they are made again one by one, with no other in flight.
        self.suspects: list[tuple[int, bytes]] = []
        self.alone: set[int] = set()
        self.counted = -math.inf
        self.limit: float | None = None  # of a body

    @property
    def room(self) -> int:
        """How many more calls are to be in flight."""
        if self.suspects:
            return 0
        if time.monotonic() - self.counted > LOOK_AGAIN:
            self.threads = dict(self.client.nthreads())
            self.counted = time.monotonic()
        threads = sum(n for worker, n in self.threads.items() if worker not in self.unfit)
        return max(1, AHEAD * threads) - len(self.calls)

    def begin(self, calls: dict[int, bytes]) -> None:
        """Hand on some calls at once, which costs less for each."""
        fit = [worker for worker in self.threads if worker not in self.unfit]
        only = {"workers": fit, "allow_other_workers": True} if self.unfit and fit else {}
        futures = self.client.map(self.task, calls.values(), pure=False, limit=self.limit,
                                  key=self.name, **only)
        for future, call in zip(futures, calls.items(), strict=True):
            self.calls[future] = call
            future.add_done_callback(self.done.put)

    def ended(self) -> Iterator[tuple[int, tuple[str, Any]]]:
        """The answers that have come, after a wait for one until workers are counted again."""
        with suppress(Empty):
            futures = [self.done.get(timeout=LOOK_AGAIN)]
            while not self.done.empty():
                futures.append(self.done.get())
            whole = [future for future in futures if future.status == "finished"]
            answers = dict(zip(whole, self.client.gather(whole) if whole else [], strict=True))
            for future in futures:
                index, pickled = self.calls.pop(future)
                kind, value = answers[future] if future in answers else self._lost(future)
                if kind == "lost" and index not in self.alone:
                    self.suspects.append((index, pickled))
                elif kind == "unfit":
                    self._leave_out(value)
                    self.begin({index: pickled})
                else:
                    yield index, (kind, value)
        if self.suspects and not self.calls:
            index, pickled = self.suspects.pop()
            self.alone.add(index)
            self.begin({index: pickled})

    def _lost(self, future: Any) -> tuple[str, Any]:
        """What stands for the answer of a call that has none."""
        from distributed import KilledWorker

        if future.status != "error":
            raise UsageError("the scheduler of the cluster is gone; what was finished is kept, "
                             "and the same command with --resume goes on")
        error = future.exception()
        if not isinstance(error, KilledWorker):
            return "error", error
        return "lost", Killed(f"workers lost with it: {error.allowed_failures + 1}", None)

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
        if self.calls and self.client.status == "running":
            self.client.cancel(list(self.calls))
        self.calls.clear()
        self.suspects.clear()


def _somewhere(since: float) -> tuple[float, float]:
    """How far a call is, which nobody asks the other machine."""
    return math.nan, since


def _calls_there(
    flight: _Flight, function: Function, calls: Calls, on_begin: OnBegin = ignore,
    limit: float | None = None,
) -> Iterator[tuple[int, Any]]:
    waiting, flight.limit = iter(enumerate(calls)), limit
    try:
        while True:
            fresh = {index: cloudpickle.dumps((function, call))
                     for index, call in islice(waiting, max(0, flight.room))}
            if fresh:
                flight.begin(fresh)
            for index in fresh:
                on_begin(index, partial(_somewhere, time.monotonic()))
            if not flight.calls:
                return
            for index, (kind, value) in flight.ended():
                if kind == "error":
                    raise value
                yield index, value
    finally:
        flight.cancel()
