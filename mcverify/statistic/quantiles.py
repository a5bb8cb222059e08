"""Medians and other quantiles, whose interval holds for every law.

Let q be the quantile. That the interval begins beyond q needs the shares of values ≤ q to refute
the level downwards, though their mean is at least the level; that it ends before q needs the shares
of values < q to refute it upwards, though their mean is at most the level. With ties those shares
differ. The halves of the betting portfolio, downwards on the former and upwards on the latter, are
together still worth 1 at first and a supermartingale, so either half reaches 1/α with probability
α at most. And a half does where its best bet makes 2√(n + 1)/α: what the whole portfolio misses of
that is at most a factor √(πn + 1), so it has 2/(√π·α), of which the other half, whose bets all
lose, has less than 1; and 2/√π is 1 + 0.128, which is enough for every α up to 0.128.
"""

import math
from collections.abc import Callable

import numpy as np

from mcverify.statistic.base import Array, Statistic, flat
from mcverify.statistic.betting import refutes, threshold
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.statistic.studentised import standard_error


def _last(true_at: Callable[[int], bool], start: int, step: int, end: int) -> int | None:
    """Where a condition that holds from some index on, away from ``start``, begins to hold.

    Strides that grow, then halving; None if it does not hold at ``end``.
    """
    if not true_at(end):
        return None
    inside, outside, stride = start - step, start, 1
    while (outside - end) * step < 0 and not true_at(outside):
        inside, outside, stride = outside, outside + step * stride, 2 * stride
    outside = min(outside, end) if step > 0 else max(outside, end)
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (inside, middle) if true_at(middle) else (middle, outside)
    return outside


def _quantile_error(table: Array, level: float) -> float:
    # A quarter of the distance between the values two standard errors of the share from the level;
    # not known while the share does not vary, as where the quantile is the largest value.
    def at(share: float) -> float:
        return float(np.quantile(table, min(max(share, 0.0), 1.0), method="inverted_cdf"))

    below = (table <= at(level)).mean(axis=1)
    error = standard_error(below - below.mean())
    if not error > 0:
        return math.nan
    return (at(level + 2 * error) - at(level - 2 * error)) / 4


def quantile(level: float) -> Statistic:
    """The value below which a share ``level`` of all values lies; needs no moments.

    Its interval holds every x that the draws do not refute, by the betting interval of the share of
    a block's values at or below x: P(X ≤ x) below the level refutes x and all before the next value
    that was drawn, P(X ≤ x) above it all beyond x. So with ties it may be a single value. All
    values are kept, so the body should return at most some thousand a block. Raises ValueError
    unless 0 < level < 1.

    >>> quantile(0.5).estimate(np.arange(9.0)[:, None], 0.5).value
    4.0
    """
    if not 0 < level < 1:
        raise ValueError(f"quantile({level}): the level must be between 0 and 1; use e.g. 0.9")
    name = "median" if level == 0.5 else f"quantile {level:g}"

    def influence(table: Array) -> tuple[float, Array]:
        value = float(np.quantile(table, level, method="inverted_cdf"))
        return value, level - (table <= value).mean(axis=1)  # in units of probability

    def interval(table: Array, error_rate: float) -> Estimate:
        values = np.unique(table)
        value = float(np.quantile(table, level, method="inverted_cdf"))
        limit, centre = threshold(len(table), error_rate), int(np.searchsorted(values, value))

        def refuted(index: int, above: bool) -> bool:
            """Whether the share of values up to this one is surely above, or below, the level."""
            shares = (np.zeros(len(table)) if index < 0
                      else (table <= values[index]).mean(axis=1))
            return (float(shares.mean()) > level) == above and refutes(shares, level, limit)

        below = _last(lambda i: refuted(i, above=False), centre, -1, -1)
        beyond = _last(lambda i: refuted(i, above=True), centre, 1, len(values) - 1)
        low = -math.inf if below is None else float(values[below + 1])
        high = math.inf if beyond is None else float(values[beyond])
        reason = "" if math.isfinite(high - low) else f"too few blocks to bound {name}"
        return Estimate(value, _quantile_error(table, level), low, high, reason)

    return Statistic(name, flat, influence, moments=0, interval=interval, basis=Basis.ORDER,
                     anytime=True)


median = quantile(0.5)
