"""From a population to the same under a worse rule, which its checks must find out."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mcverify.selfcheck.limits import quantile_of_t
from mcverify.selfcheck.population import Population
from mcverify.statistic.estimate import Estimate
from mcverify.statistic.studentised import MAX_DELTA

Array = NDArray[np.float64]


def plain_t(population: Population) -> Population:
    """value ± t·stderr, whatever the skewness and the number of blocks."""
    return replace(_with(population, lambda y, rate: quantile_of_t(rate, len(y))), corrected=False)


def plain_z(population: Population) -> Population:
    """value ± z·stderr, as if the standard error were known."""
    return replace(_with(population, lambda y, rate: -float(ndtri(rate / 2))), corrected=False)


def first_order(population: Population) -> Population:
    """value ± (t + δ)·stderr, by the influence's skewness alone, and no interval while δ > ½."""
    def multiple(y: Array, rate: float) -> float:
        t = quantile_of_t(rate, len(y))
        delta = abs(float(np.mean(y**3))) / float(np.mean(y**2)) ** 1.5 * (2 * t * t + 1)
        delta /= 6 * math.sqrt(len(y))
        return t + delta if delta <= MAX_DELTA else math.inf

    return _with(population, multiple)


def too_sure(population: Population, times: float = 2.0) -> Population:
    """The interval of an error rate so many times the one it is asked for."""
    statistic = population.statistic
    return replace(population, statistic=replace(
        statistic, interval=lambda table, rate: statistic.estimate(table, times * rate)))


def unmended(population: Population) -> Population:
    """The same for any number of blocks."""
    rule = first_order(population)
    statistic = replace(rule.statistic, caution=0, parts=None)
    return replace(rule, name=f"unmended-{population}", statistic=statistic)


def _with(population: Population, multiple: Callable[[Array, float], float]) -> Population:
    """Half the interval is so many standard errors, by influence and error rate."""
    statistic = population.statistic

    def interval(table: Array, rate: float) -> Estimate:
        value, influence = statistic.influence(table)
        blocks = len(influence)
        stderr = math.sqrt(float(np.dot(influence, influence)) / (blocks - 1) / blocks)
        half = multiple(influence, rate) * stderr
        return Estimate(value, stderr, value - half, value + half)

    return replace(population, statistic=replace(statistic, interval=interval))
