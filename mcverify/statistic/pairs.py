"""The ratio and the difference of two statistics, whose values come from the same draws."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.combined import STRAIGHT, Combined, Part, Shape, part_of, quotient
from mcverify.statistic.estimate import Basis, Estimate, no_interval


def difference_of(first: Statistic, second: Statistic) -> Statistic:
    """The first statistic less the second one; the body returns the values of each, as a tuple.

    Of two means of block values, as variances are, the influence values are those of the first less
    those of the second (the delta method), so that what both share cancels; the interval is
    calibrated. If one of the two has an interval of its own, as a median or a mean in a stated
    range, both get half of the error rate, and the interval holds all differences of what they
    allow and rests on the weaker of their two bases. Raises ValueError for a calculation, and for a
    range or a variance that is no number.

    >>> from mcverify.statistic import mean, variance
    >>> both = difference_of(variance, mean)
    >>> x = np.array([[1.0], [2.0], [6.0]])
    >>> round(both.influence(both.reduce((x, x)))[0], 12)  # 7 − 3
    4.0
    """
    return _Two(f"difference of {first.name} and {second.name}", (first, second),
                lambda a, b: Shape(a - b, np.array([1.0, -1.0]), STRAIGHT),
                lambda a, b: (a.low - b.high, a.high - b.low)).statistic


def ratio_of(first: Statistic, second: Statistic) -> Statistic:
    """The first statistic over the second one, as ``difference_of`` is their difference.

    >>> from mcverify.statistic import mean, variance
    >>> both = ratio_of(variance, mean)
    >>> x = np.array([[1.0], [2.0], [6.0]])
    >>> round(both.influence(both.reduce((x, x)))[0], 12)  # 7/3
    2.333333333333
    """
    return _Two(f"ratio of {first.name} to {second.name}", (first, second),
                quotient, _quotients).statistic


def _quotients(a: Estimate, b: Estimate) -> tuple[float, float]:
    """All quotients of what two intervals hold; no bounds if the second one holds 0."""
    if b.low <= 0 <= b.high:
        return -math.inf, math.inf
    ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


@dataclass(frozen=True)
class _Two:
    """A function of two statistics: its shape, and how it joins what their intervals allow."""

    name: str
    of: tuple[Statistic, Statistic]
    shape: Callable[[float, float], Shape]
    join: Callable[[Estimate, Estimate], tuple[float, float]]

    def __post_init__(self) -> None:
        for each in self.of:
            _check(each, self.name)

    @property
    def statistic(self) -> Statistic:
        of, both = self.of, Combined(self.at)
        two = Statistic(self.name, self.reduce, both.influence,
                        moments=max(0 if one.known or one.support else one.moments for one in of),
                        merge=self.merge if all(one.merge for one in of) else None)
        if any(map(_has_own_interval, of)):
            return replace(two, interval=self.interval, enlarged=self.enlarged,
                           basis=max((one.rests_on for one in of), key=[*Basis].index),
                           anytime=all(one.at_all_looks for one in of))
        return replace(two, curvature=both.curvature, lean=both.lean,
                       caution=max(one.caution for one in of),
                       parts=self.parts if any(one.parts for one in of) else None)

    def tables(self, table: Array) -> Iterator[tuple[Statistic, Array]]:
        """Each of the two with its own block values."""
        return zip(self.of, _unpacked(table), strict=True)

    def reduce(self, values: Any) -> Array:
        if not (isinstance(values, tuple) and len(values) == 2):
            raise ValueError(f"{self.name}: the body returned {type(values).__name__}; it must "
                             "return a tuple of two, the values of each")
        return _packed([one.block_values(part)
                        for one, part in zip(self.of, values, strict=True)])

    def at(self, table: Array) -> tuple[Shape, list[Part]]:
        parts = [part_of(one, own) for one, own in self.tables(table)]
        return self.shape(*(part.value for part in parts)), parts

    def parts(self, table: Array) -> Array:
        return np.concatenate([one.parts(own) for one, own in self.tables(table) if one.parts],
                              axis=1)

    def merge(self, table: Array) -> Array:
        return _packed([one.merge(own) for one, own in self.tables(table) if one.merge])

    def enlarged(self, blocks: int) -> Statistic:
        first, second = (one.of_merged(blocks) for one in self.of)
        return replace(self, of=(first, second)).statistic

    def interval(self, table: Array, error_rate: float) -> Estimate:
        a, b = (one.estimate(own, error_rate / 2) for one, own in self.tables(table))
        at = self.shape(a.value, b.value)
        errors = at.slope * [a.stderr, b.stderr]
        stderr = math.sqrt(max(0.0, float(errors @ self.correlations(table) @ errors)))
        if reason := a.reason or b.reason:
            return no_interval(at.value, stderr, reason, a.final or b.final)
        low, high = self.join(a, b)
        if not math.isfinite(high - low):
            return no_interval(at.value, stderr, f"the {self.of[1].name} may be 0 so far, and "
                                                 "nothing is divided by it")
        return Estimate(at.value, stderr, low, high)

    def correlations(self, table: Array) -> Array:
        """Of the two errors: those of the influence values, in whatever unit they are."""
        y = np.stack([one.influence(own)[1] for one, own in self.tables(table)])
        y /= np.maximum(np.linalg.norm(y, axis=1, keepdims=True), np.finfo(float).tiny)
        return np.asarray(y @ y.T)


def _check(one: Statistic, name: str) -> None:
    if not one.draws:
        raise ValueError(f"{name}: {one.name} is a calculation without draws; predict a number "
                         "made of it instead")
    for pair in filter(None, (one.known, one.support)):
        if not all(not callable(number) and math.isfinite(number) for number in pair):
            raise ValueError(f"{name}: the range or the variance of {one.name} must be a number "
                             "for all settings; give one")


def _has_own_interval(one: Statistic) -> bool:
    """Whether a statistic is no mean of block values with a studentised interval."""
    return (one.rests_on is not Basis.CALIBRATED or one.interval is not None
            or one.lean is not None)


def _packed(tables: Sequence[Array]) -> Array:
    """Two tables of block values in one: a row a block, in front of which their shapes stand."""
    shapes = [number for table in tables for number in (table.ndim - 1, *table.shape[1:])]
    blocks = len(tables[0])
    return np.concatenate([np.tile(np.array(shapes, dtype=float), (blocks, 1)),
                           *(table.reshape(blocks, -1) for table in tables)], axis=1)


def _unpacked(table: Array) -> Iterator[Array]:
    """The two tables of ``_packed``."""
    shapes, start = [], 0
    for _ in range(2):
        end = start + 1 + int(table[0, start])
        shapes.append([int(number) for number in table[0, start + 1:end]])
        start = end
    for shape in shapes:
        end = start + math.prod(shape)
        yield table[:, start:end].reshape(len(table), *shape)
        start = end
