"""How often an interval misses: counted where that is common, by importance sampling where rare."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from mcverify.selfcheck.populations import Population
from mcverify.selfcheck.rows import Row, miss_rows, missed, quantile_of_t, stderr_row

Array = NDArray[np.float64]

RATES = (1e-2, 1e-3)
PILOTS, PILOT = 4, 150  # samples from which the tilt of the next ones is learned
STRONGER = (1.0, 1.25, 1.5, 2.0)  # times the first guess of a tilt, until something misses
FLAT = 1e-9  # a feature that varies less is a constant, as the square of a coin is


def counted(
    population: Population, blocks: int, samples: int, rng: np.random.Generator,
) -> list[Row]:
    """Misses at RATES and the standard error, of every one of so many samples."""
    tables = [population.table[rng.integers(len(population.table), size=blocks)]
              for _ in range(samples)]
    rows = []
    for rate in RATES:
        found = [population.statistic.estimate(table, rate) for table in tables]
        sides = np.array([missed(each, population.truth) for each in found])
        weights = {side: (sides == side).astype(float) for side in ("low", "high")}
        given = float(np.mean([math.isfinite(each.low) or math.isfinite(each.high)
                               for each in found]))
        rows += miss_rows(population, blocks, rate, weights, given)
    return [*rows, stderr_row(population, blocks, found)]


def weighed(
    population: Population, blocks: int, rate: float, replications: int, rng: np.random.Generator,
) -> list[Row]:
    """Misses at a rate too small to be counted, by samples under tilted chances of the rows.

    Each sample that misses weighs the ratio of its chances, which is exact whatever the tilt. A
    poor tilt shows as few effective replications.
    """
    features = _features(population)
    weights, given = {}, 0.0
    for side, sign in (("low", -1.0), ("high", 1.0)):
        tilt = _learned(population, blocks, rate, side, sign, features, rng)
        _, log_ratio, wrong, share = _tilted(
            population, blocks, rate, side, tilt @ features, replications, rng)
        weights[side] = np.where(wrong, np.exp(-log_ratio), 0.0)
        given += share / 2
    return miss_rows(population, blocks, rate, weights, given)


def _features(population: Population) -> Array:
    """What a tilt looks at, (few, rows): the influence, its square and cube, standardised."""
    y = population.statistic.influence(population.table)[1]
    y = y / (np.abs(y).max() + FLAT)
    found = np.stack([y, y**2, y**3])
    found -= found.mean(axis=1, keepdims=True)
    spread = found.std(axis=1, keepdims=True)
    return np.asarray((found / np.maximum(spread, FLAT))[spread[:, 0] > FLAT])


def _tilted(
    population: Population, blocks: int, rate: float, side: str, tilt: Array, samples: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array, float]:
    """Samples whose rows have chances like exp(tilt).

    Returns their rows, the logarithms of how much likelier they are so, whether they miss on that
    side, and the share that has an interval.
    """
    log_chances = log_softmax(tilt)
    steps = np.cumsum(np.exp(log_chances))
    rows = np.searchsorted(steps, rng.random((samples, blocks)) * steps[-1], side="right")
    found = [population.statistic.estimate(population.table[row], rate) for row in rows]
    wrong = np.array([missed(each, population.truth) == side for each in found])
    given = float(np.mean([math.isfinite(each.low) or math.isfinite(each.high) for each in found]))
    return rows, (log_chances + math.log(len(tilt)))[rows].sum(axis=1), wrong, given


def _learned(
    population: Population, blocks: int, rate: float, side: str, sign: float, features: Array,
    rng: np.random.Generator,
) -> Array:
    """The tilt under which samples look like those that miss: cross-entropy, from a first guess.

    That is the law nearest to a normal one whose studentised mean is off by t. Each pilot moves the
    features' means to those of its samples that miss, by weight (Rubinstein and Kroese 2004).
    """
    shift = quantile_of_t(rate, blocks) / math.sqrt(blocks)
    tilt, pilots = np.zeros(len(features)), 0
    for strength in STRONGER:
        tilt[0] = sign * shift * strength
        if len(tilt) > 1:
            tilt[1] = -(shift * strength)**2 / 2 * math.sqrt(2)
        for _ in range(PILOTS):
            rows, log_ratio, wrong, _ = _tilted(
                population, blocks, rate, side, tilt @ features, PILOT, rng)
            if not wrong.any():
                break
            share = np.exp(-log_ratio - logsumexp(-log_ratio[wrong])) * wrong
            aim = features[:, rows].mean(axis=2) @ share
            tilt, pilots = _with_means(features, aim), pilots + 1
        if pilots:
            break
    return tilt


def _with_means(features: Array, aim: Array) -> Array:
    """The tilt under which the features have these means: the minimum of a convex function."""
    def above(tilt: Array) -> tuple[float, Array]:
        found = tilt @ features
        return float(logsumexp(found) - tilt @ aim), features @ np.exp(log_softmax(found)) - aim

    return np.asarray(minimize(above, np.zeros(len(aim)), jac=True, method="BFGS").x)
