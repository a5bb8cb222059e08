"""The gradient that reaches queries, keys and projections, for random ∂L/∂p, by quadrature."""

import math
from functools import lru_cache

import numpy as np
import scipy

from mcverify.arrays import Array
from mcverify.theory.radius import log_density

STEP = 0.1  # of log w


def two_key_square(d_k: int, scale: float) -> float:
    """E ‖∂L/∂q‖² of a query with two keys, all normal, when ∂L/∂p has independent N(0, 1) entries.

    It is E (‖∂L/∂k₁‖² + ‖∂L/∂k₂‖²) as well, and times Σ‖x‖² that of ∂L/∂W over tokens of inputs x
    whose ∂L/∂p are independent. At scale 1 it tends to √d_k/(3√π), at 1/√d_k to 0.1481. Raises
    ValueError for a d_k below 1 or a scale that is negative or infinite.
    Source: it is 4 scale² E[X (p(1 − p))²] for X ~ χ²(d_k) and scores that differ by
    N(0, 2 scale² X) given X. Parseval: (p(1 − p))² has the transform πw(1 + w²)/(6 sinh(πw)), and
    E X e^(−tX) = d_k (1 + 2t)^(−d_k/2 − 1).

    >>> round(two_key_square(64, 1.0), 4), round(two_key_square(64, 1 / 8), 4)
    (1.491, 0.1474)
    """
    _check(d_k, scale)
    w: Array = np.exp(np.arange(-30 - math.log1p(scale * math.sqrt(d_k)), math.log(13), STEP))
    law = np.exp(-(d_k / 2 + 1) * np.log1p(2 * (scale * w) ** 2))
    kernel = w * (1 + w**2) / np.sinh(math.pi * w)
    return 2 / 3 * scale**2 * d_k * STEP * float((kernel * law) @ w)


def two_key_below(size: float, d_k: int, scale: float) -> float:
    """P(‖∂L/∂q‖ < size) in the setting of ``two_key_square``, to about 1e-6; errors as there.

    Source: ‖∂L/∂q‖ = 2 scale |z| r p(1 − p) for r² ~ χ²(d_k), a normal z of the two entries of
    ∂L/∂p and scores that differ by √2 scale r y, y normal: q is isotropic, so that its component
    along k₁ − k₂ does not depend on their distance √2 r. So it is the mean of an error function.

    >>> round(two_key_below(1e-3, 64, 1.0), 3)
    0.423
    """
    _check(d_k, scale)
    width = min(math.sqrt(45 / d_k), 6.0)
    u = np.linspace(-width - 30 / d_k, width, 101)  # ln(r/√d_k)
    weight = np.exp(log_density(u, d_k))
    reach = scale * math.sqrt(d_k) * np.exp(u)[:, None]  # scale·r
    y = np.linspace(0, 9, 16 * math.ceil(9 * max(1.0, float(scale * math.sqrt(d_k)))) + 1)
    cosh = np.cosh(np.minimum(reach * y / math.sqrt(2), 300.0))
    chance = scipy.special.erf(math.sqrt(2) * size * cosh**2 / np.maximum(reach, 1e-300))
    normal = np.exp(-y * y / 2)
    normal[0] /= 2
    return float(weight @ (chance @ normal)) / float(weight.sum() * normal.sum())


@lru_cache(maxsize=256)  # a claim, its cases and its controls ask for the same point
def two_key_median(d_k: int, scale: float) -> float:
    """The median of ‖∂L/∂q‖ in the setting of ``two_key_square``, to about 1e-5; errors as there.

    0 where it is below 1e-26.

    >>> round(two_key_median(64, 1.0), 5), round(two_key_median(64, 1 / 8), 3)
    (0.00421, 0.219)
    """
    from scipy.optimize import brentq  # here: a quarter of a second that few starts need

    def excess(log_size: float) -> float:
        return two_key_below(math.exp(log_size), d_k, scale) - 0.5

    least, most = -60.0, math.log(1 + 8 * scale * math.sqrt(d_k))
    if excess(least) > 0:
        return 0.0
    return math.exp(brentq(excess, least, most, xtol=1e-11))


def _check(d_k: int, scale: float) -> None:
    if not d_k >= 1 or not 0 <= scale < math.inf:
        raise ValueError(f"d_k={d_k}, scale={scale}: d_k is 1 or more, the scale finite and not "
                         "negative; pass 1 or d_k**-0.5")


def share_of_close_rows(gap: float) -> float:
    """Of E ‖∂L/∂q‖² with two keys, what rows carry whose scores differ by less than ``gap``.

    In the limit of widely spread scores, where all small differences are equally likely: the share
    of ∫(p(1 − p))² over |s₁ − s₂| < gap, p²(6 − 4p) − 1 at p = 1/(1 + e^(−gap)).

    >>> share_of_close_rows(0.0), round(share_of_close_rows(2.0), 4)
    (0.0, 0.9215)
    """
    p = 1 / (1 + math.exp(-gap))
    return p * p * (6 - 4 * p) - 1
