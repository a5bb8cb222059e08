"""The gradient ∂L/∂q that reaches the query, for an upstream gradient ∂L/∂p of independent N(0, 1)."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import query_gradient, scores, softmax
from mcverify.declare import near
from mcverify.statistic import median, proportion, ratio, slope, std, variance

KEYS = 128
NORMAL = laws.normal


ROWS = 16  # queries of a block that are used: all share its keys, so that more add little


def gradient(q, k, scale, upstream):
    """(blocks, rows, d_k) gradients; the block's tokens are the keys of every row."""
    return query_gradient(softmax(scores(q[:, :ROWS], k, scale)), k, upstream, scale)


def draw_upstream(k, rng):
    blocks, keys, _ = k.shape
    return rng.standard_normal((blocks, min(keys, ROWS), keys))


def size(gradients):
    return np.linalg.norm(gradients, axis=-1)


def sizes(q, k, d_k, rng, power=0.0):
    """The norms unscaled (or divided by d_k^power) and divided by √d_k, for one upstream gradient."""
    upstream = draw_upstream(k, rng)
    return (size(gradient(q, k, d_k**-power, upstream)),
            size(gradient(q, k, d_k**-0.5, upstream)))


def limit_of_rms(d_k):
    """√E ‖J‖² of independent N(0, 1) scores: the keys' directions add 1/d_k for each coordinate."""
    return math.sqrt(theory.softmax.jacobian_frobenius_squared(KEYS, 1.0))


@claim(std, equals=limit_of_rms, within=relative(0.02),
       over=grid(law=NORMAL, d_k=[64, 128], keys=KEYS), decides="A11 B6")
def scaled_gradient_size(q, k, d_k, rng):
    """Divided by √d_k, the RMS of ∂L/∂q tends to a constant as d_k grows: 0.137 at 128 keys."""
    return math.sqrt(d_k) * gradient(q, k, d_k**-0.5, draw_upstream(k, rng))


@claim(std, equals=limit_of_rms, within=relative(0.02), over=grid(law=NORMAL, d_k=[2, 4], keys=KEYS),
       decides="B6", expect=Verdict.REFUTED)
def scaled_gradient_size_is_flat(q, k, d_k, rng):
    """Divided by √d_k, the RMS of ∂L/∂q does not depend on d_k at all (it is 13 % and 8 % larger at 2 and 4)."""
    return math.sqrt(d_k) * gradient(q, k, d_k**-0.5, draw_upstream(k, rng))


@claim(ratio, at_least=lambda keys: {2: 1.4, KEYS: 10}[keys],
       over=grid(law=NORMAL, d_k=64, keys=2, tokens=2) + grid(law=NORMAL, d_k=64, keys=KEYS),
       decides="A11 B5 B9", controls=grid(power=0.45))
def unscaled_gradient_is_larger_in_the_mean(q, k, d_k, rng, power=0.0):
    """Unscaled at d_k = 64, the norm of ∂L/∂q is larger in the mean: 1.5 times for two keys, 11 times for 128."""
    return sizes(q, k, d_k, rng, power)


@claim(ratio, at_most=1,
       over=grid(law=NORMAL, d_k=64, keys=2, tokens=2) + grid(law=NORMAL, d_k=64, keys=KEYS),
       decides="A11 B5 B9", expect=Verdict.REFUTED)
def unscaled_gradient_is_smaller_in_the_mean(q, k, d_k, rng):
    """Unscaled at d_k = 64, the norm of ∂L/∂q is smaller in the mean than scaled."""
    return sizes(q, k, d_k, rng)


@claim(median, at_most=0.006, over=grid(law=NORMAL, d_k=64, keys=2, tokens=2), decides="A11 B5 B9",
       controls=grid(scale=0.5))
def unscaled_gradient_median(q, k, rng, scale=1.0):
    """Unscaled at d_k = 64, the median norm of ∂L/∂q for two keys is below 0.006: a typical row is nearly dead."""
    return size(gradient(q, k, scale, draw_upstream(k, rng)))


@claim(median, at_least=0.18, over=grid(law=NORMAL, d_k=[4, 64, 256], keys=2, tokens=2),
       decides="A11 B6", controls=near.query_scale(8.0))
def scaled_gradient_median(q, k, d_k, rng):
    """Divided by √d_k, the median norm of ∂L/∂q for two keys stays above 0.18 from d_k = 4 on."""
    return size(gradient(q, k, d_k**-0.5, draw_upstream(k, rng)))


@claim(proportion, between=lambda d_k: {16: (0.12, 0.16), 64: (0.40, 0.45), 256: (0.64, 0.69)}[d_k],
       over=grid(law=NORMAL, d_k=[16, 64, 256], keys=2, tokens=2), decides="A11",
       controls=near.query_scale(0.7) + near.query_scale(1.5))
def unscaled_dead_rows(q, k, rng):
    """Unscaled, the share of two-key rows whose ∂L/∂q is below 1e-3 grows with d_k: 14, 42 and 67 % at 16, 64, 256."""
    return size(gradient(q, k, 1.0, draw_upstream(k, rng))) < 1e-3


@claim(proportion, at_most=0.01, over=grid(law=NORMAL, d_k=[16, 64], keys=2, tokens=2),
       decides="A11 B6", controls=near.query_scale(4.0))
def scaled_dead_rows(q, k, d_k, rng):
    """Divided by √d_k, under 1 % of two-key rows have a gradient below 1e-3 at widths of 16 and 64."""
    return size(gradient(q, k, d_k**-0.5, draw_upstream(k, rng))) < 1e-3


@claim(slope(variance), equals=1, within=absolute(0.1),
       over=grid(law=NORMAL, d_k=64, keys=2, tokens=2), decides="B6")
def gradient_rms_has_no_maximiser(q, k, rng):
    """The mean square of ∂L/∂q grows in proportion to the score's standard deviation: no scale maximises it."""
    upstream = draw_upstream(k, rng)
    return [(scale, gradient(q, k, scale, upstream)) for scale in (0.5, 1.0, 2.0)]


@claim(median, at_least=0.9, over=grid(law=NORMAL, d_k=64, keys=KEYS), decides="B6",
       controls=near.query_scale(1 / 6))
def gradient_median_at_a_deviation_of_six(q, k, d_k, rng):
    """At 128 keys the median norm of ∂L/∂q is above 0.9 where scores have a standard deviation of 6."""
    return size(gradient(q, k, 6 * d_k**-0.5, draw_upstream(k, rng)))


@claim(median, at_most=0.15, over=grid(law=NORMAL, d_k=64, keys=KEYS), decides="B6",
       controls=near.query_scale(6.0))
def gradient_median_at_unit_deviation(q, k, d_k, rng):
    """At 128 keys the median norm of ∂L/∂q is below 0.15 at unit variance: 1/√d_k does not maximise it."""
    return size(gradient(q, k, d_k**-0.5, draw_upstream(k, rng)))


# --- how the gradient grows with d_k, for the learning rate -----------------------------------


def at_widths(q, k, upstream):
    """√d_k·∂L/∂q at the widths of 64 and 256, divided by √d_k, for the upstream gradients given: their RMS is that of the norm."""
    return [(d, math.sqrt(d) * gradient(q[..., :d], k[..., :d], d**-0.5, upstream[d])) for d in (64, 256)]


def from_output(k, rng, d):
    """∂L/∂p = v·∂L/∂o for values as wide as keys, when ∂L/∂o has coordinates of variance 1."""
    blocks, keys, _ = k.shape
    output, values = rng.standard_normal((blocks, ROWS, d)), rng.standard_normal((blocks, keys, d))
    return output @ np.swapaxes(values, -1, -2)


@claim(slope(std), equals=0, within=absolute(0.03), over=grid(law=NORMAL, d_k=256, tokens=32), decides="B23")
def gradient_size_does_not_change_with_width(q, k, rng):
    """Divided by √d_k and for a fixed ∂L/∂p, the RMS norm of ∂L/∂q does not change with d_k, from 64 to 256."""
    upstream = draw_upstream(k, rng)
    return at_widths(q, k, {64: upstream, 256: upstream})


@claim(slope(std), equals=0.5, within=absolute(0.1), over=grid(law=NORMAL, d_k=256, tokens=32), decides="B23",
       expect=Verdict.REFUTED)
def gradient_size_grows_as_the_root_of_the_width(q, k, rng):
    """For a fixed ∂L/∂p the norm of ∂L/∂q grows as √d_k, so that the learning rate must fall as 1/√d_k."""
    upstream = draw_upstream(k, rng)
    return at_widths(q, k, {64: upstream, 256: upstream})


@claim(slope(std), equals=0.5, within=absolute(0.05), over=grid(law=NORMAL, d_k=256, tokens=32), decides="B23")
def gradient_from_the_output_grows(q, k, rng):
    """For a ∂L/∂o of fixed coordinate variance and values as wide as keys, the RMS norm of ∂L/∂q does grow as √d_k."""
    return at_widths(q, k, {d: from_output(k, rng, d) for d in (64, 256)})
