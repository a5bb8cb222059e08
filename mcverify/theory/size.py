"""How large q·k of normal vectors typically is: shares within a bound, and the median size.

Given q, q·k is normal with variance ‖q‖² ~ χ²(d_k), so each is an integral over that radius.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import erf, gammaln

from mcverify.arrays import Array

NODES = 4001  # of a trapezoid over log ‖q‖, whose integrand is analytic and falls off both ways
REACH = 12.0  # standard deviations of ‖q‖ or of its logarithm, to where nothing is left
LEAST = 1e-14  # with few coordinates short lengths are likelier: the share below the first node


@lru_cache(maxsize=64)
def _lengths(d_k: int) -> tuple[Array, Array]:
    """‖q‖ at the nodes, and the probability that each stands for."""
    most = math.sqrt(d_k) + REACH
    below = min(math.log(LEAST) / d_k, -REACH / math.sqrt(2 * d_k))
    log_r = np.linspace(math.log(d_k) / 2 + below, math.log(most), NODES)
    log_density = (d_k * log_r - np.exp(2 * log_r) / 2
                   - (d_k / 2 - 1) * math.log(2) - gammaln(d_k / 2))
    weight = np.exp(log_density) * (log_r[1] - log_r[0])
    return np.exp(log_r), weight


def share_within(deviations: float, d_k: int) -> float:
    """P(abs(q·k) ≤ deviations·√d_k) for normal q and k of d_k coordinates.

    It rises to that of a normal score as d_k grows.

    >>> [round(share_within(3, d_k), 5) for d_k in (1, 512, 10**9)]
    [0.98036, 0.99722, 0.9973]
    """
    if d_k > 10**6:  # a length that is √d_k to 1e-3
        return math.erf(deviations / math.sqrt(2))
    r, weight = _lengths(d_k)
    return float(weight @ erf(deviations * math.sqrt(d_k / 2) / r))


def spread_of_share(deviations: float, d_k: int) -> float:
    """The standard deviation over q of the probability, given q, of which share_within is the mean.

    >>> round(spread_of_share(3, 512), 5)
    0.00085
    """
    r, weight = _lengths(d_k)
    share = erf(deviations * math.sqrt(d_k / 2) / r)
    return math.sqrt(float(weight @ (share - share_within(deviations, d_k)) ** 2))


def median(d_k: int) -> float:
    """The median of abs(q·k) for normal q and k of d_k coordinates.

    >>> round(median(1), 4), round(median(64), 4)
    (0.3652, 5.3423)
    """
    from scipy.optimize import brentq  # here: a quarter of a second that few starts need

    r, weight = _lengths(d_k)
    return float(brentq(lambda t: float(weight @ erf(t / (math.sqrt(2) * r))) - 0.5, 0,
                        2 * math.sqrt(d_k)))
