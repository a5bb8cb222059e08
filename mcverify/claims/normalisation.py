"""Normalised queries and keys: what LayerNorm and RMSNorm do to scores, and what they leave."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, printed, relative, theory
from mcverify.attention import other_scores, scores, softmax, vectors
from mcverify.claims.ranges import WEIGHT
from mcverify.declare import near
from mcverify.statistic import exact, proportion, variance

NORMAL = laws.normal
LAYER = [laws.layer_norm(base) for base in (NORMAL, laws.uniform, laws.laplace)]
D_K = [2, 8, 64, 512]
# Directions that are not alike: of less than full rank, of unequal variances, correlated.
TIED = [laws.low_rank(NORMAL, 16), laws.low_rank(NORMAL, 4), laws.unequal(NORMAL, 2),
        laws.autoregressive(NORMAL, 0.7)]


@claim(
    variance,
    equals=lambda d_k: d_k**2 / (d_k - 1),
    within=relative(0.02),
    over=grid(law=LAYER, d_k=D_K),
    decides="B17 B33",
    controls=near.law(laws.rms_norm(NORMAL)) + near.law(laws.layer_norm(laws.low_rank(NORMAL, 4)))
    + near.law(laws.layer_norm(laws.unequal(NORMAL, 1))),
)
def layer_norm_variance(q, k):
    """After LayerNorm with unit gain of q and k with coordinates all alike the score has variance d_k²/(d_k − 1): 65 at 64, so it does not replace the scale."""
    return scores(q, k)


@claim(
    variance,
    equals=lambda law, d_k: theory.norms.normed_score_variance(law.base.moments(d_k).cov_q, centred=True),
    within=relative(0.02),
    over=grid(law=[laws.layer_norm(base) for base in TIED], d_k=64),
    decides="B17",
    controls=near.law(laws.layer_norm(NORMAL)) + near.law(laws.layer_norm(laws.low_rank(NORMAL, 15))),
)
def layer_norm_leaves_unequal_directions(q, k, d_k):
    """LayerNorm equals lengths and no directions: scaled by 1/√64 the score keeps a variance of 4.0 at rank 16, 16 at rank 4, 2.29 with variances over two powers of ten and 2.65 with correlations 0.7^lag."""
    return scores(q, k, scale=d_k**-0.5)


@claim(variance, equals=1, within=relative(0.02),
       over=grid(law=LAYER, d_k=[2, 8, 32])
       + grid(law=[laws.layer_norm(base) for base in TIED], d_k=64)
       + grid(law=[laws.layer_norm(laws.minilm(head)) for head in
                   ("trained_l0h0", "trained_l5h3", "trained_l0h2")], d_k=32, tokens=13),
       decides="B17 B18", expect=Verdict.REFUTED)
def layer_norm_forces_unit_variance(q, k, d_k):
    """LayerNorm of q and k and division by √d_k give a variance of 1, in every head."""
    return other_scores(q, k, scale=d_k**-0.5)


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.02),
    over=grid(law=[laws.layer_norm(laws.rademacher)], d_k=[2, 4, 8])
    + grid(law=[laws.layer_norm(NORMAL, gain=2.0), laws.rms_norm(NORMAL)], d_k=[8, 64]),
    decides="B17 B18",
    controls=near.law(laws.rms_norm(laws.rademacher)),
)
def normalised_variance(q, k):
    """LayerNorm loses the coins that are all equal; a gain of 2 on both returns as 2⁴; RMSNorm keeps the variance d_k."""
    return scores(q, k)


@claim(
    variance,
    equals=lambda d_k: d_k / (d_k - 1),
    within=relative(0.02),
    over=sum((grid(law=laws.layer_norm(NORMAL, gain=d_k**-0.25), d_k=d_k) for d_k in (64, 512)),
             grid(law=laws.layer_norm(NORMAL, gain=8**-0.25), d_k=8)),
    decides="B17 B33",
    controls=near.law(laws.layer_norm(NORMAL)) + near.law(laws.layer_norm(NORMAL, gain=8**-0.5)),
)
def gain_of_layer_norm_replaces_the_scale(q, k):
    """With a gain of d_k^(−1/4) LayerNorm leaves unscaled scores the variance d_k/(d_k − 1), 1.016 at 64: the gain does what the scale did."""
    return scores(q, k)


# --- heads --------------------------------------------------------------------------------------

HEADS, WIDTH = 8, 64
GAINS = 2.0 ** np.linspace(-1, 1, HEADS)  # what sets one head's queries and keys apart


def normed_heads(x, of_each_head):
    """Vectors of all heads, each head with its gain, after RMSNorm of all or of each head alone."""
    x = x.reshape(*x.shape[:-1], HEADS, WIDTH) * GAINS[:, None]
    if of_each_head:
        x = vectors.rms_norm(x)
    x = x.reshape(*x.shape[:-2], HEADS * WIDTH)
    return x if of_each_head else vectors.rms_norm(x)


def variance_of_a_head(head):
    """Var(q·k)/64 of a head, by the share that one of its coordinates has of the common length."""
    shares = theory.norms.shares(np.repeat(GAINS**2, WIDTH))
    return float((HEADS * WIDTH * shares[head * WIDTH]) ** 2)


@claim(
    variance,
    equals=variance_of_a_head,
    within=relative(0.03),
    over=grid(law=NORMAL, d_k=HEADS * WIDTH, head=[0, 3, HEADS - 1], tokens=8),
    decides="B18",
    controls=grid(of_each_head=True),
)
def common_norm_keeps_the_gains_of_heads(q, k, head, of_each_head=False):
    """RMSNorm over the width of all heads keeps what sets their gains apart, score variances of 0.029 to 7.4 at gains of 1/2 to 2; of each head alone it would leave 1 in all."""
    of_head = slice(head * WIDTH, (head + 1) * WIDTH)
    q, k = (normed_heads(x, of_each_head)[..., of_head] for x in (q, k))
    return scores(q, k, scale=WIDTH**-0.5)


# --- bounds -------------------------------------------------------------------------------------


@claim(
    proportion,
    at_least=0.99,
    over=grid(law=[laws.layer_norm(laws.scaled(laws.identical(NORMAL), gain, gain))
                   for gain in (1.0, 1000.0)], d_k=[8, 64], tokens=4),
    decides="A18",
    controls=grid(bound=0.99),
)
def layer_norm_bounds_scores(q, k, d_k, bound=1.0):
    """LayerNorm with unit gain bounds scores divided by √d_k by √d_k, at weights of 1 and of 1000: a key that is its own query reaches the bound."""
    return abs(scores(q, k, scale=d_k**-0.5)) <= bound * math.sqrt(d_k) * (1 + 1e-12)


@claim(exact, equals=printed("1.1e-7"), decides="A18", controls=grid(opposite=0.0))
def layer_norm_still_allows_one_hot(opposite=-1.0):
    """At d_k = 64 that bound, 8, is reached by k = q, and −8 by k = −q, which leaves the second of two keys a weight of 1.1e-7."""
    q = vectors.layer_norm(np.arange(64.0))
    return softmax(np.array([q @ q, q @ (opposite * q)]) / 8)[1]


@claim(
    WEIGHT,
    equals=lambda d_k: (d_k - 1) / d_k,
    within=relative(0.01),
    over=grid(law=NORMAL, d_k=[2, 4, 8, 64]),
    decides="B33",
    controls=grid(norm="rms_norm"),
)
def layer_norm_changes_direction(q, norm="layer_norm"):
    """LayerNorm changes direction: the squared cosine between a normal vector and its LayerNorm is (d_k − 1)/d_k in the mean, and 1 for RMSNorm, which only scales each vector."""
    y = getattr(vectors, norm)(q)
    return np.einsum("btd,btd->bt", q, y) ** 2 / (
        np.einsum("btd,btd->bt", q, q) * np.einsum("btd,btd->bt", y, y))
