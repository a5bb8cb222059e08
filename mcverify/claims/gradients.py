"""The gradient ∂L/∂q that reaches the query, for an upstream gradient ∂L/∂p of independent N(0, 1)."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import query_gradient, score_gradient, scores, softmax
from mcverify.declare import near
from mcverify.statistic import median, proportion, ratio, slope, std

KEYS = 128
NORMAL = laws.normal
SQUARES = ratio.of_degree(2)


ROWS = 32  # queries of a block that are used: all share its keys, so that more add little


def gradient(q, k, scale, upstream):
    """(blocks, rows, d_k) gradients; the block's tokens are the keys of every row."""
    return query_gradient(softmax(scores(q[:, :ROWS], k, scale)), k, upstream, scale)


def draw_upstream(k, rng):
    blocks, keys, _ = k.shape
    return rng.standard_normal((blocks, min(keys, ROWS), keys))


def size(gradients):
    return np.linalg.norm(gradients, axis=-1)


def square(gradients):
    return np.einsum("...d,...d->...", gradients, gradients)


# --- scaled: a constant at every width ---------------------------------------------------------


def limit_of_rms(d_k):
    """√E ‖J‖² of independent N(0, 1) scores: the keys' directions add 1/d_k for each coordinate."""
    return math.sqrt(theory.softmax.jacobian_frobenius_squared(KEYS, 1.0))


@claim(std, equals=limit_of_rms, within=relative(0.02),
       over=grid(law=NORMAL, d_k=[64, 256], keys=KEYS), decides="A11 B6", controls=grid(longer=1.2))
def scaled_gradient_size(q, k, d_k, rng, longer=1.0):
    """Divided by √d_k, the RMS of ∂L/∂q tends to a constant as d_k grows: 0.137 at 128 keys."""
    return math.sqrt(d_k) * gradient(longer * q[:, :ROWS], k, d_k**-0.5, draw_upstream(k, rng))


@claim(std, equals=limit_of_rms, within=relative(0.02), over=grid(law=NORMAL, d_k=[2, 4], keys=KEYS),
       decides="B6", expect=Verdict.REFUTED)
def scaled_gradient_size_is_flat(q, k, d_k, rng):
    """Divided by √d_k, the RMS of ∂L/∂q does not depend on d_k at all (it is 13 % and 8 % larger at 2 and 4)."""
    return math.sqrt(d_k) * gradient(q, k, d_k**-0.5, draw_upstream(k, rng))


# --- unscaled: dead in the median, larger in the mean square -----------------------------------


@claim(median, equals=lambda d_k, power: theory.gradients.two_key_median(d_k, d_k**-power),
       within=relative(0.15),  # unscaled, the logarithm of the size has a spread of about √d_k
       over=grid(law=NORMAL, d_k=64, keys=2, tokens=2, power=[0.0, 0.5]), decides="A11 B5 B6 B9",
       controls=grid(power=0.05))
def two_key_gradient_median(q, k, d_k, rng, power):
    """With two keys at d_k = 64 the median norm of ∂L/∂q is 0.0042 unscaled and 0.219 scaled: a typical row is nearly dead."""
    return size(gradient(q, k, d_k**-power, draw_upstream(k, rng)))


@claim(proportion, equals=lambda d_k: theory.gradients.two_key_below(1e-3, d_k, 1.0), within=relative(0.1),
       over=grid(law=NORMAL, d_k=[16, 64, 256], keys=2, tokens=2), decides="A11",
       controls=near.query_scale(0.7) + near.query_scale(1.5))
def unscaled_dead_rows(q, k, rng):
    """Unscaled, the share of two-key rows whose ∂L/∂q is below 1e-3 grows with d_k: 14, 42 and 67 % at 16, 64, 256."""
    return size(gradient(q, k, 1.0, draw_upstream(k, rng))) < 1e-3


def square_ratio(d_k):
    """The mean square is scale²·d_k·E ‖J‖² but for 1/d_k: across q, keys do not depend on the weights."""
    unscaled, scaled = (theory.softmax.jacobian_frobenius_squared(KEYS, sigma, d_k)
                        for sigma in (math.sqrt(d_k), 1.0))
    return d_k * unscaled / scaled


@claim(SQUARES, equals=square_ratio, within=relative(0.1), over=grid(law=NORMAL, d_k=[64, 512], keys=KEYS),
       decides="A11 B5 B9", controls=grid(power=0.05))
def unscaled_gradient_square(q, k, d_k, rng, power=0.0):
    """With 128 keys the mean square of ∂L/∂q is 264 times as large unscaled as scaled at d_k = 64, 939 times at 512."""
    upstream = rng.standard_normal((len(k), KEYS, KEYS))
    return tuple(square(query_gradient(softmax(scores(q, k, scale)), k, upstream, scale))
                 for scale in (d_k**-power, d_k**-0.5))


# --- no scale is best --------------------------------------------------------------------------


@claim(SQUARES, at_least=2, decides="B6", controls=grid(of_query=False),
       over=grid(law=NORMAL, d_k=64, keys=[2, 8], tokens=ROWS, sigma=1.0)
       + grid(law=NORMAL, d_k=64, keys=[8, KEYS], tokens=KEYS, sigma=4.0)
       + grid(law=NORMAL, d_k=64, keys=KEYS, tokens=KEYS, sigma=1.0))
def gradient_square_has_no_maximum(q, k, keys, d_k, sigma, rng, of_query=True):
    """The mean square of ∂L/∂q at least doubles when the scale does, for 2, 8 and 128 keys at unit variance, and for 8 and 128 at a deviation of 4: 1/√d_k does not maximise it."""
    k, upstream = k[:, :keys], rng.standard_normal((len(k), ROWS, keys))

    def at(scale):
        if of_query:
            return square(gradient(q, k, scale, upstream))
        return square(score_gradient(softmax(scores(q[:, :ROWS], k, scale)), upstream))

    scale = sigma * d_k**-0.5
    return at(2 * scale), at(scale)


@claim(proportion, at_least=0.5, decides="B6", controls=grid(sigma=2.0),
       over=grid(law=NORMAL, d_k=64, keys=[2, 8], tokens=ROWS) + grid(law=NORMAL, d_k=64, keys=KEYS))
def most_gradients_grow_with_the_scale(q, k, keys, d_k, rng, sigma=1.0):
    """At unit variance most rows would get a larger ∂L/∂q from a scale one per cent larger: 1/√d_k does not maximise it."""
    k, upstream = k[:, :keys], rng.standard_normal((len(k), ROWS, keys))
    scale = sigma * d_k**-0.5
    return size(gradient(q, k, 1.01 * scale, upstream)) > size(gradient(q, k, scale, upstream))


# --- how the gradient grows with d_k, for the learning rate -----------------------------------


def at_widths(q, k, upstream, power=0.5):
    """√d_k·∂L/∂q at the widths of 64 and 256, divided by d_k^power, for the upstream gradients given: their RMS is that of the norm."""
    return [(d, math.sqrt(d) * gradient(q[..., :d], k[..., :d], d**-power, upstream[d])) for d in (64, 256)]


def from_output(k, rng, d):
    """∂L/∂p = v·∂L/∂o for values of width d, when ∂L/∂o has coordinates of variance 1."""
    blocks, keys, _ = k.shape
    output, values = rng.standard_normal((blocks, ROWS, d)), rng.standard_normal((blocks, keys, d))
    return output @ np.swapaxes(values, -1, -2)


@claim(slope(std), equals=0, within=absolute(0.03), over=grid(law=NORMAL, d_k=256, tokens=32), decides="B23",
       controls=grid(power=1.0) + grid(power=0.0))
def gradient_size_does_not_change_with_width(q, k, rng, power=0.5):
    """Divided by √d_k and for a fixed ∂L/∂p, the RMS norm of ∂L/∂q does not change from d_k = 64 to 256."""
    upstream = draw_upstream(k, rng)
    return at_widths(q, k, {64: upstream, 256: upstream}, power)


@claim(slope(std), equals=0.5, within=absolute(0.1), over=grid(law=NORMAL, d_k=256, tokens=32), decides="B23",
       expect=Verdict.REFUTED)
def gradient_size_grows_as_the_root_of_the_width(q, k, rng):
    """For a fixed ∂L/∂p the norm of ∂L/∂q grows as √d_k, so that the learning rate must fall as 1/√d_k."""
    upstream = draw_upstream(k, rng)
    return at_widths(q, k, {64: upstream, 256: upstream})


@claim(slope(std), equals=0.5, within=absolute(0.05), over=grid(law=NORMAL, d_k=256, tokens=32), decides="B23",
       controls=grid(value_width=64))
def gradient_from_the_output_grows(q, k, rng, value_width=None):
    """For a ∂L/∂o of fixed coordinate variance and values as wide as keys, the RMS norm of ∂L/∂q does grow as √d_k."""
    return at_widths(q, k, {d: from_output(k, rng, value_width or d) for d in (64, 256)})
