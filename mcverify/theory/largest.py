"""The expected largest of many weights, from what the others are below it."""

import math

import numpy as np
import scipy

from mcverify.theory.rows import HIGH, density, power, times

STEP = 0.35  # of log t, which is smoother here: 1e-11
NODES = 10  # Gauss-Legendre nodes a panel: 1e-11
PANEL, WIDEST = 0.5, 2.0  # the width of a panel, in standard deviations and in scores
WIDE = 2.0  # standard deviation from which exp(-t e^s) is narrower in s than the normal density
RARE = 40.0  # where the others are all below a score with a probability of e^-RARE, it counts 0

_x, _w = np.polynomial.legendre.leggauss(NODES)
_legendre = np.polynomial.legendre.legvander(_x, NODES)
# Row i integrates from -1 to node i: the integral of P_k is (P_{k+1} - P_{k-1}) / (2k + 1).
_integral = (_legendre[:, 2:] - _legendre[:, :-2]) / (2 * np.arange(1, NODES) + 1)
_CUMULATE = np.column_stack([_x + 1, _integral]) @ np.linalg.inv(_legendre[:, :NODES])


def sum_of_largest(n: float, sigma: float) -> float:
    """E max_j p_j: n E[x exp(-x); all others below s], x = t e^s, summed over log t.

    For n independent scores N(0, sigma^2), s on panels of Gauss-Legendre nodes.

    >>> round(sum_of_largest(2, 1e-3), 6), round(sum_of_largest(2, 1.0), 6)
    (0.500282, 0.725213)
    """
    u, step, tail, reach = times(n, sigma, STEP)
    wide = sigma >= WIDE
    low, high = (-tail, HIGH) if wide else (-reach * sigma, reach * sigma)
    edges = np.linspace(low, high, math.ceil((high - low) / min(PANEL * sigma, WIDEST)) + 1)
    half = (edges[1] - edges[0]) / 2
    nodes = (edges[:-1, None] + half * (_x + 1)).ravel()
    s = u[:, None] + nodes if wide else nodes
    x = np.exp(nodes if wide else nodes - u[:, None])
    weight = density(s, sigma) * half
    # 1 - E[exp(-t e^s'); s' < s], but for P(s' > s).
    panels = (-np.expm1(-x) * weight).reshape(len(u), -1, NODES)
    whole = panels @ _w
    c = panels @ _CUMULATE.T
    c += (np.cumsum(whole, axis=1) - whole)[..., None]
    f = x * np.exp(-x) * weight * np.tile(_w, len(edges) - 1)
    # The others are hardly ever all below a small score, and those take most of the time.
    z, shape = np.atleast_2d(s / sigma), (len(u), nodes.size)
    often = z > scipy.special.ndtri(math.exp(-RARE / (n - 1)))
    above = np.zeros_like(z)
    above[often] = scipy.special.ndtr(-z[often])
    counts = np.broadcast_to(often, shape)
    c = c.reshape(shape)[counts] + np.broadcast_to(above, shape)[counts]
    return n * float(np.sum(f[counts] * power(c, n - 1))) * step
