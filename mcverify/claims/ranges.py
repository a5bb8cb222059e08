"""The ranges that what attention makes lies in whatever the scores are, so that means are bounded."""

import math

from mcverify.statistic import mean, ratio

ENTROPY = mean.within(0, lambda keys: math.log(keys))  # of ``keys`` weights
WEIGHT = mean.within(0, 1)  # a weight, Σp², the trace of the Jacobian, a squared cosine
NORM = mean.within(0, 0.5)  # ‖J‖_F² = Σp² − 2Σp³ + (Σp²)² ≤ Σp² − (Σp²)² ≤ 1/4, and ‖J‖₂ ≤ ‖J‖_F
SQUARED_NORM = mean.within(0, 0.25)  # or p(1 − p)
NORMS = ratio.within(0, 0.5)
