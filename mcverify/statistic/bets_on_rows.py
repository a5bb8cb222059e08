"""The bettor of ``betting`` on blocks of which only means and variances of m together are kept.

Let G be what a value in a range gains, at least g, and let a row be m values of mean μ and variance
v. With a bet λ > 0 they make m·E ln(1 + λG), E the mean over them. The third derivative of
f = ln(1 + λ·) is not negative, so let Q be the quadratic that meets f at g, and at
h = μ + v/(μ − g) with its slope as well: f − Q = f‴·(G − g)(G − h)²/6 ≥ 0. The two points g and h
with weights p = v/(v + (μ − g)²) and 1 − p have the same mean and variance, so

    E ln(1 + λG) ≥ E Q(G) = p·ln(1 + λg) + (1 − p)·ln(1 + λh).

So a mean that has made too much by this bound has made too much on the blocks themselves. What
they make is bounded at all looks together, however many blocks make a row at each of them: one
martingale, one error rate.
"""

import math

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.betting import least_mean, log_wealth, threshold


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def log_wealth_of_rows(gains: Array, variances: Array, size: int, lowest: float) -> float:
    """At least max over λ in [0, −1/lowest] of Σ ln(1 + λ·gain), of rows of so many gains each.

    ``gains`` are their means, and lowest < 0 is below all of them. Exact of single ones:

    >>> gains = np.array([0.5, -0.5, 0.5, 0.5])
    >>> round(log_wealth_of_rows(gains, gains * 0, 1, -0.5), 12)  # λ = 1
    0.523248143765
    """
    apart = np.maximum(gains - lowest, 0.0)
    ruined = np.where(apart > 0, variances / (apart**2 + variances), 0.0)
    other = gains + np.where(apart > 0, variances / apart, 0.0)
    return size * log_wealth(np.append(other, lowest), 0.0, -1 / lowest,
                             np.append(1 - ruined, ruined.sum()))


def interval_of_rows(
    shares: Array, variances: Array, size: int, error_rate: float
) -> tuple[float, float]:
    """As ``interval_of_mean``: how far the ends are from 0 and from 1, of rows of values in [0, 1].
    """
    blocks = size * len(shares)
    limit, spread = threshold(blocks, error_rate), math.sqrt(shares.var() + variances.mean())

    def low_end(x: Array) -> float:
        return least_mean(lambda mean: log_wealth_of_rows(x - mean, variances, size, -mean),
                          float(x.mean()), spread, blocks, limit)

    return low_end(shares), low_end(1 - shares)
