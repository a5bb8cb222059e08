"""From the blocks of some cells to what a tilt of their chances looks at.

Features are numbers of each cell, whose exponential families are the tilts. Sight is what the
statistic would be under other chances: (chances) -> (error, influence, parts,
lean).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mcverify.statistic import Statistic, kurtosis, mean, ratio, variance

Array = NDArray[np.float64]
Seen = Callable[[Array], tuple[float, Array, list[Array], float]]

FLAT = 1e-12  # keeps a spread that is nil from dividing by it
SLOPES = {f"slope of {of.name}": of for of in (mean, variance)}  # over two widths


def straight(y: Array, base: Array | None = None) -> tuple[Array, Seen]:
    """Features and sight of a mean of y, whose own mean is the truth."""
    y = y - (y.mean() if base is None else base @ y)
    return np.stack([y, y**2, y**3]), lambda q: (float(q @ y), y - q @ y, [], 0.0)


def curved(top: Array, bottom: Array, power: float, log: float = 0.0) -> tuple[Array, Seen]:
    """Features and sight of E top/(E bottom)^power, as kurtosis and ratio are.

    With ``log`` the statistic is that times the logarithm of E top/E bottom, as a slope is.
    """
    top, bottom = top / (top.mean() if log else 1), bottom / bottom.mean()
    truth = float(top.mean())

    def seen(q: Array) -> tuple[float, Array, list[Array], float]:
        a, b = float(q @ top), float(q @ bottom)
        parts, shares = [top - a, bottom - b], [top / a - 1, bottom / b - 1]
        y, error = a / b**power * (shares[0] - power * shares[1]), a / b**power - truth
        if log:
            y, error = log * (shares[0] - shares[1]), log * math.log(a / b)
        square = float(q @ y**2) + FLAT
        along, across = (float(q @ (y * share)) for share in shares)
        lean = log * (along**2 - across**2) / (2 * square**1.5) if log else across / square**0.5
        return error, y, parts, abs(lean) if power == 1 else 0.0

    y, z = (top - power * truth * bottom) * (log or 1), bottom
    y, z, w = ((v - v.mean()) / v.std() for v in (y, z, top))
    return np.stack([y, z, y * y, z * z, y * z, y**3, w**3, z**3]), seen


def sight(statistic: Statistic, table: Array) -> tuple[Array, Seen]:
    """Features and sight of a statistic, by the table of one block for each cell."""
    if statistic is ratio:
        return curved(table[:, 0], table[:, 1], 1)
    if statistic is kurtosis:
        assert statistic.parts is not None
        second, fourth = statistic.parts(table).T
        return curved(fourth, second, 2)
    if statistic.name in SLOPES:
        low, high = (SLOPES[statistic.name].influence(table[:, i, 1:]) for i in (0, 1))
        growth = 1 / math.log(table[0, 1, 0] / table[0, 0, 0])
        return curved(high[0] + high[1], low[0] + low[1], 1, growth)
    return straight(statistic.influence(table)[1])
