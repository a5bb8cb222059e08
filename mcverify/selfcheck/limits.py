"""From an expansion of the interval's own error to how often it may miss: the factors of a row.

What the first-order rule leaves over. Let block values have skewness γ and excess kurtosis κ, let
η = t/√blocks, and let the estimate be too low while γ > 0, the side on which the tail that makes
the values skew is missing from the sample. The nearest law q, in relative entropy, under which the
interval just misses is, with h the relative change of the probabilities,

    h = −ηX + η²γX/6 + O(η³),   blocks·KL(q) = (blocks/2)·ln(1 + η²) + (t⁴/blocks)(2γ²/9 − κ/4)

(X the standardised value). The first term is Student's t, so that the interval misses

    exp((t⁴/blocks)·(κ/4 − 2γ²/9)) = exp(9δ²·(r/4 − 2/9)),   r = κ/γ², δ = γt²/(3√blocks),

times as often as it may. No interval is given once the δ of the sample exceeds ½, and a sample
that misses has skewness γ − η(κ − 3γ²/2): so the law's own δ is at most the root of
δ·(1 − 3δ(r − 3/2)/t) = ½. On the other side, and at γ = 0, the rule misses less than it may.
"""

import math

from scipy.special import stdtrit

from mcverify.verdict import CASE_ERROR_RATE, LOOKS

LOOK_RATE = CASE_ERROR_RATE / LOOKS  # 8.3e-12: where the suite's verdicts are made
SHAPE = 2.1  # κ/γ²: gamma laws 3/2, inverse Gaussian 5/3, lognormal 16/9, Laplace squared 1.93
SLACK = 1.3  # for the orders beyond, of size t⁵/blocks^1.5: 0.03 at 1e-3 and 512 blocks
EVEN = 1.15  # for what is of order 1/blocks in the tails of the pivot, and so that draws can tell
THIRD = 0.1  # beyond that size the second order is no guide


def remainder(shape: float, t: float, delta: float = 0.5) -> float:
    """How many times too often the first-order rule misses at worst, for laws with κ = shape·γ².

    ``delta`` is the largest that still gives an interval. Infinite where the second order does
    not bound it: for shape above 3/2 + t/(12·delta).

    >>> remainder(1.5, 6.8) == math.exp(11 / 32)  # gamma laws: a tilt leaves their skewness alone
    True
    """
    a = 3 * (shape - 1.5) / t
    if 4 * a * delta > 1:
        return math.inf
    root = 2 * delta / (1 + math.sqrt(1 - 4 * a * delta))
    return math.exp(9 * root**2 * max(shape / 4 - 2 / 9, 0.0))


def quantile_of_t(rate: float, blocks: int) -> float:
    """Student's t that the interval uses at an error rate."""
    return -float(stdtrit(blocks - 1, rate / 2))


# 2.6, at the first look and the rate of a look: how often too often an interval may miss on one
# side. It is what the second order gives for shapes up to SHAPE, and costs the suite, whose error
# rate is a power of ten that nobody knows to be the right one, less than half a power of ten.
ALLOWED = round(remainder(SHAPE, quantile_of_t(LOOK_RATE, 512)), 1)


def most(rate: float, blocks: int, skewness: float, kurtosis: float, step: float = 0.0) -> float:
    """How many times its nominal rate an interval may miss on one side: between SLACK and ALLOWED.

    SLACK times the second order for values of this skewness and kurtosis, while the third is
    small; ALLOWED otherwise. For values on a lattice, whose sums move by ``step`` standard errors,
    half a step more: the tail beyond t falls as exp(−t·z).

    >>> most(1e-3, 512, 0.0, 0.0), most(LOOK_RATE, 512, 0.0, 0.0)
    (1.3, 2.6)
    """
    t = quantile_of_t(rate, blocks)
    if t**5 / blocks**1.5 > THIRD:
        return ALLOWED
    second = t**4 / blocks * max(kurtosis / 4 - 2 * skewness**2 / 9, 0.0)
    return min(SLACK * math.exp(second + t * step / 2), ALLOWED)


def uneven(level: float, blocks: int, skewness: float, step: float = 0.0) -> float:
    """By what factor P(z > its quantile at ``level``) may differ from the level, in either tail.

    EVEN times the exponential of the Edgeworth term skewness·(2t² + 1)φ(t)/(6√blocks) over the
    level, which the interval's δ pays for, and of half a lattice step.

    >>> uneven(0.05, 512, 0.0)
    1.15
    """
    t = -float(stdtrit(blocks - 1, level))
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    first = abs(skewness) * (2 * t * t + 1) / (6 * math.sqrt(blocks))
    return EVEN * math.exp(density * (first + step / 2) / level)
