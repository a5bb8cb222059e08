"""Which chunks are to be measured next: worlds by worlds, look by look, costly ones first."""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappush
from typing import Any

from mcverify.judge.finding import Finding
from mcverify.judge.measure import Measurement, Outcome
from mcverify.judge.memory import Memory
from mcverify.judge.processes import Progress
from mcverify.judge.trial import Trial
from mcverify.judge.watch import Watch
from mcverify.judge.worker import Killed
from mcverify.judge.world import World
from mcverify.verdict import FIRST_LOOK, Terms

HELD = 2**23  # numbers, 64 MiB, that may wait in a group for a chunk that is late
REMEMBERED = 2**18  # chunks of a world, beyond which others are only held against the first ones


@dataclass
class Group:
    """The trials of a world at a look, which all see the same chunks, and how many are awaited."""

    world: World
    trials: list[Trial]
    look: int
    awaited: int = 0  # chunks, of those that it has come to
    left: int = 0  # blocks that it has not come to yet

    @property
    def blocks(self) -> tuple[int, int]:
        """Where its look begins and ends."""
        return self.trials[0].terms.looks[self.look]

    @property
    def held(self) -> int:
        """Numbers of chunks that have come before others that they follow."""
        return sum(trial.held for trial in self.trials)

    @property
    def cost(self) -> int:
        """Of all its blocks at this look, in a unit of its own."""
        start, stop = self.blocks
        return (stop - start) * sum(trial.cost for trial in self.trials)


@dataclass(frozen=True)
class Task:
    """A chunk of a group's world: its first block, its blocks, and the trials that look at it."""

    group: Group
    trials: tuple[Trial, ...]
    first: int
    blocks: int


class Schedule:
    """The calls of ``measure`` that are to be made, as far as they are known by now.

    An iterator that may go on after it has ended, when ``settle`` has added to it. Early looks come
    first, so that what is decided soon is kept soon; at a look, groups with the most work, so that
    none is left to its end. Nobody waits for all groups to end a look. What needs no draws is done
    here while others draw: predictions just before their world's first chunk, and calculations one
    by one.
    """

    def __init__(
        self, trials: Sequence[Trial], terms: Terms, watch: Watch, limit: float | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.terms, self.watch, self.limit, self.memory = terms, watch, limit, memory
        self.waiting: list[tuple[int, int, int, Group]] = []  # a heap
        self.again: list[Task] = []  # first of all: others wait for them
        self.counted = itertools.count()
        self.indices = itertools.count()
        self.issued: dict[int, Task] = {}
        self.began: dict[int, float] = {}  # when calls under way did
        self.drawn: dict[World, dict[bytes, int]] = {}  # first blocks of chunks, by their digests
        self.findings: list[Finding] = []  # made on the way
        self.calculations = [trial for trial in trials if not trial.case.claim.draws]
        worlds: dict[World, list[Trial]] = {}
        for trial in trials:
            if trial.case.claim.draws:
                worlds.setdefault(trial.world, []).append(trial)
                watch.unseen += trial.cost * FIRST_LOOK
        self.unopened = sorted((Group(world, those, 0) for world, those in worlds.items()),
                               key=lambda group: group.cost)

    def __iter__(self) -> "Schedule":
        return self

    def __next__(self) -> tuple[Any, ...]:
        task = None
        while task is None:
            self._calculate(1)
            while self.unopened and not (self.waiting and self.waiting[0][0] == 0):
                self._open(self.unopened.pop())
            task = self.again.pop() if self.again else self._next_chunk()
            if task is None:
                self._calculate(len(self.calculations))
                raise StopIteration
            task = self._to_measure(task)
        self.issued[next(self.indices)] = task
        references = [trial.reference for trial in task.trials]
        return references, self.terms.seed, task.first, task.blocks

    def _to_measure(self, task: Task) -> Task | None:
        """What of a chunk is not recalled; None if all is."""
        recalled = {trial: known for trial in task.trials if self.memory and (
            known := self.memory.recall(trial.case, task.first, task.blocks))}
        if not recalled:
            return task
        digest = next(digest for digest, _ in recalled.values())
        outcomes = [outcome for _, outcome in recalled.values()]
        self._take(replace(task, trials=tuple(recalled)), Measurement(digest, outcomes))
        self.watch.spared(task.blocks * sum(trial.cost for trial in recalled))
        others = tuple(trial for trial in task.trials if trial not in recalled)
        if others:
            return replace(task, trials=others)
        self.findings += self._arrived(task.group)
        return None

    def _next_chunk(self) -> Task | None:
        """Of the first group whose chunks do not wait for one that is late in too large numbers."""
        entry = self.waiting[0] if self.waiting else None
        if entry and entry[-1].held > HELD:
            entry = min((each for each in self.waiting if each[-1].held <= HELD), default=None)
        if entry is None:
            return None
        group, (start, stop) = entry[-1], entry[-1].blocks
        blocks = group.world.chunk(stop - start)
        first = stop - group.left
        group.awaited, group.left = group.awaited + 1, group.left - blocks
        if not group.left:
            self.waiting.remove(entry)
            heapify(self.waiting)
        return Task(group, tuple(group.trials), first, blocks)

    def _open(self, group: Group) -> None:
        """Predict, and begin with the first look at what remains."""
        group.trials = [trial for trial in group.trials if not self._said(trial)]
        if group.trials:
            self._look(group)

    def _calculate(self, count: int) -> None:
        for trial in self.calculations[:count]:
            self._said(trial)
        del self.calculations[:count]

    def _said(self, trial: Trial) -> bool:
        """Whether there is a finding without draws, which is then kept."""
        self.watch.at(-1, str(trial.case))
        finding = trial.without_drawing(self.limit)
        self.watch.at_work.pop(-1, None)
        if finding:
            self.findings.append(finding)
        return finding is not None

    def said(self) -> Iterator[Finding]:
        """The findings that needed no draws, each once."""
        while self.findings:
            yield self.findings.pop()

    def begun(self, index: int, progress: Progress) -> None:
        """A call that was issued is under way; the watch asks for its progress when it likes."""
        trials = self.issued[index].trials

        def now() -> tuple[str, float]:
            done, since = progress()
            if math.isnan(done):
                return f"a chunk of {trials[0].case}", since
            step = math.floor(done)
            share = f" ({done - step:.0%})" if done > step >= 0 else ""
            # A moment after the call's end it may be that of the next one.
            case = trials[min(max(step, 0), len(trials) - 1)].case
            return (f"{case}{share}" if step >= 0 else f"the draws of {case}"), since

        self.began[index] = time.monotonic()
        self.watch.follow(index, now)

    def settle(self, index: int, result: Measurement | Killed) -> Iterator[Finding]:
        """Hand the result of a call to its trials; findings of those that it decides."""
        task = self.issued.pop(index)
        cost = sum(trial.cost for trial in task.trials)
        self.watch.ended(index, task.blocks * cost, task.blocks)
        seconds = time.monotonic() - self.began.pop(index)
        if self.memory and isinstance(result, Measurement):
            cases = [trial.case for trial in task.trials]
            self.memory.note(result.digest, task.first, task.blocks,
                             zip(cases, result.outcomes, strict=True), seconds)
        self._take(task, result)
        yield from self._arrived(task.group)
        if self.memory:
            self.memory.save_in_time()

    def _take(self, task: Task, result: Measurement | Killed) -> None:
        """Hand a chunk's outcomes to the trials that look at it."""
        for trial, outcome in zip(task.trials, self._outcomes(task, result), strict=True):
            if outcome is not None:
                trial.take(task.first, outcome, task.group.blocks[1])

    def _arrived(self, group: Group) -> Iterator[Finding]:
        """A chunk of a group is there; findings of those that the look decides, if it was the last.
        """
        stop = group.blocks[1]
        group.awaited -= 1
        if group.awaited or group.left:
            return
        undecided = []
        for trial in group.trials:
            before = trial.foreseen
            finding = trial.judged(stop)
            self.watch.foresee(trial.cost, before, trial.foreseen)
            if finding:
                yield finding
            else:
                undecided.append(trial)
        if undecided:
            self._look(Group(group.world, undecided, group.look + 1))

    def _outcomes(self, task: Task, result: Measurement | Killed) -> list[Outcome | None]:
        """What a call tells of each trial; None for those that it is made for once more."""
        if isinstance(result, Killed):
            message = f"its process was killed ({result.how})"
            if result.step is None and len(task.trials) > 1:  # nobody knows which: one by one
                task.group.awaited += len(task.trials)
                self.again += [replace(task, trials=(trial,)) for trial in task.trials]
                return [None] * len(task.trials)
            if result.step in (None, -1):  # while drawing, for which no single trial is to blame
                return [message] * len(task.trials)
            # The others look at the same draws, which have harmed none of them.
            others = tuple(trial for step, trial in enumerate(task.trials) if step != result.step)
            if others:
                task.group.awaited += 1
                self.again.append(replace(task, trials=others))
            return [message if step == result.step else None for step in range(len(task.trials))]
        drawn = self.drawn.setdefault(task.group.world, {})
        if len(drawn) < REMEMBERED:
            drawn.setdefault(result.digest, task.first)
        other = drawn.get(result.digest, task.first)
        if result.digest and other != task.first:
            return [f"the law draws the same blocks at {other} again; let draw() use nothing but "
                    "the rng that it is given"] * len(task.trials)
        return [*result.outcomes]

    def _look(self, group: Group) -> None:
        start, stop = group.blocks
        group.left = stop - start
        heappush(self.waiting, (group.look, -group.cost, next(self.counted), group))
