"""The length of a normal vector, over which scores of a random query are averaged."""

import math
from collections.abc import Iterator

import numpy as np

from mcverify.arrays import Array

RULE = 8  # nodes of a Gauss rule for each part of the radii of a query: 1e-11
FIRST, PART = 0.3, 0.8  # sigma where the first part ends, and the length of others in its logarithm


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


def fewer(sigmas: Array, weight: Array) -> Iterator[tuple[float, float]]:
    """Nodes and weights of Gauss rules for the given ones, a rule for each part of log sigma.

    What is averaged is smooth in sigma up to FIRST, and on a scale of 1 in log sigma beyond.
    Relative error below 1e-11.

    >>> r, weight = radii(64)
    >>> nodes, weights = np.transpose([*fewer(r, weight)])
    >>> len(r), len(nodes), round(float(weights @ nodes**2), 9)
    (32, 25, 1.0)
    """
    part = np.maximum(0, np.ceil(np.log(sigmas / FIRST) / PART))
    for number in np.unique(part):
        x, w = sigmas[part == number], weight[part == number]
        nodes, weights = _gauss(x, w, RULE) if len(x) > RULE else (x, w)
        yield from zip(nodes.tolist(), weights.tolist(), strict=True)


def _gauss(x: Array, w: Array, count: int) -> tuple[Array, Array]:
    """The Gauss rule of a discrete measure, from the recurrence of its polynomials (Lanczos)."""
    basis = np.zeros((count + 1, len(x)))
    basis[0] = np.sqrt(w / w.sum())
    for k in range(count):
        new = x * basis[k]
        for _ in range(2):  # twice is enough to keep them orthogonal
            new -= (basis[:k + 1] @ new) @ basis[:k + 1]
        basis[k + 1] = new / np.linalg.norm(new)
    nodes, vectors = np.linalg.eigh((basis[:count] * x) @ basis[:count].T)
    return nodes, w.sum() * vectors[0] ** 2
