"""Heavy tails: where the variance does not exist, quantiles grow otherwise than √d_k."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import matched_scores
from mcverify.statistic import median, quantile, slope

CAUCHY = laws.independent(laws.student_t(1), laws.rademacher)
EIGHT = 8  # tokens of a block: all values are kept for a quantile


@claim(
    quantile(0.75),
    equals=lambda d_k: math.sqrt(d_k),
    within=relative(0.05),
    over=grid(law=CAUCHY, d_k=[1, 4, 16, 64], tokens=EIGHT),
    decides="C7",
)
def cauchy_quartile(q, k, d_k):
    """With Cauchy queries and coin keys the quartiles of q·k/√d_k are ±√d_k, an interquartile range of 2√d_k: it is not scaled away."""
    return matched_scores(q, k, scale=d_k**-0.5)


@claim(
    quantile(0.75),
    equals=1,
    within=relative(0.05),
    over=grid(law=CAUCHY, d_k=[4, 16, 64], tokens=EIGHT),
    decides="C7",
    expect=Verdict.REFUTED,
)
def cauchy_scores_are_scaled_by_the_root(q, k, d_k):
    """Dividing by √d_k keeps the spread of scores the same at every d_k, for Cauchy queries and coin keys as well."""
    return matched_scores(q, k, scale=d_k**-0.5)


@claim(
    quantile(0.75),
    equals=1,
    within=relative(0.05),
    over=grid(law=CAUCHY, d_k=[1, 4, 16, 64], tokens=EIGHT),
    decides="C7",
)
def cauchy_scores_need_the_full_width(q, k, d_k):
    """It takes division by d_k to keep the spread of Cauchy queries on coin keys."""
    return matched_scores(q, k, scale=1 / d_k)


@claim(
    median,
    equals=1,
    within=relative(0.1),
    over=grid(law=laws.independent(laws.stable(1.5), laws.rademacher), d_k=[4, 64, 256], tokens=EIGHT),
    decides="C7",
)
def stable_scores_need_their_own_power(q, k, d_k):
    """Sums of α-stable terms grow as d_k^(1/α): at α = 1.5 the size divided by d_k^(2/3) keeps its median, 0.97 of it."""
    return np.abs(matched_scores(q, k, scale=d_k ** (-2 / 3))) / 0.969


@claim(
    slope(median),
    equals=lambda law, d_k: 1 / law.finite_moments - 0.5 + 1 / (law.finite_moments * math.log(d_k / 2)),
    within=absolute(0.1),
    over=grid(law=[laws.student_t(1), laws.student_t(1.5)], d_k=256, tokens=EIGHT),
    decides="C7",
)
def heavy_products_outgrow_the_root(q, k, d_k):
    """For Student t of ν < 2 the size of q·k/√d_k grows on, with a local exponent near 1/ν − 1/2 + 1/(ν ln d_k)."""
    return [(d, np.abs(matched_scores(q[..., :d], k[..., :d], scale=d**-0.5))) for d in (64, 256)]
