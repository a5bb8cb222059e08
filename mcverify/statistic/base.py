"""What a statistic is: values of a body -> block values -> an estimate with an interval.

A statistic has two halves. ``reduce`` turns the values of some blocks into a few numbers for each
block, its block values, so that everything inside a block, dependent as it is, counts once.
``influence`` turns the block values of all blocks into the estimate and one value a block whose
mean square is its variance: the blocks are independent, so standard error, skewness and interval
follow for every statistic alike. Orders of moments are those of the score: a variance is a mean of
squares.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.law import Law
from mcverify.statistic.catoni import catoni, in_groups
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.statistic.known import Known, check_ends, check_range, check_variance
from mcverify.statistic.studentised import (
    CAUTION,
    blocks_needed,
    first_order,
    quantile_of_t,
    skewness,
    standard_error,
    studentised,
)
from mcverify.statistic.values import flat, parts_of

Influence = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class Statistic:
    """How values become a number with an error; the two halves of the module's first sentence.

    Attributes
    ----------
    name : as tables show it.
    reduce : values of some blocks, first axis blocks -> (blocks, ...) block values.
    influence : those of all blocks -> (estimate, (blocks,) influence values with mean 0, in the
        estimate's unit).
    moments : the absolute moments of a score must exist beyond this order for the interval to
        hold: the third moment of the influence values.
    parts : block values -> (blocks, any number) of block values that a curved influence is made
        of, and whose skewness its interval must pay for as well.
    curvature : block values -> what the estimate loses to second order, for each t²/blocks: a
        variance its block means' variance, as their mean is squared in it.
    lean : block values -> what the studentised error of a curved statistic has more than that of a
        mean, z, for each z²/√blocks: its standard error moves with its error.
    caution : blocks for each t² from which on the studentised interval is trusted.
    back : from the scale on which the estimate is a mean to the statistic's own.
    about : (block values, known mean of the values) -> (blocks,) values whose mean is the estimate
        before ``back``; by it a known variance gives a theorem.
    power : what ``about``'s values are means of: the values (1), their squares (2), or their
        fourth powers (4), which are about mean, variance and standardised fourth moment.
    knows : the ``reduce`` that these are right for: another one makes other block values.
    tell : of a statistic of several arrays: the same with what is known of each.
    interval : replaces the studentised interval by one of the statistic's own.
    basis : what that interval, or the studentised one, rests on.
    anytime : whether it holds at all looks together.
    ranged : (block values, low, high, error rate) -> the estimate for values of a stated range;
        with ``size``, of rows of so many blocks.
    support : that range, if it is stated; numbers or functions of the settings.
    known : variance of ``about``'s values and mean of the values, if they are known; likewise.
    draws : whether its body draws at all.
    merge : block values -> those of pairs of neighbours, taken as one block: (2n, …) -> (n, …). A
        case of a statistic without it keeps what it has drawn, which ends at some number.
    narrows : whether its interval may be asked of ``Narrowed`` block values as well.
    enlarged : how many blocks are one -> the same for such block values, if it is not the variance
        in ``known`` alone that changes.
    """

    name: str
    reduce: Callable[[Any], Array]
    influence: Influence
    moments: float
    parts: Callable[[Array], Array] | None = None
    curvature: Callable[[Array], float] | None = None
    lean: Callable[[Array], float] | None = None
    caution: float = CAUTION
    back: Callable[[float], float] | None = None
    about: Callable[[Array, Any], Array] | None = None
    power: int = 1
    knows: Callable[[Any], Array] | None = None
    tell: "Callable[[tuple[Known | None, ...]], Statistic] | None" = None
    interval: Callable[[Any, float], Estimate] | None = None
    basis: Basis = Basis.CALIBRATED
    anytime: bool = False
    ranged: Callable[..., Estimate] | None = None
    support: tuple[Any, Any] | None = None
    known: tuple[Any, Any] | None = None
    draws: bool = True
    merge: Callable[[Array], Array] | None = None
    narrows: bool = False
    enlarged: "Callable[[int], Statistic] | None" = None

    def __repr__(self) -> str:
        return f"<Statistic {self.name}>"

    def of_degree(self, degree: float) -> "Statistic":
        """The same for values that grow like the score to this power; 0 for bounded values.

        >>> from mcverify.statistic import mean
        >>> mean.moments, mean.of_degree(2).moments, mean.of_degree(0).moments
        (3, 6, 0)
        """
        return replace(self, moments=self.moments * degree)

    def within(self, low: Any, high: Any) -> "Statistic":
        """The same for values that all lie in [low, high]: a theorem for every law on that range.

        Of softmax weights, entropies over ln n, norms of Jacobians, cosines. Numbers, or functions
        of the settings, which may say None where a range that is far wider than the values are
        would ask for too many blocks. A value outside is an error of the case. Raises ValueError
        for a statistic that has no such interval, or an empty range.

        >>> from mcverify.statistic import mean
        >>> estimate = mean.within(0, 1).estimate(np.full((512, 1), 0.5), 1e-10)
        >>> str(estimate.basis), estimate.low < 0.5 < estimate.high
        ('bound', True)
        """
        if self.ranged is None:
            raise ValueError(f"{self.name}.within: {self.name} has no interval for values of a "
                             "stated range; use mean or ratio")
        self._check_one_kind(self.known)
        if not (callable(low) or callable(high)):
            check_ends(low, high, self.name)
        return replace(self, support=(low, high), moments=0)

    def with_variance(self, variance: Any, mean: Any = 0.0) -> "Statistic":
        """The same where the variance is known: its interval holds for every law that has it.

        ``variance`` is that of a block's value, or at least as much: of the mean of its values, or
        for ``variance`` and ``std`` of their mean square about their ``mean``, which is known then
        as well. Both are numbers, or functions of the settings, of which ``tokens`` is one; a
        variance that is None where it is not known leaves the interval as it is. Raises ValueError
        for a statistic that is no mean of block values.

        >>> from mcverify.statistic import mean
        >>> estimate = mean.with_variance(1.0).estimate(np.array([[1.0], [-1.0]] * 256), 1e-3)
        >>> str(estimate.basis), round(estimate.high, 4)
        ('moments', 0.1745)
        """
        if self.about is None or self.power == 4:
            raise ValueError(f"{self.name}.with_variance: {self.name} is no mean of one value a "
                             "block; use mean, variance or std")
        self._check_one_kind(self.support)
        if not (variance is None or callable(variance)):
            check_variance(variance, self.name)
        return replace(self, known=(variance, mean))

    def _check_one_kind(self, other: Any) -> None:
        if other is not None:
            raise ValueError(f"{self.name}: both a range and a variance are stated, and the "
                             "interval rests on one; state one of the two")

    @property
    def learns(self) -> bool:
        """Whether what a law knows of the values makes its interval a theorem."""
        return not self.known and self.support is None and self.reduce is self.knows

    def informed(self, known: "Known | tuple[Known | None, ...] | None") -> "Statistic":
        """The same with what a law knows of the values, unless more is stated already.

        A statistic of several arrays, as a slope is, is told what is known of each.
        """
        if known is None or not self.learns:
            return self
        if self.tell is not None or not isinstance(known, Known):
            return self.tell(known) if self.tell and not isinstance(known, Known) else self
        if self.power == 4:
            fourths = known.fourths and (known.of_fourths, (known.mean, *known.fourths))
            return replace(self, known=fourths) if fourths else self
        variance = known.of_means if self.power == 1 else known.of_squares
        return self if variance is None else self.with_variance(variance, known.mean)

    def settled(self, call: Callable[[Callable[..., Any]], Any]) -> "Statistic":
        """The same with numbers for what was given as functions of the settings.

        ``call`` calls such a function with the settings that it names.
        """
        def number(value: Any) -> Any:
            return call(value) if callable(value) else value

        support, known = (pair and (number(pair[0]), number(pair[1]))
                          for pair in (self.support, self.known))
        if support and None in support:
            support = None
        if support:
            check_ends(*support, self.name)
        if known and known[0] is None:
            known = None
        if known:
            check_variance(known[0], self.name)
        return replace(self, support=support, known=known) if self.support or self.known else self

    def of_merged(self, blocks: int) -> "Statistic":
        """The same for the block values of so many blocks taken as one.

        >>> from mcverify.statistic import mean
        >>> mean.with_variance(3.0).of_merged(4).known
        (0.75, 0.0)
        """
        if blocks == 1:
            return self
        if self.enlarged is not None:
            return self.enlarged(blocks)
        if self.support is not None and self.ranged is not None:
            return replace(self, ranged=partial(self.ranged, size=blocks))
        return replace(self, known=self.known and (self.known[0] / blocks, self.known[1]))

    @property
    def rests_on(self) -> Basis:
        """What the interval rests on, with what is known."""
        return Basis.MOMENTS if self.known else Basis.BOUND if self.support else self.basis

    @property
    def at_all_looks(self) -> bool:
        """Whether the interval holds at all looks together, so that they share no error rate."""
        return not self.known and (self.anytime or self.support is not None)

    def missing_moments(self, law: Law) -> str:
        """Why the law lets no interval stand whatever is drawn; "" if it does."""
        if self.known:
            return ("" if math.isfinite(self.known[0]) else
                    f"the variance of a block's value, {self.known[0]:g}, is not finite")
        needed = self.moments * (2 if law.coupled else 1)
        if needed == 0 or law.finite_moments > needed:
            return ""
        return (f"the interval needs the moment of order {needed:g} of a coordinate; {law} has "
                f"those below {law.finite_moments:g}")

    def block_values(self, values: Any) -> Array:
        """What is kept of the values of some blocks; ValueError if they leave the stated range."""
        if self.support is not None:
            for part in parts_of(values):
                check_range(flat(part), *self.support, self.name)
        return self.reduce(values)

    @np.errstate(over="ignore", invalid="ignore")  # of values near the largest there are
    def estimate(self, table: Array, error_rate: float) -> Estimate:
        """The estimate, and an interval that misses at most at ``error_rate``, of block values.

        >>> from mcverify.statistic import mean
        >>> mean.estimate(np.array([[1.0], [2.0], [3.0]]), 0.5).value
        2.0
        """
        if self.known:
            return self._by_variance(table, error_rate)
        if self.support is not None and self.ranged is not None:
            return replace(self.ranged(table, *self.support, error_rate), basis=self.rests_on)
        if self.interval is not None:
            return replace(self.interval(table, error_rate), basis=self.rests_on)
        value, influence = self.influence(table)
        parts = None if self.parts is None else self.parts(table)
        curvature = 0.0 if self.curvature is None else self.curvature(table)
        lean = 0.0 if self.lean is None else self.lean(table)
        estimate = studentised(value, influence, error_rate, parts, curvature, self.caution, lean)
        if estimate.final and math.isfinite(estimate.stderr) and np.any(table != table[0]):
            estimate = replace(estimate, final=False)  # the first order vanishes here, by chance
        return self._on_own_scale(estimate)

    def _by_variance(self, table: Array, error_rate: float) -> Estimate:
        assert self.about is not None  # with_variance has seen to it
        assert self.known is not None
        variance, mean = self.known
        values = self.about(table, mean)
        value = float(values.mean())
        return self._on_own_scale(Estimate(
            value, standard_error(values - value),
            *catoni(*in_groups(values, variance), error_rate), basis=Basis.MOMENTS))

    def _on_own_scale(self, estimate: Estimate) -> Estimate:
        if self.back is None:
            return estimate
        points = (estimate.value, estimate.low, estimate.high,
                  estimate.value - estimate.stderr, estimate.value + estimate.stderr)
        value, low, high, below, above = map(self.back, points)
        return replace(estimate, value=value, stderr=(above - below) / 2, low=low, high=high)

    def blocks_needed(self, table: Array, error_rate: float) -> float:
        """Blocks from which the interval stands, as skew as the block values look; else 0."""
        if self.rests_on is not Basis.CALIBRATED:
            return 0.0
        t = quantile_of_t(len(table), error_rate)
        skew = skewness(self.influence(table)[1])
        lean = 0.0 if self.lean is None else self.lean(table)
        return blocks_needed(t, self.caution, max(first_order(skew, t), lean * t * t))
