"""The ratio of two means, and the exponent with which a statistic grows, both on the same draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Known, Statistic, block_means
from mcverify.statistic.bets_on_rows import log_wealth_of_rows
from mcverify.statistic.betting import log_wealth, lower_root, threshold
from mcverify.statistic.estimate import Basis, Estimate, no_interval
from mcverify.statistic.merging import pairs_of_means
from mcverify.statistic.studentised import standard_error


def _ratio_reduce(values: Any) -> Array:
    if not (isinstance(values, tuple) and len(values) == 2):
        raise ValueError(f"ratio: the body returned {type(values).__name__}; it must return a "
                         "tuple of two arrays, numerator and denominator")
    return np.concatenate([block_means(part) for part in values], axis=1)


def _ratio_influence(table: Array) -> tuple[float, Array]:
    top, bottom = float(table[:, 0].mean()), float(table[:, 1].mean())
    value = top / bottom if bottom else math.nan
    return value, (table[:, 0] - value * table[:, 1]) / bottom if bottom else table[:, 0] * 0


def _ratio_lean(table: Array) -> float:
    # With e = top − truth·bottom the studentised error is √blocks·ē/sd(e − error·bottom): exactly
    # that of e's mean, but for the error, z·sd(e)/(√blocks·E bottom), in the spread.
    _, influence = _ratio_influence(table)
    spread = float(influence.std())
    if not spread > 0:
        return 0.0
    return abs(float(np.mean(influence * table[:, 1]) / table[:, 1].mean())) / spread


def _ratio_within(
    table: Array, low: float, high: float, error_rate: float, size: int = 1
) -> Estimate:
    """r holds E(x − r·y) = 0, with y ≥ 0: a bet on x − r·y for each r, by the same theorem.

    As r grows, x − r·y falls block by block and the most that may be bet on it falls as well, so
    the best bettor upwards makes less; and downwards more. So the r not refuted are an interval.
    """
    value, influence = _ratio_influence(table)
    stderr = standard_error(influence)
    if low < 0 or not value > 0:
        return no_interval(value, stderr, "a ratio of values in a stated range needs numerator and "
                                          "denominator of at least 0, with means above 0", low < 0)
    blocks = size * len(table)
    limit = threshold(blocks, error_rate)
    x, y = np.clip(table[:, :2], low, high).T / high

    def wealth(log_factor: float) -> float:
        r = value * math.exp(log_factor)
        least, most = low / high - r, 1 - r * (low / high)  # of x − r·y
        if not least < 0 < most:
            return math.inf  # no values in the range have such a ratio
        if size == 1:
            return log_wealth(x - r * y, -1 / most, -1 / least)
        sign, lowest = (1, least) if log_factor < 0 else (-1, -most)
        variances = np.maximum(table[:, 2:] @ [1, -2 * r, r * r], 0.0) / high**2
        return log_wealth_of_rows(sign * (x - r * y), variances, size, lowest)

    spread = math.sqrt(size) * float(influence.std()) / value
    below, above = (lower_root(side, limit, spread, blocks)
                    for side in (wealth, lambda u: wealth(-u)))
    return Estimate(value, stderr, value * math.exp(below), value * math.exp(-above))


ratio = Statistic("ratio", _ratio_reduce, _ratio_influence, moments=3, lean=_ratio_lean,
                  ranged=_ratio_within, merge=pairs_of_means)


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
    support, of = of.support, replace(of, support=None)  # which the slope itself settles

    def reduce(values: Any) -> Array:
        if not isinstance(values, list) or len(values) < 2:
            raise ValueError(f"slope: the body returned {type(values).__name__}; it must return a "
                             "list of at least two pairs (x, values)")
        parts = []
        for x, part in values:
            table = of.reduce(part)
            parts.append(np.column_stack([np.full(len(table), float(x)), table]))
        return np.stack(parts, axis=1)

    def logarithms(table: Array) -> list[_Logarithm]:
        return [_logarithm(of, column) for column in np.moveaxis(table[:, :, 1:], 1, 0)]

    def influence(table: Array) -> tuple[float, Array]:
        weights, found = _slope_weights(table), logarithms(table)
        return (float(weights @ [log.value for log in found]),
                np.asarray(weights @ [log.influence for log in found]))

    def curvature(table: Array) -> float:
        return float(np.abs(_slope_weights(table)) @ [log.curvature for log in logarithms(table)])

    def lean(table: Array) -> float:
        # log v^power at an error of e·v is e·power − e²·power/2, and its influence 1 − e times
        # that at v; e and z are correlated, and what is not of z averages out.
        _, y = influence(table)
        spread = float(y.std())
        if not spread > 0:
            return 0.0
        bends = [np.mean(log.influence * y) ** 2 / log.power for log in logarithms(table)]
        return abs(float(_slope_weights(table) @ bends)) / (2 * spread**3)

    def merge(table: Array) -> Array:
        assert of.merge is not None
        columns = [np.concatenate([column[0::2, :1], of.merge(column[:, 1:])], axis=1)
                   for column in np.moveaxis(table, 1, 0)]
        return np.stack(columns, axis=1)

    def tell(known: tuple[Known | None, ...]) -> Statistic:
        of_each = [of.informed(each) for each in known]
        if not all(each.known for each in of_each):
            return calibrated
        return by_theorem(Basis.MOMENTS, lambda xs: of_each)

    def parts(table: Array) -> Array:
        columns = []
        for column in np.moveaxis(table[:, :, 1:], 1, 0):
            columns.append(of.influence(column)[1][:, None])
            if of.parts is not None:
                columns.append(of.parts(column))
        return np.concatenate(columns, axis=1)

    def ranged(
        table: Array, low: float, high: float, error_rate: float, size: int = 1
    ) -> Estimate:
        each = of.within(low, high).of_merged(size)
        return with_error(joined([each] * table.shape[1], table, error_rate), table)

    def with_error(found: Estimate, table: Array) -> Estimate:
        """The same with the standard error on the same draws, unless influences are of shares."""
        if of.basis is Basis.ORDER:
            return found
        return replace(found, stderr=standard_error(influence(table)[1]))

    calibrated = Statistic(
        f"slope of {of.name}", reduce, influence, moments=of.moments, parts=parts,
        curvature=curvature, lean=lean, caution=of.caution, support=support, tell=tell,
        ranged=ranged if of.ranged and not of.known else None, knows=reduce if of.learns else None,
        merge=merge if of.merge else None)

    def by_theorem(basis: Basis, of_each: Callable[[int], Sequence[Statistic]]) -> Statistic:
        def interval(table: Array, error_rate: float) -> Estimate:
            return with_error(joined(of_each(table.shape[1]), table, error_rate), table)

        def enlarged(blocks: int) -> Statistic:
            return by_theorem(basis, lambda xs: [each.of_merged(blocks) for each in of_each(xs)])

        return replace(calibrated, moments=0, parts=None, curvature=None, lean=None, support=None,
                       knows=None, interval=interval, basis=basis, anytime=of.anytime,
                       enlarged=enlarged)

    own = of.rests_on is not Basis.CALIBRATED
    return by_theorem(of.rests_on, lambda xs: [of] * xs) if own else calibrated


def joined(of_each: Sequence[Statistic], table: Array, error_rate: float) -> Estimate:
    """The slope of logs whose intervals hold at each x, as far as they allow it together."""
    weights = _slope_weights(table)
    found = [of.estimate(column, error_rate / len(weights))
             for of, column in zip(of_each, np.moveaxis(table[:, :, 1:], 1, 0), strict=True)]
    logs = [_positive_log(of, each.value) for of, each in zip(of_each, found, strict=True)]
    stderr = np.linalg.norm(weights * [each.stderr / each.value for each in found])
    with np.errstate(divide="ignore"):
        ends = np.log(np.maximum([[each.low, each.high] for each in found], 0.0))
    ends[weights == 0] = 0  # of which nothing counts, also where they are infinite
    low, high = np.where(weights > 0, ends.T, ends.T[::-1]) @ weights
    reason = next((each.reason for each in found if each.reason), "")
    return Estimate(float(weights @ logs), float(stderr), float(low), float(high), reason)


class _Logarithm(NamedTuple):
    """Of an estimate: its value, influence and curvature to first order; and its elasticity.

    The elasticity is d log(estimate)/d log(what is a mean): 1/2 for a standard deviation.
    """

    value: float
    influence: Array
    curvature: float
    power: float


def _logarithm(of: Statistic, table: Array) -> _Logarithm:
    value, part = of.influence(table)
    own, power = value, 1.0
    if of.back is not None and value > 0:
        own, step = of.back(value), 1e-6
        power = math.log(of.back(value * (1 + step)) / of.back(value * (1 - step))) / (2 * step)
    log = _positive_log(of, own)
    curvature = 0.0 if of.curvature is None else of.curvature(table)
    return _Logarithm(log, power * part / value, power * curvature / value, power)


def _positive_log(of: Statistic, value: float) -> float:
    if not value > 0:
        raise ValueError(f"slope({of.name}): found {value:g}; only a positive number grows like a "
                         "power")
    return math.log(value)


def _slope_weights(table: Array) -> Array:
    """What each log counts in the least-squares slope: (blocks, xs, 1 + few) -> (xs,)."""
    x = np.log(table[0, :, 0])
    weights: Array = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    return weights
