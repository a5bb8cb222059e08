"""From logits within bounds to the simplest rule that makes them of q·k: scale, cap, norms."""

from dataclasses import dataclass

import numpy as np

from mcverify.probing.calls import Array
from mcverify.probing.fit import Logits
from mcverify.probing.readings import Kind, Readings
from mcverify.probing.rounding import BENT, SINGLE, TYPES, Step


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


def rule_of(readings: Readings, only_norms: bool = False) -> Rule | None:
    """The first rule that explains every logit, simplest first and finest rounding first."""
    if not np.all(np.any(readings.differences.value, axis=1)):
        return None
    finer = TYPES[readings.precision][0]
    for step in readings.steps():
        for kind in readings.kinds():
            if step.capped and (only_norms or kind.position):
                continue
            if only_norms and not kind.normalised.startswith("q"):
                continue
            if step.u < finer and kind.normalised == "q and k":
                continue  # so few different cosines that their roundings may all be alike
            rule = (_capped if step.capped else _straight)(readings, step, kind)
            if rule:
                return rule
    return None


def _straight(readings: Readings, step: Step, kind: Kind) -> Rule | None:
    logits = readings.differences.logits(step.u, step.roundings)
    low, high = logits.linear(kind.z)
    even = _even(readings, step.u, kind.z)
    if np.any(low > high) or (_doubtful(readings, step) and not np.all(even[0] <= even[1])):
        return None
    least, most, cap = logits.unseen_cap(kind.z)
    return Rule((low + high) / 2, np.minimum(low, least), np.maximum(high, most), cap,
                kind.normalised, kind.position, step.u, even)


def _capped(readings: Readings, step: Step, kind: Kind) -> Rule | None:
    found = None if _doubtful(readings, step) else readings.differences.logits(
        step.u, step.roundings + BENT).cap(kind.z)
    if found is None:
        return None
    low, high, cap = found
    return Rule((low + high) / 2, low, high, cap, kind.normalised, kind.position, step.u,
                np.stack([low, high]))


def _doubtful(readings: Readings, step: Step) -> bool:
    """Whether logits would be in half precision, and outputs are not.

    That is believed only of logits that it leaves in proportion where products are powers of two,
    as noise or another curve does not.
    """
    return step.u > max(SINGLE, TYPES[readings.precision][0])


def _even(readings: Readings, u: float, z: Array) -> Array:
    even = (np.abs(np.frexp(z)[0]) == 0.5) & (readings.differences.moved == 0)
    logits = readings.differences.logits(u, 0.0)
    low, high = Logits(logits.value, np.where(even, logits.wide, np.inf)).linear(z)
    return np.stack([np.where(np.isfinite(low), low, np.nan), high])


def scales_by_query(readings: Readings) -> Array | None:
    """The scale at each query, (heads, tokens), if a straight line explains what each sees."""
    tokens = readings.p.shape[2]
    query = readings.known(np.broadcast_to(np.arange(tokens)[:, None], readings.p.shape))[0]
    z = next(readings.kinds()).z
    for step in readings.steps():
        logits = readings.differences.logits(step.u, step.roundings)
        parts = [[x[:, query == n] for x in (logits.value, logits.wide, z)]
                 for n in np.unique(query)]
        ends = np.array([Logits(value, wide).linear(x) for value, wide, x in parts])
        if np.all(ends[:, 0] <= ends[:, 1]):
            return np.asarray(ends.mean(axis=1).T)
    return None


def left_of_a_line(readings: Readings) -> float:
    """The share of the logits' squares that the best straight line in q·k leaves over."""
    value, z = readings.differences.value, next(readings.kinds()).z
    cross, squares = np.sum(value * z, axis=1), np.sum(value**2, axis=1) * np.sum(z**2, axis=1)
    return float(np.max(1 - cross**2 / squares, initial=0, where=squares > 0))
