"""Fourth moments of independent coordinates that are alike, after a norm that fixes their length.

Let x have n such coordinates, symmetric about 0, and let w be x, or x less its mean, over its
length. From 1/S² = ∫ t·e^(−tS) dt with S the squared length, whose exponential is a product,

    E w_i⁴ = ∫ t·E[x⁴ e^(−tx²)]·(E e^(−tx²))^(n − 1) dt.

Less its mean, x has S = min Σ(x_j − u)² over u, so that e^(−tS) is √(tn/π)·∫ Π e^(−t(x_j − u)²) du.
Under that product coordinates are independent as well, and E (x_i − mean)⁴ follows from their
central moments. All other products of four coordinates follow from E w_i⁴, for their order does not
matter, the squares add up to 1, and the coordinates to 0 if their mean is taken off.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from mcverify.arrays import Array

Sizes = Callable[[int, Array], tuple[Array, Array]]
Products = tuple[float, float, float, float, float]  # E of iiii, iiij, iijj, iijk and ijkl

LARGEST, STEP = 40.0, 0.25  # of log t
LOG_SIZES = -12.0, 4.0  # of sizes in standard deviations
SHIFTS = np.linspace(0.0, 9.0, 46)  # of u
TINY = 1e-20  # of a density: beyond it nothing is left
ERROR = 1e-3  # of fourth moments, and of E Σw², which is 1: farther off, a law is too rough


@lru_cache(maxsize=64)
def normed_products(sizes: Sizes, n: int, centred: bool) -> Products | None:
    """E of products of four coordinates of w, by the law of abs(x); None where that is too rough.

    ``sizes`` is as in ``Side``. Coordinates of a normal vector are those of a uniform direction:

    >>> from mcverify.laws import normal
    >>> products = normed_products(normal.sizes, 8, centred=False)
    >>> round(products[0], 5), 3 / (8 * 10), round(products[2], 5), 1 / (8 * 10)
    (0.0375, 0.0375, 0.0125, 0.0125)
    """
    two = 0.25, 1.0  # centred, w is ±(1, −1)/√2
    fourth, whole = two if centred and n == 2 else (_centred if centred else _normed)(sizes, n)
    if abs(whole - 1) > ERROR:
        return None
    fourth /= whole**2
    pairs = (1 / n - fourth) / (n - 1)  # Σ_j E w_i² w_j² is E w_i²
    if not centred:
        return fourth, 0.0, pairs, 0.0, 0.0
    cubes = -fourth / (n - 1)  # as Σ_j w_j is 0
    threes = -(cubes + pairs) / (n - 2) if n > 2 else 0.0
    return fourth, cubes, pairs, threes, -3 * threes / (n - 3) if n > 3 else 0.0


def fourth_of_score(q: Products, k: Products, width: int) -> float:
    """E (q·k)⁴ of so many coordinates of independent q and k.

    >>> fourth_of_score((1.0, 0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0, 0.0), 2)  # coins: 0 or ±2
    8.0
    """
    n = width
    counts = (n, 4 * n * (n - 1), 3 * n * (n - 1), 6 * n * (n - 1) * (n - 2),
              n * (n - 1) * (n - 2) * (n - 3))
    return math.fsum(count * x * y for count, x, y in zip(counts, q, k, strict=True))


def _cells(sizes: Sizes, cells: int) -> tuple[Array, Array]:
    """Squares of sizes, in units of their mean, and their probabilities: (cells,) each."""
    unit = math.sqrt(float(sizes(2, np.array(1e3))[0]))
    ends = unit * np.concatenate([[0.0], np.exp(np.linspace(*LOG_SIZES, cells))])
    inside, beyond = sizes(2, ends)
    share = -np.diff(beyond)
    kept = share > 0
    return np.diff(inside)[kept] / share[kept] / unit**2, share[kept]


def _normed(sizes: Sizes, n: int) -> tuple[float, float]:
    """E w_i⁴, and E Σw², which tells how far off it is."""
    squares, share = _cells(sizes, 1200)
    t = np.exp(np.arange(-LARGEST, LARGEST, STEP))
    weights = np.exp(-np.outer(t, squares)) * share
    density = STEP * t * weights.sum(axis=1) ** (n - 1)
    return (float(density @ (t * (weights @ squares**2))),
            n * float(density @ (weights @ squares)))


def _centred(sizes: Sizes, n: int) -> tuple[float, float]:
    """The same of x less its mean."""
    squares, share = _cells(sizes, 300)
    x, share = np.concatenate([np.sqrt(squares), -np.sqrt(squares)]), np.tile(share / 2, 2)
    one, fourth, whole = (n - 1) / n, 0.0, 0.0  # x_i − mean is one·x_i − Σ_others/n
    for t in np.exp(np.arange(-LARGEST / 2, LARGEST, STEP)) / n:
        unit = 1 / math.sqrt(2 * t * n) + 1 / math.sqrt(n)  # of u, which is even
        y = x - unit * SHIFTS[:, None]
        near = np.exp(-t * y * y) * share
        e = [near.sum(axis=1)]
        if e[0][0] ** (n - 1) * t * n < TINY:
            break
        for _ in range(4):
            near *= y
            e.append(near.sum(axis=1))
        m1, m2, m3, m4 = (moment / np.maximum(e[0], TINY) for moment in e[1:])
        c2, c4 = m2 - m1**2, m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        density = STEP * t * math.sqrt(t * n / math.pi) * 2 * unit * SHIFTS[1] * e[0] ** n
        density[0] /= 2
        of_others = ((n - 1) * c4 + 3 * (n - 1) * (n - 2) * c2**2) / n**4
        fourth += t * float(density @ (one**4 * c4 + 6 * one**3 / n * c2**2 + of_others))
        whole += n * one * float(density @ c2)
    return fourth, whole
