"""Normalised queries and keys: what LayerNorm, RMSNorm and L2 normalisation do to scores."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, printed, relative, theory
from mcverify.attention import max_weight, rows, scores, softmax
from mcverify.attention.vectors import layer_norm
from mcverify.claims.ranges import SCALED_WEIGHT, WEIGHT
from mcverify.declare import near
from mcverify.laws import initialisation as init
from mcverify.statistic import exact, proportion, variance

LAYER = [laws.layer_norm(base) for base in (laws.normal, laws.uniform, laws.laplace)]
UNIT = [laws.unit_norm(base) for base in laws.STANDARD]
D_K = [2, 8, 64]


@claim(
    variance,
    equals=lambda d_k: d_k**2 / (d_k - 1),
    within=relative(0.02),
    over=grid(law=LAYER, d_k=D_K) + grid(law=LAYER[0], d_k=512),
    decides="B17 B33",
)
def layer_norm_variance(q, k):
    """After LayerNorm of q and k the score has variance d_k²/(d_k − 1), so LayerNorm does not replace the scale."""
    return scores(q, k)


@claim(variance, equals=1, within=relative(0.02), over=grid(law=LAYER, d_k=[2, 8, 32]), decides="B17",
       expect=Verdict.REFUTED)
def layer_norm_forces_unit_variance(q, k, d_k):
    """LayerNorm of q and k and division by √d_k give a variance of exactly 1 (it is d_k/(d_k − 1))."""
    return scores(q, k, scale=d_k**-0.5)


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.02),
    over=grid(law=[laws.layer_norm(laws.rademacher)], d_k=[2, 4, 8])
    + grid(law=[laws.layer_norm(laws.normal, gain=2.0), laws.rms_norm(laws.normal)], d_k=[8, 64]),
    decides="B17 B18",
)
def normalised_variance(q, k):
    """LayerNorm loses the coins that are all equal; a gain g on both returns as g⁴; RMSNorm keeps the variance d_k."""
    return scores(q, k)


@claim(
    proportion,
    at_least=0.99,
    over=grid(law=[laws.layer_norm(laws.scaled(laws.normal, gain, gain)) for gain in (1.0, 1000.0)],
              d_k=[8, 64], tokens=4),
    decides="A18",
    controls=near.law(laws.scaled(laws.normal, 3.0, 3.0)),
)
def layer_norm_bounds_scores(q, k, d_k):
    """LayerNorm with unit gain bounds scores divided by √d_k by √d_k, whatever the size of the weights."""
    return abs(scores(q, k, scale=d_k**-0.5)) <= math.sqrt(d_k) * (1 + 1e-12)


@claim(exact, equals=printed("0.9999"), decides="A18")
def layer_norm_still_allows_one_hot():
    """At d_k = 64 that bound still lets the larger of two weights reach 0.9999: scores of 8 and −1.2."""
    return softmax([8.0, -1.22])[0]


@claim(
    variance,
    equals=lambda law, d_k: theory.dot_variance(laws.layer_norm(laws.normal), d_k),
    within=relative(0.02),
    over=grid(law=[laws.layer_norm(laws.scaled(laws.normal, gain, 1.0)) for gain in (0.1, 10.0)],
              d_k=[8, 64]),
    decides="B18 A18",
)
def layer_norm_removes_gain(q, k):
    """LayerNorm removes the gain that sets one head apart from another: scores keep the same variance at a gain of 0.1 and of 10."""
    return scores(q, k)


@claim(
    WEIGHT,
    equals=lambda d_k: (d_k - 1) / d_k,
    within=relative(0.01),
    over=grid(law=laws.normal, d_k=[2, 4, 64]),
    decides="B33",
)
def layer_norm_changes_direction(q):
    """LayerNorm changes direction: the squared cosine between a normal vector and its LayerNorm is (d_k − 1)/d_k in the mean."""
    y = layer_norm(q)
    return np.einsum("btd,btd->bt", q, y) ** 2 / (
        np.einsum("btd,btd->bt", q, q) * np.einsum("btd,btd->bt", y, y))


@claim(proportion, at_least=0.99, over=grid(law=laws.STANDARD, d_k=[2, 64], tokens=4), decides="B33",
       controls=grid(factor=-0.125))
def scaling_keeps_direction(q, k, d_k, factor=0.125):
    """A scale changes the size of q and no direction: the cosine between q and q/√d_k is 1."""
    scaled = factor * q
    return np.einsum("btd,btd->bt", q, scaled) >= (1 - 1e-12) * np.sqrt(
        np.einsum("btd,btd->bt", q, q) * np.einsum("btd,btd->bt", scaled, scaled))


# --- L2 normalisation: scores are cosines ------------------------------------------------------


@claim(proportion, at_least=0.99, over=grid(law=UNIT, d_k=[2, 64], tokens=4), decides="B19",
       controls=near.query_scale(8.0))
def cosines_are_bounded(q, k):
    """L2-normalised q and k have scores between −1 and 1."""
    return abs(scores(q, k)) <= 1 + 1e-12


@claim(
    variance,
    equals=lambda d_k: 1 / d_k,
    within=relative(0.02),
    over=grid(law=UNIT, d_k=[2, 8, 64]) + grid(law=UNIT[0], d_k=512),
    decides="B19",
)
def cosine_variance(q, k):
    """L2-normalised q and k have scores of variance 1/d_k: as small as after dividing by d_k."""
    return scores(q, k)


@claim(exact, equals=lambda keys: printed({2: "0.88", 128: "0.055"}[keys]), over=grid(keys=[2, 128]),
       decides="B19")
def cosines_cannot_focus(keys):
    """No weight of n cosines exceeds 1/(1 + (n − 1)e⁻²): 0.88 for 2 keys, 0.055 for 128."""
    return max_weight(softmax([1.0] + [-1.0] * (keys - 1)))


@claim(
    SCALED_WEIGHT,
    at_most=lambda keys: 1.5 / keys,
    over=grid(law=laws.unit_norm(laws.normal), d_k=64, keys=[2, 128]),
    decides="B19",
    controls=near.query_scale(64.0),
)
def cosines_are_nearly_uniform(q, k, keys):
    """Without a learned scale the largest weight of n cosines at d_k = 64 is below 1.5/n in the mean."""
    return max_weight(softmax(rows(q, k, keys)))


@claim(
    variance,
    equals=1,
    within=relative(0.02),
    over=grid(law=laws.unit_norm(laws.projected(laws.normal, init.gaussian(0.02), 768)), d_k=64, tokens=40),
    decides="B19",
)
def learned_scale_restores_variance(q, k, d_k):
    """A scale of √d_k on cosines gives unit variance again, whatever the initialisation."""
    return scores(q, k, scale=math.sqrt(d_k))
