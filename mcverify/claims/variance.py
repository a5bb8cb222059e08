"""Independent coordinates of mean 0 and variance 1: how large scores are, scaled and unscaled."""

import math

import numpy as np

from mcverify import absolute, claim, grid, laws, relative, theory
from mcverify.attention import scores
from mcverify.declare import near
from mcverify.laws.base import known
from mcverify.statistic import mean, slope, std, variance

D_K = [1, 8, 64, 512]
UNIT = [*laws.STANDARD, laws.exponential, laws.sparse(0.5), laws.student_t(9)]
# A mean of 0.2, a variance 8 % too large, and coordinates correlated 0.1: each must show.
NEAR = near.coordinate_mean(0.2) + near.query_scale(1.04) + near.law(laws.equicorrelated(laws.normal, 0.1))


def spread_of_products(law, d_k, tokens):
    """The variance of a block's mean q_i k_i, where all coordinates are independent; else None."""
    if law.coupled or not all(known(law).side(which, d_k).independent for which in ("q", "k")):
        return None
    m = law.moments(d_k)
    q, k = m.mean_q[0], m.mean_k[0]
    return ((m.cov_q[0, 0] + q**2) * (m.cov_k[0, 0] + k**2) - (q * k) ** 2) / (tokens * d_k)


def spread_of_squared_products(law, d_k, tokens):
    """The variance of a block's mean (q_i k_i)² for independent coordinates of variance 1; else None."""
    return (law.fourth_moment**2 - 1) / (tokens * d_k) if law in UNIT else None


@claim(mean.with_variance(spread_of_products), equals=0, within=absolute(0.02),
       over=grid(law=UNIT, d_k=D_K), decides="B2",
       controls=near.coordinate_mean(0.25) + near.law(laws.correlated(laws.normal, 0.1)))
def product_mean(q, k):
    """E q_i k_i = 0 when coordinates are independent with mean 0."""
    return q * k


# At d_k = 1 a product of two exponential coordinates is so heavy that fewer tokens do not do.
@claim(
    variance.with_variance(spread_of_squared_products), equals=1, within=relative(0.02),
    over=grid(law=UNIT, d_k=1, tokens=40) + grid(law=UNIT, d_k=[8, 64, 512]),
    decides="A4 B2",
    controls=near.coordinate_mean(0.25) + near.law(laws.correlated(laws.normal, 0.5)),
)
def product_variance(q, k):
    """Var(q_i k_i) = E q_i² · E k_i² = 1 when coordinates are independent with mean 0, variance 1."""
    return q * k


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.02),
    over=grid(law=UNIT, d_k=D_K),
    decides="A5 B3",
    controls=NEAR,
)
def dot_variance(q, k):
    """Var(q·k) = d_k when coordinates are independent with mean 0 and variance 1."""
    return scores(q, k)


@claim(
    std,
    equals=lambda d_k: math.sqrt(d_k),
    within=relative(0.02),
    over=grid(law=laws.STANDARD, d_k=D_K),
    decides="A2 A5 A8 B4",
    controls=NEAR,
)
def dot_std(q, k):
    """The standard deviation of q·k is √d_k: 8 at d_k = 64, 22.6 at 512."""
    return scores(q, k)


def spread_of_cross_terms(law, d_k, tokens):
    """The variance of a block's mean of the products of different terms, over d_k; else None.

    Two scores of a block have uncorrelated products of different terms, also if they share the query.
    """
    return 2 * (d_k - 1) / d_k / tokens**2 if law in UNIT else None


@claim(
    mean.with_variance(spread_of_cross_terms),
    equals=0,
    within=absolute(0.02),
    over=grid(law=laws.STANDARD, d_k=[8, 64, 512]),
    decides="B3",
    controls=near.law(laws.equicorrelated(laws.normal, 0.5)),
)
def variance_of_a_sum(q, k, d_k):
    """Var(q·k) is the sum of the d_k variances of its terms at d_k of 8 as at 64 and 512, with no limit theorem: the terms are uncorrelated."""
    own = np.swapaxes(k, -1, -2)
    return (scores(q, k) ** 2 - (q * q) @ (own * own)) / d_k


# --- scaled by a power of d_k -------------------------------------------------------------------


@claim(
    variance,
    equals=lambda d_k, power: d_k ** (1 - 2 * power),
    within=relative(0.02),
    over=grid(law=UNIT, d_k=D_K, power=[0.5, 1.0]),
    decides="A6 A7 A12 B6 B7 B32",
    controls=grid(power=0.48) + NEAR,
)
def scaled_variance(q, k, d_k, power):
    """Var(q·k/d_k^a) = d_k^(1 − 2a): dividing by √d_k leaves 1 and by d_k leaves 1/d_k."""
    return scores(q, k, scale=d_k**-power)


@claim(
    slope(variance),
    equals=lambda power: 1 - 2 * power,
    within=absolute(0.02),
    over=grid(law=laws.STANDARD, d_k=512, power=[0.0, 0.25, 0.5, 1.0]),
    decides="A5 A7",
    controls=near.law(laws.equicorrelated(laws.normal, 0.1)),
)
def growth_with_width(q, k, d_k, power):
    """From 8 to 512 coordinates Var(q·k/d_k^a) grows as d_k^(1 − 2a): among powers, a = 1/2 alone keeps it constant."""
    widths = [d for d in (8, 32, 128, 512) if d <= d_k]
    return [(d, scores(q[..., :d], k[..., :d], scale=d**-power)) for d in widths]
