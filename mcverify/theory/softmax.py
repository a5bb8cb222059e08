"""Expected entropy, weights and Jacobian norms of the softmax of normal scores, by quadrature."""

import math
from functools import lru_cache

import numpy as np
import scipy

from mcverify.arrays import Array
from mcverify.theory.largest import sum_of_largest
from mcverify.theory.rows import EULER, Grid, checked, expected, mean, surprise
from mcverify.theory.size import median

_remembered = lru_cache(maxsize=4096)  # the predictions of a suite ask for the same points often


@_remembered
def entropy(n: int, sigma: float, d_k: float | None = None) -> float:
    """E H(p) in nats, p = softmax(s) of n scores s_j ~ N(0, sigma^2).

    d_k None: the s_j are independent. Otherwise they share a normal query of d_k coordinates:
    independent N(0, sigma^2 r^2 / d_k) given r^2 ~ chi^2(d_k), which is exact for normal keys too;
    unscaled attention has sigma = sqrt(d_k), scaled 1. Raises ValueError unless n is whole and in
    [2, 1e12], sigma in [0, 1e6] and d_k >= 1. Relative error below 1e-9 for all of this module up
    to n = 65536 and sigma = 1000, and below 1e-6 beyond.
    Source: -p_1 log p_1 = int K(t e^{s_1}) d(e^{-t (Z - e^{s_1})}) over t, K as in surprise, by
    parts from log Z / Z = -int e^{-tZ} (EULER + log t) dt.

    >>> round(entropy(128, sigma=1), 3), round(entropy(128, sigma=8, d_k=64), 3)
    (4.366, 0.668)
    """
    return expected(
        lambda g: g.n * (g.n - 1) * g.expect(surprise(g.x)) * g.psi(1) * g.phi(g.n - 2),
        math.log, n, sigma, d_k)


@_remembered
def max_weight(n: int, sigma: float, d_k: float | None = None) -> float:
    """E max_j p_j; arguments, errors and accuracy as in entropy.

    Source: n E[e^{s_1} exp(-tZ); all s_j < s_1] integrated over t.

    >>> round(max_weight(128, sigma=8, d_k=64), 3)
    0.768
    """
    return mean(sum_of_largest, lambda n: 1 / n, n, sigma, d_k)


@_remembered
def sum_squares(n: int, sigma: float, d_k: float | None = None) -> float:
    """E sum_j p_j^2; arguments, errors and accuracy as in entropy.

    Source: n E p_1^2 = n sum psi_2 phi^(n-1).

    >>> sum_squares(4, sigma=0)
    0.25
    """
    return expected(lambda g: g.n * g.psi(2) * g.phi(g.n - 1), lambda n: 1 / n, n, sigma, d_k)


@_remembered
def jacobian_trace(n: int, sigma: float, d_k: float | None = None) -> float:
    """E tr J, J = diag(p) - p p^T; arguments, errors and accuracy as in entropy.

    Source: tr J = sum of p_i p_j over i != j, which cancels nothing when it is small.

    >>> round(jacobian_trace(128, sigma=50), 6)
    0.051874
    """
    return expected(
        lambda g: g.n * (g.n - 1) * g.psi(1) ** 2 * g.phi(g.n - 2),
        lambda n: 1 - 1 / n, n, sigma, d_k)


@_remembered
def jacobian_frobenius_squared(n: int, sigma: float, d_k: float | None = None) -> float:
    """E ||J||_F^2, J = diag(p) - p p^T; arguments, errors and accuracy as in entropy.

    Source: sum p^2 - 2 sum p^3 + (sum p^2)^2 is twice the sum of p_i^2 p_j^2 over i != j plus that
    of p_i^2 p_j p_k over distinct i, j, k, which cancels nothing when it is small.

    >>> round(jacobian_frobenius_squared(128, sigma=50), 6)
    0.016508
    """

    def integrand(g: Grid) -> Array:
        two, ones = g.psi(2), g.psi(1) ** 2
        rest = 2 * two * g.phi(g.n - 2) + (g.n - 2) * ones * g.phi(g.n - 3)
        return g.n * (g.n - 1) / 6 * two * rest

    return expected(integrand, lambda n: (n - 1) / n**2, n, sigma, d_k)


@_remembered
def log_partition(n: int, sigma: float, d_k: float | None = None) -> float:
    """E log sum_j exp(s_j) in nats; arguments, errors and accuracy as in entropy.

    Source: phi(e^-u)^n is the distribution function of log Z plus a Gumbel variable of mean EULER.

    >>> round(log_partition(128, sigma=1), 4)
    5.3454
    """
    return expected(lambda g: g.n * (g.u - EULER) * g.psi(1) * g.phi(g.n - 1),
                    math.log, n, sigma, d_k)


@_remembered
def two_key_product(sigma: float, d_k: float | None = None) -> float:
    """E p (1 - p) for n = 2; sigma, d_k, errors and accuracy as in entropy.

    Tends to 1 / (2 sqrt(pi d_k)) at sigma = sqrt(d_k). Source: Parseval. p (1 - p) is
    1 / (4 cosh^2(x/2)) of x = s_1 - s_2, with transform pi w / sinh(pi w); that of the law of x is
    (1 + 2 sigma^2 w^2 / d_k)^(-d_k/2), or exp(-sigma^2 w^2) without d_k.

    >>> round(two_key_product(1, d_k=2), 6), round(math.log(2) - 1 / 2, 6)
    (0.193147, 0.193147)
    """
    checked(2, sigma, d_k)
    step = 0.1
    w = np.exp(np.arange(-40 - math.log1p(sigma), math.log(13), step))
    x = (sigma * w) ** 2
    law = np.exp(-x if d_k is None or d_k == math.inf else -d_k / 2 * np.log1p(2 * x / d_k))
    kernel = 2 * w * np.exp(-math.pi * w) / -np.expm1(-2 * math.pi * w)
    return float((kernel * law) @ w) * step


@_remembered
def two_key_product_median(sigma: float, d_k: float | None = None) -> float:
    """Median of p (1 - p) for n = 2; sigma, d_k, errors as in entropy; 0 where it underflows.

    Falls like exp(-0.954 sqrt(d_k)) at sigma = sqrt(d_k). Source: it is 1 / (4 cosh^2(x/2)) at the
    median x of |s_1 - s_2|, which is sqrt(2) sigma times that of |q·k| / sqrt(d_k).

    >>> round(two_key_product_median(1, d_k=2), 6), round(2 / 9, 6)
    (0.222222, 0.222222)
    """
    checked(2, sigma, d_k)
    size = float(scipy.special.ndtri(0.75))
    if d_k is not None and d_k <= 1e12:
        size = median(d_k) / math.sqrt(d_k)
    p = math.exp(-math.sqrt(2) * sigma * size)
    return p / (1 + p) ** 2
