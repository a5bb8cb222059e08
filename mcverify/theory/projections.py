"""From the variance of weights to that of queries, keys and scores, and how far one draw is off.

Inputs x have E coordinates (``fan_in``) with E x² = m (``second_moment``); W_Q and W_K, each
(E, d_k), have independent entries of mean 0 and variance v (``weight_variance``); q = W_Q'x and
k = W_K'x. There are two levels of randomness, and two claims: over tokens and weights together,
or over tokens at the weights of one initialisation.
"""

import math


def coordinate_variance(fan_in: int, weight_variance: float, second_moment: float = 1.0) -> float:
    """Var of a coordinate of q or k over tokens and weights: E·v·m, whatever the law of either.

    Its mean is 0 since E W = 0, and of the products of entries only the squares remain.

    >>> coordinate_variance(512, 2 / (512 + 512)), coordinate_variance(512, 2 / (512 + 3 * 512))
    (1.0, 0.5)
    """
    return fan_in * weight_variance * second_moment


def score_variance(
    fan_in: int, weight_variance: float, d_k: int, second_moment: float = 1.0
) -> float:
    """Var(q·k) of two tokens with independent inputs, over tokens and weights: d_k(E·v·m)².

    It is also the mean over weights of tr(W_Q'ΣW_Q W_K'ΣW_K), the variance at given weights when
    x has mean 0 and E·m = tr Σ.

    >>> score_variance(512, 2 / (512 + 3 * 512), 64) / 64
    0.25
    """
    return d_k * coordinate_variance(fan_in, weight_variance, second_moment) ** 2


def relative_spread(fan_in: float, d_k: int, weight_fourth_moment: float = 3.0) -> float:
    """Standard deviation over weights of the score variance at given weights, over its mean.

    For tokens with independent inputs of mean 0 and covariance m·I, and weights of standardised
    fourth moment κ (normal 3, uniform 9/5): √(2(κ − 1)/(d_k E) + (2d_k + (κ − 1)² − 2)/(d_k E²)).
    For normal weights and inputs of any covariance Σ, E is to be (tr Σ)²/tr Σ².

    Derivation: A = W_Q'W_Q has E A_ab A_cd/v² = E²·δ_ab δ_cd + E(δ_ac δ_bd + δ_ad δ_bc) +
    E(κ − 3)δ_abcd; B = W_K'W_K has the same and is independent, so E tr(AB)²/v⁴ is the sum of
    squares of these numbers: E⁴d² + 4E³d + 2E²d(d + 1) + 2(κ − 3)(E³d + 2E²d) + (κ − 3)²E²d.

    >>> round(relative_spread(512, 64), 4), relative_spread(7, 1, weight_fourth_moment=1.0)
    (0.0114, 0.0)
    """
    excess = weight_fourth_moment - 1
    return math.sqrt(2 * excess / (d_k * fan_in) + (2 * d_k + excess**2 - 2) / (d_k * fan_in**2))
