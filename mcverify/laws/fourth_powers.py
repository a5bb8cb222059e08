"""How much the mean of s⁴ − c·s² over a block's scores varies, from coordinates' eight moments.

Queries and keys are x = r·z: independent coordinates z of mean 0 that are alike, times a number
r >= 0 of the vector. A sum of d independent terms that are alike has the generating function of one
term to the power d, which gives E s^n of s = Σ q_i k_i, and with u = x², v = x⁴ the moments of

    E[s⁴ − c·s² | q] = E r_k⁴·(3σ_k⁴(Σu)² + (E z_k⁴ − 3σ_k⁴)Σv) − c·σ_k²·Σu.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array


@dataclass(frozen=True)
class Powers:
    """E z^n of a coordinate, n = 0 to 8, and E r^2n of what all coordinates share, n = 0 to 4."""

    coordinate: tuple[float, ...]
    scale: tuple[float, ...] = (1.0,) * 5

    def __post_init__(self) -> None:
        assert abs(self.coordinate[1]) < 1e-9  # the formulas hold for mean 0 alone


def spread_of_fourths(q: Powers, k: Powers, d: int, tokens: int, c: float) -> float:
    """Var of a block's mean of s⁴ − c·s² over all pairs of independent tokens.

    >>> coin = Powers((1.0, 0.0) * 4 + (1.0,))
    >>> spread_of_fourths(coin, coin, 2, 1, 0.0)  # s⁴ is 0 or 16
    64.0
    """
    terms = [x * y for x, y in zip(q.coordinate, k.coordinate, strict=True)]
    e = [moment_of_sum(terms, d, n) * q.scale[n // 2] * k.scale[n // 2] for n in (2, 4, 6, 8)]
    mean = e[1] - c * e[0]
    own = e[3] - 2 * c * e[2] + c**2 * e[1] - mean**2
    shared = _of_one_side(q, k, d, c) + _of_one_side(k, q, d, c) - 2 * mean**2
    return (own + (tokens - 1) * shared) / tokens**2


def moment_of_sum(moments: Sequence[float], d: int, n: int) -> float:
    """E of the nth power of a sum of d independent terms with these moments, from the 0th on.

    >>> moment_of_sum((1.0, 1.0, 3.0), 4, 2)  # of squares of N(0, 1)
    24.0
    """
    series = np.array([m / math.factorial(i) for i, m in enumerate(moments)])[None]
    return math.factorial(n) * float(_to_the(series, d)[0, n])


def _of_one_side(x: Powers, y: Powers, d: int, c: float) -> float:
    """E (E[s⁴ − c·s² | x])²: of a·(Σu)² + b·Σv − c'·Σu."""
    square = y.coordinate[2]
    a, b = 3 * square**2 * y.scale[2], (y.coordinate[4] - 3 * square**2) * y.scale[2]
    c *= square
    # u^i v^j of one coordinate is z^(2i + 4j), and the same power of r.
    series = np.array([[x.coordinate[2 * i + 4 * j] / math.factorial(i) / math.factorial(j)
                        if i + 2 * j <= 4 else 0.0 for i in range(5)] for j in range(3)])
    sums = _to_the(series, d)

    def e(i: int, j: int) -> float:
        return math.factorial(i) * math.factorial(j) * float(sums[j, i]) * x.scale[i + 2 * j]

    return (a**2 * e(4, 0) + b**2 * e(0, 2) + c**2 * e(2, 0)
            + 2 * a * b * e(2, 1) - 2 * a * c * e(3, 0) - 2 * b * c * e(1, 1))


def _to_the(series: Array, d: int) -> Array:
    """The power series in two variables to the power d, cut off where it was."""
    power = np.zeros_like(series)
    power[0, 0] = 1.0
    while d:
        if d % 2:
            power = _times(power, series)
        series, d = _times(series, series), d // 2
    return power


def _times(a: Array, b: Array) -> Array:
    product = np.zeros_like(a)
    for (i, j), value in np.ndenumerate(a):
        product[i:, j:] += value * b[:len(a) - i, :a.shape[1] - j]
    return product
