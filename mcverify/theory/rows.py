"""Expectations over rows of many normal scores, as integrals over one score at a time."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import exp1, ndtr, ndtri

from mcverify.arrays import Array
from mcverify.theory.radius import radii

EULER = float(np.euler_gamma)
NODES = 12  # Gauss-Legendre nodes a panel
STEP = 0.25  # of log t: at 2 pi / STEP the transform of log Gamma(k), k <= 4, is below 1e-11
TAIL = 30.0  # what falls as e^-x is cut at x = TAIL + ln n, so that n such tails are below 1e-12
WIDE = 2.0  # standard deviation from which exp(-t e^s) is narrower in s than the normal density

_x, _w = np.polynomial.legendre.leggauss(NODES)
_legendre = np.polynomial.legendre.legvander(_x, NODES)
# Row i integrates from -1 to node i: the integral of P_k is (P_{k+1} - P_{k-1}) / (2k + 1).
_integral = (_legendre[:, 2:] - _legendre[:, :-2]) / (2 * np.arange(1, NODES) + 1)
_CUMULATE = np.column_stack([_x + 1, _integral]) @ np.linalg.inv(_legendre[:, :NODES])


class Grid(NamedTuple):
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


def _grid(n: float, sigma: float, panel: float) -> Grid:
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
    return Grid(n, u, step, s / sigma, density, x, half, ndtr(-end / sigma))


def checked(n: float, sigma: float, d_k: float | None) -> float:
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


def mean(
    f: Callable[[Grid], Array], uniform: Callable[[float], float],
    n: float, sigma: float, d_k: float | None, panel: float = 1.0,
) -> float:  # fmt: skip
    """Sum f over u at one sigma, or over its mixture; uniform(n) is the value at sigma = 0."""
    n = checked(n, sigma, d_k)

    def given(sigma: float) -> float:
        grid = _grid(n, sigma, panel)
        return float(f(grid).sum()) * grid.step

    if sigma < 1e-20:
        return uniform(n)
    if d_k is None or d_k > 1e12:
        return given(sigma)
    r, weight = radii(d_k)
    sigmas = sigma * r
    # The distance to uniform falls like sigma or faster, which spares a long tail at small d_k.
    keep = np.where(sigmas > 1, weight > 1e-16, weight * sigmas > 1e-12)
    rest = float(weight[~keep].sum()) * uniform(n)
    pairs = zip(weight[keep].tolist(), sigmas[keep].tolist(), strict=True)
    return rest + math.fsum(w * given(s) for w, s in pairs)


def surprise(x: Array) -> Array:
    """int_x^inf e^{-w} (EULER + log w) dw = E1(x) + e^{-x} (EULER + log x), which is positive."""
    log_x = EULER + np.log(x)
    # E1(x) + log_x, which cancels at small x.
    series = x * (1 - x / 4 * (1 - x * 2 / 9 * (1 - x * 3 / 16 * (1 - x * 4 / 25))))
    value = np.where(x < 0.01, np.expm1(-x) * log_x + series, np.exp(-x) * log_x)
    middle = (x >= 0.01) & (x < 40)  # not where=, with which exp1 of scipy 1.17 is wrong
    value[middle] += exp1(x[middle])
    return value
