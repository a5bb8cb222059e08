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
from dataclasses import replace

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.betting import log_wealth, threshold
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.statistic.narrowed import Narrowed
from mcverify.statistic.values import flat


def _first(excess: Callable[[int], float], guess: int, inside: int, end: int) -> int | None:
    """Where, going from ``inside`` to ``end``, excess is above 0 for the first time, from where on
    it stays so; None if it is not at the end.

    Strides from a guess that grow, then the place where a straight line crosses 0, or the middle if
    that does not halve what is left.
    """
    step = 1 if end > inside else -1
    below, outside = -1.0, end + step  # of inside, and where nothing is known yet
    stride = 1 + abs(guess - inside) // 32
    place = step * min(max(step * guess, step * inside + 1), step * end)
    above = math.nan
    while outside == end + step:
        if (here := excess(place)) > 0:
            outside, above = place, here
        elif place == end:
            return None
        else:
            inside, below = place, here
            place = step * min(step * (place + step * stride), step * end)
            stride *= 2
    straight = True
    while (left := abs(outside - inside)) > 1:
        share = min(max(-below / (above - below), 1 / left), 1 - 1 / left) if straight else 0.5
        place = inside + step * round(left * share)
        if (here := excess(place)) > 0:
            outside, above = place, here
        else:
            inside, below = place, here
        straight = 2 * abs(outside - inside) <= left
    return outside


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

    def interval(table: Array | Narrowed, error_rate: float) -> Estimate:
        if not isinstance(table, Narrowed):
            table = Narrowed(table, -math.inf, math.inf)
        estimate = _of_narrowed(table, level, error_rate)
        decided = math.isfinite(estimate.high - estimate.low)
        return estimate if decided else replace(estimate, reason=f"too few blocks to bound {name}")

    return Statistic(name, flat, influence, moments=0, interval=interval, basis=Basis.ORDER,
                     anytime=True, narrows=True)


def _of_narrowed(table: Narrowed, level: float, error_rate: float) -> Estimate:
    """The estimate from blocks of which an earlier look may have left an interval: what that
    refuted stays so.
    """
    values, blocks, shares = table.inside, len(table), np.arange(table.values + 1) / table.values
    limit, last = threshold(blocks, error_rate), len(values) - 1

    def place(share: float) -> int:
        return min(max(table.rank(share), 0), last)

    def excess(index: int, sign: float) -> float:
        """How surely the share of values up to this one is above the level, or below."""
        counts = table.at(float(values[index]) if index >= 0 else
                          math.nextafter(table.low, -math.inf))
        most = 1 / level if sign > 0 else 1 / (1 - level)
        wealth = log_wealth(sign * (shares - level), 0.0, most, counts)
        return math.sqrt(wealth) - math.sqrt(limit)  # nearly straight

    centre = place(level)
    counts = table.at(float(values[centre]))
    squares = float(counts @ (shares - counts @ shares / blocks) ** 2)
    error = math.sqrt(squares / max(blocks - 1, 1) / blocks)
    away = round(error * math.sqrt(2 * limit) * blocks * table.values)
    below = _first(lambda i: excess(i, -1.0), centre - away, centre + 1, -1)
    beyond = _first(lambda i: excess(i, 1.0), centre + away, centre - 1, last)
    # A quarter of the distance between the values two standard errors of the share from the level;
    # not known while the share does not vary, as where the quantile is the largest value.
    spread = float(values[place(level + 2 * error)] - values[place(level - 2 * error)])
    return Estimate(float(values[centre]), spread / 4 if error > 0 else math.nan,
                    table.low if below is None else float(values[below + 1]),
                    table.high if beyond is None else float(values[beyond]))


median = quantile(0.5)
