"""One case on its way from block values to a verdict, look by look."""

import math
from dataclasses import replace

import scipy

from mcverify.arrays import Array
from mcverify.attention.chunk import Made
from mcverify.declare.claim import Case
from mcverify.declare.rules import lacking
from mcverify.judge.detectable import detectable
from mcverify.judge.finding import Finding
from mcverify.judge.independence import PIECES, check_pieces
from mcverify.judge.kept import Kept
from mcverify.judge.known import known_values
from mcverify.judge.limit import limited
from mcverify.judge.measure import Outcome, numbers_in
from mcverify.judge.raised import described, own_faults
from mcverify.judge.randomness import GlobalRandomness
from mcverify.judge.reference import refer
from mcverify.judge.sample import calculated
from mcverify.judge.watch import blocks_until, end_of_look
from mcverify.judge.world import statistic_of, world_of
from mcverify.statistic import Basis, Estimate
from mcverify.statistic.betting import threshold
from mcverify.statistic.jackknife import wrong_influence
from mcverify.statistic.narrowed import Narrowed
from mcverify.statistic.studentised import CALIBRATED_FROM
from mcverify.verdict import Terms, Verdict, judge

MAX_TABLE = 2**23  # numbers a case may keep (64 MiB); only quantiles keep many
UNKNOWN = Estimate(math.nan, math.nan, -math.inf, math.inf)


class Trial:
    """One case on its way to a verdict."""

    def __init__(self, case: Case, terms: Terms) -> None:
        self.case, self.terms = case, terms
        self.claimed = (math.nan, math.nan)
        self.arrived: dict[int, Outcome] = {}  # by first block, of chunks that others come before
        self.held = 0  # numbers in those
        self.kept = Kept(case.claim.statistic.merge)
        self.pieces: list[Array] = []  # of the first look, as they were drawn
        self.fault = ""  # of the first chunk that has one
        self.made: set[Made | None] = set()  # what the body has returned since the last look
        self.seen = 0  # blocks at the last look
        self.informed_by: Made | None = None  # what the body returns, if that is known
        self.statistic = case.claim.statistic
        self.rests = 0.0  # blocks before which no verdict is in sight
        if case.claim.draws:
            self.reference, self.world = refer(case), world_of(case)
            self.cost = self.world.cost  # of a block
            self.foreseen = 0  # blocks in all, once there was a look

    def without_drawing(self, limit: float | None = None) -> Finding | None:
        """What can be said at once: a broken prediction, a hand calculation, a missing moment."""
        claim, randomness = self.case.claim, GlobalRandomness()
        try:
            with limited(limit, "the prediction"):
                self.claimed = self.case.claimed_at(self.terms.margin_scale)
            randomness.untouched("the prediction")
            if reason := lacking(claim):
                return self._open(UNKNOWN, reason)
            if not claim.draws:
                with limited(limit, "the body"):
                    table = calculated(self.case)
                randomness.untouched("the body")
                return self._decided(claim.statistic.estimate(table, self.terms.error_rate))
            self.statistic = statistic_of(self.case, self.world)
        except own_faults() as error:
            return self._broken(described(error))
        missing = self.statistic.missing_moments(self.world.law)
        return self._open(UNKNOWN, missing) if missing else None

    def judged(self, blocks: int) -> Finding | None:
        """The verdict after a look, which has seen so many blocks; None if more must be drawn."""
        if blocks < self.rests and not self.fault:
            return None
        try:
            if fault := self.fault or self._check_in(blocks):
                return self._broken(fault)
            if self.statistic.rests_on is Basis.CALIBRATED and blocks < CALIBRATED_FROM:
                self.rests = self.foreseen = CALIBRATED_FROM
                return None
            statistic = self.statistic.of_merged(self.kept.merged)
            estimate = statistic.estimate(self.kept.table, self.rate)
        except Exception as error:
            return self._broken(described(error))
        if math.isnan(estimate.value):
            return self._broken(f"the {self.statistic.name} of these values is not a number")
        if not estimate.reason and self._verdict(estimate) is not Verdict.INCONCLUSIVE:
            self.foreseen = blocks
            return self._decided(estimate)
        later = [stop for stop in self.bearable(self._each) if stop > blocks]
        if estimate.final or blocks in (self.world.most, self.terms.looks[-1][1]):
            return self._open(estimate, estimate.reason or (
                "the measured interval still crosses an edge of the claimed one"))
        if not later or self.kept.table.size > MAX_TABLE:
            return self._open(estimate, f"one more look would keep over {MAX_TABLE} numbers; let "
                                        "the body return fewer a block")
        self._foresee(estimate, blocks, later[-1])
        if self.narrows and math.isfinite(estimate.high - estimate.low):
            self.kept.narrow(estimate.low, estimate.high)
        return None

    def _foresee(self, estimate: Estimate, blocks: int, most: int) -> None:
        """How many blocks it will take, and before how many a verdict would be a surprise, so that
        it is not looked for: as if the edges were two standard errors farther off.

        What skewness and kurtosis add to a calibrated interval is left out of that: it narrows
        faster than the blocks do at first.
        """
        self.foreseen = end_of_look(self.needed(estimate, blocks), blocks, self.terms.max_blocks)
        if self.statistic.rests_on is Basis.CALIBRATED:
            slow = self._slow(estimate)
            estimate = replace(estimate, low=estimate.value - slow, high=estimate.value + slow)
        if not self.narrows:  # which every look lets go of more
            self.rests = min(most, self.needed(estimate, blocks, 2 * estimate.stderr))

    def needed(self, estimate: Estimate, blocks: int, farther: float = 0.0) -> float:
        """After how many blocks in all a verdict is foreseen, by an interval after so many and
        edges that are ``farther`` off than they are; 0 where that is not known.
        """
        return blocks_until(estimate, self.claimed, blocks, self._slow(estimate), farther)

    def _slow(self, estimate: Estimate) -> float:
        """How much of half an interval narrows with the root of the blocks."""
        return math.inf if self.statistic.known else (
            -float(scipy.special.ndtri(self.terms.look_rate() / 2)) * estimate.stderr)

    def take(self, first: int, outcome: Outcome, stop: int) -> None:
        """Take in the outcome of the chunk from a block on, at the look that ends at ``stop``.

        Chunks may come in any order, and count in the order of their blocks.
        """
        self.arrived[first] = outcome
        self.held += numbers_in(outcome)
        while (at := self.kept.blocks) in self.arrived and not self.fault:
            outcome = self.arrived.pop(at)
            self.held -= numbers_in(outcome)
            if fault := self._add(outcome, self.merged(stop)):
                self.fault = f"{fault} (seed {self.terms.seed}, chunk at block {at})"
        if self.fault:
            self.arrived, self.held = {}, 0

    def _add(self, outcome: Outcome, merged: int) -> str:
        """Keep a chunk's block values, in rows of so many blocks; returns why there are none."""
        if isinstance(outcome, str):
            return outcome
        try:
            self.kept.coarsen(merged)
            self.kept.add(outcome.table)
        except Exception as error:
            return described(error)
        self.made.add(outcome.made)
        if not self.seen:
            self.pieces.append(outcome.table)
        return ""

    def merged(self, blocks: int) -> int:
        """Of how many blocks a row is at the look that ends there."""
        return self.terms.merged(blocks) if self.kept.merge else 1

    @property
    def narrows(self) -> bool:
        """Whether what a quantile needs no more is let go of."""
        return self.statistic.narrows and not self.terms.keeps_all

    @property
    def _each(self) -> int:
        """The numbers of a row."""
        table = self.kept.table
        return table.values if isinstance(table, Narrowed) else int(table.size) // len(table)

    def bearable(self, each: int) -> list[int]:
        """The ends of the looks whose blocks the case may have, and may keep in rows of so many
        numbers.
        """
        return [stop for _, stop in self.terms.looks
                if stop <= self.world.most and self.numbers(each, stop) <= MAX_TABLE]

    def numbers(self, each: int, blocks: int) -> int:
        """How many numbers the case keeps of so many blocks with so many block values each.

        Of a quantile those of blocks with a value in its interval, if values are independent.
        """
        if not self.narrows:
            return each * blocks // self.merged(blocks)
        inside = math.sqrt(2 * threshold(blocks, self.rate) * each * blocks)
        return each * min(blocks, round(inside))

    @property
    def rate(self) -> float:
        """What a look may spend of the case's error rate."""
        return self.terms.look_rate(self.statistic.at_all_looks)

    def _check_in(self, blocks: int) -> str:
        """Why there is no estimate from so many blocks, "" if there is one.

        Raises ValueError if the chunks of the first look tell that blocks depend on each other.
        """
        made, self.made = self.made, set()
        if self.informed_by and made != {self.informed_by}:
            return ("the body returned what it was handed or made of it at first, and now others; "
                    "treat all blocks alike")
        pieces, self.pieces, first_look = self.pieces, [], not self.seen
        if first_look:
            if len(pieces) >= PIECES and len(pieces[0]) > 1:
                check_pieces("the law or the body", pieces)
            if len(made) == 1 and self.statistic.learns:
                self.informed_by = next(iter(made))
                self.statistic = self.statistic.informed(known_values(
                    self.world, self.informed_by, self.statistic.power))
        self.seen = blocks
        return wrong_influence(self.statistic, self.kept.table) if first_look else ""

    def _detects(self, estimate: Estimate) -> float:
        if not self.seen:
            return math.nan
        last = max([self.seen, *self.bearable(self._each)])
        return detectable(self.case.claim, self.claimed, self.statistic, estimate, self.seen, last,
                          self.rate)

    def _verdict(self, estimate: Estimate) -> Verdict:
        return judge((estimate.low, estimate.high), self.claimed)

    def _decided(self, estimate: Estimate) -> Finding:
        return self._finding(self._verdict(estimate), estimate, "")

    def _open(self, estimate: Estimate, reason: str) -> Finding:
        return self._finding(Verdict.INCONCLUSIVE, estimate, reason)

    def _broken(self, message: str) -> Finding:
        return self._finding(Verdict.INCONCLUSIVE, UNKNOWN, message, broken=True)

    def _finding(
        self, verdict: Verdict, estimate: Estimate, reason: str, broken: bool = False
    ) -> Finding:
        blocks, terms = self.seen, self.terms
        return Finding(self.case, terms.seed, terms.error_rate, verdict, blocks, estimate.value,
                       estimate.stderr, estimate.low, estimate.high, *self.claimed, reason,
                       str(self.statistic.rests_on), broken, self._detects(estimate),
                       terms.margin_scale, terms.max_blocks)
