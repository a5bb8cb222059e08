"""Calculations by hand: the notes' worked numbers, to the digits they print."""

import numpy as np

from mcverify import claim, grid, printed, relative
from mcverify.attention import matched_scores, softmax
from mcverify.statistic import exact

# Two keys, one standard deviation above and below the mean: unscaled at d_k = 64, divided by 8, by 64.
SIZES = [8.0, 1.0, 0.125]


@claim(exact, equals=5, within=relative(1e-12), decides="A1")
def hand_dot_product():
    """q = (1, 2) and k = (3, 1) have q·k = 5."""
    return matched_scores(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))


@claim(
    exact,
    equals=lambda size: printed({8.0: "1.0", 1.0: "0.88", 0.125: "0.56"}[size]),
    over=grid(size=SIZES),
    decides="A13 A14 A15",
)
def hand_larger_weight(size):
    """Scores (s, −s) with s of 8, 1 and 1/8 give the first key a weight of about 1, 0.88 and 0.56."""
    return softmax([size, -size])[0]


@claim(
    exact,
    equals=lambda size: printed({8.0: "1.1e-7", 1.0: "0.12", 0.125: "0.44"}[size]),
    over=grid(size=SIZES),
    decides="A13 A14 A15",
)
def hand_smaller_weight(size):
    """Scores (s, −s) with s of 8, 1 and 1/8 give the second key a weight of 1.1e-7, 0.12 and 0.44."""
    return softmax([size, -size])[1]


@claim(
    exact,
    equals=lambda size: printed({8.0: "1.1e-7", 1.0: "0.105", 0.125: "0.246"}[size]),
    over=grid(size=SIZES),
    decides="A13 A14 A15",
)
def hand_slope(size):
    """Scores (s, −s) with s of 8, 1 and 1/8 give a slope p(1 − p) of 1.1e-7, 0.105 and 0.246."""
    first, second = softmax([size, -size])
    return first * second
