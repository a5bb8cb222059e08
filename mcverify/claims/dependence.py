"""When independence fails: what becomes of E q·k = 0 and Var(q·k) = d_k, case by case."""

import math
from fractions import Fraction

from mcverify import absolute, claim, grid, laws, relative, theory
from mcverify.attention import matched_scores, other_scores, scores
from mcverify.declare import near
from mcverify.statistic import exact, mean, proportion, variance
from mcverify.theory import enumeration

D_K = [1, 8, 64, 512]
# A token has one key of its own, and what is common to many coordinates is drawn once a token: where
# crossing queries with keys helps little, 2 % would take eight times as long.
MARGIN = relative(0.06)
BASES = [*laws.STANDARD, laws.exponential]
PAIRS = [laws.correlated(base, rho) for base, rho in zip(
    [laws.normal, *BASES], [0.3, -0.6, 0.3, -0.6, 0.3, 0.3], strict=True)]
SAME = [laws.identical(base) for base in BASES if base is not laws.rademacher]


# --- a token's key follows its own query ------------------------------------------------------


@claim(
    mean,
    equals=lambda law: law.rho,
    within=absolute(0.01),
    over=grid(law=PAIRS, d_k=D_K),
    decides="C5",
    controls=near.law(laws.random_sign(laws.normal)) + grid(equals=0.3 / math.sqrt(8)),
)
def correlated_mean(q, k, d_k):
    """E q·k = ρ d_k when a token's q and k have correlation ρ: it grows with d_k, and not with √d_k."""
    return matched_scores(q, k, scale=1 / d_k)


@claim(
    variance,
    equals=lambda law, d_k: theory.correlated_variance(law.rho, law.base.fourth_moment, d_k),
    within=MARGIN,
    over=grid(law=PAIRS, d_k=D_K),
    decides="A5 C5",
    controls=near.law(laws.correlated(laws.laplace, 0.3)) + near.law(laws.normal),
)
def correlated_variance(q, k):
    """Var(q·k) = d_k(1 + ρ²(κ − 2)) when a token's q and k have correlation ρ; d_k(1 + ρ²) for normal laws."""
    return matched_scores(q, k)


@claim(
    variance,
    equals=lambda d_k: d_k,
    within=relative(0.02),
    over=grid(law=[laws.correlated(laws.normal, 0.6), laws.identical(laws.laplace)], d_k=D_K),
    decides="A5",
    controls=near.law(laws.topic(laws.normal, 0.5)),
)
def other_tokens_keep_variance(q, k):
    """Correlated 0.6 or equal, a token's own q and k leave its scores with other tokens the variance d_k."""
    return other_scores(q, k)


@claim(
    exact,
    equals=lambda d_k: theory.correlated_variance(0.6, 1.0, d_k),
    within=relative(1e-12),
    over=grid(d_k=[1, 2, 5]),
    decides="A5",
    controls=grid(equals=1 + 0.6**2),
)
def enumerated_correlated_variance(d_k):
    """Var(q·k) = d_k(1 − ρ²) for coins of correlation ρ, by enumeration at ρ = 0.6."""
    term = enumeration.correlated_term(enumeration.COIN, Fraction(3, 5), Fraction(4, 5))
    return float(enumeration.variance(enumeration.total(term, d_k)))


# --- q = k ------------------------------------------------------------------------------------


@claim(
    mean, equals=1, within=absolute(0.01),
    over=grid(law=SAME, d_k=D_K), decides="A5",
    controls=near.law(laws.random_sign(laws.normal)) + near.law(laws.correlated(laws.normal, 0.95)),
)
def identical_mean(q, k, d_k):
    """E q·k = d_k when q = k."""
    return matched_scores(q, k, scale=1 / d_k)


@claim(
    variance,
    equals=lambda law, d_k: theory.correlated_variance(1.0, law.base.fourth_moment, d_k),
    within=MARGIN,
    over=grid(law=SAME, d_k=D_K),
    decides="A5",
    controls=near.law(laws.identical(laws.uniform)) + near.law(laws.identical(laws.laplace)),
)
def identical_variance(q, k):
    """Var(q·k) = d_k(κ − 1) when q = k: twice d_k for normal laws."""
    return matched_scores(q, k)


@claim(
    proportion,
    at_least=0.99,
    over=grid(law=laws.identical(laws.rademacher), d_k=D_K),
    decides="A5",
    controls=near.law(laws.correlated(laws.rademacher, 0.99)),
)
def identical_coins(q, k, d_k):
    """For coins and q = k, q·k is d_k and nothing else: a variance of 0."""
    return matched_scores(q, k) == d_k


# --- coordinates of one vector correlated -----------------------------------------------------

BOTH = [laws.equicorrelated(base, 0.3) for base in laws.STANDARD]
ONE_SIDE = laws.independent(laws.equicorrelated(laws.normal, 0.3), laws.normal)


@claim(
    variance,
    equals=theory.dot_variance,
    within=MARGIN,
    over=grid(law=BOTH, d_k=D_K),
    decides="A5",
    controls=near.law(ONE_SIDE) + near.law(laws.autoregressive(laws.normal, 0.3)),
)
def equicorrelated_variance(q, k):
    """Var(q·k) = d_k + d_k(d_k − 1)ρ² when the coordinates of q and of k have correlation ρ among themselves."""
    return scores(q, k)


# --- heavy tails ------------------------------------------------------------------------------

HEAVY = [laws.student_t(df) for df in (4.5, 5, 6)]


def spread_of_squares(law, d_k, tokens):
    """The variance of a block's mean square score, from fourth moments alone; else None."""
    of_scores = laws.score_moments(law, d_k)
    return of_scores and of_scores.of_block(tokens).of_squares


@claim(
    variance.with_variance(spread_of_squares),
    equals=lambda d_k: d_k,
    within=MARGIN,
    over=grid(law=HEAVY, d_k=[8, 64]),
    decides="A5",
    controls=near.query_scale(1.12) + near.law(laws.shifted(laws.normal, 0.3)),
)
def heavy_tailed_variance(q, k):
    """Var(q·k) = d_k for Student t coordinates of 4.5, 5 and 6 degrees of freedom, whose kurtosis is 15, 9 and 6: the law may have heavy tails."""
    return scores(q, k)
