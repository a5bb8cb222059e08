"""Rotary positions: what distance does to the variance and the mean of a score."""

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import matched_scores, scores
from mcverify.declare import near
from mcverify.statistic import mean, variance
from mcverify.theory import rotary

DISTANCES = [0, 1, 64, 4096]
# Halves are paired as in most implementations: coordinate i turns with i + d_k/2, at frequency
# 10000^(−2i/d_k). Variances that fall over the coordinates differ most within such a pair.
UNEQUAL = laws.unequal(laws.normal, 2)


def at(base, distances=DISTANCES):
    return [laws.rotary(base, distance) for distance in distances]


@claim(
    variance,
    equals=lambda d_k: d_k,
    within=relative(0.03),
    over=grid(law=[*at(laws.normal), *at(laws.laplace), *at(laws.independent(UNEQUAL, laws.normal))],
              d_k=[8, 64]),
    decides="B12",
    controls=near.law(laws.rotary(UNEQUAL, 64)),
)
def rotation_keeps_isotropic_variance(q, k):
    """Rotary positions keep Var(q·k) at distances of 0, 1, 64 and 4096 if either side has mean 0 and equal, uncorrelated coordinates."""
    return scores(q, k)


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.04),
    over=grid(law=at(UNEQUAL, [64, 0, 1, 4096]), d_k=[8, 64]),
    decides="B12",
    controls=near.law(UNEQUAL) + near.law(laws.rotary(UNEQUAL, 64, pairing="neighbours")),
)
def rotation_moves_anisotropic_variance(q, k):
    """With unequal variances in both q and k, Var(q·k) moves with the distance, as tr(RΣR'Σ) says."""
    return scores(q, k)


@claim(
    variance,
    equals=lambda law, d_k: theory.dot_variance(law.base, d_k),
    within=relative(0.04),
    over=grid(law=at(UNEQUAL, [64, 4096]), d_k=8),
    decides="B12",
    expect=Verdict.REFUTED,
)
def rotation_never_changes_the_variance(q, k):
    """Rotary positions keep Var(q·k) at every distance for any q and k."""
    return scores(q, k)


# --- how far it can move it --------------------------------------------------------------------


def bounds(law, d_k):
    """The least and the largest variance that any rotation of the pairs gives."""
    return rotary.variance_bounds(law.base.moments(d_k).cov_q, law.base.moments(d_k).cov_k, "halves")


@claim(
    variance,
    between=bounds,
    within=relative(0.02),
    over=grid(law=at(UNEQUAL, [3, 0, 16, 64, 300, 4096]), d_k=8),
    decides="B12",
    controls=near.query_scale(1.05),  # at distance 3 it is near the larger bound
)
def rotation_has_bounds(q, k):
    """At distances from 0 to 4096 Var(q·k) lies between bounds from the eigenvalues of each pair's covariances, sorted oppositely and alike."""
    return scores(q, k)


SINGLE = laws.unequal(laws.normal, 1)  # of one pair, which 11 and 22 turn by 3.5 and 7 half turns
QUARTER = 11


@claim(
    variance,
    equals=lambda law, d_k: bounds(law, d_k)[law.distance != QUARTER],
    within=relative(0.03),
    over=grid(law=at(SINGLE, [QUARTER, 2 * QUARTER]), d_k=2),
    decides="B12",
    controls=near.law(laws.rotary(SINGLE, 2 * QUARTER)) + near.law(laws.rotary(SINGLE, 10)),
)
def rotation_reaches_its_bounds(q, k):
    """Of a single pair the bounds are reached: the smaller, of eigenvalues sorted oppositely, by a quarter turn, and the larger by half turns."""
    return scores(q, k)


def slow_pair(side):
    """Variances of 8 coordinates, of which only the pair that turns slowest, 0.001 a token, is unequal."""
    x = np.ones(8)
    x[3], x[7] = (1.9, 0.1) if side == "q" else (0.1, 1.9)
    return np.diag(x)


SLOW = laws.gaussian(slow_pair("q"), slow_pair("k"))


def largest_in_training(law, d_k, trained):
    return max(theory.dot_variance(laws.rotary(law.base, m), d_k) for m in range(trained))


@claim(
    variance,
    at_least=lambda law, d_k, trained, more: (1 + more) * largest_in_training(law, d_k, trained),
    over=grid(law=at(SLOW, [1571]), d_k=8, trained=512, more=0.3),
    decides="B12",
    controls=near.law(laws.rotary(SLOW, 256)),
)
def rotation_can_amplify(q, k):
    """Rotary positions can amplify the variance beyond all that a training length of 512 has: for q and k that differ in a slow pair, by 30 % at distance 1571."""
    return scores(q, k)


# --- the mean of tokens that match -------------------------------------------------------------


@claim(
    mean,
    equals=lambda law, d_k: rotary.matched_mean(d_k, law.distance) / d_k,
    within=absolute(0.02),
    over=grid(law=at(laws.identical(laws.normal), [64, 0, 5, 1286, 4075]), d_k=64),
    decides="B12",
    controls=near.law(laws.identical(laws.normal)) + near.law(laws.rotary(laws.identical(laws.normal), 32)),
)
def rotation_makes_the_mean_decay(q, k, d_k):
    """With q = k the mean score falls with the distance as Σ 2cos(mθ_i), unevenly: all of d_k at 0, 0.43 d_k at 64, −0.08 d_k at 1286 and −0.24 d_k at 4075."""
    return matched_scores(q, k, scale=1 / d_k)
