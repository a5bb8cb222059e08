"""What sigmoid, differential, capped and ALiBi attention do to normal scores, by quadrature."""

import math
from typing import NamedTuple

import numpy as np
import scipy

from mcverify.arrays import Array
from mcverify.theory.softmax import sum_squares

STEP = 0.01  # of a trapezoid over z = s/σ: errs by e^(−2π·distance/STEP) of the nearest pole
_z = np.arange(-12, 12 + STEP / 2, STEP)
_weight = np.exp(-(_z**2) / 2) * STEP / math.sqrt(2 * math.pi)


def _mean(values: Array) -> float:
    """E values(z) of a standard normal z."""
    return float(_weight @ values)


def sigmoid_total(n: int, sigma: float, bias: float) -> float:
    """E Σ of n weights 1/(1 + exp(−s − bias)) of scores of N(0, σ²).

    With the bias −ln n it is e^(σ²/2) − e^(2σ²)/n + …, and not 1.

    >>> round(sigmoid_total(8192, 1.0, bias=-math.log(8192)), 3)
    1.648
    """
    return n * _mean(scipy.special.expit(sigma * _z + bias))


def differential_sum_squares(
    n: int, sigma: float, strength: float, d_k: float | None = None
) -> float:
    """E Σ(p − λp')² of two independent rows of weights of N(0, σ²) scores, λ the strength.

    (1 + λ²) E Σp² − 2λ/n, as E p_j = 1/n for each key; d_k as in ``theory.softmax``.

    >>> round(128 * differential_sum_squares(128, 1.0, 0.8, d_k=64), 2)
    2.68
    """
    return (1 + strength**2) * sum_squares(n, sigma, d_k) - 2 * strength / n


def capped_variance(sigma: float, cap: float) -> float:
    """Var c·tanh(s/c) of a score of N(0, σ²): σ²(1 − 2σ²/c² + 17σ⁴/(3c⁴) − …).

    >>> round(capped_variance(1.0, cap=50.0), 4), round(capped_variance(1.0, cap=1.0), 4)
    (0.9992, 0.3943)
    """
    return _mean((cap * np.tanh(sigma * _z / cap)) ** 2)


def capped_square_variance(sigma: float, cap: float) -> float:
    """Var (c·tanh(s/c))² of a score of N(0, σ²): 2σ⁴ if the cap is large.

    >>> round(capped_square_variance(1.0, cap=1e4), 4)
    2.0
    """
    return _mean((cap * np.tanh(sigma * _z / cap)) ** 4) - capped_variance(sigma, cap) ** 2


def capped_entropy(n: int, sigma: float, cap: float) -> float:
    """E H of softmax over c·tanh(s/c) of n scores of N(0, σ²), to order 1/n.

    As σ grows it tends to ln n − c·tanh c + ln cosh c: scores of ±c by a fair coin.

    >>> from mcverify.theory.softmax import entropy
    >>> round(capped_entropy(4096, 1.0, cap=1e6), 4), round(entropy(4096, 1.0), 4)
    (7.8182, 7.8182)
    """
    return _entropy(np.zeros(n), _tilted(cap * np.tanh(sigma * _z / cap)))


def alibi_entropy(slope: float, sigma: float, keys: int | None = None) -> float:
    """E H of a row of ``keys`` N(0, σ²) scores less slope·distance, to order slope; None: endless.

    Tends to 1 − ln slope − σ²/2 as the slope falls. The weights of Σe^(−slope·j) ≈ 1/slope keys
    count, and their distances add 1 nat to ln(1/slope).

    >>> round(alibi_entropy(2**-8, 1.0), 3), round(1 + 8 * math.log(2) - 1 / 2, 3)
    (6.05, 6.045)
    """
    reach = math.ceil(50 / slope)  # from where on weights are below e^-50
    distance = np.arange(reach if keys is None else min(keys, reach), dtype=float)
    return _entropy(-slope * distance, _tilted(sigma * _z))


class _Tilted(NamedTuple):
    """E e^f, E f e^f, E e^(2f) and E f e^(2f) of what is done to a score."""

    one: float
    slope_one: float
    two: float
    slope_two: float


def _tilted(f: Array) -> _Tilted:
    return _Tilted(*(_mean(g * np.exp(k * f)) for k in (1, 2) for g in (np.ones_like(f), f)))


def _entropy(bias: Array, f: _Tilted) -> float:
    """E H of rows of many scores x_j = f_j + bias_j, f_j independent, to order 1/n.

    H = ln Z − Y/Z with Z = Σe^x and Y = Σx e^x, both sums of independent terms: the means of ln Z
    and Y/Z follow from means A and B, the variance of Z and its covariance with Y.
    """
    a = np.exp(bias)
    mean_z, mean_y = f.one * float(a.sum()), float(a @ (f.slope_one + bias * f.one))
    of_z = float(a @ a) * (f.two - f.one**2)
    of_both = float((a * a) @ (f.slope_two + bias * f.two - (f.slope_one + bias * f.one) * f.one))
    return (math.log(mean_z) - of_z / (2 * mean_z**2) - mean_y / mean_z + of_both / mean_z**2
            - mean_y * of_z / mean_z**3)


def yarn_growth(fold: float) -> float:
    """E H at s = ``fold`` times a length less that at the length, by YaRN's temperature.

    Scores of unit variance times (0.1 ln s + 1)² give ln s − ((0.1 ln s + 1)⁴ − 1)/2 over many
    keys, a slope of 4/5 in ln s at first. Source: Peng et al. 2023 (YaRN), equation 22.

    >>> round(yarn_growth(math.e), 3)
    0.768
    """
    return math.log(fold) - ((0.1 * math.log(fold) + 1) ** 4 - 1) / 2
