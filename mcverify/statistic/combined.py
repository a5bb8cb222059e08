"""From several estimates on the same draws to a smooth function of them, with its second order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic

# Of the spread of influence values: over the first a statistic's own scale is straight, over the
# second it bends by more than rounding.
NEAR, FAR = 1e-6, 1e-3
STRAIGHT = np.zeros((2, 2))  # second derivatives


class Shape(NamedTuple):
    """A function of some numbers at a point: its value, first and second derivatives."""

    value: float
    slope: Any
    bend: Any


def quotient(a: float, b: float) -> Shape:
    """a/b as a function of both; nan at b = 0."""
    if b == 0:
        return Shape(math.nan, np.zeros(2), STRAIGHT)
    ratio, one = a / b, 1 / b
    return Shape(ratio, np.array([one, -ratio * one]),
                 np.array([[0.0, -one * one], [-one * one, 2 * ratio * one * one]]))


class Part(NamedTuple):
    """One of the estimates, on its own scale: value, influence, curvature and bend.

    The bend is f″/f′² of the way f from the scale of means to its own: −1/value of a standard
    deviation.
    """

    value: float
    influence: Array
    curvature: float
    bend: float


def part_of(one: Statistic, table: Array) -> Part:
    """A statistic at its block values."""
    value, influence = one.influence(table)
    curvature = 0.0 if one.curvature is None else one.curvature(table)
    if one.back is None:
        return Part(value, influence, curvature, 0.0)
    own, spread = one.back(value), float(influence.std())
    if not spread > 0:
        return Part(own, influence, curvature, 0.0)
    near, far = NEAR * spread, FAR * spread
    slope = (one.back(value + near) - one.back(value - near)) / (2 * near)
    bend = (one.back(value + far) - 2 * own + one.back(value - far)) / (far * slope) ** 2
    return Part(own, slope * influence, abs(slope) * curvature, bend)


@dataclass(frozen=True)
class Combined:
    """What a statistic that is a function of others has from them, by the delta method.

    ``at`` gives the function and its parts at block values.
    """

    at: Callable[[Array], tuple[Shape, Sequence[Part]]]

    def influence(self, table: Array) -> tuple[float, Array]:
        """As in ``Statistic``, like the other two."""
        shape, parts = self.at(table)
        return shape.value, _influence(shape, parts)

    def curvature(self, table: Array) -> float:
        shape, parts = self.at(table)
        return float(np.abs(shape.slope) @ [part.curvature for part in parts])

    def lean(self, table: Array) -> float:
        # At z standard errors the parts are off by m·z, so the estimate by z + m·H·m/2·z², with H
        # its second derivatives, and the spread by m·H·m·z: half of it is left of their quotient.
        shape, parts = self.at(table)
        y = _influence(shape, parts)
        spread = float(y.std())
        if not spread > 0:
            return 0.0
        moves = np.array([np.mean(part.influence * y) for part in parts]) / spread
        own = np.array([part.bend for part in parts]) * moves**2
        return abs(float(moves @ shape.bend @ moves + shape.slope @ own)) / (2 * spread)


def _influence(shape: Shape, parts: Sequence[Part]) -> Array:
    return np.asarray(shape.slope @ np.stack([part.influence for part in parts]))
