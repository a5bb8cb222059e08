"""The ratio of two means on the same draws."""

import math
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.bets_on_rows import log_wealth_of_rows
from mcverify.statistic.betting import log_wealth, lower_root, threshold
from mcverify.statistic.combined import Combined, Part, Shape, part_of, quotient
from mcverify.statistic.estimate import Estimate, no_interval
from mcverify.statistic.merging import pairs_of_means
from mcverify.statistic.moments import mean
from mcverify.statistic.studentised import standard_error
from mcverify.statistic.values import block_means


def _ratio_reduce(values: Any) -> Array:
    if not (isinstance(values, tuple) and len(values) == 2):
        raise ValueError(f"ratio: the body returned {type(values).__name__}; it must return a "
                         "tuple of two arrays, numerator and denominator")
    return np.concatenate([block_means(part) for part in values], axis=1)


def _at(table: Array) -> tuple[Shape, list[Part]]:
    parts = [part_of(mean, table[:, column:]) for column in (0, 1)]
    return quotient(*(part.value for part in parts)), parts


_quotient = Combined(_at)


def _ratio_within(
    table: Array, low: float, high: float, error_rate: float, size: int = 1
) -> Estimate:
    """r holds E(x − r·y) = 0, with y ≥ 0: a bet on x − r·y for each r, by the same theorem.

    As r grows, x − r·y falls block by block and the most that may be bet on it falls as well, so
    the best bettor upwards makes less; and downwards more. So the r not refuted are an interval.
    """
    value, influence = _quotient.influence(table)
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


ratio = Statistic("ratio", _ratio_reduce, _quotient.influence, moments=3, lean=_quotient.lean,
                  ranged=_ratio_within, merge=pairs_of_means)
