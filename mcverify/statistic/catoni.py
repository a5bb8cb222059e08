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
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]


def catoni(values: Array, variance: float, error_rate: float) -> tuple[float, float]:
    """The interval above, (low, high), for a variance of at least 0 that is finite.

    >>> low, high = catoni(np.array([1.0, -1.0] * 256), 1.0, 1e-3)
    >>> round(low, 4), round(high, 4)
    (-0.1745, 0.1745)
    """
    centre, blocks = float(values.mean()), len(values)
    if variance == 0:
        return centre, centre
    log_rate = math.log(2 / error_rate)
    scale = math.sqrt(2 * log_rate / (blocks * variance))
    allowed = 2 * log_rate  # nλ²v/2 is ln(2/α) as well

    def influence(theta: float) -> float:
        x = scale * (values - theta)
        size = np.abs(x)
        return float(np.sum(np.copysign(np.log1p(size + size * size / 2), x)))

    def end(sign: int) -> float:
        def excess(theta: float) -> float:  # falls as theta grows
            return influence(theta) + sign * allowed

        low = high = centre
        reach = allowed / (blocks * scale)
        while excess(low) < 0:
            low, reach = low - reach, 2 * reach
        while excess(high) > 0:
            high, reach = high + reach, 2 * reach
        return low if low == high else float(brentq(excess, low, high, xtol=1e-12 * reach))

    return end(-1), end(1)
