"""The ratio and the difference of two statistics, whose values come from the same draws."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.estimate import Basis, Estimate, no_interval

STEP = 1e-3  # of the spread of influence values: over it a statistic's own scale is nearly straight


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
    return _of_two(f"difference of {first.name} and {second.name}", (first, second),
                   lambda a, b: _Shape(a - b, (1.0, -1.0), ((0.0, 0.0), (0.0, 0.0))),
                   lambda a, b: (a.low - b.high, a.high - b.low))


def ratio_of(first: Statistic, second: Statistic) -> Statistic:
    """The first statistic over the second one, as ``difference_of`` is their difference.

    >>> from mcverify.statistic import mean, variance
    >>> both = ratio_of(variance, mean)
    >>> x = np.array([[1.0], [2.0], [6.0]])
    >>> round(both.influence(both.reduce((x, x)))[0], 12)  # 7/3
    2.333333333333
    """
    return _of_two(f"ratio of {first.name} to {second.name}", (first, second),
                   _quotient, _quotients)


class _Shape(NamedTuple):
    """A function of two numbers at a point: its value, first and second derivatives."""

    value: float
    slope: tuple[float, float]
    bend: tuple[tuple[float, float], tuple[float, float]]


class _Part(NamedTuple):
    """One of the two, on its own scale: value, influence, curvature and bend.

    The bend is f″/f′² of the way f from the scale of means to its own: −1/value of a standard
    deviation.
    """

    value: float
    influence: Array
    curvature: float
    bend: float


def _quotient(a: float, b: float) -> _Shape:
    if b == 0:
        return _Shape(math.nan, (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0)))
    return _Shape(a / b, (1 / b, -a / b**2), ((0.0, -1 / b**2), (-1 / b**2, 2 * a / b**3)))


def _quotients(a: Estimate, b: Estimate) -> tuple[float, float]:
    """All quotients of what two intervals hold; no bounds if the second one holds 0."""
    if b.low <= 0 <= b.high:
        return -math.inf, math.inf
    ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _of_two(
    name: str, of: tuple[Statistic, Statistic], shape: Callable[[float, float], _Shape],
    join: Callable[[Estimate, Estimate], tuple[float, float]],
) -> Statistic:
    for each in of:
        _check(each, name)

    def reduce(values: Any) -> Array:
        if not (isinstance(values, tuple) and len(values) == 2):
            raise ValueError(f"{name}: the body returned {type(values).__name__}; it must return a "
                             "tuple of two, the values of each")
        return _packed([one.block_values(part) for one, part in zip(of, values, strict=True)])

    def looked_at(table: Array) -> tuple[_Shape, list[_Part]]:
        parts = [_part(one, own) for one, own in zip(of, _unpacked(table), strict=True)]
        return shape(*(part.value for part in parts)), parts

    def influence(table: Array) -> tuple[float, Array]:
        at, parts = looked_at(table)
        return at.value, np.asarray(at.slope @ np.stack([part.influence for part in parts]))

    def curvature(table: Array) -> float:
        at, parts = looked_at(table)
        return float(np.abs(at.slope) @ [part.curvature for part in parts])

    def lean(table: Array) -> float:
        # At z standard errors the two are off by m·z, so the estimate by z + m·H·m/2·z², with H
        # its second derivatives, and the spread by m·H·m·z: half of it is left of their quotient.
        at, parts = looked_at(table)
        y = at.slope @ np.stack([part.influence for part in parts])
        spread = float(y.std())
        if not spread > 0:
            return 0.0
        moves = np.array([np.mean(part.influence * y) for part in parts]) / spread
        own = np.array([part.bend for part in parts]) * moves**2
        return abs(float(moves @ at.bend @ moves + at.slope @ own)) / (2 * spread)

    def parts(table: Array) -> Array:
        return np.concatenate([one.parts(own) for one, own in
                               zip(of, _unpacked(table), strict=True) if one.parts], axis=1)

    def merge(table: Array) -> Array:
        return _packed([one.merge(own) for one, own in
                        zip(of, _unpacked(table), strict=True) if one.merge])

    def enlarged(blocks: int) -> Statistic:
        first, second = (one.of_merged(blocks) for one in of)
        return _of_two(name, (first, second), shape, join)

    def interval(table: Array, error_rate: float) -> Estimate:
        a, b = (one.estimate(own, error_rate / 2)
                for one, own in zip(of, _unpacked(table), strict=True))
        at = shape(a.value, b.value)
        errors = np.array(at.slope) * [a.stderr, b.stderr]
        stderr = math.sqrt(max(0.0, float(errors @ _correlations(of, table) @ errors)))
        if reason := a.reason or b.reason:
            return no_interval(at.value, stderr, reason, a.final or b.final)
        low, high = join(a, b)
        if not math.isfinite(high - low):
            return no_interval(at.value, stderr, f"the {of[1].name} may be 0 so far, and nothing "
                                                 "is divided by it")
        return Estimate(at.value, stderr, low, high)

    merged = merge if all(one.merge for one in of) else None
    moments = max(0 if one.known or one.support else one.moments for one in of)
    if any(map(_has_own_interval, of)):
        return Statistic(name, reduce, influence, moments, interval=interval,
                         basis=max((one.rests_on for one in of), key=[*Basis].index),
                         anytime=all(one.at_all_looks for one in of), merge=merged,
                         enlarged=enlarged)
    return Statistic(name, reduce, influence, moments, curvature=curvature, lean=lean,
                     caution=max(one.caution for one in of),
                     parts=parts if any(one.parts for one in of) else None, merge=merged)


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


def _correlations(of: Sequence[Statistic], table: Array) -> Array:
    """Of the two estimates' errors: those of the influence values, in whatever unit they are."""
    y = np.stack([one.influence(own)[1] for one, own in zip(of, _unpacked(table), strict=True)])
    y /= np.maximum(np.linalg.norm(y, axis=1, keepdims=True), np.finfo(float).tiny)
    return np.asarray(y @ y.T)


def _part(one: Statistic, table: Array) -> _Part:
    value, influence = one.influence(table)
    curvature = 0.0 if one.curvature is None else one.curvature(table)
    step = STEP * float(influence.std())
    if one.back is None or not step > 0:
        own = value if one.back is None else one.back(value)
        return _Part(own, influence, curvature, 0.0)
    below, own, above = (one.back(value + shift) for shift in (-step, 0.0, step))
    slope = (above - below) / (2 * step)
    bend = (above - 2 * own + below) / (step * slope) ** 2
    return _Part(own, slope * influence, abs(slope) * curvature, bend)


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
