"""From the values of a claim's body to a few numbers a block, and from those to an Estimate.

A statistic has two halves. ``reduce`` turns the values of some blocks into a few numbers for each
block, so that everything inside a block, dependent as it is, counts once. ``influence`` turns the
numbers of all blocks into the estimate and one value a block whose mean square is its variance:
the blocks are independent, so standard error, skewness and interval follow for every statistic
alike. Orders of moments are those of the score: a variance is a mean of squares.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcverify.statistic.interval import (
    CAUTION,
    MIN_SPREAD,
    Estimate,
    chernoff,
    no_interval,
    studentised,
)

Array = NDArray[np.float64]
Influence = Callable[[Array], tuple[float, Array]]

@dataclass(frozen=True)
class Statistic:
    """How values become a number with an error; the two halves of the module's first sentence.

    Attributes
    ----------
    name : as tables show it.
    reduce : values of some blocks, first axis blocks -> (blocks, ...) a few numbers a block.
    influence : those of all blocks -> (estimate, (blocks,) influence values with mean 0).
    moments : the absolute moments of a score must exist beyond this order for the interval to
        hold: the third moment of the influence values.
    parts : the numbers of all blocks -> (blocks, any number) of block values that a curved
        influence is made of, and whose skewness its interval must pay for as well.
    curvature : the numbers of all blocks -> what the estimate loses to second order, for each
        t²/blocks: a variance its block means' variance, as their mean is squared in it.
    lean : the numbers of all blocks -> what the studentised error of a curved statistic has more
        than that of a mean, z, for each z²/√blocks: its standard error moves with its error.
    caution : blocks for each t² from which on the interval is trusted.
    back : from the scale on which the estimate is a mean to the statistic's own.
    interval : replaces the studentised interval by one of the statistic's own.
    """

    name: str
    reduce: Callable[[Any], Array]
    influence: Influence
    moments: float
    parts: Callable[[Array], Array] | None = None
    curvature: Callable[[Array], float] | None = None
    lean: Callable[[Array], float] | None = None
    caution: float = CAUTION
    back: Callable[[float], float] | None = None
    interval: Callable[[Array, float], Estimate] | None = None

    def of_degree(self, degree: float) -> "Statistic":
        """The same for values that grow like the score to this power; 0 for bounded values.

        >>> mean.moments, mean.of_degree(2).moments, mean.of_degree(0).moments
        (3, 6, 0)
        """
        return replace(self, moments=self.moments * degree)

    @property
    def bounded(self) -> "Statistic":
        """The same for values that are bounded, such as softmax weights: every moment exists."""
        return self.of_degree(0)

    def estimate(self, table: Array, error_rate: float) -> Estimate:
        """The estimate and an interval that misses at most at ``error_rate``.

        >>> mean.estimate(np.array([[1.0], [2.0], [3.0]]), 0.5).value
        2.0
        """
        if self.interval is not None:
            return self.interval(table, error_rate)
        value, influence = self.influence(table)
        parts = None if self.parts is None else self.parts(table)
        curvature = 0.0 if self.curvature is None else self.curvature(table)
        lean = 0.0 if self.lean is None else self.lean(table)
        found = studentised(value, influence, error_rate, parts, curvature, self.caution, lean)
        if self.back is None:
            return found
        back = self.back
        stderr = (back(value + found.stderr) - back(value - found.stderr)) / 2
        return Estimate(back(value), stderr, back(found.low), back(found.high), found.reason)


# --- means and moments -----------------------------------------------------------------------


def _flat(values: Any) -> Array:
    if isinstance(values, tuple | list):
        raise ValueError(f"the body returned a {type(values).__name__}; this statistic takes one "
                         "array: a tuple of two is for a ratio, a list of pairs for a slope")
    x: Array = np.asarray(values, dtype=np.float64)
    return x.reshape(len(x), -1)


def _central(values: Any, order: int) -> Array:
    # Central moments within a block, merged later about the grand mean: raw E s² − (E s)² loses
    # every digit once the mean is 1e8 standard deviations away.
    x = _flat(values)
    mean = x.mean(axis=1)
    x = x - mean[:, None]
    columns = [mean, np.einsum("bi,bi->b", x, x)]
    if order == 4:
        squares = x * x
        columns += [np.einsum("bi,bi->b", squares, x), np.einsum("bi,bi->b", squares, squares)]
    table = np.stack(columns, axis=1)
    table[:, 1:] /= x.shape[1]
    return table


def _mean_reduce(values: Any) -> Array:
    return np.asarray(_flat(values).mean(axis=1, keepdims=True))


def _mean_influence(table: Array) -> tuple[float, Array]:
    value = float(table[:, 0].mean())
    return value, table[:, 0] - value


def _variance_influence(table: Array) -> tuple[float, Array]:
    blocks = len(table)
    shift = table[:, 0] - table[:, 0].mean()
    # blocks/(blocks − 1) undoes the bias of the block means' own spread about their mean.
    squares = table[:, 1] + shift**2 * (blocks / max(blocks - 1, 1))
    value = float(squares.mean())
    return value, squares - value


def _about_grand_mean(table: Array) -> tuple[Array, Array, Array, Array]:
    """The block means' shifts, and each block's second to fourth moment about the grand mean."""
    mean, c2, c3, c4 = table.T
    shift = mean - mean.mean()
    y2 = c2 + shift**2
    y3 = c3 + 3 * shift * c2 + shift**3
    y4 = c4 + 4 * shift * c3 + 6 * shift**2 * c2 + shift**4
    return shift, y2, y3, y4


def _kurtosis_influence(table: Array) -> tuple[float, Array]:
    shift, y2, y3, y4 = _about_grand_mean(table)
    m2, m3, m4 = float(y2.mean()), float(y3.mean()), float(y4.mean())
    if not m2 > (MIN_SPREAD * np.abs(table[:, 0]).max()) ** 2:  # of a constant, but for rounding
        return math.nan, np.zeros(len(table))
    influence = (y4 - m4 - 4 * m3 * shift) / m2**2 - 2 * m4 * (y2 - m2) / m2**3
    return m4 / m2**2 - 3, influence


def _kurtosis_parts(table: Array) -> Array:
    # x⁴ − 6x² looks neither wide nor skew until its rare large values arrive; x⁴ alone does.
    _, y2, _, y4 = _about_grand_mean(table)
    return np.stack([y2, y4], axis=1)


mean = Statistic("mean", _mean_reduce, _mean_influence, moments=3)
variance = Statistic(
    "variance", lambda values: _central(values, 2), _variance_influence, moments=6,
    curvature=lambda table: float(table[:, 0].var()),
)
std = replace(variance, name="std", back=lambda value: math.sqrt(max(value, 0.0)))
kurtosis = Statistic(  # excess: 0 for the normal law
    "kurtosis", lambda values: _central(values, 4), _kurtosis_influence, moments=12,
    parts=_kurtosis_parts, caution=64,  # measured, as CAUTION is
)


# --- ratio and slope -------------------------------------------------------------------------


def _ratio_reduce(values: Any) -> Array:
    if not (isinstance(values, tuple) and len(values) == 2):
        raise ValueError(f"ratio: the body returned {type(values).__name__}; it must return a "
                         "tuple of two arrays, numerator and denominator")
    return np.concatenate([_mean_reduce(part) for part in values], axis=1)


def _ratio_influence(table: Array) -> tuple[float, Array]:
    top, bottom = float(table[:, 0].mean()), float(table[:, 1].mean())
    value = top / bottom if bottom else math.nan
    return value, (table[:, 0] - value * table[:, 1]) / bottom if bottom else table[:, 0] * 0


def _ratio_lean(table: Array) -> float:
    # With e = top − truth·bottom the studentised error is √blocks·ē/sd(e − error·bottom): exactly
    # that of e's mean, but for the error, z·sd(e)/(√blocks·E bottom), in the spread.
    _, influence = _ratio_influence(table)
    spread = float(influence.std())
    if not spread > 0:
        return 0.0
    return abs(float(np.mean(influence * table[:, 1]) / table[:, 1].mean())) / spread


ratio = Statistic("ratio", _ratio_reduce, _ratio_influence, moments=3, lean=_ratio_lean)


def slope(of: Statistic) -> Statistic:
    """The exponent with which a statistic grows: the least-squares slope of its log over log x.

    The body returns a list of pairs ``(x, values)``, say a width and the scores at that width,
    all from one draw. ``of`` must be positive. If it has an interval of its own, as a quantile
    has, those of all x share the error rate, and the slope's is what they allow together.

    >>> tables = slope(mean).reduce([(d, np.full((3, 1), d**2.0)) for d in (1, 2, 4)])
    >>> round(slope(mean).influence(tables)[0], 12)
    2.0
    """

    def reduce(values: Any) -> Array:
        if not isinstance(values, list) or len(values) < 2:
            raise ValueError(f"slope: the body returned {type(values).__name__}; it must return a "
                             "list of at least two pairs (x, values)")
        parts = []
        for x, part in values:
            table = of.reduce(part)
            parts.append(np.column_stack([np.full(len(table), float(x)), table]))
        return np.stack(parts, axis=1)

    def logarithms(table: Array) -> list[_Logarithm]:
        return [_logarithm(of, column) for column in np.moveaxis(table[:, :, 1:], 1, 0)]

    def influence(table: Array) -> tuple[float, Array]:
        weights, found = _slope_weights(table), logarithms(table)
        return (float(weights @ [log.value for log in found]),
                np.asarray(weights @ [log.influence for log in found]))

    def curvature(table: Array) -> float:
        return float(np.abs(_slope_weights(table)) @ [log.curvature for log in logarithms(table)])

    def lean(table: Array) -> float:
        # log v^power at an error of e·v is e·power − e²·power/2, and its influence 1 − e times
        # that at v; e and z are correlated, and what is not of z averages out.
        _, y = influence(table)
        spread = float(y.std())
        if not spread > 0:
            return 0.0
        bends = [np.mean(log.influence * y) ** 2 / log.power for log in logarithms(table)]
        return abs(float(_slope_weights(table) @ bends)) / (2 * spread**3)

    def parts(table: Array) -> Array:
        columns = []
        for column in np.moveaxis(table[:, :, 1:], 1, 0):
            columns.append(of.influence(column)[1][:, None])
            if of.parts is not None:
                columns.append(of.parts(column))
        return np.concatenate(columns, axis=1)

    def interval(table: Array, error_rate: float) -> Estimate:
        weights = _slope_weights(table)
        found = [of.estimate(column, error_rate / len(weights))
                 for column in np.moveaxis(table[:, :, 1:], 1, 0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            value, low, high = (np.log(np.maximum([getattr(each, name) for each in found], 0.0))
                                for name in ("value", "low", "high"))
            stderr = np.linalg.norm(weights * [each.stderr / each.value for each in found])
        ends = np.where(weights > 0, [low, high], [high, low]) @ weights
        reason = next((each.reason for each in found if each.reason), "")
        return Estimate(float(weights @ value), float(stderr), float(ends[0]), float(ends[1]),
                        reason)

    own = of.interval is not None
    return Statistic(f"slope of {of.name}", reduce, influence, moments=of.moments,
                     parts=None if own else parts, curvature=None if own else curvature,
                     lean=None if own else lean, caution=of.caution,
                     interval=interval if own else None)


class _Logarithm(NamedTuple):
    """Of an estimate: its value, influence and curvature to first order; and its elasticity.

    The elasticity is d log(estimate)/d log(what is a mean): 1/2 for a standard deviation.
    """

    value: float
    influence: Array
    curvature: float
    power: float


def _logarithm(of: Statistic, table: Array) -> _Logarithm:
    value, part = of.influence(table)
    own, power = value, 1.0
    if of.back is not None and value > 0:
        own, step = of.back(value), 1e-6
        power = math.log(of.back(value * (1 + step)) / of.back(value * (1 - step))) / (2 * step)
    if not own > 0:
        raise ValueError(f"slope({of.name}): found {own:g}; only a positive number grows like a "
                         "power")
    curvature = 0.0 if of.curvature is None else of.curvature(table)
    return _Logarithm(math.log(own), power * part / value, power * curvature / value, power)


def _slope_weights(table: Array) -> Array:
    """What each log counts in the least-squares slope: (blocks, xs, 1 + few) -> (xs,)."""
    x = np.log(table[0, :, 0])
    weights: Array = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    return weights


# --- shares, and numbers without error -------------------------------------------------------


def _proportion_reduce(values: Any) -> Array:
    x = _flat(values)
    if x.size and not (0 <= x.min() and x.max() <= 1):
        raise ValueError(f"proportion: the body returned values from {x.min():g} to {x.max():g}; "
                         "they must lie in [0, 1]; use the statistic mean")
    return np.asarray(x.mean(axis=1, keepdims=True))


proportion = Statistic(
    "proportion", _proportion_reduce, _mean_influence, moments=0,
    interval=lambda table, error_rate: chernoff(table[:, 0], error_rate),
)


def _exact_reduce(values: Any) -> Array:
    x = np.asarray(values, dtype=np.float64)
    if x.size != 1:
        raise ValueError(f"exact: the body returned shape {x.shape}; a hand calculation is one "
                         "number")
    return x.reshape(1, 1)


def _exact_interval(table: Array, error_rate: float) -> Estimate:
    value = float(table[0, 0])
    return Estimate(value, 0.0, value, value)


exact = Statistic("exact", _exact_reduce, _mean_influence, moments=0, interval=_exact_interval)


# --- quantiles -------------------------------------------------------------------------------


def _share_at_most(table: Array, x: float, error_rate: float) -> Estimate:
    below = (table <= x).mean(axis=1)
    share = float(below.mean())
    found = studentised(share, below - share, error_rate)
    # Where nearly all blocks agree, Chernoff's bound still holds and the studentised one does not.
    return chernoff(below, error_rate) if found.reason else found


def _nearest(
    contradicted: Callable[[int], bool], ordered: Array, start: int, step: int
) -> float:
    """The nearest contradicted value beyond ``start``: strides that grow, then halving."""
    inside, stride = start, 1
    while 0 <= (outside := inside + step * stride) < len(ordered):
        if contradicted(outside):
            break
        inside, stride = outside, 2 * stride
    else:
        outside = len(ordered) - 1 if step > 0 else 0
        if outside == inside or not contradicted(outside):
            return step * math.inf
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (inside, middle) if contradicted(middle) else (middle, outside)
    return float(ordered[outside])


def _quantile_error(table: Array, ordered: Array, level: float) -> float:
    # A quarter of the distance between the values two standard errors of the share from the level;
    # not known while the share does not vary, as where the quantile is the largest value.
    def at(share: float) -> float:
        return float(ordered[min(max(math.ceil(share * ordered.size), 1), ordered.size) - 1])

    below = (table <= at(level)).mean(axis=1)
    error = float(below.std(ddof=1)) / math.sqrt(len(table)) if len(table) > 1 else 0.0
    if error == 0:
        return math.nan
    return (at(level + 2 * error) - at(level - 2 * error)) / 4


def quantile(level: float) -> Statistic:
    """The value below which a share ``level`` of all values lies; needs no moments.

    Its interval holds every x that the draws do not contradict: those where ``level`` lies in the
    block-to-block interval of the share of values at or below x. All values are kept, so the body
    should return at most some thousand a block. Raises ValueError unless 0 < level < 1.

    >>> quantile(0.5).estimate(np.arange(9.0)[:, None], 0.5).value
    4.0
    """
    if not 0 < level < 1:
        raise ValueError(f"quantile({level}): the level must be between 0 and 1; use e.g. 0.9")
    name = "median" if level == 0.5 else f"quantile {level:g}"

    def influence(table: Array) -> tuple[float, Array]:
        value = float(np.quantile(table, level, method="inverted_cdf"))
        return value, level - (table <= value).mean(axis=1)  # in units of probability

    def interval(table: Array, error_rate: float) -> Estimate:
        ordered = np.sort(table, axis=None)
        centre = min(math.ceil(level * ordered.size), ordered.size) - 1
        value = float(ordered[centre])
        if ordered[0] == ordered[-1]:
            return no_interval(value, 0.0, "the values do not vary; use the statistic proportion")

        def contradicted(index: int, step: int) -> bool:
            found = _share_at_most(table, ordered[index], error_rate)
            return found.high < level if step < 0 else found.low > level

        low = _nearest(lambda i: contradicted(i, -1), ordered, centre, -1)
        high = _nearest(lambda i: contradicted(i, +1), ordered, centre, +1)
        reason = "" if math.isfinite(high - low) else f"too few blocks to bound {name}"
        return Estimate(value, _quantile_error(table, ordered, level), low, high, reason)

    return Statistic(name, _flat, influence, moments=0, interval=interval)


median = quantile(0.5)
