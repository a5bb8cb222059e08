"""From block values in a stated range to an interval that holds for every law on that range.

A gambler who thinks that the mean is m may bet at each block on its value x: a share b of the
wealth on x/m and the rest on (1 − x)/(1 − m), for values scaled to [0, 1]. Both have mean 1 if m is
right, so the wealth of any bettor is a martingale, also that of Cover's universal portfolio, which
mixes all b by the density 1/(π√(b(1 − b))) and after n blocks has at least 1/(2√(n + 1)) of what
the best b would have made. By Ville's inequality its wealth ever exceeds 1/α with probability α at
most. So

    {m : max_b Σ ln(b·x/m + (1 − b)(1 − x)/(1 − m)) ≤ ln(1/α) + ln(2√(n + 1))}

holds the mean at all n together with probability 1 − α, for any law on the range, and adapts to
the spread. Of values 0 and 1 the left side is n·kl(share, m): Chernoff's bound.

Sources: Cover and Ordentlich 1996, "Universal portfolios with side information", theorem 2; Orabona
and Jun 2021, arXiv 2110.14099; Waudby-Smith and Ramdas 2024, arXiv 2010.09686.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]

NEWTON_STEPS = 60
TINY = 1e-300
ROUNDING = 1e-10  # to which the ends are found, in proportion


def threshold(blocks: int, error_rate: float) -> float:
    """The log of the best bettor's wealth that is too much, over all numbers of blocks together.

    >>> round(threshold(512, 1e-10), 3)
    26.839
    """
    return -math.log(error_rate) + math.log(2) + math.log(blocks + 1) / 2


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def log_wealth(gains: Array, least: float, most: float) -> float:
    """max over λ in [least, most] of Σ ln(1 + λ·gain), for least ≤ 0 ≤ most.

    Every 1 + λ·gain must be at least 0, as for gains in [−1/most, −1/least]. The sum is concave in
    λ, so Newton's steps, kept between the ends of a shrinking bracket, find its maximum.

    >>> x, m = np.array([0.0, 0.0, 0.0, 1.0]), 0.5
    >>> kl = 0.25 * math.log(0.25 / m) + 0.75 * math.log(0.75 / m)
    >>> round(log_wealth(x - m, -1 / (1 - m), 1 / m) / (4 * kl), 12)
    1.0
    """
    upward = float(gains.sum()) > 0
    edge = most if upward else least
    factors = 1 + edge * gains
    if factors.min() > 0 and (float(np.sum(gains / factors)) >= 0) == upward:
        return float(np.log(factors).sum())
    near, far, bet = 0.0, edge, 0.0  # the slope changes its sign between near and far
    for _ in range(NEWTON_STEPS):
        ratios = gains / (1 + bet * gains)
        slope, bend = float(ratios.sum()), float(np.dot(ratios, ratios))
        near, far = (bet, far) if (slope > 0) == upward else (near, bet)
        step = slope / bend if bend > 0 else math.nan
        proposed = bet + step
        if not min(near, far) < proposed < max(near, far):
            proposed = (near + far) / 2
        if abs(proposed - bet) <= 1e-9 * abs(proposed):
            break
        bet = proposed
    return max(float(np.log1p(bet * gains).sum()), 0.0)


def refutes(shares: Array, mean: float, limit: float) -> bool:
    """Whether values in [0, 1] make more than ``limit`` against the mean."""
    if not 0 < mean < 1:
        return bool(np.any(shares > 0)) if mean <= 0 else bool(np.any(shares < 1))
    return log_wealth(shares - mean, -1 / (1 - mean), 1 / mean) > limit


def interval_of_mean(shares: Array, error_rate: float) -> tuple[float, float]:
    """The interval above for values in [0, 1]: (low, high).

    >>> low, high = interval_of_mean(np.ones(64), 2e-3)
    >>> high, round(low, 6) == round(math.exp(-threshold(64, 2e-3) / 64), 6)
    (1.0, True)
    """
    limit = threshold(len(shares), error_rate)
    return _low_end(shares, limit), 1 - _low_end(1 - shares, limit)


def _low_end(shares: Array, limit: float) -> float:
    """The least mean that the values do not refute."""
    centre = float(shares.mean())
    if centre <= TINY:
        return 0.0

    def excess(log_factor: float) -> float:
        mean = centre * math.exp(log_factor)
        return log_wealth(shares - mean, -1 / (1 - mean), 1 / mean) - limit if mean < 1 else -limit

    return centre * math.exp(lower_root(excess))


def lower_root(excess: Callable[[float], float]) -> float:
    """The u < 0 where excess, which is negative at 0, rises to 0; rounded down, the safe side.

    −inf if that is further than any number of double precision.
    """
    far = -0.01
    while excess(far) < 0:
        far *= 2
        if far < -700:
            return -math.inf
    return float(brentq(excess, far, 0.0, xtol=ROUNDING, rtol=1e-12)) - 2 * ROUNDING
