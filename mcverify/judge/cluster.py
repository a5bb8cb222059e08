"""Make many calls on the machines of a dask.distributed cluster."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import cloudpickle

from mcverify.declare.claim import Claim
from mcverify.declare.fault import UsageError
from mcverify.judge.flight import Answered, calls_there
from mcverify.judge.processes import Spread
from mcverify.judge.remote import Luggage, luggage

PATIENCE = 10.0  # seconds until a scheduler answers


@contextmanager
def cluster(
    address: str, claims: Iterable[Claim] = (), tell: Callable[[str], Any] = warnings.warn
) -> Iterator[Spread]:
    """Inside it, a spread as that of ``workers`` whose calls are made by the workers of a cluster.

    ``address`` is that of a dask scheduler, or the file in which it has written it. Each thread of
    a worker makes one call at a time, in a process of its own; workers may come and go. A call
    whose worker is lost is made again by another; one that has lost more than the scheduler allows
    (distributed.scheduler.allowed-failures), the last ones while no other call was in flight,
    becomes ``Killed`` at a step that nobody knows. The files of ``claims`` are sent to each worker
    once. Raises UsageError, before any call, if nobody answers, and if a worker has other versions
    of what numbers depend on; one that joins later and has is left out, and ``tell`` is told.
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
        yield partial(calls_there, client, name, _task(name), tell)
    finally:
        with suppress(OSError):  # of a scheduler that is gone
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


def _task(name: str) -> Callable[..., Answered]:
    def make(lot: list[bytes], limit: float | None) -> Any:
        from distributed import get_worker

        worker = get_worker()
        plugin = worker.plugins[name]
        if plugin.fault:
            return f"{worker.address}: {plugin.fault}", [], 0.0
        return "", *plugin.place.make(lot, limit)

    return make
