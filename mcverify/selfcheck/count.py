"""From replications of a population to rows by counting: misses, scatter, tails, false verdicts."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from mcverify.selfcheck.limits import most, uneven
from mcverify.selfcheck.population import Population
from mcverify.selfcheck.row import Row, counted, noted, scatter
from mcverify.selfcheck.tilt import SIDES, missed
from mcverify.statistic.estimate import Estimate
from mcverify.verdict import Verdict, judge

Array = NDArray[np.float64]

RATES = (1e-2, 1e-3)
LEVELS = (0.05, 0.01)
CASE_RATE = 2e-2  # of false verdicts by all looks together
OFF = 0.05  # the standard error's share that may be wrong
ASKED = 1000  # samples whose interval is asked for at every rate
JUST = 1e-9  # how far inside or outside an edge the truth lies: far less than a standard error


def at(population: Population, blocks: int, check: str) -> dict[str, Any]:
    """What a row is about."""
    return {"statistic": population.statistic.name, "data": population.name, "blocks": blocks,
            "check": check}


def most_of(population: Population, rate: float, blocks: int) -> float:
    """How many times its rate a population's interval may miss on one side: see limits."""
    return most(rate, blocks, population.step / math.sqrt(blocks))


def rows(
    population: Population, sequences: int, stops: Sequence[int], rng: np.random.Generator,
) -> list[Row]:
    """Every check that can be counted, on ``sequences`` samples that grow to the last stop.

    Looks share CASE_RATE as the suite's share a case's; they are fewer, as a sample of its last
    look's size is as dear as all others. Each sample also gives last/first separate samples of
    the first look's size.
    """
    first, last = stops[0], stops[-1]
    counts: Counter[Any] = Counter()
    pivots: list[float] = []
    claims = claims_at(population.own_truth)
    for _ in range(sequences):
        table = population.sample(rng, last)
        parts = np.split(table, last // first)
        z = [population.pivot(part) for part in parts]
        pivots += z
        grown = [z[0], *(population.pivot(table[:stop]) for stop in stops[1:])]
        counts.update(_misses(population, parts, z))
        counts.update(false_verdicts(population, table, stops, CASE_RATE / len(stops), claims,
                                     grown))
    return [*_miss_rows(population, first, counts, len(pivots)),
            *_verdict_rows(population, stops, counts, sequences),
            *_tail_rows(population, first, np.array(pivots))]


def _misses(population: Population, parts: list[Array], z: list[float]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for rate in RATES:
        inside = population.inside(rate, len(parts[0]))
        for part, error in zip(parts, z, strict=True):
            if not abs(error) <= inside:
                found = population.statistic.estimate(part, rate)
                counts.update((rate, side) for side in SIDES
                              if missed(found, population.own_truth, side))
    return counts


Claims = dict[str, tuple[tuple[float, float], Verdict, float]]


def claims_at(truth: float) -> Claims:
    """Claimed intervals with the truth at an edge, the false verdict, and the share it may have."""
    return {
        "false refutation": ((truth - JUST, truth + JUST), Verdict.REFUTED, 1.0),
        "false confirmation, truth above": ((-math.inf, truth - JUST), Verdict.CONFIRMED, 0.5),
        "false confirmation, truth below": ((truth + JUST, math.inf), Verdict.CONFIRMED, 0.5),
    }


def false_verdicts(
    population: Population, table: Array, stops: Sequence[int], rate: float, claims: Claims,
    z: Sequence[float] | None = None,
) -> list[str]:
    """The claims whose first verdict, from look to look at ``rate`` each, is the false one.

    ``z``, the pivots, spare the looks at which an interval is known to hold the truth: it then
    crosses the edge next to it, if the truth is at one, and nothing is decided.
    """
    seen: list[Estimate] = [
        population.statistic.estimate(table[:stop], rate) for i, stop in enumerate(stops)
        if z is None or not abs(z[i]) <= population.inside(rate, stop)]
    false = []
    for name, (claimed, wrong, _) in claims.items():
        verdicts = (judge((found.low, found.high), claimed) for found in seen)
        if next((v for v in verdicts if v is not Verdict.INCONCLUSIVE), None) is wrong:
            false.append(name)
    return false


def _miss_rows(
    population: Population, blocks: int, counts: Counter[Any], samples: int,
) -> list[Row]:
    return [counted(at(population, blocks, f"miss {name} at {rate:g}"), rate / 2,
                    counts[rate, side], samples, most_of(population, rate, blocks))
            for rate in RATES for side, name in SIDES.items()]


def _verdict_rows(
    population: Population, stops: Sequence[int], counts: Counter[Any], samples: int,
) -> list[Row]:
    rate = CASE_RATE / len(stops)
    limit = max(most_of(population, rate, stop) for stop in stops)
    return [counted(at(population, stops[-1], f"{name}, {len(stops)} looks"), share * CASE_RATE,
                    counts[name], samples, limit)
            for name, (_, _, share) in claims_at(population.own_truth).items()]


def _tail_rows(population: Population, blocks: int, z: Array) -> list[Row]:
    found = []
    for level in LEVELS:
        edge = -float(stdtrit(blocks - 1, level))
        off = uneven(level, blocks, population.skewness, population.step / math.sqrt(blocks),
                     population.lean)
        for side, name in SIDES.items():
            found.append(counted(at(population, blocks, f"pivot beyond {name} {level:.0%}"), level,
                                 int((side * z > edge).sum()), len(z), off, 1 / off))
    return found


def scatter_rows(
    population: Population, blocks: int, samples: int, rng: np.random.Generator,
) -> list[Row]:
    """Standard error against scatter, and how often there is no interval at each rate."""
    seen: dict[float, list[Estimate]] = {rate: [] for rate in RATES}
    for _ in range(samples):
        table = population.sample(rng, blocks)
        for rate in RATES[: 1 if len(seen[RATES[-1]]) >= ASKED else None]:
            seen[rate].append(population.statistic.estimate(table, rate))
    values, stderrs = (np.array([getattr(found, name) for found in seen[RATES[0]]])
                       for name in ("value", "stderr"))
    return [scatter(at(population, blocks, "standard error over scatter"), values, stderrs, OFF),
            *(noted(at(population, blocks, f"no interval at {rate:g}"),
                    sum(bool(found.reason) for found in found_at), len(found_at),
                    "counted as no miss") for rate, found_at in seen.items())]
