"""From a population to the nearest law under which its interval misses, and weights from that.

Rates like 1e-11 are out of reach of counting. Cells are drawn with tilted chances, under which
misses are common, and each replication that misses weighs the ratio of its chances. The weights
are exact whatever the tilt. A poor tilt shows as few effective replications; one that overlooks a
way to miss does not show, so that every rate that can be had by sums or by counting is compared.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import log_softmax, logsumexp, rel_entr

from mcverify.selfcheck.limits import quantile_of_t
from mcverify.selfcheck.population import Cells, Population
from mcverify.statistic.estimate import Estimate
from mcverify.statistic.studentised import MAX_DELTA, first_order, second_order

Array = NDArray[np.float64]

LOW, HIGH = -1, +1  # the estimate is too low, too high: each kind of false verdict needs one side
SIDES = {LOW: "low", HIGH: "high"}
FLAT = 1e-9  # a feature that varies less is a constant, as the square of a coin is


def missed(found: Estimate, truth: float, side: int) -> bool:
    """Whether the interval lies beyond the truth, with the estimate on that side of it."""
    return truth < found.low if side == HIGH else found.high < truth


def _room(q: Array, population: Population, blocks: int, t: float, side: int) -> list[float]:
    """How far beyond a miss the law q stands, and how far from being too skew: all >= 0."""
    error, y, parts, lean = population.seen(q)
    beyond = side * error * math.sqrt(blocks) / math.sqrt(q @ y**2 + 1e-12) - t
    if not population.corrected:
        return [beyond]
    room, curved = [], lean * t * t / math.sqrt(blocks)
    for column in [y, *parts] if population.statistic.parts else [y]:
        second, third, fourth = (float(q @ column**k) for k in (2, 3, 4))
        second += 1e-12
        delta = first_order(third / second**1.5, t) / math.sqrt(blocks)
        more = second_order(fourth / second**2 - 3, t, blocks)
        room += [beyond - delta - curved - more, MAX_DELTA - delta]
    return room


def tilted(population: Population, blocks: int, rate: float, side: int) -> Array | None:
    """Log chances of the cells: the nearest law under which a miss on that side is typical.

    Nearest in relative entropy, among the exponential families in the features: a miss needs an
    error to one side, a spread too small for it, and a skewness that lets the interval stand.
    None where no such law is found, as where the interval stands for none.
    """
    t, log_base = quantile_of_t(rate, blocks), np.log(population.base)
    if not population.given(rate, blocks):
        return None
    basis = population.features - population.features @ population.base[:, None]
    spread = np.sqrt(basis**2 @ population.base)
    basis = basis[spread > FLAT] / spread[spread > FLAT, None]

    def log_q(theta: Array) -> Array:
        return np.asarray(log_softmax(theta @ basis + log_base))

    def entropy(theta: Array) -> float:
        found = log_q(theta)
        return 10 * float(np.exp(found) @ (found - log_base))  # 10: when to stop

    def beyond(theta: Array) -> list[float]:
        return _room(np.exp(log_q(theta)), population, blocks, t, side)

    for first, rest in ((0.3, -0.05), (1.0, -0.2)):
        start = np.where(np.arange(len(basis)) == 0, side * first, rest)
        found = optimize.minimize(entropy, start, method="SLSQP", options={"maxiter": 200},
                                  constraints={"type": "ineq", "fun": beyond}).x
        if min(beyond(found)) > -0.02:
            return log_q(found)
    return None


def shifted(population: Population, blocks: int, rate: float, side: int) -> Array | None:
    """Log chances of the cells, tilted by the influence alone to where Chernoff's bound misses.

    Where the blocks of a quantile are too skew, its interval follows Chernoff's bound on the share
    of values below x: the share's mean is moved to where the bound just leaves the level out. None
    where no share does.
    """
    level, allowed = population.truth, math.log(2 / rate) / blocks
    end = 0.0 if side == HIGH else 1.0  # a share below the level that is too low: too high a value

    def excess(share: float) -> float:
        return float(rel_entr(share, level) + rel_entr(1 - share, 1 - level)) - allowed

    if excess(end) <= 0:
        return None
    target = level - optimize.brentq(excess, end, level)
    y, log_base = population.features[0], np.log(population.base)

    def log_q(theta: float) -> Array:
        return np.asarray(log_softmax(theta * y + log_base))

    return log_q(optimize.brentq(lambda theta: float(np.exp(log_q(theta)) @ y) - target, -50, 50))


def weights(
    population: Population, stops: Sequence[int], rate: float, side: int, replications: int,
    rng: np.random.Generator,
) -> Array:
    """Weights of replications that miss on that side: (replications, looks + 1), 0 for the others.

    A column for each look at the first ``stops`` blocks of one growing sample, the last for a miss
    at any of them: their means are the rates. The proposal is a mixture: each replication is
    tilted up to one of the looks, by turns, and weighs p over the mixture, so that none weighs
    more than the number of looks times its weight for one look alone.
    Raises ValueError when there is no tilt for any look.
    """
    proposals = _proposals(population, stops, rate, side)
    if not proposals:
        raise ValueError(f"{population.statistic.name} of {population}: no tilt found at blocks "
                         f"{list(stops)}, rate {rate:g}; ask for more blocks or a larger rate")
    base, truth = np.cumsum(population.base), population.own_truth
    result = np.zeros((replications, len(stops) + 1))
    for row in range(replications):
        until, steps, _ = proposals[row % len(proposals)]
        cells = np.concatenate([_cells(rng, steps if stop <= until else base, stop - start)
                                for start, stop in pairwise([0, *stops])])
        over = np.array([log_ratio[cells[:stop]].sum() for stop, _, log_ratio in proposals])
        table = population.draw(rng, cells)
        found = [not side * population.pivot(table[:stop]) <= population.inside(rate, stop)
                 and missed(population.statistic.estimate(table[:stop], rate), truth, side)
                 for stop in stops]
        result[row] = np.array([*found, any(found)]) * len(over) * math.exp(-logsumexp(over))
    return result


def _proposals(
    population: Population, stops: Sequence[int], rate: float, side: int,
) -> list[tuple[int, Array, Array]]:
    """Up to which block, with which cumulative chances, and their logarithms over the law's."""
    ways = (tilted,) if population.z is None else (tilted, shifted)
    tilts = [(stop, way(population, stop, rate, side)) for stop in stops for way in ways]
    return [(stop, np.cumsum(np.exp(tilt)), tilt - np.log(population.base))
            for stop, tilt in tilts if tilt is not None]


def _cells(rng: np.random.Generator, steps: Array, blocks: int) -> Cells:
    # The order of the blocks up to a look does not matter, and sorted numbers are found four times
    # as fast.
    found: Cells = np.searchsorted(steps, np.sort(rng.random(blocks)) * steps[-1], side="right")
    return found
