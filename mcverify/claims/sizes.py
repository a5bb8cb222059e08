"""How large scores typically are beyond their variance: mean and median size, and shares within bounds."""

import math
from fractions import Fraction

import numpy as np
from scipy.special import erf

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import scores
from mcverify.declare import near
from mcverify.statistic import exact, mean, median, ratio
from mcverify.theory import enumeration


@claim(
    exact,
    equals=lambda d_k: math.sqrt(d_k),
    within=relative(1e-12),
    over=grid(d_k=[1, 2, 8, 64]),
    decides="A2",
    controls=grid(share=0.5),
)
def coin_sum_std(d_k, share=1.0):
    """The sum of d_k fair coins ±1 has standard deviation √d_k, by enumeration; not so if every second shows 0."""
    coin = enumeration.sparse_coin(Fraction(share))
    return math.sqrt(enumeration.variance(enumeration.total(coin, d_k)))


@claim(
    exact,
    equals=lambda d_k: theory.coin_sum_mean_size(d_k),
    within=relative(1e-12),
    over=grid(d_k=[1, 2, 7, 8, 64]),
    decides="A2",
    controls=grid(equals=math.sqrt(8)) + grid(equals=math.sqrt(2 * 8 / math.pi)),
)
def coin_sum_mean_size(d_k):
    """The mean size of a sum of d coins is below √d: d·C(d, d/2)/2^d for even d, 6.358 and not 8 at 64."""
    return float(enumeration.mean_size(enumeration.total(enumeration.COIN, d_k)))


def spread_of_mean_sizes(law, d_k, tokens):
    """Given its query a score is normal, so that E abs(s_1 s_2) of a shared query is (2/π)·E |q|²."""
    if law != laws.normal:
        return None
    square = theory.coin_sum_mean_size(d_k) ** 2
    return (d_k - square + 2 * (tokens - 1) * (2 / math.pi * d_k - square)) / tokens**2


@claim(
    mean.with_variance(spread_of_mean_sizes),
    equals=lambda d_k: theory.coin_sum_mean_size(d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[2, 8, 64, 512]),
    decides="A2",
    controls=near.law(laws.laplace) + near.law(laws.independent(laws.rademacher, laws.normal)),
)
def normal_mean_size(q, k):
    """E abs(q·k) of normal q and k is, at d_k of 2, 8, 64 and 512, that of a sum of d_k coins."""
    return abs(scores(q, k))


AT_ONE = theory.size.median(1)


@claim(
    median,
    equals=lambda d_k: theory.size.median(d_k) / AT_ONE,
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64], tokens=4),
    decides="A8",
    controls=grid(equals=math.sqrt(8)),
)
def median_size_against_one_coordinate(q, k):
    """The median size of q·k for normal q and k is 14.6 times that of one coordinate at d_k = 64, and not √64 times."""
    return abs(scores(q, k)) / AT_ONE


@claim(
    ratio,
    equals=lambda d_k: theory.coin_sum_mean_size(d_k) * math.pi / 2,
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[8, 64]),
    decides="A8",
    controls=grid(equals=math.sqrt(8)) + near.law(laws.rademacher),
)
def mean_size_against_one_coordinate(q, k):
    """The mean size of q·k for normal q and k is 10.0 times that of one coordinate at d_k = 64, and not √64 times."""
    return abs(scores(q, k)), abs(scores(q[..., :1], k[..., :1]))


# --- the law of scores, beyond its variance -----------------------------------------------------


def spread_of_shares(law, d_k, tokens, bound):
    if law != laws.normal:
        return None
    return theory.size.spread_of_share(bound / math.sqrt(d_k), d_k) ** 2 / tokens


@claim(
    mean.with_variance(spread_of_shares),
    equals=lambda d_k, bound: theory.size.share_within(bound / math.sqrt(d_k), d_k),
    within=absolute(2e-5),
    over=grid(law=laws.normal, d_k=512, bound=67.88),
    decides="B4",
    controls=grid(equals=theory.size.share_within(3, 10**9)) + grid(equals=1 - 1 / 9),
)
def share_within_three_deviations(q, bound):
    """For normal q and k a share of .99722 of the scores lies within three deviations, ±67.88, at d_k = 512, by what it is given each query; of a normal score it would be .99730."""
    return erf(bound / math.sqrt(2) / np.linalg.norm(q, axis=-1))


@claim(
    mean.within(0, 1),
    equals=lambda d_k: theory.size.share_within(3, d_k),
    within=absolute(0.001),
    over=grid(law=laws.normal, d_k=[1, 8, 64]),
    decides="B38",
    controls=grid(equals=theory.size.share_within(3, 10**9)),
)
def share_within_depends_on_the_width(q, k, d_k):
    """Divided by √d_k, scores beyond three deviations are 2.0 % at d_k = 1, 0.7 % at 8 and 0.3 % at 64: the law depends on the width, though the variance does not."""
    return abs(scores(q, k, scale=d_k**-0.5)) <= 3


@claim(
    mean.within(0, 1),
    equals=theory.size.share_within(3, 512),
    within=absolute(0.001),
    over=grid(law=laws.normal, d_k=[1, 8]),
    decides="B38",
    expect=Verdict.REFUTED,
)
def scaled_scores_have_one_law(q, k, d_k):
    """Divided by √d_k, scores have the same law at every width: as many within three deviations as at d_k = 512."""
    return abs(scores(q, k, scale=d_k**-0.5)) <= 3
