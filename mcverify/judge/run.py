"""From cases to findings: each world is drawn once, and every case that lives in it is judged."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mcverify.declare.claim import Case
from mcverify.declare.rules import call
from mcverify.judge.finding import Finding
from mcverify.judge.independence import PIECES, check_pieces
from mcverify.judge.measure import (
    GlobalRandomness,
    Measured,
    Measurement,
    Outcome,
    describe,
    measure,
    own_faults,
    refer,
)
from mcverify.judge.processes import Killed, workers
from mcverify.judge.world import World, statistic_of, world_of
from mcverify.laws import Law
from mcverify.statistic import Estimate
from mcverify.statistic.jackknife import wrong_influence
from mcverify.verdict import CASE_ERROR_RATE, LOOKS, Verdict, judge, look_rate, looks

Array = NDArray[np.float64]

MAX_TABLE = 2**23  # numbers a case may keep (64 MiB); only quantiles keep many
UNKNOWN = Estimate(math.nan, math.nan, -math.inf, math.inf)


def run(
    cases: Iterable[Case], seed: int = 0, error_rate: float = CASE_ERROR_RATE,
    jobs: int | None = None,
) -> Iterator[Finding]:
    """Judge all cases in ``jobs`` processes (default: one a core) and yield findings as they come.

    A case that breaks, or kills its process, becomes a finding whose reason says so, and the
    others go on. The error rate is a case's; what a suite may spend is for verdict.check_budget.
    Raises ValueError for a bad seed or rate.
    """
    cases = list(cases)
    if not 0 < error_rate < 1:
        raise ValueError(f"error_rate={error_rate}: must be between 0 and 1; use e.g. 1e-10")
    if not (isinstance(seed, int) and seed >= 0):
        raise ValueError(f"seed={seed!r}: must be a whole number of at least 0")
    _check_laws(cases)
    running = []
    for case in cases:
        trial = _Trial(case, seed, error_rate)
        if finding := trial.without_drawing():
            yield finding
        else:
            running.append(trial)
    if not running:
        return
    with workers(jobs) as spread:
        drawn: dict[World, dict[bytes, int]] = {}  # the first blocks of chunks, by their digests
        for look, (start, stop) in enumerate(looks()):
            if not running:
                return
            tasks = _tasks(running, seed, start, stop, drawn)
            while tasks:
                left = []
                for index, result in spread(measure, [task.arguments for task in tasks]):
                    left += tasks[index].settle(result)
                tasks = left
            undecided = []
            for trial in running:
                if finding := trial.judged(last=look == LOOKS - 1):
                    yield finding
                else:
                    undecided.append(trial)
            running = undecided


class _Trial:
    """One case on its way to a verdict."""

    def __init__(self, case: Case, seed: int, error_rate: float) -> None:
        self.case, self.seed, self.error_rate = case, seed, error_rate
        self.claimed = (math.nan, math.nan)
        self.outcomes: dict[int, Outcome] = {}  # of the chunks since the last look, by first block
        self.tables: list[Array] = []
        self.statistic = case.claim.statistic
        if case.claim.draws:
            self.reference, self.world = refer(case), world_of(case)

    def without_drawing(self) -> Finding | None:
        """What can be said at once: a broken prediction, a hand calculation, a missing moment."""
        claim, randomness = self.case.claim, GlobalRandomness()
        try:
            self.claimed = self.case.claimed
            randomness.untouched("the prediction")
            if not claim.draws:
                table = claim.statistic.block_values(call(claim.body, self.case.drawn))
                randomness.untouched("the body")
                if not np.isfinite(table).all():
                    return self._broken(f"the body returned {table.item()}; it must be finite")
                return self._decided(claim.statistic.estimate(table, self.error_rate))
            self.statistic = statistic_of(self.case, self.world)
        except own_faults() as error:
            return self._broken(describe(error))
        missing = self.statistic.missing_moments(self.world.law)
        return self._open(UNKNOWN, missing) if missing else None

    def judged(self, last: bool) -> Finding | None:
        """The verdict after a look; None if more must be drawn."""
        try:
            if fault := self._take_in():
                return self._broken(fault)
            rate = look_rate(self.error_rate, self.statistic.at_all_looks)
            found = self.statistic.estimate(self.tables[0], rate)
        except Exception as error:
            return self._broken(describe(error))
        if math.isnan(found.value):
            return self._broken(f"the {self.statistic.name} of these values is not a number")
        if not found.reason and self._verdict(found) is not Verdict.INCONCLUSIVE:
            return self._decided(found)
        if last or found.final:
            return self._open(found, found.reason or "the measured interval still crosses an edge "
                                                     "of the claimed one")
        if 2 * self.tables[0].size > MAX_TABLE:
            return self._open(found, f"one more look would keep over {MAX_TABLE} numbers; let the "
                                     "body return fewer a block")
        return None

    def _take_in(self) -> str:
        """Take in the outcomes since the last look, in the order of their blocks.

        Returns why there is no estimate, "" if there is one. Raises ValueError if the chunks of
        the first look tell that blocks depend on each other.
        """
        fresh: list[Measured] = []
        for first in sorted(self.outcomes):
            outcome = self.outcomes.pop(first)
            if isinstance(outcome, str):
                return f"{outcome} (seed {self.seed}, chunk at block {first})"
            fresh.append(outcome)
        if not self.tables:
            if len(fresh) >= PIECES and len(fresh[0].table) > 1:
                check_pieces("the law or the body", [each.table for each in fresh])
            if len({each.known for each in fresh}) == 1:
                self.statistic = self.statistic.informed(fresh[0].known)
        first_look = not self.tables
        self.tables = [np.concatenate([*self.tables, *(each.table for each in fresh)])]
        return wrong_influence(self.statistic, self.tables[0]) if first_look else ""

    def _verdict(self, found: Estimate) -> Verdict:
        return judge((found.low, found.high), self.claimed)

    def _decided(self, found: Estimate) -> Finding:
        return self._finding(self._verdict(found), found, "")

    def _open(self, found: Estimate, reason: str) -> Finding:
        return self._finding(Verdict.INCONCLUSIVE, found, reason)

    def _broken(self, message: str) -> Finding:
        return self._finding(Verdict.INCONCLUSIVE, UNKNOWN, message, broken=True)

    def _finding(
        self, verdict: Verdict, found: Estimate, reason: str, broken: bool = False
    ) -> Finding:
        blocks = sum(len(table) for table in self.tables)
        return Finding(self.case, self.seed, self.error_rate, verdict, blocks, found.value,
                       found.stderr, found.low, found.high, *self.claimed, reason,
                       str(self.statistic.rests_on), broken, self._detects(found, blocks))

    def _detects(self, found: Estimate, blocks: int) -> float:
        """By how much a claim must be off to be REFUTED with a probability of 0.999, if need be at
        the last look; in proportion to the prediction if the margin is, nan where unknown.
        """
        claim, edges = self.case.claim, [edge for edge in self.claimed if math.isfinite(edge)]
        if not (self.tables and edges and found.stderr >= 0):
            return math.nan
        size = self.tables[0].size // blocks
        last = max([blocks, *(stop for _, stop in looks() if stop * size <= MAX_TABLE)])
        stderr = found.stderr * math.sqrt(blocks / last)
        if stderr == 0 and self.statistic.support:  # the most that values of the range may vary
            low, high = self.statistic.support
            stderr = max(math.sqrt(max(0.0, (edge - low) * (high - edge)) / last) for edge in edges)
        rate = look_rate(self.error_rate)
        departure = (-ndtri(rate / 2) - ndtri(1 - 0.999)) * stderr
        if claim.prediction[0] == "equals":
            departure += (self.claimed[1] - self.claimed[0]) / 2
        relative = claim.within is not None and claim.within.relative
        return float(departure / abs(sum(edges) / len(edges)) if relative else departure)


# --- chunks ----------------------------------------------------------------------------------


class _Task:
    """One chunk of a world, with the trials that look at it."""

    def __init__(self, world: World, trials: list[_Trial], seed: int, first: int, blocks: int,
                 drawn: dict[bytes, int]):
        self.trials, self.first, self.drawn = trials, first, drawn
        self.seed, self.blocks = seed, blocks
        self.cost = blocks * world.tokens * world.d_k * len(trials)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Of the call to ``measure``."""
        return [trial.reference for trial in self.trials], self.seed, self.first, self.blocks

    def settle(self, result: Measurement | Killed) -> "list[_Task]":
        """Hand the outcomes to the trials; returns what is still to be measured."""
        if not isinstance(result, Killed):
            other = self.drawn.setdefault(result.digest, self.first)
            if result.digest and other != self.first:
                return self._fail(f"the law draws the same blocks at {other} again; let draw() use "
                                  "nothing but the rng that it is given")
            for trial, outcome in zip(self.trials, result.outcomes, strict=True):
                trial.outcomes[self.first] = outcome
            return []
        message = f"its process was killed ({result.how})"
        if result.step < 0:  # while drawing, for which no single trial is to blame
            return self._fail(message)
        self.trials[result.step].outcomes[self.first] = message
        # The others look at the same draws, which have harmed none of them.
        del self.trials[result.step]
        return [self] if self.trials else []

    def _fail(self, message: str) -> "list[_Task]":
        for trial in self.trials:
            trial.outcomes[self.first] = message
        return []


def _check_laws(cases: Iterable[Case]) -> None:
    """Raise ValueError for two laws of one name, whose draws would be mistaken for each other."""
    named: dict[str, Law] = {}
    for case in cases:
        law = case.drawn.get("law") if case.claim.draws else None
        if law is not None and named.setdefault(str(law), law) != law:
            raise ValueError(f"{case}: another law has the name {law} as well, and draws descend "
                             "from the name; give one of them another name")


def _tasks(
    running: list[_Trial], seed: int, start: int, stop: int, drawn: dict[World, dict[bytes, int]]
) -> list[_Task]:
    """A task for each chunk of each world, costly ones first so that none is left to the end."""
    worlds: dict[World, list[_Trial]] = {}
    for trial in running:
        worlds.setdefault(trial.world, []).append(trial)
    tasks = [_Task(world, [*trials], seed, first, blocks, drawn.setdefault(world, {}))
             for world, trials in worlds.items()
             for first, blocks in world.chunks(start, stop)]
    return sorted(tasks, key=lambda task: -task.cost)
