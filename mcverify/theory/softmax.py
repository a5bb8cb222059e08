"""Expected entropy, weights and Jacobian norms of the softmax of normal scores, by quadrature."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfc, exp1, ndtr, ndtri

from mcverify.arrays import Array

EULER = float(np.euler_gamma)
NODES = 12  # Gauss-Legendre nodes a panel
STEP = 0.25  # of log t: at 2 pi / STEP the transform of log Gamma(k), k <= 4, is below 1e-11
TAIL = 30.0  # what falls as e^-x is cut at x = TAIL + ln n, so that n such tails are below 1e-12
WIDE = 2.0  # standard deviation from which exp(-t e^s) is narrower in s than the normal density

_remembered = lru_cache(maxsize=4096)  # the predictions of a suite ask for the same points often

_x, _w = np.polynomial.legendre.leggauss(NODES)
_legendre = np.polynomial.legendre.legvander(_x, NODES)
# Row i integrates from -1 to node i: the integral of P_k is (P_{k+1} - P_{k-1}) / (2k + 1).
_integral = (_legendre[:, 2:] - _legendre[:, :-2]) / (2 * np.arange(1, NODES) + 1)
_CUMULATE = np.column_stack([_x + 1, _integral]) @ np.linalg.inv(_legendre[:, :NODES])


class _Grid(NamedTuple):
    """Rows: t = e^-u, u on a trapezoid. Columns: a score s, on panels of Gauss-Legendre nodes.

    From 1/Z^k = int t^(k-1) e^{-tZ} dt / (k-1)!, E of a product of k weights is the sum over u of
    products of psi and phi over (k-1)!. It is a mixture of laws of log Z - log Gamma(k), so it is
    smooth on a scale of 1 at any n and sigma; and every such sum below has positive terms.
    """

    n: float
    u: Array  # (rows,)
    step: float
    z: Array  # s / sigma; z, density and x broadcast to (rows, columns)
    density: Array  # of s
    x: Array  # t e^s
    half: float  # half the width of a panel, in s
    beyond: Array  # P(score > end of the last panel), (rows,)

    def expect(self, f: Array) -> Array:
        """E f(s) at each t."""
        weight = np.tile(_w * self.half, self.x.shape[1] // NODES)
        return np.asarray((f * self.density) @ weight)

    def psi(self, k: int) -> Array:
        """t^k E[e^{ks} exp(-t e^s)]."""
        return self.expect(self.x**k * np.exp(-self.x))

    def phi(self, exponent: float) -> Array:
        """E[exp(-t e^s)]^exponent."""
        return _power(self.expect(-np.expm1(-self.x)) + self.beyond, exponent)

    def phi_below(self, exponent: float) -> Array:
        """E[exp(-t e^s); s < s_j]^exponent for each column s_j."""
        f = -np.expm1(-self.x) * self.density * self.half
        panels = f.reshape(f.shape[0], -1, NODES)
        whole = panels @ _w
        before = np.cumsum(whole, axis=1) - whole
        c = (panels @ _CUMULATE.T + before[..., None]).reshape(f.shape)
        return _power(c + ndtr(-self.z), exponent)


def _power(c: Array, exponent: float) -> Array:
    """(1 - c)^exponent, from c because those of order 1/n count when the exponent is near n."""
    return np.asarray(np.exp(exponent * np.log1p(-np.minimum(c, 1 - 2**-53))))


def _grid(n: float, sigma: float, panel: float) -> _Grid:
    tail = TAIL + math.log(n)
    reach = math.sqrt(2 * tail)
    # log Z exceeds the largest score, which is below this start with probability e^-tail.
    start = -sigma * float(ndtri(-math.expm1(-tail / n))) - 4
    # In sigma units the largest score varies by 1 / sqrt(2 ln n).
    step = STEP * max(1.0, sigma / (1 + math.sqrt(2 * math.log(n))))
    u = np.arange(start, reach * sigma + tail, step)
    wide = sigma >= WIDE
    low, high = (-tail, 4.0) if wide else (-reach * sigma, reach * sigma)
    edges = np.linspace(low, high, math.ceil((high - low) / min(panel * sigma, 2.0)) + 1)
    half = (edges[1] - edges[0]) / 2
    nodes = (edges[:-1, None] + half * (_x + 1)).ravel()[None, :]
    s = u[:, None] + nodes if wide else nodes
    x = np.exp(nodes if wide else nodes - u[:, None])
    end = u + high if wide else np.full_like(u, high)
    density = np.exp(-((s / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
    return _Grid(n, u, step, s / sigma, density, x, half, ndtr(-end / sigma))


def _radii(d_k: float) -> tuple[Array, Array]:
    """r / sqrt(d_k) and weights, for r^2 ~ chi^2(d_k): a trapezoid in log r, good to 1e-11."""
    reach = math.sqrt(40 / d_k)
    v = np.arange(-(reach**2) - reach, reach, min(0.1, 0.8 / math.sqrt(2 * d_k)))
    weight = np.exp(-d_k / 2 * (np.expm1(2 * v) - 2 * v))
    return np.exp(v), weight / weight.sum()


def _checked(n: float, sigma: float, d_k: float | None) -> float:
    """n as a float, or ValueError."""
    if not (2 <= n <= 1e12 and n % 1 == 0):
        rule = "the number of scores is whole, from 2 to 1e12; pass the number of keys of one query"
        raise ValueError(f"n is {n}: {rule}")
    if not 0 <= sigma <= 1e6:
        rule = "a standard deviation is finite, from 0 to 1e6; pass that of one score"
        raise ValueError(f"sigma is {sigma}: {rule}")
    if d_k is not None and not d_k >= 1:
        rule = "a query has 1 coordinate or more; pass d_k >= 1, or None for independent scores"
        raise ValueError(f"d_k is {d_k}: {rule}")
    return float(n)


def _mean(
    f: Callable[[_Grid], Array], uniform: Callable[[float], float],
    n: float, sigma: float, d_k: float | None, panel: float = 1.0,
) -> float:  # fmt: skip
    """Sum f over u at one sigma, or over its mixture; uniform(n) is the value at sigma = 0."""
    n = _checked(n, sigma, d_k)

    def given(sigma: float) -> float:
        grid = _grid(n, sigma, panel)
        return float(f(grid).sum()) * grid.step

    if sigma < 1e-20:
        return uniform(n)
    if d_k is None or d_k > 1e12:
        return given(sigma)
    radii, weight = _radii(d_k)
    sigmas = sigma * radii
    # The distance to uniform falls like sigma or faster, which spares a long tail at small d_k.
    keep = np.where(sigmas > 1, weight > 1e-16, weight * sigmas > 1e-12)
    rest = float(weight[~keep].sum()) * uniform(n)
    pairs = zip(weight[keep].tolist(), sigmas[keep].tolist(), strict=True)
    return rest + math.fsum(w * given(s) for w, s in pairs)


def _surprise(x: Array) -> Array:
    """int_x^inf e^{-w} (EULER + log w) dw = E1(x) + e^{-x} (EULER + log x), which is positive."""
    log_x = EULER + np.log(x)
    # E1(x) + log_x, which cancels at small x.
    series = x * (1 - x / 4 * (1 - x * 2 / 9 * (1 - x * 3 / 16 * (1 - x * 4 / 25))))
    value = np.where(x < 0.01, np.expm1(-x) * log_x + series, np.exp(-x) * log_x)
    middle = (x >= 0.01) & (x < 40)  # not where=, with which exp1 of scipy 1.17 is wrong
    value[middle] += exp1(x[middle])
    return value


@_remembered
def entropy(n: int, sigma: float, d_k: float | None = None) -> float:
    """E H(p) in nats, p = softmax(s) of n scores s_j ~ N(0, sigma^2).

    d_k None: the s_j are independent. Otherwise they share a normal query of d_k coordinates:
    independent N(0, sigma^2 r^2 / d_k) given r^2 ~ chi^2(d_k), which is exact for normal keys too;
    unscaled attention has sigma = sqrt(d_k), scaled 1. Raises ValueError unless n is whole and in
    [2, 1e12], sigma in [0, 1e6] and d_k >= 1. Relative error below 1e-9 for all of this module up
    to n = 65536 and sigma = 1000, and below 1e-6 beyond.
    Source: -p_1 log p_1 = int K(t e^{s_1}) d(e^{-t (Z - e^{s_1})}) over t, K as in _surprise, by
    parts from log Z / Z = -int e^{-tZ} (EULER + log t) dt.

    >>> round(entropy(128, sigma=1), 3), round(entropy(128, sigma=8, d_k=64), 3)
    (4.366, 0.668)
    """
    return _mean(
        lambda g: g.n * (g.n - 1) * g.expect(_surprise(g.x)) * g.psi(1) * g.phi(g.n - 2),
        math.log, n, sigma, d_k,
    )  # fmt: skip


@_remembered
def max_weight(n: int, sigma: float, d_k: float | None = None) -> float:
    """E max_j p_j; arguments, errors and accuracy as in entropy.

    Source: n E[e^{s_1} exp(-tZ); all s_j < s_1] integrated over t, so phi stops at s_1.

    >>> round(max_weight(128, sigma=8, d_k=64), 3)
    0.768
    """
    return _mean(
        lambda g: g.n * g.expect(g.x * np.exp(-g.x) * g.phi_below(g.n - 1)),
        lambda n: 1 / n, n, sigma, d_k, panel=0.5,
    )  # fmt: skip


@_remembered
def sum_squares(n: int, sigma: float, d_k: float | None = None) -> float:
    """E sum_j p_j^2; arguments, errors and accuracy as in entropy.

    Source: n E p_1^2 = n sum psi_2 phi^(n-1).

    >>> sum_squares(4, sigma=0)
    0.25
    """
    return _mean(lambda g: g.n * g.psi(2) * g.phi(g.n - 1), lambda n: 1 / n, n, sigma, d_k)


@_remembered
def jacobian_trace(n: int, sigma: float, d_k: float | None = None) -> float:
    """E tr J, J = diag(p) - p p^T; arguments, errors and accuracy as in entropy.

    Source: tr J = sum of p_i p_j over i != j, which cancels nothing when it is small.

    >>> round(jacobian_trace(128, sigma=50), 6)
    0.051874
    """
    return _mean(
        lambda g: g.n * (g.n - 1) * g.psi(1) ** 2 * g.phi(g.n - 2),
        lambda n: 1 - 1 / n, n, sigma, d_k,
    )  # fmt: skip


@_remembered
def jacobian_frobenius_squared(n: int, sigma: float, d_k: float | None = None) -> float:
    """E ||J||_F^2, J = diag(p) - p p^T; arguments, errors and accuracy as in entropy.

    Source: sum p^2 - 2 sum p^3 + (sum p^2)^2 is twice the sum of p_i^2 p_j^2 over i != j plus that
    of p_i^2 p_j p_k over distinct i, j, k, which cancels nothing when it is small.

    >>> round(jacobian_frobenius_squared(128, sigma=50), 6)
    0.016508
    """

    def integrand(g: _Grid) -> Array:
        two, ones = g.psi(2), g.psi(1) ** 2
        rest = 2 * two * g.phi(g.n - 2) + (g.n - 2) * ones * g.phi(g.n - 3)
        return g.n * (g.n - 1) / 6 * two * rest

    return _mean(integrand, lambda n: (n - 1) / n**2, n, sigma, d_k)


@_remembered
def log_partition(n: int, sigma: float, d_k: float | None = None) -> float:
    """E log sum_j exp(s_j) in nats; arguments, errors and accuracy as in entropy.

    Source: phi(e^-u)^n is the distribution function of log Z plus a Gumbel variable of mean EULER.

    >>> round(log_partition(128, sigma=1), 4)
    5.3454
    """
    return _mean(lambda g: g.n * (g.u - EULER) * g.psi(1) * g.phi(g.n - 1), math.log, n, sigma, d_k)


@_remembered
def two_key_product(sigma: float, d_k: float | None = None) -> float:
    """E p (1 - p) for n = 2; sigma, d_k, errors and accuracy as in entropy.

    Tends to 1 / (2 sqrt(pi d_k)) at sigma = sqrt(d_k). Source: Parseval. p (1 - p) is
    1 / (4 cosh^2(x/2)) of x = s_1 - s_2, with transform pi w / sinh(pi w); that of the law of x is
    (1 + 2 sigma^2 w^2 / d_k)^(-d_k/2), or exp(-sigma^2 w^2) without d_k.

    >>> round(two_key_product(1, d_k=2), 6), round(math.log(2) - 1 / 2, 6)
    (0.193147, 0.193147)
    """
    _checked(2, sigma, d_k)
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
    median x of |s_1 - s_2| = sqrt(2) sigma |z| r / sqrt(d_k), by bisection on P(|z| r > .).

    >>> round(two_key_product_median(1, d_k=2), 6), round(2 / 9, 6)
    (0.222222, 0.222222)
    """
    _checked(2, sigma, d_k)
    median, high = float(ndtri(0.75)), 1.0
    if d_k is not None and d_k <= 1e12:
        radii, weight = _radii(d_k)
        low = 0.0
        for _ in range(60):
            median = (low + high) / 2
            above = float(weight @ erfc(median / (math.sqrt(2) * radii)))
            low, high = (median, high) if above > 0.5 else (low, median)
    p = math.exp(-math.sqrt(2) * sigma * median)
    return p / (1 + p) ** 2
