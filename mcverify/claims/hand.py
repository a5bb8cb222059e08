"""Calculations by hand: the notes' worked numbers, to the digits they print, and how usual they are."""

import math

import numpy as np
import scipy

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import matched_scores, rows, softmax
from mcverify.declare import near
from mcverify.statistic import exact, mean

# Two keys, one standard deviation above and below the mean: unscaled at d_k = 64, divided by 8, by 64.
SIZES = [8.0, 1.0, 0.125]
ONE_SIDED = grid(other=0.0)  # the second score at the mean, and not below it


@claim(exact, equals=5, within=relative(1e-12), decides="A1", controls=grid(equals=7))
def hand_dot_product():
    """q = (1, 2) and k = (3, 1) have q·k = 5, and not the 7 of q and k paired crosswise."""
    return matched_scores(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))


@claim(
    exact,
    equals=lambda size: printed({8.0: "0.9999999", 1.0: "0.88", 0.125: "0.56"}[size]),
    over=grid(size=SIZES),
    decides="A13 A14 A15",
    controls=ONE_SIDED,
)
def hand_larger_weight(size, other=-1.0):
    """Scores (s, −s) with s of 8, 1 and 1/8 give the first key a weight of 1 − 1.1e-7, 0.88 and 0.56."""
    return softmax([size, other * size])[0]


@claim(
    exact,
    equals=lambda size: printed({8.0: "1.1e-7", 1.0: "0.12", 0.125: "0.44"}[size]),
    over=grid(size=SIZES),
    decides="A13 A14 A15",
    controls=ONE_SIDED,
)
def hand_smaller_weight(size, other=-1.0):
    """Scores (s, −s) with s of 8, 1 and 1/8 give the second key a weight of 1.1e-7, 0.12 and 0.44."""
    return softmax([size, other * size])[1]


@claim(
    exact,
    equals=lambda size: printed({8.0: "1.1e-7", 1.0: "0.105", 0.125: "0.246"}[size]),
    over=grid(size=SIZES),
    decides="A13 A14 A15",
    controls=ONE_SIDED,
)
def hand_slope(size, other=-1.0):
    """Scores (s, −s) with s of 8, 1 and 1/8 give a slope p(1 − p) of 1.1e-7, 0.105 and 0.246."""
    first, second = softmax([size, other * size])
    return first * second


# --- how usual the example is -------------------------------------------------------------------

PAIRS = grid(law=laws.normal, d_k=64, gap=16)


def deviations(gap, d_k):
    """By how many a score must be off: the difference of two normal keys is √2 times one of them."""
    return gap / math.sqrt(2 * d_k)


def spread_given_query(law, d_k, tokens, gap):
    return theory.size.spread_of_share(deviations(gap, d_k), d_k) ** 2 / tokens


@claim(
    mean.with_variance(spread_given_query),
    equals=lambda gap, d_k: 1 - theory.size.share_within(deviations(gap, d_k), d_k),
    within=absolute(3e-4),
    over=PAIRS,
    decides="A13 A24",
    controls=grid(equals=math.erfc(1)) + grid(equals=math.erfc(1 / math.sqrt(2))),
)
def gap_of_the_example(q, gap):
    """Of two normal keys at d_k = 64, a gap of 16 as between the scores 8 and −8 has a probability of 0.1558, by what it is given each query: fewer than one pair in six."""
    return scipy.special.erfc(gap / 2 / np.linalg.norm(q, axis=-1))


def gaps(q, k, keys):
    """How far the scores of two keys are apart."""
    s = rows(q, k, keys)
    return abs(s[..., 0] - s[..., 1])


@claim(mean.within(0, 1), at_least=0.5, over=grid(law=laws.normal, d_k=64, keys=2, gap=16),
       decides="A24", expect=Verdict.REFUTED)
def example_is_typical(q, k, keys, gap):
    """The example is typical: at least every second pair of keys at d_k = 64 has scores that are 16 apart."""
    return gaps(q, k, keys) >= gap


def spread_of_gaps(d_k, tokens):
    """Of tokens queries with tokens/2 differences of keys: given the one, the gap is the size of a normal number."""
    square = theory.coin_sum_mean_size(d_k) ** 2
    shared = (tokens - 1 + tokens // 2 - 1) * (2 / math.pi * d_k - square)
    return 2 * (d_k - square + shared) / (tokens * (tokens // 2))


@claim(
    mean.with_variance(spread_of_gaps),
    equals=lambda d_k: math.sqrt(2) * theory.coin_sum_mean_size(d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[8, 64], keys=2),
    decides="A24",
    controls=grid(equals=math.sqrt(2 * 8)) + near.law(laws.laplace),
)
def mean_gap_of_two_keys(q, k, keys):
    """The mean gap between the scores of two normal keys is √2 times the mean size of one: 8.99 at d_k = 64, little more than half of 16."""
    return gaps(q, k, keys)
