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
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array

NEWTON_STEPS = 60
BET_TOLERANCE = 1e-5  # of a last step of Newton's, which leaves about its square
TINY = 1e-300  # the least mean that is refuted, so that no bet on it overflows
LEAST_EXPONENT = -700.0  # whose exponential is near the least number there is
ROUNDING = 1e-10  # to which the ends are found, in proportion


def threshold(blocks: int, error_rate: float) -> float:
    """The log of the best bettor's wealth that is too much, over all numbers of blocks together.

    >>> round(threshold(512, 1e-10), 3)
    26.839
    """
    return -math.log(error_rate) + math.log(2) + math.log(blocks + 1) / 2


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def log_wealth(
    gains: Array, least: float, most: float, weights: NDArray[Any] | None = None
) -> float:
    """max over λ in [least, most] of Σ weight·ln(1 + λ·gain), for least ≤ 0 ≤ most.

    Gains lie in [−1/most, −1/least], so that no 1 + λ·gain is below 0. The sum is concave in λ, so
    Newton's steps, kept between the ends of a shrinking bracket, find its maximum; if they did not,
    what is returned would be too small, and refute less. One end of it is the best bet on gains of
    the same mean that only take the ends of their range, which is no larger than the one sought.

    >>> x, m = np.array([0.0, 0.0, 0.0, 1.0]), 0.5
    >>> kl = 0.25 * math.log(0.25 / m) + 0.75 * math.log(0.75 / m)
    >>> round(log_wealth(x - m, -1 / (1 - m), 1 / m) / (4 * kl), 12)
    1.0
    """
    if weights is not None:  # where it is 0, infinities would not
        gains, weights = gains[weights > 0], weights[weights > 0]

    def total(x: Array) -> float:
        return float(x.sum() if weights is None else weights @ x)

    def product(x: Array) -> float:
        # einsum, for dot starts threads, which wait for each other on a machine that is in use
        return float(np.einsum("i,i", x, x) if weights is None else weights @ x**2)

    drift = total(gains)
    if drift == 0:
        return 0.0
    upward = drift > 0
    edge = most if upward else least
    factors = 1 + edge * gains
    if (total(gains / factors) >= 0) == upward:
        return _positive(total(np.log(factors)))
    near = -drift / float(len(gains) if weights is None else weights.sum()) * least * most
    farther = edge  # the slope changes its sign between near and farther
    squares = product(gains)
    bet = drift / squares if squares > 0 else near  # the best but for the third order
    if not min(near, farther) < bet < max(near, farther):
        bet = near
    for _ in range(NEWTON_STEPS):
        np.multiply(gains, bet, out=factors)  # in place: new arrays would cost as much again
        factors += 1
        ratios = np.divide(gains, factors, out=factors)
        slope, bend = total(ratios), product(ratios)
        near, farther = (bet, farther) if (slope > 0) == upward else (near, bet)
        proposed = bet + (slope / bend if bend > 0 else math.nan)
        if not min(near, farther) < proposed < max(near, farther):
            proposed = (near + farther) / 2
        step, bet = proposed - bet, proposed
        if abs(step) <= BET_TOLERANCE * abs(bet):
            break
    return _positive(total(np.log(1 + bet * gains)))


def _positive(wealth: float) -> float:
    """0 for less, since nobody needs to bet, and where rounding has left no number."""
    return wealth if wealth > 0 else 0.0


def wealth_against(shares: Array, mean: float) -> float:
    """What the best bet makes of values in [0, 1] against a mean between 0 and 1, as its log."""
    return log_wealth(shares - mean, -1 / (1 - mean), 1 / mean)


def interval_of_mean(shares: Array, error_rate: float) -> tuple[float, float]:
    """The interval above for values in [0, 1]: how far its ends are from 0, and from 1.

    >>> low, from_one = interval_of_mean(np.ones(64), 2e-3)
    >>> round(low, 6) == round(math.exp(-threshold(64, 2e-3) / 64), 6), from_one
    (True, 0.0)
    """
    limit = threshold(len(shares), error_rate)
    low, from_one = (least_mean(partial(wealth_against, x), float(x.mean()), float(x.std()),
                                len(x), limit) for x in (shares, 1 - shares))
    return low, from_one


def least_mean(
    wealth: Callable[[float], float], centre: float, spread: float, blocks: int, limit: float
) -> float:
    """The least mean in (0, 1) that values with this mean and spread do not refute, by what the
    best bet makes of them against it.
    """
    if centre <= TINY:
        return 0.0

    def at(log_factor: float) -> float:
        mean = max(centre * math.exp(log_factor), TINY)
        return wealth(mean) if mean < 1 else 0.0

    return centre * math.exp(lower_root(at, limit, spread / centre, blocks))


def lower_root(
    wealth: Callable[[float], float], limit: float, spread: float, blocks: int
) -> float:
    """The u < 0 where wealth(u), which falls to 0 at u = 0, is ``limit``; rounded down, the safe
    side, and −inf if that is further than any number of double precision.

    ``spread``, the standard deviation of what is bet on in the unit of u, tells where to look.
    """
    def excess(u: float) -> float:  # roots make it nearly straight
        return math.sqrt(wealth(u)) - math.sqrt(limit)

    low = max(-1.1 * (spread * math.sqrt(2 * limit / blocks) + limit / blocks), LEAST_EXPONENT)
    while excess(low) < 0:
        low *= 2
        if low < LEAST_EXPONENT:
            return -math.inf
    from scipy.optimize import brentq  # here: a quarter of a second that few starts need

    return float(brentq(excess, low, 0.0, xtol=ROUNDING, rtol=1e-12)) - 2 * ROUNDING
