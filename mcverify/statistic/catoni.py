"""From block values whose variance is known to an interval that holds for every such law.

With ψ(x) = ±ln(1 + |x| + x²/2), which is between −ln(1 − x + x²/2) and ln(1 + x + x²/2), and n
independent values of mean θ and variance at most v,

    E exp(Σψ(λ(X_i − θ))) ≤ (1 + λ²v/2)^n ≤ exp(nλ²v/2),

and likewise for −ψ. So {θ : |Σψ(λ(X_i − θ))| ≤ nλ²v/2 + ln(2/α)} holds the mean with probability
1 − α. λ = √(2 ln(2/α)/(nv)) makes it narrowest: about ±√(2v·ln(2/α)/n).
Source: Catoni 2012, doi 10.1214/11-AIHP454, section 2.
"""

import math

import numpy as np

from mcverify.arrays import Array

TINY = 1e-300  # a variance of at most less is one of at most this
CLIPPED_AT = 1e150  # where ψ stays as it is, between its bounds, so that no square overflows
NEWTON_STEPS = 200
LAST_STEP = 1e-6  # of Newton's, in proportion, which leaves about its square
ROUNDING = 1e-10  # to which the ends are found, in proportion
MANY = 2**13  # values, of which half make the interval 0.7 % wider than any number would at 1e-12


@np.errstate(over="ignore")
def catoni(values: Array, variance: float, error_rate: float) -> tuple[float, float]:
    """The interval above, (low, high), for a variance of at least 0 that is finite.

    >>> low, high = catoni(np.array([1.0, -1.0] * 256), 1.0, 1e-3)
    >>> round(low, 4), round(high, 4)
    (-0.1745, 0.1745)
    """
    if variance == 0:  # all values are the mean, but for rounding
        return float(values.min()), float(values.max())
    log_rate = math.log(2 / error_rate)
    scale = math.sqrt(2 * log_rate / len(values) / max(variance, TINY))
    allowed = 2 * log_rate  # nλ²v/2 is ln(2/α) as well
    centre = float(np.median(values))  # about which no value, however far, costs others digits
    x = scale * (values - centre)
    return centre - _high_end(-x, allowed) / scale, centre + _high_end(x, allowed) / scale


def in_groups(values: Array, variance: float) -> tuple[Array, float]:
    """Means of as many neighbours each as leave at most MANY of them, and their variance.

    They are independent, too, have the same mean, and their interval takes less time.

    >>> means, variance = in_groups(np.arange(2.0**15), 1.0)
    >>> means[:2].tolist(), len(means), variance
    ([1.5, 5.5], 8192, 0.25)
    """
    while len(values) > MANY and len(values) % 2 == 0:
        values, variance = (values[::2] + values[1::2]) / 2, variance / 2
    return values, variance


def _high_end(x: Array, allowed: float) -> float:
    """The shift for which Σψ(x − shift) has fallen to −allowed; rounded up, the safe side.

    Newton's steps, kept within a bracket: two to five serve, and the first bound its end.
    """
    shift, low, high, reach = 0.0, -math.inf, math.inf, allowed / len(x)
    for _ in range(NEWTON_STEPS):
        y = x - shift
        size = np.minimum(np.abs(y), CLIPPED_AT)
        total = 1 + size * (1 + size / 2)  # rounded to 1 for tiny sizes, which count for nothing
        excess = float(np.sum(np.copysign(np.log(total), y))) + allowed
        low, high = (shift, high) if excess > 0 else (low, shift)
        step = excess / float(np.sum((1 + size) / total))
        if not low <= shift + step <= high:
            step = (low + high) / 2 - shift
        shift += step
        if abs(step) <= LAST_STEP * reach:
            return shift + 2 * ROUNDING * reach
    return math.inf if math.isinf(high) else high
