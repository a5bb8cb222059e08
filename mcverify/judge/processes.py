"""Make many calls, here or in processes of which one may die without harming the others."""

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import connection
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from mcverify.judge.worker import TICK, Function, Worker, noting

AHEAD = 8  # calls that are made ready

Calls = Iterable[tuple[Any, ...]]  # their arguments
# The step of a call, nan where that is not known, and since when it is at it.
Progress = Callable[[], tuple[float, float]]
OnBegin = Callable[[int, Progress], None]  # of a call's index and what tells how far it is
Spread = Callable[..., Iterator[tuple[int, Any]]]


@contextmanager
def workers(jobs: int | Spread | None = None) -> Iterator[Spread]:
    """Inside it, spread(function, calls) yields (index of the call, result) in any order.

    With ``jobs`` of 1 the calls are made here, in order, and one that kills its process ends the
    run; otherwise in so many processes (default: one a core), but no more than there are calls. A
    process makes one call at a time, so that when it is killed, by the system or by what it runs,
    it is known which call did it: that one's result is ``Killed``, a new process takes its place,
    and no call is made a second time. BLAS runs on one thread either way, since its result may
    depend on their number in the last bit. Ctrl-C is left to the parent, and processes end with it.
    A spread that somebody else has made is handed on.

    ``calls`` may be an iterator that goes on after its end, once a result has added to it.
    ``spread(…, on_begin=…)`` calls on_begin(index, progress) here when a call begins; progress()
    tells, to whoever asks and from any thread, the last step that it noted, -1 before the first,
    with the share of it that is done, and since when it is at it (inf if it noted none). With
    ``spread(…, limit=…)`` a call that stays longer than so many seconds at a step that it noted is
    killed, and a single job is a process, too. An exception in a call is raised here.

    >>> with workers(jobs=1) as spread:
    ...     dict(spread(pow, [(2, 3), (3, 2)]))
    {0: 8, 1: 9}
    """
    if callable(jobs):
        with threadpool_limits(1):  # for what is judged here
            yield jobs
        return
    made = [Worker() for _ in range(jobs or cores())]
    try:
        with threadpool_limits(1):
            yield partial(_calls_in, made) if jobs != 1 else partial(_calls_here, made)
    finally:
        for worker in made:
            worker.stop()


def cores() -> int:
    """How many processes can run at once: the cores that this one may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:  # a container's share of them
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(allowed or 1, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed or 1


def ignore(*_: Any) -> None:
    """Where nobody waits."""


def _calls_here(
    made: list[Worker], function: Function, calls: Calls, on_begin: OnBegin = ignore,
    limit: float | None = None,
) -> Iterator[tuple[int, Any]]:
    if limit:
        yield from _calls_in(made, function, calls, on_begin, limit)
        return
    for index, call in enumerate(calls):
        noted = [-1.0, math.inf]
        on_begin(index, lambda noted=noted: (noted[0], noted[1]))  # type: ignore[misc]
        with noting(noted):
            result = function(*call)
        yield index, result


def _calls_in(
    made: list[Worker], function: Function, calls: Calls, on_begin: OnBegin = ignore,
    limit: float | None = None,
) -> Iterator[tuple[int, Any]]:
    waiting = iter(enumerate(calls))
    ahead: deque[tuple[int, tuple[Any, ...]]] = deque()  # made ready while others are under way
    at_work: dict[Worker, int] = {}

    def begin(worker: Worker) -> None:
        for index, call in [ahead.popleft()] if ahead else islice(waiting, 1):
            worker.begin(function, call)
            at_work[worker] = index
            on_begin(index, worker.progress)

    try:
        while True:
            for worker in made:
                if worker not in at_work:
                    begin(worker)
            fresh = [*islice(waiting, int(len(ahead) < AHEAD))]  # one, for an answer may be there
            ahead.extend(fresh)
            if not at_work and not ahead:
                return
            ready = set(connection.wait([sign for worker in at_work for sign in worker.signs],
                                        0 if fresh else TICK if limit else None))
            for worker in list(at_work):
                answer = (worker.answer(limit)
                          if limit or not ready.isdisjoint(worker.signs) else None)
                if answer is None:
                    continue
                kind, value = answer
                if kind == "error":
                    raise value
                index = at_work.pop(worker)
                begin(worker)
                yield index, value
    finally:
        for worker in at_work:  # whose results nobody waits for any more
            worker.stop()
