"""From weights to the simplest rule that makes them of q·k: its scale, cap, norms and positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.probing.calls import Array
from mcverify.probing.design import Design
from mcverify.probing.fit import Logits
from mcverify.probing.rounding import (
    BENT,
    COARSEST,
    LOGIT,
    OWN,
    SINGLE,
    TYPES,
    Step,
    computed,
    steps,
    stored,
)


@dataclass(frozen=True)
class Rule:
    """Logits are s·z or c·tanh(s·z/c), z = q·k over the lengths of what is normalised.

    Attributes
    ----------
    scale, low, high : (heads,) the scale, and all scales that explain all, with any cap that does.
    cap : (2, heads) the least and the largest cap; the largest is inf where there need be none.
    normalised : "", "q", "k" or "q and k"; position : what z is multiplied by at query n, or "".
    roundoff : of the coarsest rounding that the logits show.
    even : (2, heads) the scales that explain the products that are powers of two, which any
        rounding leaves in one proportion: narrower, but of the scale as the function holds it.
    """

    scale: Array
    low: Array
    high: Array
    cap: Array
    normalised: str
    position: str
    roundoff: float
    even: Array


@dataclass(frozen=True)
class Readings:
    """Weights of many experiments, with what went in.

    Attributes
    ----------
    p : (batch, heads, tokens, keys) weights; flat : (heads, tokens, keys) those of products of 0.
    visible : (heads, tokens, keys) where a key can get weight.
    design, loud : the experiments of one head, and what queries are multiplied by in each head.
    precision : the type that weights are rounded to.
    """

    p: Array
    flat: Array
    visible: NDArray[np.bool_]
    design: Design
    loud: Array
    precision: str

    def rule(self, only_norms: bool = False) -> Rule | None:
        """The first rule that explains every logit, simplest first and finest rounding first."""
        if not np.all(np.any(self._differences.value, axis=1)):
            return None
        for step in self._steps():
            for normalised, position, z in self._products():
                if step.capped and (only_norms or position):
                    continue
                if only_norms and not normalised.startswith("q"):
                    continue
                if step.u < TYPES[self.precision][0] and normalised == "q and k":
                    continue  # so few different cosines that their roundings may all be alike
                found = self._capped(step, z) if step.capped else self._straight(step, z)
                if found:
                    scale, low, high, cap, even = found
                    return Rule(scale, low, high, cap, normalised, position, step.u, even)
        return None

    def _straight(self, step: Step, z: Array) -> tuple[Array, Array, Array, Array, Array] | None:
        logits = self._differences.logits(step.u, step.roundings)
        low, high = logits.linear(z)
        even = self._even(step.u, z)
        if np.any(low > high) or (self._doubtful(step) and not np.all(even[0] <= even[1])):
            return None
        least, most, cap = logits.unseen_cap(z)
        return (low + high) / 2, np.minimum(low, least), np.maximum(high, most), cap, even

    def _capped(self, step: Step, z: Array) -> tuple[Array, Array, Array, Array, Array] | None:
        if self._doubtful(step):
            return None
        found = self._differences.logits(step.u, step.roundings + BENT).cap(z)
        if found is None:
            return None
        low, high, cap = found
        return (low + high) / 2, low, high, cap, np.stack([low, high])

    def _doubtful(self, step: Step) -> bool:
        """Whether logits are in half precision and outputs are not.

        That is believed only of logits that it leaves in proportion where products are powers of
        two, as noise or another curve does not.
        """
        return step.u > max(SINGLE, TYPES[self.precision][0])

    def _even(self, u: float, z: Array) -> Array:
        even = (np.abs(np.frexp(z)[0]) == 0.5) & (self._differences.moved == 0)
        logits = self._differences.logits(u, 0.0)
        low, high = Logits(logits.value, np.where(even, logits.wide, np.inf)).linear(z)
        return np.stack([np.where(np.isfinite(low), low, np.nan), high])

    def _steps(self) -> list[Step]:
        largest = float(np.abs(self._differences.value).max(axis=1).min())
        return steps(self.precision, self.design.q.shape[-1], largest)

    def by_query(self) -> Array | None:
        """The scale at each query, (heads, tokens), if a straight line explains what it sees."""
        query = self._flat(np.broadcast_to(
            np.arange(self.p.shape[2])[:, None], self.p.shape))[0]
        z = next(self._products())[2]
        for step in self._steps():
            logits = self._differences.logits(step.u, step.roundings)
            parts = [[x[:, query == n] for x in (logits.value, logits.wide, z)]
                     for n in np.unique(query)]
            ends = np.array([Logits(value, wide).linear(x) for value, wide, x in parts])
            if np.all(ends[:, 0] <= ends[:, 1]):
                return np.asarray(ends.mean(axis=1).T)
        return None

    def unexplained(self) -> float:
        """The share of the logits' squares that the best straight line in q·k leaves over."""
        value, z = self._differences.value, next(self._products())[2]
        cross, squares = np.sum(value * z, axis=1), np.sum(value**2, axis=1) * np.sum(z**2, axis=1)
        return float(np.max(1 - cross**2 / squares, initial=0, where=squares > 0))

    def _products(self) -> Iterator[tuple[str, str, Array]]:
        """What logits may be proportional to: normalised, position, z (heads, many)."""
        x = self.design.products[:, None] * self.loud[:, None, None]
        q, k = (length[:, None] for length in self.design.lengths)
        with np.errstate(invalid="ignore", divide="ignore"):
            of_norms = {"": x, "q": x / (q * self.loud[:, None, None]), "k": x / k}
            of_norms["q and k"] = of_norms["q"] / k
        for normalised, z in of_norms.items():
            yield normalised, "", self._flat(z)
        for position, factor in _positions(x.shape[2]):
            yield "", position, self._flat(x * factor[:, None])

    def _flat(self, x: NDArray[Any]) -> NDArray[Any]:
        """(batch, heads, tokens, keys) -> (heads, many), where any head has a logit."""
        known = self._differences.known
        return np.moveaxis(x, 1, 0)[:, known]

    @cached_property
    def _differences(self) -> "Differences":
        return differences(self)


@dataclass(frozen=True)
class Differences:
    """Each key's logit less that of a key of the same row that meets the query at 0.

    Attributes
    ----------
    known : (batch, tokens, keys) where any head has one; value : (heads, many) of those.
    stored : how far they may be off for the type of the outputs.
    weights : so many times what a weight may be off for the type that computes.
    moved : in unit roundoffs of that type, for what logits are rounded with; roundings of the
        difference itself come on top.
    """

    known: NDArray[np.bool_]
    value: Array
    stored: Array
    weights: float
    moved: Array

    def logits(self, u: float, roundings: float) -> Logits:
        """With bounds for a unit roundoff, and so many roundings of a logit itself."""
        wide = self.stored + self.weights * computed(u)
        return Logits(self.value, wide + u * (self.moved + roundings * np.abs(self.value)))


def differences(of: Readings) -> Differences:
    """The logits that weights tell, with bounds."""
    zero = of.design.products[:, None] == 0
    unsure = stored(of.p, of.precision)
    usable = of.visible & (unsure < COARSEST)
    anchor = np.argmax(np.where(usable & zero, of.p, -1), axis=-1, keepdims=True)

    def at_anchor(x: Array | NDArray[np.bool_]) -> Array:
        return np.take_along_axis(np.broadcast_to(x, of.p.shape), anchor, axis=-1)

    known = usable & ~zero & (at_anchor(usable & zero) > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        y, bias = np.log(of.p), np.log(of.flat)
        value = y - at_anchor(y)
        wide = unsure + at_anchor(unsure) + OWN * (np.abs(y) + np.abs(at_anchor(y)))
        below = np.max(y, axis=-1, keepdims=True) - y
        if np.any(of.visible & (of.flat != np.max(of.flat, axis=-1, keepdims=True))):
            value = value - (bias - at_anchor(bias))
            rest = stored(of.flat, of.precision)
            wide = wide + rest + at_anchor(rest)
            fall = np.max(np.where(of.visible, bias, -np.inf), axis=-1, keepdims=True) - bias
            moved = 2 * LOGIT * (fall + at_anchor(fall)) + below + at_anchor(below)
            weights = 4
        else:
            # Subtracting a row's largest logit is exact for that one, and for a logit of 0.
            exact = (below == 0) | (at_anchor(below) == 0)
            moved, weights = np.where(exact, 0, below), 2
    any_head = known.any(axis=1)
    value, wide, moved = (np.moveaxis(np.where(known, x, other), 1, 0)[:, any_head]
                          for x, other in ((value, 0.0), (wide, np.inf), (moved, 0.0)))
    return Differences(any_head, value, wide, weights, moved)


def _positions(tokens: int) -> Iterator[tuple[str, Array]]:
    """Scales that grow with the number n of the query, from 1: each with its name."""
    n = np.arange(1.0, tokens + 1)
    yield "log(n)", np.log(n)
    yield "log(n + 1)", np.log(n + 1)
    for length in range(2, tokens):
        yield f"max(1, log(n)/log({length}))", np.maximum(1, np.log(n) / np.log(length))
