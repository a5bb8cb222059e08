"""From blocks of two values, and from the order of values, to miss rates that are exact sums.

Block values that are one of two are known by how many are the larger; the interval of a quantile
of one value a block, by how many lie below the truth. Either number is binomial, and from look to
look it grows by another: so the rates, for one look and for any of several, are sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from mcverify.selfcheck.limits import LOOK_RATE, most
from mcverify.selfcheck.row import Row, exact
from mcverify.selfcheck.tilt import HIGH, SIDES, missed
from mcverify.statistic import Statistic, proportion, quantile
from mcverify.statistic.estimate import Estimate

Array = NDArray[np.float64]

RATES = (1e-2, 1e-3, 1e-4)
NEVER = 1e-30  # counts that are rarer are not asked for: thousands of them weigh nothing


@dataclass(frozen=True)
class Coin:
    """Blocks of one value each: ``high`` with a chance, ``low`` otherwise; and the truth."""

    name: str
    statistic: Statistic
    chance: float
    truth: float
    low: float = 0.0
    high: float = 1.0

    def misses(self, blocks: int, rate: float, side: int) -> Array:
        """Whether the interval misses on that side, for each number of high values."""
        found = np.zeros(blocks + 1)
        for count, estimate in self._estimates(blocks, rate).items():
            found[count] = missed(estimate, self.truth, side)
        return found

    @lru_cache(maxsize=8)  # noqa: B019  both sides ask for the same
    def _estimates(self, blocks: int, rate: float) -> dict[int, Estimate]:
        found = {}
        for count in np.flatnonzero(binomial(blocks, self.chance) > NEVER).tolist():
            values = np.where(np.arange(blocks) < count, self.high, self.low)[:, None]
            found[count] = self.statistic.estimate(self.statistic.reduce(values), rate)
        return found


@dataclass(frozen=True)
class Order:
    """The quantile of one value a block of any continuous law; what counts is how many are below.

    The interval runs between two of the ordered values whatever they are, so that one call of the
    rule tells all.
    """

    level: float
    name: str = "any continuous law"

    @property
    def statistic(self) -> Statistic:
        return quantile(self.level)

    @property
    def chance(self) -> float:
        return self.level

    def misses(self, blocks: int, rate: float, side: int) -> Array:
        """Whether the interval misses on that side, for each number of values below the truth."""
        found = self.statistic.estimate(np.arange(float(blocks))[:, None], rate)
        count = np.arange(blocks + 1)
        return (count <= found.low if side == HIGH else count > found.high).astype(float)


def binomial(n: int, p: float) -> Array:
    """The chances of 0 to n successes.

    >>> binomial(2, 0.5).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    k = np.arange(n + 1)
    return np.asarray(np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
                             + xlogy(k, p) + xlogy(n - k, 1 - p)))


def miss_rates(subject: Coin | Order, stops: Sequence[int], rate: float, side: int) -> list[float]:
    """The rate of misses on that side at each look, and at any of them.

    >>> from mcverify.statistic import proportion
    >>> miss_rates(Coin("coin", proportion, 0.5, 0.5), [2], 0.6, HIGH)  # two of two: at least √0.3
    [0.25, 0.25]
    """
    alive, rates, ever = np.ones(1), [], 0.0
    for start, stop in pairwise([0, *stops]):
        alive = np.convolve(alive, binomial(stop - start, subject.chance))
        wrong = subject.misses(stop, rate, side)
        rates.append(float(binomial(stop, subject.chance) @ wrong))
        ever += float(alive @ wrong)
        alive = alive * (1 - wrong)
    return [*rates, ever]


def rows(subject: Coin | Order, stops: Sequence[int]) -> list[Row]:
    """Misses on either side at RATES, at the first look; at a look's own rate at all of them."""
    found = []
    for side, name in SIDES.items():
        for rate in RATES:
            found += _rows(subject, stops[:1], rate, side, name)
        found += _rows(subject, stops, LOOK_RATE, side, name)
    return found


def _rows(
    subject: Coin | Order, stops: Sequence[int], rate: float, side: int, name: str,
) -> list[Row]:
    *each, ever = miss_rates(subject, stops, rate, side)
    about = {"statistic": subject.statistic.name, "data": subject.name}
    limits = [_most(subject, rate, stop) for stop in stops]
    result = [exact({**about, "blocks": stop, "check": f"miss {name} at {rate:.2g}"}, rate / 2,
                    found, limit)
              for stop, found, limit in zip(stops, each, limits, strict=True)]
    if len(stops) > 1:
        check = f"miss {name} at any of {len(stops)} looks, {rate:.2g} each"
        result.append(exact({**about, "blocks": stops[-1], "check": check},
                            len(stops) * rate / 2, ever, max(limits)))
    return result


def _most(subject: Coin | Order, rate: float, blocks: int) -> float:
    if subject.statistic is proportion:
        return 1.0  # Chernoff's bound is one
    p = subject.chance
    return most(rate, blocks, 1 / math.sqrt(p * (1 - p) * blocks))
