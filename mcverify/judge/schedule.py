"""Which chunks are to be measured next: look by look, costly worlds first."""

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappush
from typing import Any

from mcverify.judge.finding import Finding
from mcverify.judge.group import Group, Task
from mcverify.judge.measure import Measurement, Outcome, at_step
from mcverify.judge.memory import Memory
from mcverify.judge.processes import Progress
from mcverify.judge.trial import Trial
from mcverify.judge.watch import Watch
from mcverify.judge.worker import Killed
from mcverify.judge.world import World
from mcverify.verdict import FIRST_LOOK, Terms

HELD = 2**23  # numbers, 64 MiB, that may wait in a group for a chunk that is late
FEW = 4  # groups that are left, which leave chunks to each process
REMEMBERED = 2**18  # chunks of a world, beyond which others are only held against the first ones


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
        self.pace: dict[World, float] = {}  # seconds that a block has taken of late
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
            task = self.again.pop() if self.again else self._next_task()
            if task is None:
                self._calculate(len(self.calculations))
                raise StopIteration
            task = self._to_measure(task)
        self.issued[next(self.indices)] = task
        references = [trial.reference for trial in task.trials]
        return references, self.terms.seed, task.chunks

    def _to_measure(self, task: Task) -> Task | None:
        """What of a task is not recalled; None if all is."""
        known = [self._recalled(task, *chunk) for chunk in task.chunks]
        if not any(known):
            return task
        for chunk, recalled in zip(task.chunks, known, strict=True):
            others = tuple(trial for trial in task.trials if trial not in recalled)
            self._take(task.group, ((trial, chunk[0], outcome)
                                    for trial, outcome in recalled.items()))
            self.watch.spared(chunk[1] * sum(trial.cost for trial in recalled))
            if others:
                self._make_again(replace(task, trials=others, chunks=(chunk,)))
        self.findings += self._arrived(task.group)
        return self.again.pop() if self.again else None

    def _recalled(self, task: Task, first: int, blocks: int) -> dict[Trial, Outcome]:
        """The outcomes of a chunk that are known from a run that was interrupted."""
        kept = {trial: known for trial in task.trials if self.memory and (
            known := self.memory.recall(trial.case, first, blocks))}
        if not kept:
            return {}
        digest, _ = next(iter(kept.values()))
        fault = self._drawn_again(task.group.world, digest, first)
        return {trial: fault or outcome for trial, (_, outcome) in kept.items()}

    def _make_again(self, *tasks: Task) -> None:
        """Let calls be made before all others, and be waited for."""
        for task in tasks:
            task.group.awaited += 1
            self.again.append(task)

    def _next_task(self) -> Task | None:
        """Of the first group whose chunks do not wait for one that is late in too large numbers."""
        entry = self.waiting[0] if self.waiting else None
        if entry and entry[-1].held > HELD:
            entry = min((each for each in self.waiting if each[-1].held <= HELD), default=None)
        if entry is None:
            return None
        group = entry[-1]
        task = group.task(self.pace.get(group.world), len(self.waiting) + len(self.unopened) < FEW)
        if not group.left:
            self._close(group)
        return task

    def _close(self, group: Group) -> None:
        """No more calls are made for this look of a group."""
        self.waiting = [entry for entry in self.waiting if entry[-1] is not group]
        heapify(self.waiting)

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
            noted, since = progress()
            if math.isnan(noted):
                return f"chunks of {trials[0].case}", since
            step = math.floor(noted)
            at = at_step(step, len(trials))[1]
            share = f" ({noted - step:.0%})" if noted > step >= 0 else ""
            return (f"the draws of {trials[0].case}" if at is None else
                    f"{trials[at].case}{share}"), since

        self.began[index] = time.monotonic()
        self.watch.follow(index, now)

    def settle(self, index: int, result: list[Measurement] | Killed) -> Iterator[Finding]:
        """Hand the result of a call to its trials; findings of those that it decides."""
        task = self.issued.pop(index)
        self.watch.ended(index, task.cost, task.blocks)
        seconds = time.monotonic() - self.began.pop(index)
        if isinstance(result, Killed):
            self._take(task.group, self._of_killed(task, result))
        else:
            self.pace[task.group.world] = seconds / task.blocks
            self._take(task.group, self._of_measured(task, result, seconds))
        yield from self._arrived(task.group)
        if self.memory:
            self.memory.save_in_time()

    def _take(self, group: Group, outcomes: Iterable[tuple[Trial, int, Outcome]]) -> None:
        """Hand outcomes to the trials, of the chunks that begin with these blocks."""
        for trial, first, outcome in outcomes:
            trial.take(first, outcome, group.blocks[1])

    def _arrived(self, group: Group) -> Iterator[Finding]:
        """A call for a group is settled; findings of those that the look decides, if it was the
        last."""
        stop = group.blocks[1]
        group.awaited -= 1
        if group.left and all(trial.fault for trial in group.trials):  # what is broken stays so
            group.left = 0
            self._close(group)
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

    def _of_measured(
        self, task: Task, result: list[Measurement], seconds: float
    ) -> Iterator[tuple[Trial, int, Outcome]]:
        """What a call tells of each trial."""
        for (first, blocks), (digest, outcomes) in zip(task.chunks, result, strict=True):
            told = dict(zip(task.trials, outcomes, strict=True))
            if self.memory:
                self.memory.note(digest, first, blocks, (
                    (trial.case, outcome) for trial, outcome in told.items()),
                    seconds * blocks / task.blocks)
            fault = self._drawn_again(task.group.world, digest, first)
            for trial, outcome in told.items():
                yield trial, first, fault or outcome

    def _drawn_again(self, world: World, digest: bytes, first: int) -> str:
        """Why no draws may have this digest; "" if they may."""
        drawn = self.drawn.setdefault(world, {})
        if len(drawn) < REMEMBERED:
            drawn.setdefault(digest, first)
        other = drawn.get(digest, first)
        return "" if not digest or other == first else (
            f"the law draws the same blocks at {other} again; let draw() use nothing but the rng "
            "that it is given")

    def _of_killed(self, task: Task, result: Killed) -> Iterator[tuple[Trial, int, Outcome]]:
        """What it tells that a call's process died; what is innocent is measured once more."""
        trials, chunks = task.trials, task.chunks
        if result.step is None and len(trials) * len(chunks) > 1:  # nobody knows which: one by one
            self._make_again(*(replace(task, trials=(trial,), chunks=(chunk,))
                               for trial in trials for chunk in chunks))
            return
        number, at = at_step(result.step or 0, len(trials))
        # While drawing no single trial is to blame. Else the others look at the same draws, which
        # have harmed none of them.
        blamed = trials if at is None else (trials[at],)
        others = tuple(trial for trial in trials if trial not in blamed)
        if number:
            self._make_again(replace(task, trials=blamed, chunks=chunks[:number]))
        if others:
            self._make_again(replace(task, trials=others))
        for trial in blamed:
            yield trial, chunks[number][0], f"its process was killed ({result.how})"

    def _look(self, group: Group) -> None:
        start, stop = group.blocks
        group.left = stop - start
        heappush(self.waiting, (group.look, -group.cost, next(self.counted), group))
