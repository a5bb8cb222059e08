"""From weights of experiments to the logits they tell, with bounds, beside what went in."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array, Bools
from mcverify.probing.design import Design
from mcverify.probing.fit import Logits
from mcverify.probing.rounding import COARSEST, LOGIT, OWN, TYPES, Step, steps, stored


class Kind(NamedTuple):
    """What logits may be proportional to: z (heads, many) is q·k over lengths, times a factor.

    ``normalised`` is "", "q", "k" or "q and k"; ``position`` names the factor at each query, or is
    "", and ``factor`` (tokens,) holds it.
    """

    normalised: str
    position: str
    factor: Array
    z: Array


@dataclass(frozen=True)
class Readings:
    """Weights of many experiments, with what went in.

    Attributes
    ----------
    p : (batch, heads, tokens, keys) weights; at_zero : (heads, tokens, keys) those of products
        of 0.
    visible : (heads, tokens, keys) where a key can get weight.
    design, gain : the experiments of one head, and what queries are multiplied by in each head.
    precision : the type that weights are rounded to.
    """

    p: Array
    at_zero: Array
    visible: Bools
    design: Design
    gain: Array
    precision: str

    @cached_property
    def differences(self) -> "Differences":
        """The logits that the weights tell."""
        return _differences(self)

    def steps(self) -> list[Step]:
        """The roundings that may explain these logits."""
        logits = self.differences
        largest = float(np.abs(logits.value).max(axis=1).min())
        many = int(np.isfinite(logits.fixed).sum(axis=1).min())
        return steps(self.precision, self.design.q.shape[-1], largest, many, logits.weights)

    def kinds(self) -> Iterator[Kind]:
        """The simplest first."""
        x = self.design.products[:, None] * self.gain[:, None, None]
        q, k = (length[:, None] for length in self.design.lengths)
        with np.errstate(invalid="ignore", divide="ignore"):
            of_norms = {"": x, "q": x / (q * self.gain[:, None, None]), "k": x / k}
            of_norms["q and k"] = of_norms["q"] / k
        for normalised, z in of_norms.items():
            yield Kind(normalised, "", np.ones(x.shape[2]), self.known(z))
        for position, factor in _positions(x.shape[2]):
            yield Kind("", position, factor, self.known(x * factor[:, None]))

    def known(self, x: NDArray[Any]) -> NDArray[Any]:
        """(batch, heads, tokens, keys) -> (heads, many), where any head has a logit."""
        return np.moveaxis(x, 1, 0)[:, self.differences.known]


@dataclass(frozen=True)
class Differences:
    """Each key's logit less that of a key of the same row that meets the query at 0.

    Attributes
    ----------
    known : (batch, tokens, keys) where any head has one; value : (heads, many) of those.
    fixed : how far they may be off whatever the roundings: for weights below what their type
        resolves, and for the logarithms that are taken here.
    weights : so many weights are in each of them; unit : the unit roundoff of these.
    moved : in unit roundoffs of that type, for what logits are rounded with; roundings of the
        difference itself come on top. exact : where even that is exact in one type.
    """

    known: Bools
    value: Array
    fixed: Array
    weights: int
    unit: float
    moved: Array
    exact: Bools

    def logits(self, step: Step, roundings: float) -> Logits:
        """With bounds for the roundings of a step, and so many of a logit itself."""
        weights = self.weights * (step.stored * self.unit + step.computed * step.u)
        moved = step.u * (self.moved + roundings * np.abs(self.value))
        return Logits(self.value, self.fixed + weights + moved)


def _differences(of: Readings) -> Differences:
    """The logits that weights tell, with bounds."""
    zero = of.design.products[:, None] == 0
    usable = of.visible & (stored(of.p, of.precision) < COARSEST)
    unsure = stored(of.p, of.precision, 0)
    anchor = np.argmax(np.where(usable & zero, of.p, -1), axis=-1, keepdims=True)

    def at_anchor(x: Array | Bools) -> Array:
        return np.take_along_axis(np.broadcast_to(x, of.p.shape), anchor, axis=-1)

    known = usable & ~zero & (at_anchor(usable & zero) > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        y, bias = np.log(of.p), np.log(of.at_zero)
        value = y - at_anchor(y)
        wide = unsure + at_anchor(unsure) + OWN * (np.abs(y) + np.abs(at_anchor(y)))
        below = np.max(y, axis=-1, keepdims=True) - y
        moved, weights = below + at_anchor(below), 2
        # Subtracting a row's largest logit is exact for that one, and for a logit of 0, unless the
        # difference is rounded to a coarser type.
        exact = (below == 0) | (at_anchor(below) == 0)
        if np.any(of.visible & (of.at_zero != np.max(of.at_zero, axis=-1, keepdims=True))):
            value = value - (bias - at_anchor(bias))
            rest = stored(of.at_zero, of.precision, 0)
            wide = wide + rest + at_anchor(rest)
            fall = np.max(np.where(of.visible, bias, -np.inf), axis=-1, keepdims=True) - bias
            moved, weights, exact = moved + 2 * LOGIT * (fall + at_anchor(fall)), 4, known & False
    any_head = known.any(axis=1)
    value, wide, moved, exact = (
        np.moveaxis(np.where(known, x, other), 1, 0)[:, any_head]
        for x, other in ((value, 0.0), (wide, np.inf), (moved, 0.0), (exact, False)))
    return Differences(any_head, value, wide, weights, TYPES[of.precision][0], moved, exact > 0)


def _positions(tokens: int) -> Iterator[tuple[str, Array]]:
    """Scales that grow with the number n of the query, from 1: each with its name."""
    n = np.arange(1.0, tokens + 1)
    yield "log(n)", np.log(n)
    yield "log(n + 1)", np.log(n + 1)
    for length in range(2, tokens):
        yield f"max(1, log(n)/log({length}))", np.maximum(1, np.log(n) / np.log(length))
