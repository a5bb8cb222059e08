"""From the moments of coordinates to closed forms for the mean, variance and kurtosis of q·k."""

import math

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import known
from mcverify.laws.law import Law, Moments


def dot_mean(law: Law, d_k: int) -> float:
    """E q·k of two different tokens: μ_q'μ_k, since their q and k are independent.

    >>> from mcverify import laws
    >>> dot_mean(laws.shifted(laws.normal, 0.5), 8)
    2.0
    """
    m = law.moments(d_k)
    return float(m.mean_q @ m.mean_k)


def dot_variance(law: Law, d_k: int) -> float:
    """Var(q·k) of two different tokens: tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k.

    Exact for every law with second moments: condition on q, then take the variance of the
    conditional mean q'μ_k and the mean of the conditional variance q'Σ_k q. It needs q and k
    independent, so it does not hold where different tokens are tied, as by ``laws.topic``.

    >>> from mcverify import laws
    >>> dot_variance(laws.normal, 64), dot_variance(laws.shifted(laws.normal, 1.0), 64)
    (64.0, 192.0)
    """
    return predicted_variances(law.moments(d_k))["means"]


def predicted_variances(m: Moments) -> dict[str, float]:
    """What Var(q·k) of independent tokens is by formulas that each know more of the moments.

    textbook d_k; variances tr Σ_q tr Σ_k/d_k; correlations tr(Σ_q Σ_k); means, the full formula of
    dot_variance, tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k.

    >>> from mcverify import laws
    >>> predicted_variances(laws.measured([[1.0, 0], [3, 0]], [[1.0, 1], [-1, 1]]).moments(2))
    {'textbook': 2.0, 'variances': 0.5, 'correlations': 1.0, 'means': 5.0}
    """
    d_k, correlations = len(m.mean_q), np.sum(m.cov_q * m.cov_k.T)
    return {
        "textbook": float(d_k),
        "variances": float(np.trace(m.cov_q) * np.trace(m.cov_k) / d_k),
        "correlations": float(correlations),
        "means": float(correlations + m.mean_q @ m.cov_k @ m.mean_q
                       + m.mean_k @ m.cov_q @ m.mean_k),
    }


def matched_mean(law: Law, d_k: int) -> float:
    """E q·k of a token with itself: the trace of the cross-covariance, plus μ_q'μ_k.

    >>> from mcverify import laws
    >>> matched_mean(laws.correlated(laws.normal, 0.5), 64)
    32.0
    """
    m = law.moments(d_k)
    return float(np.trace(m.cross) + m.mean_q @ m.mean_k)


def normal_matched_variance(m: Moments) -> float:
    """Var(q·k) for jointly normal q and k with C_ij = Cov(q_i, k_j), at a token of these moments:

    tr(Σ_q Σ_k) + tr(C²) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k + 2μ_k'C μ_q.

    With q = μ_q + x and k = μ_k + y, the quadratic part x·y has by Isserlis' theorem the variance
    Σ_ij (Σ_q,ij Σ_k,ij + C_ij C_ji), and the linear part is uncorrelated with it.

    >>> from mcverify import laws
    >>> normal_matched_variance(laws.correlated(laws.normal, 0.5).moments(64))
    80.0
    """
    return float(np.sum(m.cov_q * m.cov_k) + np.sum(m.cross * m.cross.T)
                 + m.mean_q @ m.cov_k @ m.mean_q + m.mean_k @ m.cov_q @ m.mean_k
                 + 2 * m.mean_k @ m.cross @ m.mean_q)


def matched_variance(law: Law, d_k: int) -> float:
    """Var(q·k) of a token with itself, for q and k that are independent or linear in the same z.

    Linear means q = Az + μ_q and k = Bz + μ_k, for z of independent coordinates of variance 1
    (laws that say so by ``joint``). On top of normal_matched_variance come (κ − 3) Σ M_mm² +
    2γ Σ M_mm h_m, where M = A'B, h = B'μ_q + A'μ_k, and κ and γ are the fourth and third moments
    of z_m: E z_m z_n z_o z_p and E z_m z_n z_o differ from the normal law's at equal indices only.
    Raises ValueError for any other coupled law, and where γ matters and is not known.

    >>> from mcverify import laws
    >>> eye = np.eye(2)
    >>> matched_variance(laws.linear(laws.rademacher, eye, 2 * eye, joint=True), 2)
    0.0
    >>> matched_variance(laws.linear(laws.exponential, eye, mean_q=1.0, joint=True), 2)
    26.0
    """
    if not law.coupled:
        return dot_variance(law, d_k)
    views = known(law).joint(d_k)
    if views is None:
        raise ValueError(f"matched_variance({law}): known for q and k that are linear in the same "
                         "coordinates, as laws.linear(…, joint=True); if they are jointly normal "
                         "use normal_matched_variance(law.moments(d_k))")
    q, k = views
    a, b = (np.diag(root) if root.ndim == 1 else root for root in (q.root, k.root))
    diagonal = np.sum(a * b, axis=0)
    tilt = float(diagonal @ (b.T @ q.mean + a.T @ k.mean))
    if tilt and math.isnan(q.third):
        raise ValueError(f"matched_variance({law}): with means that are not 0 it needs the third "
                         "moment of the coordinates, and the law declares none")
    return (normal_matched_variance(law.moments(d_k)) + (q.fourth - 3) * float(diagonal @ diagonal)
            + (2 * q.third * tilt if tilt else 0.0))


def alignment(cov_q: Array, cov_k: Array) -> float:
    """d_k tr(Σ_q Σ_k)/(tr Σ_q tr Σ_k): Var(q·k) over that of white vectors with the same traces.

    For independent q and k of mean 0; from 0 (no direction in common) to d_k (the same single
    direction). It is 1 as soon as one side is white: with Σ_k = I and μ_k = 0 the variance is E‖q‖²
    for every law of q, so independent coordinates are not needed, nor the same variance in each.

    >>> one = np.diag([4.0, 0.0, 0.0, 0.0])
    >>> alignment(one, np.eye(4)), alignment(one, one), alignment(one, np.diag([0.0, 1, 1, 1]))
    (1.0, 4.0, 0.0)
    """
    return float(len(cov_q) * np.sum(cov_q * cov_k) / (np.trace(cov_q) * np.trace(cov_k)))


def effective_rank(cov: Array) -> float:
    """(tr Σ)²/tr Σ²: how many equal directions would spread as unequally; from 1 to d_k.

    d_k divided by it is the alignment of two independent vectors of this covariance.

    >>> effective_rank(np.diag([1.0, 1.0, 0.0])), effective_rank(np.diag([3.0, 1.0]))
    (2.0, 1.6)
    """
    return float(np.trace(cov) ** 2 / np.sum(cov * cov))


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
