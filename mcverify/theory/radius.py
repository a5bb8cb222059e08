"""The length of a normal vector, over which scores of a random query are averaged."""

import math

import numpy as np

from mcverify.arrays import Array


def log_density(u: Array, d_k: float) -> Array:
    """ln of the density of u = ln(r/√d_k) where r² ~ χ²(d_k), 0 at its maximum, u = 0.

    >>> log_density(np.array([0.0]), 64).tolist()
    [-0.0]
    """
    return np.asarray(-d_k / 2 * (np.expm1(2 * u) - 2 * u))


def radii(d_k: float) -> tuple[Array, Array]:
    """r/√d_k and weights, for r² ~ χ²(d_k): a trapezoid in log r, good to 1e-11.

    >>> r, weight = radii(3)
    >>> round(float(weight @ r**2), 9)
    1.0
    """
    reach = math.sqrt(40 / d_k)
    v = np.arange(-(reach**2) - reach, reach, min(0.1, 0.8 / math.sqrt(2 * d_k)))
    weight = np.exp(log_density(v, d_k))
    return np.exp(v), weight / weight.sum()
