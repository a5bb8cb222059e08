"""Softmax treats q and k unequally: it averages over keys, and so sees how keys are distributed."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, theory
from mcverify.attention import scores, softmax_entropy
from mcverify.declare import near
from mcverify.statistic import mean

KEYS = 1024
ROWS = 32  # queries of a block that are used
ENTROPY = mean.of_degree(0)  # a range of ln 1024 would ask for 10^4 blocks
NORMAL, LAPLACE, COIN = laws.normal, laws.laplace, laws.rademacher
SIDES = [laws.independent(*sides) for sides in
         [(NORMAL, LAPLACE), (LAPLACE, NORMAL), (LAPLACE, COIN), (COIN, LAPLACE)]]


def mean_entropy(q, k, d_k):
    return softmax_entropy(scores(q[:, :ROWS], k, d_k**-0.5))


def of_fourth_moments(law, d_k):
    shift = theory.many_keys.entropy_shift(
        (0, law.q.fourth_moment), (0, law.k.fourth_moment), d_k)
    return theory.softmax.entropy(KEYS, 1.0, d_k) + shift


@claim(ENTROPY, equals=of_fourth_moments, within=absolute(0.014), decides="C14",
       over=grid(law=SIDES[:2], d_k=32, tokens=KEYS) + grid(law=SIDES[2], d_k=64, tokens=KEYS)
       + grid(law=SIDES[3], d_k=32, tokens=KEYS), controls=near.law(SIDES[1]))
def only_heavy_tailed_keys_sharpen(q, k, d_k):
    """Heavy tails of the keys sharpen softmax and those of the queries do not: the entropy over many keys moves by −κ_q(κ_k − 3)/(8d_k), κ a coordinate's fourth moment."""
    return mean_entropy(q, k, d_k)


def of_the_score(law, d_k):
    """As if softmax saw the kurtosis of the score, in which q and k stand alike."""
    excess = theory.dot_kurtosis(law.q.fourth_moment, law.k.fourth_moment, d_k)
    return theory.softmax.entropy(KEYS, 1.0) - excess / 8


@claim(ENTROPY, equals=of_the_score, within=absolute(0.014), decides="C14",
       over=grid(law=SIDES[:2], d_k=32, tokens=KEYS), expect=Verdict.REFUTED)
def softmax_sees_the_kurtosis_of_the_score(q, k, d_k):
    """The entropy over many keys moves by −1/8 of the excess kurtosis of the score, so that tails of q and of k count alike."""
    return mean_entropy(q, k, d_k)


SKEWNESS = 2 / math.sqrt(3)


def skewed(x):
    """Coins that show √3 for a quarter of uniform coordinates, and −1/√3 else: mean 0, variance 1."""
    return np.where(x > math.sqrt(3) / 2, math.sqrt(3), -1 / math.sqrt(3))


@claim(ENTROPY, equals=lambda d_k: 2 * theory.many_keys.entropy_shift((SKEWNESS, 3), (SKEWNESS, 3), d_k),
       within=absolute(0.012), over=grid(law=laws.uniform, d_k=64, tokens=KEYS), decides="C14",
       controls=grid(both=False))
def skew_on_both_sides_sharpens(q, k, d_k, both=True):
    """Skewness counts if both sides have it: turning its sign on one side changes the entropy over many keys by 2γ_qγ_k/(3√d_k)."""
    q = q[:, :ROWS // 2]  # which all share the block's keys
    s = scores(skewed(q) if both else q, skewed(k), d_k**-0.5)
    return softmax_entropy(s) - softmax_entropy(-s)
