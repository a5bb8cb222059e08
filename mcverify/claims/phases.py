"""How softmax changes as its scores spread: freezing, and the rise and fall of its Jacobian."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import jacobian_norm, softmax
from mcverify.statistic import exact, mean, ratio

SIGMA = [0.05 * 1.05**i for i in range(140)]  # up to 44: past every peak


def line_of(c, n):
    """The standard deviation that is c times the freezing line √(2 ln n)."""
    return c * math.sqrt(2 * math.log(n))


@claim(exact, equals=lambda c: 1 - 1 / c, within=absolute(0.03),
       over=grid(c=[1.5, 2.0, 3.0], keys=[1000, 10000]), decides="C1 A10")
def frozen_share(c, keys):
    """Beyond σ = √(2 ln n) scores freeze: at c times that, E Σp² tends to 1 − 1/c, extrapolated in 1/ln n."""
    here, beyond = (theory.softmax.sum_squares(n, line_of(c, n)) for n in (keys, keys**2))
    return 2 * beyond - here  # ln n² = 2 ln n, so that a term in 1/ln n cancels


@claim(exact, at_most=0.01, over=grid(c=[0.3, 0.5], keys=[10**5, 10**8]), decides="C1 A10",
       controls=grid(c=1.5))
def unfrozen_share(c, keys):
    """Below σ = √(2 ln n) E Σp² tends to 0: no key keeps a share of the attention."""
    return theory.softmax.sum_squares(keys, line_of(c, keys))


@claim(exact, equals=0.5, within=relative(0.02), over=grid(keys=[100, 10**4, 10**8]), decides="C1",
       expect=Verdict.REFUTED)
def freezing_is_complete_at_practical_lengths(keys):
    """At twice the freezing line E Σp² has come to its limit 1/2 (it is 0.60 at 100 keys, 0.53 at 10⁸)."""
    return theory.softmax.sum_squares(keys, line_of(2.0, keys))


def against_no_spread(norm, keys):
    """The norm at each standard deviation over that of uniform weights."""
    return np.array([norm(keys, sigma) for sigma in SIGMA]) / norm(keys, 0.0)


@claim(exact, at_most=1, over=grid(keys=[2, 3, 4]), decides="A11", controls=grid(keys=5))
def frobenius_falls_with_few_keys(keys):
    """With up to 4 keys the RMS Frobenius norm of J is largest when all scores are equal."""
    return against_no_spread(theory.softmax.jacobian_frobenius_squared, keys).max()


@claim(exact, at_least=lambda keys: {5: 1.02, 8: 1.2, 16: 1.9, 128: 12, 512: 45}[keys],
       over=grid(keys=[5, 8, 16, 128, 512]), decides="A11", controls=grid(keys=4))
def frobenius_rises_first(keys):
    """From 5 keys on the RMS Frobenius norm of J first rises with the spread of the scores: its square 12-fold at 128 keys."""
    return against_no_spread(theory.softmax.jacobian_frobenius_squared, keys).max()


@claim(exact, equals=lambda keys: {8: 1.24, 16: 2.07, 128: 4.04, 512: 5.06}[keys], within=relative(0.06),
       over=grid(keys=[8, 16, 128, 512]), decides="A11 B6")
def frobenius_peak(keys):
    """The RMS Frobenius norm of J peaks at a standard deviation of 1.2, 2.1, 4.0 and 5.1 for 8, 16, 128 and 512 keys, and not at 1."""
    return SIGMA[int(np.argmax(against_no_spread(theory.softmax.jacobian_frobenius_squared, keys)))]


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
    """The trace of J falls with the spread of the scores for any number of keys."""
    values = against_no_spread(getattr(theory.softmax, norm), keys)
    return (values[1:] / values[:-1]).max()



def spectral(q, keys, sigma):
    """keys·‖J‖₂ of independent scores: 1 when all are equal."""
    return keys * jacobian_norm(softmax(sigma * q.reshape(len(q), -1, keys)), "spectral")


@claim(mean.within(0, lambda keys: keys / 2), at_least=1.03, decides="A11", controls=grid(sigma=20.0),
       over=grid(law=laws.normal, d_k=1, keys=3, sigma=[0.3, 0.5, 1.0])
       + grid(law=laws.normal, d_k=1, keys=8, sigma=[0.5, 1.0, 2.0]))
def spectral_rises_first(q, keys, sigma):
    """The spectral norm of J first rises with the spread of the scores from 3 keys on."""
    return spectral(q, keys, sigma)


@claim(mean.within(0, lambda keys: keys / 2), at_most=0.98, decides="A11", controls=grid(keys=8, sigma=1.0),
       over=grid(law=laws.normal, d_k=1, keys=2, sigma=[0.3, 0.5, 1.0])
       + grid(law=laws.normal, d_k=1, keys=3, sigma=[2.0, 10.0])
       + grid(law=laws.normal, d_k=1, keys=4, sigma=[4.0, 10.0]))
def spectral_falls_in_the_end(q, keys, sigma):
    """With two keys the spectral norm falls from the start, with more in the end."""
    return spectral(q, keys, sigma)


@claim(ratio.within(0, lambda keys: keys / 2), at_least=1.01, decides="A11", controls=grid(peak=4.0),
       over=grid(law=laws.normal, d_k=1, keys=3, peak=0.5, sigma=[0.2, 1.5])
       + grid(law=laws.normal, d_k=1, keys=8, peak=2.0, sigma=[1.0, 4.0]))
def spectral_peak(q, keys, peak, sigma):
    """The mean spectral norm of J peaks at a standard deviation near 0.5 for 3 keys, near 2 for 8: larger there than on either side."""
    return spectral(q, keys, peak), spectral(q, keys, sigma)
