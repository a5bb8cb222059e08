"""One case on its way from block values to a verdict, look by look."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mcverify.attention.chunk import Made
from mcverify.declare.claim import Case
from mcverify.declare.rules import call
from mcverify.judge.finding import Finding
from mcverify.judge.independence import PIECES, check_pieces
from mcverify.judge.known import known_values
from mcverify.judge.limit import limited
from mcverify.judge.measure import (
    GlobalRandomness,
    Measured,
    Outcome,
    describe,
    own_faults,
    refer,
)
from mcverify.judge.watch import blocks_until, end_of_look
from mcverify.judge.world import statistic_of, world_of
from mcverify.statistic import Basis, Estimate
from mcverify.statistic.betting import threshold
from mcverify.statistic.jackknife import wrong_influence
from mcverify.statistic.studentised import CALIBRATED_FROM
from mcverify.verdict import Terms, Verdict, judge

Array = NDArray[np.float64]

MAX_TABLE = 2**23  # numbers a case may keep (64 MiB); only quantiles keep many
UNKNOWN = Estimate(math.nan, math.nan, -math.inf, math.inf)


class Trial:
    """One case on its way to a verdict."""

    def __init__(self, case: Case, terms: Terms) -> None:
        self.case, self.terms = case, terms
        self.claimed = (math.nan, math.nan)
        self.outcomes: dict[int, Outcome] = {}  # of the chunks since the last look, by first block
        self.tables: list[Array] = []
        self.informed_by: Made | None = None  # what the body returns, if that is known
        self.statistic = case.claim.statistic
        self.rests = 0.0  # blocks before which no verdict is in sight
        if case.claim.draws:
            self.reference, self.world = refer(case), world_of(case)
            self.cost = self.world.tokens * self.world.d_k  # of a block
            self.foreseen = 0  # blocks in all, once there was a look

    def without_drawing(self, limit: float | None = None) -> Finding | None:
        """What can be said at once: a broken prediction, a hand calculation, a missing moment."""
        claim, randomness = self.case.claim, GlobalRandomness()
        try:
            with limited(limit, "the prediction"):
                self.claimed = self.case.claimed_at(self.terms.margin_scale)
            randomness.untouched("the prediction")
            if not claim.draws:
                with limited(limit, "the body"):
                    table = claim.statistic.block_values(call(claim.body, self.case.drawn))
                randomness.untouched("the body")
                if not np.isfinite(table).all():
                    return self._broken(f"the body returned {table.item()}; it must be finite")
                return self._decided(claim.statistic.estimate(table, self.terms.error_rate))
            self.statistic = statistic_of(self.case, self.world)
        except own_faults() as error:
            return self._broken(describe(error))
        missing = self.statistic.missing_moments(self.world.law)
        return self._open(UNKNOWN, missing) if missing else None

    def judged(self, blocks: int) -> Finding | None:
        """The verdict after a look, which has seen so many blocks; None if more must be drawn."""
        if blocks < self.rests and not any(isinstance(x, str) for x in self.outcomes.values()):
            return None
        try:
            if fault := self._take_in():
                return self._broken(fault)
            if self.statistic.rests_on is Basis.CALIBRATED and blocks < CALIBRATED_FROM:
                self.rests = self.foreseen = CALIBRATED_FROM
                return None
            rate = self.terms.look_rate(self.statistic.at_all_looks)
            found = self.statistic.estimate(self.tables[0], rate)
        except Exception as error:
            return self._broken(describe(error))
        if math.isnan(found.value):
            return self._broken(f"the {self.statistic.name} of these values is not a number")
        if not found.reason and self._verdict(found) is not Verdict.INCONCLUSIVE:
            self.foreseen = blocks
            return self._decided(found)
        each = self.tables[0].size // blocks
        later = [stop for _, stop in self.terms.looks if stop > blocks and stop * each <= MAX_TABLE]
        if found.final or blocks == self.terms.looks[-1][1]:
            return self._open(found, found.reason or "the measured interval still crosses an edge "
                                                     "of the claimed one")
        if not later:
            return self._open(found, f"one more look would keep over {MAX_TABLE} numbers; let the "
                                     "body return fewer a block")
        self._foresee(found, blocks, later[-1])
        return None

    def _foresee(self, found: Estimate, blocks: int, most: int) -> None:
        """How many blocks it will take, and before how many a verdict would be a surprise, so that
        it is not looked for: as if the edges were two standard errors farther off.

        What skewness and kurtosis add to a calibrated interval is left out of that: it narrows
        faster than the blocks do at first.
        """
        slow = math.inf if self.statistic.known else (
            -float(ndtri(self.terms.look_rate() / 2)) * found.stderr)
        self.foreseen = end_of_look(
            blocks_until(found, self.claimed, blocks, slow), blocks, self.terms.max_blocks)
        if self.statistic.rests_on is Basis.CALIBRATED:
            found = replace(found, low=found.value - slow, high=found.value + slow)
        self.rests = min(most, blocks_until(found, self.claimed, blocks, slow, 2 * found.stderr))

    def _take_in(self) -> str:
        """Take in the outcomes since the last look, in the order of their blocks.

        Returns why there is no estimate, "" if there is one. Raises ValueError if the chunks of
        the first look tell that blocks depend on each other.
        """
        fresh: list[Measured] = []
        for first in sorted(self.outcomes):
            outcome = self.outcomes.pop(first)
            if isinstance(outcome, str):
                return f"{outcome} (seed {self.terms.seed}, chunk at block {first})"
            fresh.append(outcome)
        first_look, made = not self.tables, {each.made for each in fresh}
        if self.informed_by and made != {self.informed_by}:
            return ("the body returned what it was handed or made of it at first, and now others; "
                    "treat all blocks alike")
        if first_look:
            if len(fresh) >= PIECES and len(fresh[0].table) > 1:
                check_pieces("the law or the body", [each.table for each in fresh])
            if len(made) == 1 and self.statistic.learns:
                self.informed_by = next(iter(made))
                self.statistic = self.statistic.informed(known_values(
                    self.world, self.informed_by, self.statistic.power))
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
        blocks, terms = sum(len(table) for table in self.tables), self.terms
        return Finding(self.case, terms.seed, terms.error_rate, verdict, blocks, found.value,
                       found.stderr, found.low, found.high, *self.claimed, reason,
                       str(self.statistic.rests_on), broken, self._detects(found, blocks),
                       terms.margin_scale, terms.max_blocks)

    def _reach(self, found: Estimate, blocks: int) -> float:
        """How many standard errors the interval reaches to either side, after so many blocks."""
        rate = self.terms.look_rate(self.statistic.at_all_looks)
        if self.statistic.at_all_looks:
            return math.sqrt(2 * threshold(blocks, rate))
        by_moments = self.statistic.rests_on is Basis.MOMENTS and found.stderr > 0
        reach = (found.high - found.low) / found.stderr / 2 if by_moments else math.inf
        return float(reach if math.isfinite(reach) else -ndtri(rate / 2))

    def _detects(self, found: Estimate, blocks: int) -> float:
        """By how much a claim must be off to be REFUTED with a probability of 0.999, if need be at
        the last look; in proportion to the prediction if the margin is, nan where unknown.
        """
        claim, edges = self.case.claim, [edge for edge in self.claimed if math.isfinite(edge)]
        if not (self.tables and edges and found.stderr >= 0):
            return math.nan
        size = self.tables[0].size // blocks
        last = max([blocks, *(stop for _, stop in self.terms.looks if stop * size <= MAX_TABLE)])
        stderr = found.stderr * math.sqrt(blocks / last)
        if stderr == 0 and self.statistic.support:  # the most that values of the range may vary
            low, high = self.statistic.support
            stderr = max(math.sqrt(max(0.0, (edge - low) * (high - edge)) / last) for edge in edges)
        departure = (self._reach(found, last) - ndtri(1 - 0.999)) * stderr
        if claim.prediction[0] == "equals":
            departure += (self.claimed[1] - self.claimed[0]) / 2
        relative = claim.within is not None and claim.within.relative
        return float(departure / abs(sum(edges) / len(edges)) if relative else departure)
