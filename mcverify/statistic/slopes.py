"""The exponent with which a statistic grows, by its values at several x on the same draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.combined import Combined, Part, Shape, part_of
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.statistic.known import Known
from mcverify.statistic.studentised import standard_error


def slope(of: Statistic) -> Statistic:
    """The exponent with which a statistic grows: the least-squares slope of its log over log x.

    The body returns a list of pairs ``(x, values)``, say a width and the scores at that width,
    all from one draw. ``of`` must be positive. If its interval is a theorem at each x, as that of a
    quantile is, those of all x share the error rate, and the slope's is what they allow together.
    Raises ValueError for a known variance that depends on the settings.

    >>> from mcverify.statistic import mean
    >>> tables = slope(mean).reduce([(d, np.full((3, 1), d**2.0)) for d in (1, 2, 4)])
    >>> round(slope(mean).influence(tables)[0], 12)
    2.0
    """
    if any(map(callable, of.known or ())):
        raise ValueError(f"slope({of.name}): a variance that is known must be a number, at least "
                         "the variance at every x; give one")
    one = _Slope(replace(of, support=None), of.support)
    if one.of.rests_on is Basis.CALIBRATED:
        return one.calibrated
    return one.by_theorem(one.of.rests_on, lambda xs: [one.of] * xs)


@dataclass(frozen=True)
class _Slope:
    """The halves of a slope, whose block values are (blocks, xs, 1 + few), x in front.

    ``support`` is the range that is stated of the values, which the slope itself settles.
    """

    of: Statistic
    support: tuple[Any, Any] | None

    @property
    def calibrated(self) -> Statistic:
        """The slope by its influence values, unless a range is stated or a law knows more."""
        of, both, reduce = self.of, Combined(self.at), self.reduce
        return Statistic(
            f"slope of {of.name}", reduce, both.influence, moments=of.moments, parts=self.parts,
            curvature=both.curvature, lean=both.lean, caution=of.caution, support=self.support,
            tell=self.tell, ranged=self.ranged if of.ranged and not of.known else None,
            knows=reduce if of.learns else None, merge=self.merge if of.merge else None)

    def by_theorem(
        self, basis: Basis, of_each: Callable[[int], Sequence[Statistic]]
    ) -> Statistic:
        """The slope by intervals that hold at each of so many x."""

        def interval(table: Array, error_rate: float) -> Estimate:
            return self.joined(of_each(table.shape[1]), table, error_rate)

        def enlarged(blocks: int) -> Statistic:
            return self.by_theorem(
                basis, lambda xs: [each.of_merged(blocks) for each in of_each(xs)])

        return replace(self.calibrated, moments=0, parts=None, curvature=None, lean=None,
                       support=None, knows=None, interval=interval, basis=basis,
                       anytime=self.of.anytime, enlarged=enlarged)

    def reduce(self, values: Any) -> Array:
        if not isinstance(values, list) or len(values) < 2:
            raise ValueError(f"slope: the body returned {type(values).__name__}; it must return a "
                             "list of at least two pairs (x, values)")
        tables = [(x, self.of.reduce(part)) for x, part in values]
        return np.stack([np.column_stack([np.full(len(table), float(x)), table])
                         for x, table in tables], axis=1)

    def at(self, table: Array) -> tuple[Shape, list[Part]]:
        """The sum of weighted logarithms, as a function of the estimates at all x."""
        parts = [part_of(self.of, column) for column in _columns(table)]
        values, weights = np.array([part.value for part in parts]), _weights(table)
        value = float(weights @ [self.log(each) for each in values])
        return Shape(value, weights / values, np.diag(-weights / values**2)), parts

    def parts(self, table: Array) -> Array:
        columns = []
        for column in _columns(table):
            columns.append(self.of.influence(column)[1][:, None])
            if self.of.parts is not None:
                columns.append(self.of.parts(column))
        return np.concatenate(columns, axis=1)

    def merge(self, table: Array) -> Array:
        assert self.of.merge is not None
        columns = [np.concatenate([column[0::2, :1], self.of.merge(column[:, 1:])], axis=1)
                   for column in np.moveaxis(table, 1, 0)]
        return np.stack(columns, axis=1)

    def tell(self, known: tuple[Known | None, ...]) -> Statistic:
        of_each = [self.of.informed(each) for each in known]
        if not all(each.known for each in of_each):
            return self.calibrated
        return self.by_theorem(Basis.MOMENTS, lambda xs: of_each)

    def ranged(
        self, table: Array, low: float, high: float, error_rate: float, size: int = 1
    ) -> Estimate:
        each = self.of.within(low, high).of_merged(size)
        return self.joined([each] * table.shape[1], table, error_rate)

    def joined(self, of_each: Sequence[Statistic], table: Array, error_rate: float) -> Estimate:
        """The slope of logs whose intervals hold at each x, as far as they allow it together."""
        weights = _weights(table)
        estimates = [of.estimate(column, error_rate / len(weights))
                     for of, column in zip(of_each, _columns(table), strict=True)]
        logs = [self.log(each.value) for each in estimates]
        with np.errstate(divide="ignore"):
            ends = np.log(np.maximum([[each.low, each.high] for each in estimates], 0.0))
        ends[weights == 0] = 0  # of which nothing counts, also where they are infinite
        low, high = np.where(weights > 0, ends.T, ends.T[::-1]) @ weights
        if self.of.basis is Basis.ORDER:  # whose influence values are of shares
            errors = weights * [each.stderr / each.value for each in estimates]
            stderr = float(np.linalg.norm(errors))
        else:
            stderr = standard_error(Combined(self.at).influence(table)[1])
        reason = next((each.reason for each in estimates if each.reason), "")
        return Estimate(float(weights @ logs), stderr, float(low), float(high), reason)

    def log(self, value: float) -> float:
        if not value > 0:
            raise ValueError(f"slope({self.of.name}): found {value:g}; only a positive number "
                             "grows like a power")
        return math.log(value)


def _columns(table: Array) -> Array:
    """The block values at each x: (blocks, xs, 1 + few) -> (xs, blocks, few)."""
    return np.moveaxis(table[:, :, 1:], 1, 0)


def _weights(table: Array) -> Array:
    """What each log counts in the least-squares slope: (blocks, xs, 1 + few) -> (xs,)."""
    x = np.log(table[0, :, 0])
    weights: Array = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    return weights
