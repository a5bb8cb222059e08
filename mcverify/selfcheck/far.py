"""From a population to rows by importance sampling: rates too small to be counted."""

import math
from collections.abc import Sequence

import numpy as np

from mcverify.selfcheck.count import at, most_of
from mcverify.selfcheck.limits import LOOK_RATE, quantile_of_t
from mcverify.selfcheck.population import Population
from mcverify.selfcheck.row import Row, weighed
from mcverify.selfcheck.tilt import SIDES, weights
from mcverify.statistic.studentised import MAX_DELTA, first_order
from mcverify.verdict import looks

RATES = (1e-3, 1e-4)
STOPS = [stop for _, stop in looks()]


def given_from(population: Population, rate: float) -> int:
    """The first look at which samples of the law itself usually have an interval."""
    for stop in STOPS:
        t = quantile_of_t(rate, stop)
        first = max(first_order(population.skewness, t), population.lean * t * t)
        if population.given(rate, stop) and first / math.sqrt(stop) <= MAX_DELTA:
            return stop
    raise ValueError(f"{population.statistic.name} of {population}: no interval at rate {rate:g} "
                     f"up to {STOPS[-1]} blocks; use more values a block")


def rows(
    population: Population, side: int, replications: int, sequential: int, several: int,
    rng: np.random.Generator,
) -> list[Row]:
    """Misses on a side: at small rates for one look, at a look's own rate for ``several``.

    ``replications`` at each rate for the first, ``sequential`` for each look of the second.
    """
    found = []
    for rate in RATES:
        for stop in sorted({STOPS[0], given_from(population, rate)}):
            found += _looks(population, [stop], rate, side, replications, rng)
    given = STOPS.index(given_from(population, LOOK_RATE))
    first = max(0, given - several + 2)  # a look beyond the one from which intervals are given
    stops = STOPS[first:first + several]
    # Enough for the rate of a look, which has some tenth of them; fewer where samples are large.
    many = max(sequential // 4, round(sequential * min(1.0, STOPS[several - 1] / stops[-1])))
    return found + _looks(population, stops, LOOK_RATE, side, many * len(stops), rng)


def _looks(
    population: Population, stops: Sequence[int], rate: float, side: int, replications: int,
    rng: np.random.Generator,
) -> list[Row]:
    name = SIDES[side]
    try:
        found = weights(population, stops, rate, side, replications, rng)
    except ValueError:  # no law near by lets the interval stand and miss
        return []
    limits = [most_of(population, rate, stop) for stop in stops]
    result = [weighed(at(population, stop, f"miss {name} at {rate:.2g}"), rate / 2, found[:, i],
                      limits[i]) for i, stop in enumerate(stops) if population.given(rate, stop)]
    if len(stops) > 1:
        result.append(weighed(
            at(population, stops[-1], f"miss {name} at any of {len(stops)} looks, {rate:.2g} each"),
            len(stops) * rate / 2, found[:, -1], max(limits)))
    return result
