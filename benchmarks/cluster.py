"""What a run on a dask cluster costs: bytes and seconds of a call, and time with many workers.

Run it as `python -m benchmarks cluster [NAMES] [--every 12] [--times 30]`. The chosen claims (every
so many of mcverify's own) are judged in this one process, and each call of `measure` is timed in
CPU seconds and its bytes are counted. A scheduler and a worker on this machine then make 2,000
calls that do nothing, one by one and in lots, which tells what a lot and what a call costs client,
scheduler and worker. The run is then simulated with other numbers of workers. So is one of many
copies of it, each of worlds of its own, and one in which every call takes ten times as long, as
those of heavier bodies do. Assumed: workers as fast as this process; a network that takes 1 ms
each way; one client and one scheduler, busy with one thing at a time; a scheduler that never leaves
a worker idle while it has a lot; workers that are there from the beginning, with mcverify loaded.
"""

import argparse
import itertools
import math
import subprocess
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from statistics import median
from typing import Any, NamedTuple

import cloudpickle
import psutil
from threadpoolctl import threadpool_limits

from mcverify.declare import discover
from mcverify.judge import cluster, flight, reference
from mcverify.judge.run import run
from mcverify.judge.world import world_of
from mcverify.verdict import looks

LATENCY = 0.001  # seconds from one machine to another
CALLS = 2000  # that do nothing
LOT = flight.MOST
WORKERS = (1, 10, 100, 1000)


@dataclass(frozen=True)
class Call:
    """A call of `measure`: its world, its look, seconds there and, to judge it, here, bytes."""

    world: str
    look: int
    seconds: float
    judging: float
    sent: int
    returned: int


class Overhead(NamedTuple):
    """CPU seconds that a lot, or a call of one, costs beside what it does."""

    client: float
    scheduler: float
    worker: float


def recorded(cases: list[Any]) -> list[Call]:
    """The calls of a run, in their order."""
    found: list[Call] = []
    ends = [stop for _, stop in looks()]

    def spread(function: Any, calls: Any, **_: Any) -> Iterator[tuple[int, Any]]:
        index, asked = 0, time.process_time()
        for call in calls:
            begun = time.process_time()
            result = function(*call)
            ended = time.process_time()
            references, _, chunks = call
            world = str(world_of(reference.resolve(references[0])))
            look = next(number for number, stop in enumerate(ends) if chunks[0][0] < stop)
            made = Call(world, look, ended - begun, begun - asked,
                        len(cloudpickle.dumps((function, call))), len(cloudpickle.dumps(result)))
            asked = time.process_time()
            yield index, result
            found.append(replace(made, judging=made.judging + time.process_time() - asked))
            index, asked = index + 1, time.process_time()

    for _ in run(cases, jobs=lambda *arguments, on_begin, limit: _begun(
            spread(*arguments), on_begin)):
        pass
    return found


def _begun(results: Iterator[tuple[int, Any]], on_begin: Any) -> Iterator[tuple[int, Any]]:
    for index, result in results:
        on_begin(index, lambda: (0.0, 0.0))
        yield index, result


def measured_overhead() -> tuple[Overhead, Overhead]:
    """Of a lot and of a call, by a scheduler and a worker of one thread in processes of their own.
    """
    dask = [sys.executable, "-m"]
    scheduler = subprocess.Popen([*dask, "distributed.cli.dask_scheduler", "--port", "8797",
                                  "--no-dashboard"], stderr=subprocess.DEVNULL)
    address = "tcp://127.0.0.1:8797"
    worker = subprocess.Popen([*dask, "distributed.cli.dask_worker", address, "--nthreads", "1",
                               "--no-nanny", "--no-dashboard"], stderr=subprocess.DEVNULL)
    spent = {}
    try:
        with cluster.cluster(address, tell=lambda _: None) as spread:
            for flight.MOST in (1, LOT):
                for _ in spread(pow, [(2, 3)] * CALLS):  # until it has found its pace
                    pass
                before = time.process_time(), _seconds(scheduler.pid), _seconds(worker.pid)
                for _ in spread(pow, [(2, 3)] * CALLS):
                    pass
                after = time.process_time(), _seconds(scheduler.pid), _seconds(worker.pid)
                spent[flight.MOST] = [(end - start) / CALLS for start, end in
                                      zip(before, after, strict=True)]
        # One by one: lot + call; in lots: lot / LOT + call.
        lot = [(one - many) / (1 - 1 / LOT) for one, many in
               zip(spent[1], spent[LOT], strict=True)]
        return Overhead(*lot), Overhead(*(max(0.0, one - each) for one, each in
                                          zip(spent[1], lot, strict=True)))
    finally:
        for each in (worker, scheduler):
            each.kill()
            each.wait()


def _seconds(pid: int) -> float:
    """CPU seconds of a process and its descendants."""
    whole = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in whole)


class Run:
    """The calls of a run as Schedule has them: early looks first, and groups with much work."""

    def __init__(self, calls: list[Call]) -> None:
        self.looks: dict[str, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
        for call in calls:
            self.looks[call.world][call.look].append(call)
        self.ready: list[tuple[int, float, int, Call]] = []
        self.awaited: dict[str, int] = {}
        self.count = itertools.count()
        for world in list(self.looks):
            self.open(world)

    def open(self, world: str) -> None:
        """Begin with the next look of a world, if there is one."""
        if self.looks[world]:
            look = min(self.looks[world])
            group = self.looks[world].pop(look)
            self.awaited[world] = len(group)
            work = sum(call.seconds for call in group)
            for call in group:
                heappush(self.ready, (look, -work, next(self.count), call))

    def settle(self, call: Call) -> None:
        self.awaited[call.world] -= 1
        if not self.awaited[call.world]:
            self.open(call.world)


def simulated(
    calls: list[Call], workers: int, lot: Overhead, each: Overhead
) -> tuple[float, float, float]:
    """Seconds that a run takes, and the shares of them that the client and a worker are busy."""
    todo, order = Run(calls), itertools.count()
    client = scheduler = working = serving = now = 0.0  # the first two: until when they are busy
    flying, idle, pace = 0, workers, flight.LOT
    queue: deque[list[Call]] = deque()  # at the scheduler
    events: list[tuple[float, int, str, list[Call]]] = [(0.0, 0, "begin", [])]
    while events:
        now, _, kind, some = heappop(events)
        if kind == "there":  # at the scheduler
            queue.append(some)
        elif kind == "done":  # at the worker
            idle += 1
            scheduler = max(scheduler, now + LATENCY) + lot.scheduler / 2
            heappush(events, (scheduler + LATENCY, next(order), "back", some))
        elif kind == "back":  # at the client
            spent = lot.client / 2 + sum(each.client / 2 + call.judging for call in some)
            client, serving, flying = max(client, now) + spent, serving + spent, flying - 1
            pace += 0.2 * (sum(call.seconds for call in some) / len(some) - pace)
            for call in some:
                todo.settle(call)
        room, size = flight.AHEAD * workers - flying, max(1, min(LOT, int(flight.LOT / pace)))
        fresh = [heappop(todo.ready)[-1] for _ in range(min(room * size, len(todo.ready)))]
        lots = min(room, math.ceil(len(fresh) / max(1, size * flight.LEAST / flight.LOT)))
        for start in range(lots):
            chosen = fresh[start::lots]
            spent = lot.client / 2 + len(chosen) * each.client / 2
            client, serving, flying = max(client, now) + spent, serving + spent, flying + 1
            scheduler = max(scheduler, client + LATENCY) + lot.scheduler / 2
            heappush(events, (scheduler + LATENCY, next(order), "there", chosen))
        while idle and queue:
            begun = queue.popleft()
            spent = sum(call.seconds + each.worker for call in begun) + lot.worker
            idle, working = idle - 1, working + spent
            heappush(events, (now + spent, next(order), "done", begun))
    end = max(now, client)
    return end, serving / end, working / end / workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="claims")
    parser.add_argument("--every", type=int, default=12, help="of the claims, if none is named")
    parser.add_argument("--times", type=int, default=30, help="copies in the larger run")
    options = parser.parse_args()
    claims = [claim for claim in discover.discover() if not claim.slow]
    chosen = [claim for claim in claims if claim.name in options.names] or claims[::options.every]
    cases = [case for claim in chosen for case in (*claim.cases(), *claim.control_cases())]
    lot, each = measured_overhead()
    with threadpool_limits(1):
        calls = recorded(cases)
    show(cases, calls, lot, each)
    longer = [replace(call, seconds=10 * call.seconds) for call in calls]
    copies, longer_copies = ([replace(call, world=f"{call.world} {copy}")
                              for copy in range(options.times) for call in some]
                             for some in (calls, longer))
    for name, some in {"once": calls, f"{options.times} times": copies,
                       f"{options.times} times, calls of ten times the length": longer_copies,
                       }.items():
        print(f"\n{name}: {sum(call.seconds for call in some):,.0f} s of measuring\n\n"
              "| workers | seconds | times as fast | client busy | workers busy |\n"
              "|--:|--:|--:|--:|--:|")
        alone = sum(call.seconds + call.judging for call in some)  # without a cluster
        for workers in WORKERS:
            seconds, client, there = simulated(some, workers, lot, each)
            print(f"| {workers:,} | {seconds:,.1f} | {alone / seconds:.1f} | {client:.0%} | "
                  f"{there:.0%} |")


def show(cases: list[Any], calls: list[Call], lot: Overhead, each: Overhead) -> None:
    path: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for call in calls:
        path[call.world][call.look] = max(path[call.world][call.look], call.seconds)
    longest = max(path, key=lambda world: sum(path[world].values()))
    print(f"{len(cases)} cases, {len(path)} worlds, {len(calls)} calls; of a call in the median "
          f"{median(c.seconds for c in calls) * 1e3:.1f} ms, {median(c.sent for c in calls):,.0f} "
          f"bytes sent, {median(c.returned for c in calls):,.0f} bytes returned")
    print(f"of a case: {len(calls) / len(cases):.1f} calls, "
          f"{sum(c.sent for c in calls) / len(cases) / 1e3:.1f} kB sent, "
          f"{sum(c.returned for c in calls) / len(cases) / 1e3:.1f} kB returned, "
          f"{sum(c.judging for c in calls) / len(cases) * 1e3:.1f} ms of judging, "
          f"{sum(c.seconds for c in calls) / len(cases) * 1e3:.1f} ms of measuring")
    for name, cost in (("lot", lot), ("call of one", each)):
        print(f"a {name} costs {cost.client * 1e3:.2f} ms of the client, "
              f"{cost.scheduler * 1e3:.2f} ms of the scheduler, {cost.worker * 1e3:.2f} ms of its "
              "worker")
    print(f"the longest chain of looks: {longest}, {len(path[longest])} looks, "
          f"{sum(path[longest].values()):.2f} s")


if __name__ == "__main__":
    main()
