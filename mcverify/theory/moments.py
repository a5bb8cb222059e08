"""From the moments of coordinates to closed forms for the mean, variance and kurtosis of q·k."""

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mcverify.laws import Law


def dot_mean(law: "Law", d_k: int) -> float:
    """E q·k of two different tokens: μ_q'μ_k, since their q and k are independent.

    >>> from mcverify import laws
    >>> dot_mean(laws.shifted(laws.normal, 0.5), 8)
    2.0
    """
    m = law.moments(d_k)
    return float(m.mean_q @ m.mean_k)


def dot_variance(law: "Law", d_k: int) -> float:
    """Var(q·k) of two different tokens: tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k.

    Exact for every law with second moments: condition on q, then take the variance of the
    conditional mean q'μ_k and the mean of the conditional variance q'Σ_k q.

    >>> from mcverify import laws
    >>> dot_variance(laws.normal, 64), dot_variance(laws.shifted(laws.normal, 1.0), 64)
    (64.0, 192.0)
    """
    m = law.moments(d_k)
    return float(np.sum(m.cov_q * m.cov_k.T) + m.mean_q @ m.cov_k @ m.mean_q
                 + m.mean_k @ m.cov_q @ m.mean_k)


def matched_mean(law: "Law", d_k: int) -> float:
    """E q·k of a token with itself: the trace of the cross-covariance, plus μ_q'μ_k.

    >>> from mcverify import laws
    >>> matched_mean(laws.correlated(laws.normal, 0.5), 64)
    32.0
    """
    m = law.moments(d_k)
    return float(np.trace(m.cross) + m.mean_q @ m.mean_k)


def correlated_variance(rho: float, fourth_moment: float, d_k: int) -> float:
    """Var(q·k) of a token with itself when k_i = ρq_i + √(1−ρ²) z_i: d_k(1 + ρ²(κ − 2)).

    Coordinates have mean 0, variance 1 and fourth moment κ. In q_i k_i = ρq_i² + √(1−ρ²) q_i z_i
    the two terms are uncorrelated, with variances ρ²(κ − 1) and 1 − ρ². ρ = 1 is q = k; the normal
    law, κ = 3, has d_k(1 + ρ²).

    >>> correlated_variance(0.5, 3.0, 64), correlated_variance(1.0, 1.0, 64)
    (80.0, 0.0)
    """
    return d_k * (1 + rho**2 * (fourth_moment - 2))


def dot_kurtosis(fourth_q: float, fourth_k: float, d_k: int) -> float:
    """Excess kurtosis of q·k for iid coordinates of mean 0: (κ_q κ_k − 3)/d_k.

    The sum of d_k independent terms has 1/d_k of a term's excess kurtosis, and a product of
    independent factors has the product of their fourth moments.

    >>> dot_kurtosis(3.0, 3.0, 64), dot_kurtosis(1.0, 1.0, 2)
    (0.09375, -1.0)
    """
    return (fourth_q * fourth_k - 3) / d_k


def scaled_vector_kurtosis(scale_q: float, scale_k: float, d_k: int) -> float:
    """Excess kurtosis of q·k for normal vectors times independent random lengths of E r² = 1.

    With E r⁴ given for both: E s⁴ = E r_q⁴ · E r_k⁴ · 3d_k(d_k + 2), so the excess tends to
    3(E r_q⁴ E r_k⁴ − 1) and not to 0: such a score never becomes normal.

    >>> scaled_vector_kurtosis(1.0, 1.0, 64) == dot_kurtosis(3.0, 3.0, 64)
    True
    """
    return 3 * scale_q * scale_k * (1 + 2 / d_k) - 3


def coin_sum_mean_size(d_k: int) -> float:
    """E abs(Σ ±1) over d_k fair coins: d·C(d, d/2)/2^d at even d, and the value of d + 1 at odd d.

    It is also E abs(q·k) for normal q and k at every even d_k.

    >>> round(coin_sum_mean_size(64), 3), coin_sum_mean_size(1)
    (6.358, 1.0)
    """
    d = d_k + d_k % 2
    return float(d * math.comb(d, d // 2) / 2**d)
