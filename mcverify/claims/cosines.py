"""Scores of L2-normalised queries and keys, which are cosines: bounded, small, and what they lose."""

import math

import numpy as np

from mcverify import absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import max_weight, rows, scores, softmax
from mcverify.claims.ranges import SCALED_WEIGHT
from mcverify.declare import near
from mcverify.laws import initialisation as init
from mcverify.statistic import exact, mean, proportion, variance

NORMAL = laws.normal
UNIT = [laws.unit_norm(base) for base in laws.STANDARD]
# A key that is its own query reaches the bound.
SAME = [laws.unit_norm(laws.identical(base)) for base in (NORMAL, laws.uniform, laws.laplace)]


@claim(proportion, at_least=0.99,
       over=grid(law=[*UNIT, *SAME], d_k=[2, 64], tokens=4), decides="B19",
       controls=near.law(laws.scaled(SAME[0], 1.01, 1.0)))
def cosines_are_bounded(q, k):
    """L2-normalised q and k have scores between −1 and 1, which a key that is its own query reaches."""
    return abs(scores(q, k)) <= 1 + 1e-12


@claim(
    variance,
    equals=lambda d_k: 1 / d_k,
    within=relative(0.02),
    over=grid(law=UNIT, d_k=[2, 8, 64, 512]),
    decides="B19",
    controls=near.law(laws.unit_norm(laws.low_rank(NORMAL, 7)))
    + near.law(laws.unit_norm(laws.autoregressive(NORMAL, 0.3))),
)
def cosine_variance(q, k):
    """L2-normalised q and k have scores of variance 1/d_k: as small as after dividing by d_k."""
    return scores(q, k)


@claim(exact, equals=lambda keys: printed({2: "0.88", 128: "0.055"}[keys]), over=grid(keys=[2, 128]),
       decides="B19", controls=grid(others=0.0))
def largest_weight_of_cosines(keys, others=-1.0):
    """A key that is its query among keys that are its opposite has a weight of 1/(1 + (n − 1)e⁻²): 0.88 of 2 keys, 0.055 of 128."""
    return max_weight(softmax([1.0] + [others] * (keys - 1)))


@claim(proportion, at_least=0.99, over=grid(law=laws.unit_norm(NORMAL), d_k=1, keys=[2, 4, 8]),
       decides="B19", controls=grid(factor=0.99))
def cosines_cannot_focus(q, k, keys, factor=1.0):
    """No weight of n cosines exceeds 1/(1 + (n − 1)e⁻²): at d_k = 1, where they are ±1, it is reached and not passed."""
    bound = factor / (1 + (keys - 1) * math.exp(-2))
    return max_weight(softmax(rows(q, k, keys))) <= bound * (1 + 1e-12)


@claim(
    SCALED_WEIGHT,
    equals=lambda d_k, keys: theory.softmax.max_weight(keys, d_k**-0.5),
    within=relative(0.01),
    over=grid(law=laws.unit_norm(NORMAL), d_k=64, keys=[2, 8, 128]),
    decides="B19",
    controls=near.query_scale(8.0) + grid(equals=0.5),
)
def cosines_are_nearly_uniform(q, k, keys):
    """Without a learned scale the largest weight of cosines at d_k = 64 is that of normal scores of deviation 1/8, a little above 1/n: 0.535 of 2 keys, 0.149 of 8, 0.0107 of 128."""
    return max_weight(softmax(rows(q, k, keys)))


@claim(
    variance,
    equals=1,
    within=relative(0.02),
    over=grid(law=[laws.unit_norm(laws.projected(NORMAL, init.gaussian(0.02), 768)),
                   laws.unit_norm(laws.projected(NORMAL, init.xavier("head"), 512)),
                   laws.unit_norm(laws.projected(NORMAL, init.lecun(), 512, gain=10.0))],
              d_k=64, tokens=40),
    decides="B19",
    controls=near.law(laws.projected(NORMAL, init.gaussian(0.02), 768)) + grid(power=0.25),
)
def learned_scale_restores_variance(q, k, d_k, power=0.5):
    """A scale of √d_k on cosines gives unit variance again, from weights of N(0, 0.02²), from Xavier's and from ten times LeCun's."""
    return scores(q, k, scale=d_k**power)


def spread_of_products(law, d_k, tokens):
    """The variance of a block's mean ‖q‖‖k‖cos²: of one score, and of two that share q or k."""
    if law != NORMAL:
        return None
    kept = theory.norms.kept_magnitude(d_k)
    return (3 * d_k / (d_k + 2) - kept**2 + 2 * (tokens - 1) * kept * (1 - kept)) / tokens**2


@claim(
    mean.with_variance(spread_of_products),
    equals=theory.norms.kept_magnitude,
    within=absolute(0.004),
    over=grid(law=NORMAL, d_k=[1, 8, 64]),
    decides="B19",
    controls=grid(equals=1.0) + near.law(laws.common_scale(NORMAL, 9)),
)
def cosines_keep_most_of_the_magnitude(q, k, d_k):
    """Cosines lose little that normal q and k tell: their correlation with q·k is (E‖q‖)²/d_k, .637 at d_k = 1, .940 at 8 and .992 at 64."""
    # E (q·k)² = d_k and E cos² = 1/d_k, so the mean of their product is the correlation.
    lengths = np.linalg.norm(q, axis=-1)[..., :, None] * np.linalg.norm(k, axis=-1)[..., None, :]
    return scores(q, k) ** 2 / lengths
