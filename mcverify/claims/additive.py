"""Additive attention, v·tanh(W_q q + W_k k): how its scores vary with the width of q and k."""

import math

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import additive_scores, scores
from mcverify.statistic import slope, variance

WIDTH = 32
ROWS = 4  # tokens of a block: weights are drawn anew for each, and one block is one draw of them


def drawn_scores(q, k, rng, output_variance, width=WIDTH):
    """Additive scores under weights of variance 1/d_k, and v of the variance given, anew for each block."""
    blocks, _, d_k = q.shape
    w_q, w_k = rng.standard_normal((2, blocks, d_k, width)) / math.sqrt(d_k)
    v = math.sqrt(output_variance) * rng.standard_normal((blocks, width))
    return additive_scores(q, k, w_q, w_k, v)


@claim(
    variance,
    equals=theory.additive.additive_variance(WIDTH, 1 / WIDTH),
    within=relative(0.05),
    over=grid(law=laws.rademacher, d_k=[1, 8, 32], tokens=ROWS),
    decides="A20",
)
def additive_variance(q, k, rng):
    """Additive scores of coins have variance 0.52 at every d_k, if weights have variance 1/d_k and output weights 1/width."""
    return drawn_scores(q, k, rng, 1 / WIDTH)


@claim(
    variance,
    equals=lambda d_k: theory.additive.additive_variance(WIDTH, 1 / WIDTH, d_k=d_k),
    within=relative(0.05),
    over=grid(law=laws.normal, d_k=[1, 8, 32], tokens=ROWS),
    decides="A20",
)
def additive_variance_of_normal_vectors(q, k, rng):
    """For normal q and k it rises a little with d_k, from 0.43 at 1 to 0.52: their lengths settle."""
    return drawn_scores(q, k, rng, 1 / WIDTH)


@claim(
    slope(variance),
    equals=1,
    within=absolute(0.1),
    over=grid(law=laws.rademacher, d_k=16, tokens=ROWS),
    decides="A20",
)
def additive_variance_grows_with_output_weights(q, k, rng):
    """With output weights of variance 1 instead of 1/width the variance of additive scores grows in proportion to the width."""
    return [(width, drawn_scores(q, k, rng, 1.0, width)) for width in (4, 16, 64)]


@claim(
    slope(variance),
    at_most=0.1,
    over=grid(law=laws.normal, d_k=64, tokens=ROWS),
    decides="A20",
    expect=Verdict.REFUTED,
)
def unscaled_dot_products_keep_their_variance(q, k, d_k):
    """Unscaled dot products keep their variance as d_k grows, as additive scores do."""
    return [(d, scores(q[..., :d], k[..., :d])) for d in (4, 16, 64)]
