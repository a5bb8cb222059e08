"""The ranges that what attention makes lies in whatever the scores are, so that means are bounded."""

import math

from mcverify.statistic import mean, ratio

ENTROPY = mean.within(0, lambda keys: math.log(keys))  # of ``keys`` weights
MANY = 100  # keys, whose largest weight is so far below 1 that its range asks for 10^5 blocks


def few(keys: int) -> float | None:
    """The range's end for few keys."""
    return 1.0 if keys < MANY else None


SCALED_WEIGHT = mean.within(0, few)  # the largest weight, or Σp², of scores of unit variance
# Unscaled at a width of 512 the entropy is 4 % of its range.
LOW_ENTROPY = mean.within(0, lambda keys, d_k: math.log(keys) if few(keys) and d_k < 512 else None)
WEIGHT = mean.within(0, 1)  # a weight, Σp², the trace of the Jacobian, a squared cosine
NORM = mean.within(0, 0.5)  # ‖J‖_F² = Σp² − 2Σp³ + (Σp²)² ≤ Σp² − (Σp²)² ≤ 1/4, and ‖J‖₂ ≤ ‖J‖_F
SQUARED_NORM = mean.within(0, 0.25)  # or p(1 − p)
NORMS = ratio.within(0, 0.5)
