"""How softmax changes as its scores spread: freezing, and the rise and fall of its Jacobian."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import jacobian_norm, softmax, sum_squares
from mcverify.claims.ranges import WEIGHT
from mcverify.statistic import exact, mean, ratio

SIGMA = [0.05 * 1.05**i for i in range(140)]  # up to 44: past every peak
NORMAL = laws.normal


def line_of(c, n):
    """The standard deviation that is c times the freezing line √(2 ln n)."""
    return c * math.sqrt(2 * math.log(n))


# --- freezing ----------------------------------------------------------------------------------


@claim(exact, equals=lambda c: 1 - 1 / c, within=absolute(0.03),
       over=grid(c=[1.5, 2.0, 3.0], keys=[1000, 10000]), decides="C1 A10",
       controls=grid(equals=1 - 1 / 1.5**2))
def frozen_share(c, keys):
    """Beyond σ = √(2 ln n) scores freeze: at c times that, E Σp² tends to 1 − 1/c (not 1 − 1/c²), extrapolated in 1/ln n."""
    here, beyond = (theory.softmax.sum_squares(n, line_of(c, n)) for n in (keys, keys**2))
    return 2 * beyond - here  # ln n² = 2 ln n, so that a term in 1/ln n cancels


@claim(exact, at_most=0.01, over=grid(c=[0.3, 0.5], keys=[10**5, 10**8]), decides="C1 A10",
       controls=grid(c=0.8) + grid(c=1.5))
def unfrozen_share(c, keys):
    """At 0.3 and 0.5 times σ = √(2 ln n) no key keeps a share of the attention: E Σp² is below 0.01 from 10⁵ keys on."""
    return theory.softmax.sum_squares(keys, line_of(c, keys))


@claim(WEIGHT, equals=lambda c, keys: theory.softmax.sum_squares(keys, line_of(c, keys)), within=relative(0.03),
       over=grid(law=NORMAL, d_k=1, c=2.0, keys=[100, 4096]), decides="C1 C2", controls=grid(c=1.5))
def share_beyond_the_line(q, c, keys):
    """Beyond the line E Σp² of drawn scores is what quadrature says: at twice it 0.600 of 100 keys and 0.564 of 4096, on the way to 1/2."""
    return sum_squares(softmax(line_of(c, keys) * q.reshape(len(q), -1, keys)))


@claim(WEIGHT, equals=0.5, within=relative(0.02), over=grid(law=NORMAL, d_k=1, keys=[100, 4096]), decides="C1",
       expect=Verdict.REFUTED)
def freezing_is_complete_at_practical_lengths(q, keys):
    """At twice the freezing line E Σp² has come to its limit 1/2 (it is 0.60 at 100 keys, 0.56 at 4096)."""
    return sum_squares(softmax(line_of(2.0, keys) * q.reshape(len(q), -1, keys)))


# --- the Jacobian ------------------------------------------------------------------------------


def against_no_spread(norm, keys):
    """The norm at each standard deviation over that of uniform weights."""
    return np.array([norm(keys, sigma) for sigma in SIGMA]) / norm(keys, 0.0)


@claim(exact, at_most=1, over=grid(keys=[2, 3, 4]), decides="A11", controls=grid(keys=5))
def frobenius_falls_with_few_keys(keys):
    """With 2, 3 or 4 keys the RMS Frobenius norm of J is largest when all scores are equal; with 5 it is not."""
    return against_no_spread(theory.softmax.jacobian_frobenius_squared, keys).max()


def frobenius_curvature(keys):
    """d(‖J‖_F²)/dσ² at equal scores: p_i = (1 + x_i)/n with x_i ≈ ε_i + (ε_i² − m)/2, ε = s − mean s and m the mean of ε².

    Then ‖J‖_F² = Σp² − 2Σp³ + (Σp²)² grows by (m/n)(1 − 6/n + 2/n), and E m = σ²(1 − 1/n).
    """
    return (1 - 1 / keys) * (1 - 4 / keys) / keys


@claim(exact, equals=frobenius_curvature, within=absolute(1e-4), over=grid(keys=[2, 4, 5, 16, 128]), decides="A11 B6",
       controls=grid(sigma=0.5))
def frobenius_rises_from_five_keys(keys, sigma=0.01):
    """As scores begin to spread, the mean of ‖J‖_F² changes by (1 − 1/n)(1 − 4/n)/n for each unit of variance: it rises from 5 keys on."""
    at = theory.softmax.jacobian_frobenius_squared
    return (at(keys, sigma) - at(keys, 0.0)) / sigma**2


@claim(exact, equals=1, within=relative(0.02), over=grid(keys=[16, 128, 512]), decides="B6",
       expect=Verdict.REFUTED)
def unit_variance_maximises_the_jacobian(keys):
    """The RMS Frobenius norm of J is largest at unit variance, the one that 1/√d_k gives."""
    squares = against_no_spread(theory.softmax.jacobian_frobenius_squared, keys)
    at_one = theory.softmax.jacobian_frobenius_squared(keys, 1.0)
    return math.sqrt(at_one / theory.softmax.jacobian_frobenius_squared(keys, 0.0) / squares.max())


@claim(exact, at_most=1, over=grid(keys=[2, 3, 5, 16, 128, 4096]), decides="A11",
       controls=grid(norm="jacobian_frobenius_squared", keys=16))
def trace_always_falls(keys, norm="jacobian_trace"):
    """The trace of J falls with the spread of the scores, for numbers of keys from 2 to 4096."""
    values = against_no_spread(getattr(theory.softmax, norm), keys)
    return (values[1:] / values[:-1]).max()


def spectral(q, keys, sigma):
    """keys·‖J‖₂ of independent scores: 1 when all are equal."""
    return keys * jacobian_norm(softmax(sigma * q.reshape(len(q), -1, keys)), "spectral")


@claim(mean.within(0, lambda keys: keys / 2), at_least=1, decides="A11", controls=grid(keys=2) + grid(sigma=20.0),
       over=grid(law=NORMAL, d_k=1, keys=3, sigma=[0.3, 0.5, 1.0])
       + grid(law=NORMAL, d_k=1, keys=8, sigma=[0.5, 1.0, 2.0]))
def spectral_rises_first(q, keys, sigma):
    """The spectral norm of J is larger at a small spread of the scores than at none, for 3 and for 8 keys, and not for 2."""
    return spectral(q, keys, sigma)


@claim(mean.within(0, lambda keys: keys / 2), at_most=0.98, decides="A11", controls=grid(keys=8, sigma=1.0),
       over=grid(law=NORMAL, d_k=1, keys=2, sigma=[0.3, 0.5, 1.0])
       + grid(law=NORMAL, d_k=1, keys=3, sigma=[2.0, 10.0])
       + grid(law=NORMAL, d_k=1, keys=4, sigma=[4.0, 10.0]))
def spectral_falls_in_the_end(q, keys, sigma):
    """With two keys the spectral norm falls from the start, with 3 or 4 in the end."""
    return spectral(q, keys, sigma)


@claim(ratio.within(0, lambda keys: keys / 2), at_least=1, decides="A11", controls=grid(peak=4.0),
       over=grid(law=NORMAL, d_k=1, keys=3, peak=0.5, sigma=[0.2, 1.5])
       + grid(law=NORMAL, d_k=1, keys=8, peak=2.0, sigma=[1.0, 4.0]))
def spectral_peak(q, keys, peak, sigma):
    """The mean spectral norm of J is larger at a standard deviation of 0.5 than at 0.2 and 1.5 for 3 keys, at 2 than at 1 and 4 for 8: it has a peak between."""
    return spectral(q, keys, peak), spectral(q, keys, sigma)
