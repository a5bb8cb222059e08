"""Closed forms of rows with many keys: matches, strangers, top shares, causal rows, powers of n."""

import math

import numpy as np
import scipy

from mcverify.theory.softmax import entropy

SHORT, NODES = 32, 50  # the entropy is exact up to this length, and at so many from 1 to n


def match_weight(n: int, d_k: int, scale: float) -> float:
    """The weight of a key that is the query, ‖q‖² = d_k, among n others of unit variance.

    1/(1 + n exp(d_k scale²/2 − d_k scale)): the match has the score d_k·scale and the others
    E e^s = exp(d_k scale²/2). At scale 1/√d_k it is 1/2 at n = exp(√d_k − 1/2).

    >>> round(match_weight(128, 64, scale=1 / 8), 3), round(match_weight(128, 64, scale=1 / 64), 4)
    (0.934, 0.0206)
    """
    return 1 / (1 + n * math.exp(d_k * scale * (scale / 2 - 1)))


def alikeness(sigma: float) -> float:
    """E o·o'/E ‖o‖² of the outputs of two independent queries over the same many values: e^(−σ²).

    n E p·p' = 1 for independent weights, and n E Σp² tends to E e^(2s)/(E e^s)² = e^(σ²), for
    scores of N(0, σ²).

    >>> round(alikeness(1.0), 3), round(alikeness(1 / 8), 3)
    (0.368, 0.984)
    """
    return math.exp(-(sigma**2))


def top_share(share: float, sigma: float) -> float:
    """What the largest ``share`` of many weights sum to for scores of N(0, σ²): Φ(Φ⁻¹(share) + σ).

    The Lorenz curve of a log-normal law: weighing a score by e^s moves its mean by σ².

    >>> round(top_share(0.1, 1.0), 4), round(top_share(0.61, 1.0), 2)
    (0.3891, 0.9)
    """
    return float(scipy.special.ndtr(scipy.special.ndtri(share) + sigma))


def causal_entropy(n: int, sigma: float) -> float:
    """E H in the mean over the n rows of a causal mask, which have 1, 2, …, n scores of N(0, σ²).

    Tends to ln n − 1 − σ²/2, as the mean of ln i over i ≤ n is ln n − 1. Exact at short lengths i
    and some others, between which i(E H − ln i + σ²/2), nearly flat, is interpolated: a relative
    error below 1e-6 for σ <= 1 and 1e-4 for 2.

    >>> round(causal_entropy(512, 1.0), 4)
    4.763
    """
    lengths = np.unique(np.append(np.arange(1, min(n, SHORT) + 1),
                                  np.rint(np.geomspace(1, n, NODES))))
    at = [entropy(int(i), sigma) if i > 1 else 0.0 for i in lengths]
    i, limit = np.arange(1, n + 1), -(sigma**2) / 2
    rest = np.interp(np.log(i), np.log(lengths), lengths * (at - np.log(lengths) - limit))
    return float((np.log(i) + limit + rest / i).mean())


def entropy_shift(
    q_moments: tuple[float, float], k_moments: tuple[float, float], d_k: int
) -> float:
    """How much E H of q·k/√d_k over many keys differs from normal coordinates', to order 1/d_k.

    Each pair is the skewness γ and the fourth moment κ of a coordinate: −γ_q γ_k/(3√d_k) −
    κ_q(κ_k − 3)/(8d_k). Softmax averages over keys at a given query, so it sees the cumulants of
    Σ q_i k_i/√d_k over k: c₂ = ‖q‖²/d_k, c₃ = γ_k Σq³/d_k^1.5, c₄ = (κ_k − 3)Σq⁴/d_k². With K
    their generating function, H = ln n + K(1) − K'(1) = ln n − c₂/2 − c₃/3 − c₄/8.

    >>> round(entropy_shift((0, 3), (0, 6), 32), 4), entropy_shift((0, 6), (0, 3), 32)
    (-0.0352, 0.0)
    """
    (skew_q, fourth_q), (skew_k, fourth_k) = q_moments, k_moments
    return -skew_q * skew_k / (3 * math.sqrt(d_k)) - fourth_q * (fourth_k - 3) / (8 * d_k)


def sum_squares_exponent(c: float) -> float:
    """The power of n that E Σp² follows for independent scores of σ = c√(2 ln n), 0 <= c <= 1.

    −(1 − 2c²) up to c = 1/√3, and −(1 − c²)²/(4c²) beyond. The mean of n e^(2s)/Z², Z = n e^(σ²/2),
    comes from s near 2σ². Where such a score would exceed ln Z, from 4c² > 1 + c² on, it comes from
    the rows in which one score reaches ln Z and takes a weight of order 1; their share is
    n P(s > ln Z).

    >>> round(sum_squares_exponent(0.5), 3), round(sum_squares_exponent(0.7), 4)
    (-0.5, -0.1327)
    """
    if not 0 <= c <= 1:
        raise ValueError(f"sum_squares_exponent(c={c}): c is from 0 to 1, as beyond 1 the sum "
                         "tends to 1 − 1/c; use that")
    return -(1 - 2 * c * c) if 3 * c * c <= 1 else -((1 - c * c) ** 2) / (4 * c * c)
