"""Additive attention, v·tanh(W_q q + W_k k): how its scores vary with the width of q and k."""

import math
import tracemalloc

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import additive_scores, scores
from mcverify.declare import near
from mcverify.statistic import exact, slope, variance

WIDTH = 32
ROWS = 4  # tokens of a block: weights are drawn anew for each, and one block is one draw of them


def drawn_scores(q, k, rng, output_variance, width=WIDTH, gain=1.0):
    """Additive scores under weights of variance gain²/d_k, and v of the variance given, anew for each block."""
    blocks, _, d_k = q.shape
    w_q, w_k = gain * rng.standard_normal((2, blocks, d_k, width)) / math.sqrt(d_k)
    v = math.sqrt(output_variance) * rng.standard_normal((blocks, width))
    return additive_scores(q, k, w_q, w_k, v)


@claim(
    variance,
    equals=theory.additive.additive_variance(WIDTH, 1 / WIDTH),
    within=relative(0.05),
    over=grid(law=laws.rademacher, d_k=[1, 8, 64], tokens=ROWS),
    decides="A20",
    controls=grid(gain=2.0) + grid(output_variance=1.2 / WIDTH),
)
def additive_variance(q, k, rng, gain=1.0, output_variance=1 / WIDTH):
    """Additive scores of coins have variance 0.52 at d_k of 1, 8 and 64, if weights have variance 1/d_k and output weights 1/width."""
    return drawn_scores(q, k, rng, output_variance, gain=gain)


@claim(
    variance,
    equals=lambda d_k: theory.additive.additive_variance(WIDTH, 1 / WIDTH, d_k=d_k),
    within=relative(0.05),
    over=grid(law=laws.normal, d_k=[1, 8, 64], tokens=ROWS),
    decides="A20",
    controls=grid(gain=2.0) + near.law(laws.unit_norm(laws.normal)),
)
def additive_variance_of_normal_vectors(q, k, rng, gain=1.0):
    """For normal q and k it rises a little with d_k, from 0.43 at 1 to 0.52 at 64: their lengths settle."""
    return drawn_scores(q, k, rng, 1 / WIDTH, gain=gain)


@claim(
    slope(variance),
    equals=1,
    within=absolute(0.1),
    over=grid(law=laws.rademacher, d_k=16, tokens=ROWS),
    decides="A20",
    controls=grid(power=0.5) + grid(power=1.0),
)
def additive_variance_grows_with_output_weights(q, k, rng, power=0.0):
    """With output weights of variance 1 instead of 1/width the variance of additive scores grows in proportion to the width."""
    return [(width, drawn_scores(q, k, rng, width**-power, width)) for width in (4, 16, 64)]


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


def most_memory(function, *arguments):
    """The most bytes that are held at once while a function runs."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    function(*arguments)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most - before


@claim(exact, equals=lambda width: width + 1, within=relative(0.02), over=grid(width=[8, 32]),
       decides="A20", controls=grid(product=True) + grid(equals=8))
def memory_of_additive_scores(width, product=False):
    """Made in one piece, additive scores of 256 tokens hold width + 1 times the memory of dot products: the hidden layer of all pairs beside the scores."""
    x, w, v = np.ones((1, 256, 64)), np.ones((64, width)), np.ones(width)
    dot = most_memory(scores, x, x)
    most = dot if product else most_memory(additive_scores, x, x, w, w, v)
    return round(most / dot)  # what arrays take besides their numbers differs between versions
