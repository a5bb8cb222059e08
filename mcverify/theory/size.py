"""How large q·k of normal vectors typically is: shares within a bound, and the median size.

Given q, q·k is normal with variance ‖q‖² ~ χ²(d_k), so each is an integral over that radius.
"""

import math

import scipy

from mcverify.theory.radius import radii


def share_within(deviations: float, d_k: int) -> float:
    """P(abs(q·k) ≤ deviations·√d_k) for normal q and k of d_k coordinates.

    It rises to that of a normal score as d_k grows.

    >>> [round(share_within(3, d_k), 5) for d_k in (1, 512, 10**9)]
    [0.98036, 0.99722, 0.9973]
    """
    r, weight = radii(d_k)
    return float(weight @ scipy.special.erf(deviations / math.sqrt(2) / r))


def spread_of_share(deviations: float, d_k: int) -> float:
    """The standard deviation over q of the probability, given q, of which share_within is the mean.

    >>> round(spread_of_share(3, 512), 5)
    0.00085
    """
    r, weight = radii(d_k)
    share = scipy.special.erf(deviations / math.sqrt(2) / r)
    return math.sqrt(float(weight @ (share - share_within(deviations, d_k)) ** 2))


def median(d_k: float) -> float:
    """The median of abs(q·k) for normal q and k of d_k coordinates, by bisection.

    >>> round(median(1), 4), round(median(64), 4)
    (0.3652, 5.3423)
    """
    (r, weight), low, high = radii(d_k), 0.0, 1.0  # in deviations
    for _ in range(60):
        middle = (low + high) / 2
        above = float(weight @ scipy.special.erfc(middle / (math.sqrt(2) * r)))
        low, high = (middle, high) if above > 0.5 else (low, middle)
    return math.sqrt(d_k) * low
