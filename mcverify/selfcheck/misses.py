"""How often an interval misses: counted where that is common, by importance sampling where rare."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from mcverify.arrays import Array
from mcverify.selfcheck.populations import Population
from mcverify.selfcheck.rows import COUNTED, WEIGHED, Row, miss_row, missed, stderr_rows
from mcverify.statistic.studentised import quantile_of_t

RATES = (1e-2, 1e-3)
SIDES = ("low", "high")
PILOTS = 4  # samples from which the tilt of the next ones is learned
STRENGTHS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)  # of the first guess of a tilt, until something misses
FLAT = 1e-9  # a feature that varies less is a constant, as the square of a coin is


def counted(
    population: Population, looks: Sequence[int], samples: int, rng: np.random.Generator,
) -> list[Row]:
    """Misses and the standard error, of every one of so many samples that grow from look to look.

    At those of RATES that ask for more than one. An interval that claims to hold at all looks
    together is held to that as well.
    """
    drawn = [population.table[rng.integers(len(population.table), size=looks[-1])]
             for _ in range(samples)]
    rows = []
    for rate in (rate for rate in RATES if samples * rate > 1):
        ever = np.zeros(samples)
        for blocks in looks:
            estimates = [population.estimate(sample[:blocks], rate) for sample in drawn]
            wrong = np.array([missed(each, population.truth) for each in estimates])
            ever[wrong != ""] = 1.0
            rows += [miss_row(population, blocks, rate, side, (wrong == side).astype(float),
                              estimates, COUNTED) for side in SIDES]
        if population.statistic.at_all_looks:
            rows.append(miss_row(population, looks[-1], rate, f"at any of {len(looks)} looks", ever,
                                 estimates, COUNTED))
    return rows + stderr_rows(population, looks[-1], estimates)


def weighed(
    population: Population, blocks: int, rate: float, replications: int, rng: np.random.Generator,
) -> list[Row]:
    """Misses at a rate too small to be counted, by samples under tilted chances of the rows.

    Each sample that misses weighs the ratio of its chances, which is exact whatever the tilt. A
    poor tilt shows as few effective replications.
    """
    features, rows = _features(population), []
    for side in SIDES:
        tilt = _learned(population, blocks, rate, side, features, max(60, replications // 6), rng)
        samples, log_ratio = _tilted(tilt @ features, blocks, replications, rng)
        estimates = [population.estimate(population.table[sample], rate) for sample in samples]
        wrong = [missed(each, population.truth) == side for each in estimates]
        rows.append(miss_row(population, blocks, rate, side,
                             np.where(wrong, np.exp(-log_ratio), 0.0), estimates, WEIGHED))
    return rows


def _features(population: Population) -> Array:
    """What a tilt looks at, (3, rows): the influence, its square and cube, standardised."""
    y = population.statistic.influence(population.table)[1]
    y = y / (np.abs(y).max() + FLAT)
    features = np.stack([y, y**2, y**3])
    features -= features.mean(axis=1, keepdims=True)
    spread = features.std(axis=1, keepdims=True)
    return np.asarray(np.where(spread > FLAT, features / np.maximum(spread, FLAT), 0.0))


def _tilted(
    tilt: Array, blocks: int, samples: int, rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Rows, (samples, blocks), with chances like exp(tilt); and by how much likelier, as a log."""
    log_chances = log_softmax(tilt)
    steps = np.cumsum(np.exp(log_chances))
    rows = np.searchsorted(steps, rng.random((samples, blocks)) * steps[-1], side="right")
    return rows, (log_chances + math.log(len(tilt)))[rows].sum(axis=1)


def _learned(
    population: Population, blocks: int, rate: float, side: str, features: Array, samples: int,
    rng: np.random.Generator,
) -> Array:
    """The tilt under which samples look like those that miss: by cross-entropy.

    The first guess is the law nearest to a normal one whose mean, studentised or not, is off by t
    standard errors or more. Each pilot moves the features' means to those of its samples that
    miss, by weight (Rubinstein and Kroese 2004).
    """
    shift = (-1 if side == "low" else 1) * quantile_of_t(blocks, rate) / math.sqrt(blocks)
    for strength, bend in product(STRENGTHS, (math.sqrt(0.5), 0.0)):
        eta = strength * shift
        tilt = np.array([eta, -bend * eta**2, 0.0])
        for _ in range(PILOTS):
            rows, log_ratio = _tilted(tilt @ features, blocks, samples, rng)
            wrong = np.array([missed(population.estimate(population.table[row], rate),
                                     population.truth) == side for row in rows])
            if not wrong.any():
                break
            weights = wrong * np.exp(-log_ratio - logsumexp(-log_ratio[wrong]))
            tilt = _with_means(features, features[:, rows].mean(axis=2) @ weights)
        else:
            return tilt
    return tilt


def _with_means(features: Array, means: Array) -> Array:
    """The tilt under which the features have these means: the minimum of a convex function."""
    def above(tilt: Array) -> tuple[float, Array]:
        tilted = tilt @ features
        return (float(logsumexp(tilted) - tilt @ means),
                features @ np.exp(log_softmax(tilted)) - means)

    return np.asarray(minimize(above, np.zeros(len(means)), jac=True, method="BFGS").x)
