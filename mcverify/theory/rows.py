"""Expectations over rows of many normal scores, as integrals over one score at a time."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from mcverify.arrays import Array
from mcverify.theory.radius import fewer, radii

EULER = float(np.euler_gamma)
STEP = 0.25  # of log t: at 2 pi / STEP the transform of log Gamma(k), k <= 4, is below 1e-11
TAIL = 30.0  # what falls as e^-x is cut at x = TAIL + ln n, so that n such tails are below 1e-12
SCORES = 0.3  # step of a score, over which functions of t e^s are smooth on a scale of 1: 1e-12
RESOLVED = 0.8  # steps of sigma, over which its normal density sums up to 1: 1e-13
HIGH = 4.0  # of log(t e^s), beyond which exp(-t e^s) is 0
HALF = 0.5  # standard deviation of the normal score that stands for what exp(-t e^s) jumps at


class Grid(NamedTuple):
    """Rows: t = e^-u. Columns: a score s, or log(t e^s) where that varies less; both trapezoids.

    From 1/Z^k = int t^(k-1) e^{-tZ} dt / (k-1)!, E of a product of k weights is the sum over u of
    products of psi and phi over (k-1)!. It is a mixture of laws of log Z - log Gamma(k), so it is
    smooth on a scale of 1 at any n and sigma; and every such sum below has positive terms.
    """

    n: float
    sigma: float
    u: Array  # (rows,)
    y: Array  # log(t e^s), (columns,), or (rows, columns) if columns are of s
    x: Array  # t e^s
    weight: Array  # of s, (rows, columns), or (columns,) if columns are of s

    def expect(self, f: Array) -> Array:
        """E f at each t."""
        return np.asarray(np.vecdot(f, self.weight))  # rows are too short for threads of BLAS

    def psi(self, k: int) -> Array:
        """t^k E[e^{ks} exp(-t e^s)]."""
        return self.expect(self.x**k * np.exp(-self.x))

    def phi(self, exponent: float) -> Array:
        """E[exp(-t e^s)]^exponent."""
        c = -np.expm1(-self.x)
        if c.ndim > 1:
            return power(self.expect(c), exponent)
        # Less a step of the same height it is short, and the mean of that is known.
        c -= scipy.special.ndtr(self.y / HALF)
        jump = scipy.special.ndtr(-self.u / math.hypot(self.sigma, HALF))
        return power(self.expect(c) + jump, exponent)


def power(c: Array, exponent: float) -> Array:
    """(1 - c)^exponent, from c because those of order 1/n count when the exponent is near n."""
    return np.asarray(np.exp(exponent * np.log1p(-np.minimum(c, 1 - 2**-53))))


def times(n: float, sigma: float, step: float) -> tuple[Array, float, float, float]:
    """u with its step, and how far tails reach: in log x, and in standard deviations."""
    tail = TAIL + math.log(n)
    reach = math.sqrt(2 * tail)
    # log Z exceeds the largest score, which is below this start with probability e^-tail.
    start = -sigma * float(scipy.special.ndtri(-math.expm1(-tail / n))) - 4
    # In sigma units the largest score varies by 1 / sqrt(2 ln n).
    step *= max(1.0, sigma / (1 + math.sqrt(2 * math.log(n))))
    return np.arange(start, reach * sigma + tail, step), step, tail, reach


def density(s: Array, sigma: float) -> Array:
    """Of a score: N(0, sigma²)."""
    made = np.asarray(np.exp(s * s * (-0.5 / sigma**2)))
    made *= 1 / (sigma * math.sqrt(2 * math.pi))
    return made


def _sum(f: Callable[[Grid], Array], n: float, sigma: float) -> float:
    """The sum of f over u."""
    u, step, tail, reach = times(n, sigma, STEP)
    if sigma * RESOLVED < SCORES:
        h = sigma * RESOLVED
        s = np.arange(-reach * sigma, reach * sigma + h, h)
        y = s - u[:, None]
    else:
        h, y = SCORES, np.arange(-tail, HIGH + SCORES, SCORES)
        s = u[:, None] + y
    return float(f(Grid(n, sigma, u, y, np.exp(y), density(s, sigma) * h)).sum()) * step


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
    given: Callable[[float, float], float], uniform: Callable[[float], float],
    n: float, sigma: float, d_k: float | None,
) -> float:
    """given(n, sigma) or its mean over the query; uniform(n) is the value at sigma = 0."""
    n = checked(n, sigma, d_k)
    if sigma < 1e-20:
        return uniform(n)
    if d_k is None or d_k > 1e12:
        return given(n, sigma)
    r, weight = radii(d_k)
    sigmas = sigma * r
    # The distance to uniform falls like sigma or faster, which spares a long tail at small d_k.
    keep = np.where(sigmas > 1, weight > 1e-16, weight * sigmas > 1e-12)
    rest = float(weight[~keep].sum()) * uniform(n)
    return rest + math.fsum(w * given(n, s) for s, w in fewer(sigmas[keep], weight[keep]))


def expected(
    f: Callable[[Grid], Array], uniform: Callable[[float], float],
    n: float, sigma: float, d_k: float | None,
) -> float:
    """As mean, of the sum of f over a grid."""
    return mean(partial(_sum, f), uniform, n, sigma, d_k)


def surprise(x: Array) -> Array:
    """int_x^inf e^{-w} (EULER + log w) dw = E1(x) + e^{-x} (EULER + log x), which is positive."""
    log_x = EULER + np.log(x)
    # E1(x) + log_x, which cancels at small x.
    series = x * (1 - x / 4 * (1 - x * 2 / 9 * (1 - x * 3 / 16 * (1 - x * 4 / 25))))
    value = np.where(x < 0.01, np.expm1(-x) * log_x + series, np.exp(-x) * log_x)
    middle = (x >= 0.01) & (x < 40)  # not where=, with which exp1 of scipy 1.17 is wrong
    value[middle] += scipy.special.exp1(x[middle])
    return value
