"""Heavy tails: where the variance does not exist, quantiles grow otherwise than √d_k."""

import math

import numpy as np

from mcverify import absolute, claim, grid, laws, relative
from mcverify.attention import matched_scores, scores
from mcverify.declare import near
from mcverify.statistic import median, quantile, slope

CAUCHY = laws.independent(laws.student_t(1), laws.rademacher)
FOUR = 4  # tokens of a block: all scores are kept for a quantile


@claim(
    quantile(0.75),
    equals=lambda d_k, power: d_k ** (1 - power),
    within=relative(0.05),
    over=grid(law=CAUCHY, d_k=[1, 4, 16, 64], tokens=8, power=[0.5, 1.0]),
    decides="C7",
    controls=grid(equals=1.0) + grid(power=0.55)
    + near.law(laws.independent(laws.student_t(1.5), laws.rademacher)),
)
def cauchy_quartile(q, k, d_k, power):
    """With Cauchy queries and coin keys the quartiles of q·k/d_k^a are ±d_k^(1 − a): √d_k leaves an interquartile range of 2√d_k, and it takes division by d_k to keep it."""
    return matched_scores(q, k, scale=d_k**-power)


@claim(
    median,
    equals=0.969,
    within=relative(0.1),
    over=grid(law=laws.independent(laws.stable(1.5), laws.rademacher), d_k=[4, 64, 256], tokens=FOUR),
    decides="C7",
    controls=grid(power=0.5) + grid(power=1.0),
)
def stable_scores_need_their_own_power(q, k, d_k, power=2 / 3):
    """Sums of α-stable terms grow as d_k^(1/α): at α = 1.5 the size divided by d_k^(2/3) keeps the median 0.969 of one term."""
    return np.abs(scores(q, k, scale=d_k**-power))


def sizes_at(q, k, d_k):
    return [(d, np.abs(scores(q[..., :d], k[..., :d], scale=d**-0.5)))
            for d in (d_k // 4, d_k)]


@claim(
    slope(median),
    equals=lambda law, d_k: 1 / law.finite_moments - 0.5 + 1 / (law.finite_moments * math.log(d_k / 2)),
    within=absolute(0.1),
    over=grid(law=[laws.student_t(1), laws.student_t(1.5)], d_k=256, tokens=FOUR),
    decides="C7",
    controls=near.law(laws.student_t(3)) + grid(equals=0.0) + grid(equals=0.5),
)
def heavy_products_outgrow_the_root(q, k, d_k):
    """For Student t of 1 and 1.5 degrees of freedom the size of q·k/√d_k grows on, with a local exponent near 1/ν − 1/2 + 1/(ν ln d_k), which at ν = 1 is more than that of Cauchy queries on coins, 1/2."""
    return sizes_at(q, k, d_k)


@claim(
    slope(median),
    between=(0.1, 0.25),
    over=grid(law=laws.student_t(2), d_k=256, tokens=FOUR),
    decides="C7",
    controls=near.law(laws.student_t(3)) + near.law(laws.student_t(1.5)),
)
def at_two_degrees_of_freedom_scores_still_grow(q, k, d_k):
    """At two degrees of freedom, where the variance just fails to exist, the size of q·k/√d_k still grows from 64 to 256 coordinates, with a local exponent between 0.1 and 0.25: as ln d_k in the end."""
    return sizes_at(q, k, d_k)
