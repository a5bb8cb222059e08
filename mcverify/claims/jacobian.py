"""The softmax Jacobian: unscaled it is smaller for few keys, and larger for many."""

import math

import numpy as np
from scipy.special import ndtri

from mcverify import Verdict, claim, grid, laws, relative, theory
from mcverify.attention import jacobian_norm, rows, softmax
from mcverify.claims.ranges import NORM, NORMS, SQUARED_NORM
from mcverify.declare import near
from mcverify.statistic import median, ratio

KEYS = 128
NORMAL = laws.normal


# --- two keys ----------------------------------------------------------------------------------


@claim(NORM, equals=lambda d_k: 1 / math.sqrt(math.pi * d_k), within=relative(0.05),
       over=grid(law=NORMAL, d_k=[16, 64], keys=2) + grid(law=NORMAL, d_k=256, keys=2, tokens=8),
       decides="A11 B5", controls=near.query_scale(0.8))
def two_key_mean(q, k, keys):
    """Unscaled, the mean norm of the Jacobian of two keys is 1/√(πd_k), 0.071 at 64: near-ties keep it from falling faster."""
    return jacobian_norm(softmax(rows(q, k, keys)))


@claim(NORM, equals=lambda d_k: 2 * theory.softmax.two_key_product(1.0, d_k), within=relative(0.02),
       over=grid(law=NORMAL, d_k=[1, 8, 64, 512], keys=2), decides="A11 B5 B30",
       controls=near.query_scale(1.2))
def scaled_two_key_mean(q, k, keys, d_k):
    """Divided by √d_k, the mean norm of the Jacobian of two keys is 0.364 at d_k = 64, of at most 1/2."""
    return jacobian_norm(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(median, equals=-math.sqrt(2) * float(ndtri(0.75)), within=relative(0.03),
       over=grid(law=NORMAL, d_k=64, keys=2) + grid(law=NORMAL, d_k=256, keys=2, tokens=8),
       decides="A11", controls=near.query_scale(0.9))
def two_key_median_falls_fast(q, k, keys, d_k):
    """Unscaled, the median of p(1 − p) of two keys falls like exp(−0.954√d_k), the median of a gap of scores: a typical pair is saturated."""
    return np.log(jacobian_norm(softmax(rows(q, k, keys))) / 2) / math.sqrt(d_k)  # ‖J‖ = 2 p(1 − p)


@claim(NORM, at_most=0.01, over=grid(law=NORMAL, d_k=64, keys=[2, 8, KEYS]),
       decides="A11 B5", expect=Verdict.REFUTED)
def unscaled_jacobian_vanishes(q, k, keys):
    """Unscaled at d_k = 64, the softmax Jacobian is almost zero in the mean (Frobenius norm below 0.01)."""
    return jacobian_norm(softmax(rows(q, k, keys)))


# --- few keys and many -------------------------------------------------------------------------


def norms(q, k, keys, d_k):
    s = rows(q, k, keys)
    return jacobian_norm(softmax(s)), jacobian_norm(softmax(s / math.sqrt(d_k)))


@claim(NORMS, at_most=1, decides="A11 B5", controls=grid(keys=KEYS),
       over=grid(law=NORMAL, d_k=64, keys=[2, 8, 32]) + grid(law=NORMAL, d_k=512, keys=[2, KEYS]))
def unscaled_jacobian_is_smaller_with_few_keys(q, k, keys, d_k):
    """The mean Frobenius norm of the softmax Jacobian is smaller unscaled than scaled for 2, 8 and 32 keys at d_k = 64, and for 2 and 128 at 512."""
    return norms(q, k, keys, d_k)


@claim(NORMS, at_least=1, decides="A11 B5", controls=grid(keys=8),
       over=grid(law=NORMAL, d_k=64, keys=[64, KEYS, 512]) + grid(law=NORMAL, d_k=512, keys=512))
def unscaled_jacobian_is_larger_with_many_keys(q, k, keys, d_k):
    """The mean Frobenius norm of the softmax Jacobian is larger unscaled than scaled at 64, 128 and 512 keys at d_k = 64, and at 512 keys at 512."""
    return norms(q, k, keys, d_k)


@claim(NORMS, at_most=1, over=grid(law=NORMAL, d_k=64, keys=[KEYS, 512]), decides="A11 B5",
       expect=Verdict.REFUTED)
def scaling_always_enlarges_the_jacobian(q, k, keys, d_k):
    """Unscaled, the softmax Jacobian is smaller in the mean than scaled, however many keys there are."""
    return norms(q, k, keys, d_k)


# --- a width that doubles while the scale stays ------------------------------------------------


def square_ratio(keys, d_k, scaled_for):
    kept, scaled = (theory.softmax.jacobian_frobenius_squared(keys, math.sqrt(d_k / width), d_k)
                    for width in (scaled_for, d_k))
    return kept / scaled


@claim(ratio.of_degree(0), equals=square_ratio, within=relative(0.03), decides="B22",
       over=grid(law=NORMAL, d_k=1024, keys=[2, KEYS], scaled_for=512), controls=grid(scaled_for=256))
def kept_scale_moves_the_jacobian(q, k, keys, d_k, scaled_for):
    """At d_k = 1024 with the scale of 512, the mean of ‖J‖² is 0.784 of what it is with its own scale for two keys, and 1.83 times as large for 128."""
    s = rows(q, k, keys, scale=d_k**-0.5)
    return tuple(jacobian_norm(softmax(math.sqrt(d_k / width) * s)) ** 2 for width in (scaled_for, d_k))


@claim(SQUARED_NORM, equals=lambda keys, sigma: theory.softmax.jacobian_frobenius_squared(keys, sigma),
       within=relative(0.05), over=grid(law=NORMAL, d_k=1, keys=[16, KEYS], sigma=[0.5, 2.0, 4.0]), decides="A11 B6",
       controls=grid(sigma=0.25))
def jacobian_along_the_spread(q, keys, sigma):
    """Over independent N(0, σ²) scores the mean of ‖J‖² is what quadrature says, 12.7 times that of equal scores at 128 keys and σ = 4."""
    return jacobian_norm(softmax(sigma * q.reshape(len(q), -1, keys))) ** 2
