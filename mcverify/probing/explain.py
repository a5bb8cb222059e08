"""From logits within bounds to the simplest rule that makes them of q·k: scale, cap, norms."""

from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array
from mcverify.probing.fit import Logits
from mcverify.probing.readings import Kind, Readings
from mcverify.probing.rounding import BENT, SINGLE, TYPES, USUAL, Step


@dataclass(frozen=True)
class Rule:
    """Logits are s·z or c·tanh(s·z/c), z = q·k over the lengths of what is normalised.

    Attributes
    ----------
    scale, low, high : (heads,) the scale, and all scales that explain all, with any cap that does;
        (heads, tokens) where each query has its own, nan where it shows none.
    cap : (2, heads) the least and the largest cap; the largest is inf where there need be none.
    normalised : "", "q", "k" or "q and k".
    position, factor : what z is multiplied by at query n, by name, and (tokens,) as numbers.
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
    factor: Array
    roundoff: float
    even: Array

    @property
    def by_query(self) -> bool:
        """Whether each query has a scale of its own, that no name is known for."""
        return self.low.ndim == 2


def rule_of(readings: Readings, only_norms: bool = False) -> Rule | None:
    """The first rule that explains every logit, simplest first and finest rounding first."""
    if not np.all(np.any(readings.differences.value, axis=1)):
        return None
    fewer = False  # roundings, of a scale that differs from query to query
    for step in readings.steps():
        if _doubtful(readings, step) and not fewer and not only_norms:
            fewer, rule = True, _by_query(readings)
            if rule:
                return rule
        for kind in readings.kinds():
            if step.capped and (only_norms or kind.position):
                continue
            if only_norms and not kind.normalised.startswith("q"):
                continue
            if kind.normalised == "q and k" and step.u < TYPES[readings.precision][0]:
                continue  # so few different cosines that their roundings may all be alike
            rule = (_capped if step.capped else _straight)(readings, step, kind)
            if rule and _near(readings, step, kind, rule):
                return rule
    return None if only_norms or fewer else _by_query(readings)


def _straight(readings: Readings, step: Step, kind: Kind) -> Rule | None:
    logits = readings.differences.logits(step, step.roundings)
    low, high = logits.linear(kind.z)
    even = _even(readings, step, kind.z)
    if np.any(low > high) or (_doubtful(readings, step) and not np.all(even[0] <= even[1])):
        return None
    least, most, cap = logits.unseen_cap(kind.z)
    low, high = np.minimum(low, least), np.maximum(high, most)
    return Rule(logits.nearest(kind.z, low, high), low, high, cap, *kind[:3], step.u, even)


def _capped(readings: Readings, step: Step, kind: Kind) -> Rule | None:
    fit = None if _doubtful(readings, step) else readings.differences.logits(
        step, step.roundings + BENT).cap(kind.z)
    if fit is None:
        return None
    low, high, cap = fit
    return Rule((low + high) / 2, low, high, cap, *kind[:3], step.u, np.stack([low, high]))


def _near(readings: Readings, step: Step, kind: Kind, rule: Rule) -> bool:
    """Whether logits are as near to a rule as the roundings of a step leave them on average.

    Asked of logits in finer precision than the outputs, in whose bounds there is room for others:
    of all alike, which shows more roundings of weights, and of large ones, which shows coarser
    logits.
    """
    logits = readings.differences
    if step.u >= logits.unit:
        return True
    x, cap = rule.scale[:, None] * kind.z, rule.cap.mean(axis=0)[:, None]
    with np.errstate(invalid="ignore"):
        rest = logits.value - np.where(np.isinf(cap), x, cap * np.tanh(x / cap))
    known, usual = logits.fixed < logits.unit, USUAL * logits.unit
    weights = [known.astype(np.float64), known * logits.value**2]
    return all(np.all(np.sum(of * rest**2, axis=1)
                      <= step.stored * logits.weights * usual**2 * np.sum(of, axis=1))
               for of in weights)


def _doubtful(readings: Readings, step: Step) -> bool:
    """Whether logits would be in half precision, and outputs are not.

    That is believed only of logits that it leaves in proportion where products are powers of two,
    as noise or another curve does not.
    """
    return step.u > max(SINGLE, TYPES[readings.precision][0])


def _even(readings: Readings, step: Step, z: Array) -> Array:
    even = (np.abs(np.frexp(z)[0]) == 0.5) & readings.differences.exact
    logits = readings.differences.logits(step, 0.0)
    low, high = Logits(logits.value, np.where(even, logits.wide, np.inf)).linear(z)
    return np.stack([np.where(np.isfinite(low), low, np.nan), high])


def _by_query(readings: Readings) -> Rule | None:
    """A scale for each query, if a straight line explains what each sees."""
    heads, tokens = readings.p.shape[1:3]
    query = readings.known(np.broadcast_to(np.arange(tokens)[:, None], readings.p.shape))[0]
    seen = np.unique(query)
    kind = next(readings.kinds())
    for step in readings.steps():
        if step.capped or _doubtful(readings, step):
            continue
        logits = readings.differences.logits(step, step.roundings)
        ends = np.full((2, heads, tokens), np.nan)
        for n in seen:
            of = query == n
            ends[..., n] = Logits(logits.value[:, of], logits.wide[:, of]).linear(kind.z[:, of])
        if len(seen) > 1 and np.all(ends[0, :, seen] <= ends[1, :, seen]):
            ends[:, np.any(np.isinf(ends), axis=0)] = np.nan
            unknown = np.full((2, heads), np.nan)
            return Rule(ends.mean(axis=0), ends[0], ends[1], unknown, *kind[:3], step.u, unknown)
    return None


def left_of_a_line(readings: Readings) -> float:
    """The share of the logits' squares that the best straight line in q·k leaves over."""
    value, z = readings.differences.value, next(readings.kinds()).z
    cross, squares = np.sum(value * z, axis=1), np.sum(value**2, axis=1) * np.sum(z**2, axis=1)
    return float(np.max(1 - cross**2 / squares, initial=0, where=squares > 0))
