"""Influence values of shipped statistics are what blocks add to the estimate; wrong ones not."""

from dataclasses import replace

import numpy as np
import pytest

from mcverify.statistic import (
    Statistic,
    difference_of,
    kurtosis,
    mean,
    median,
    proportion,
    ratio,
    ratio_of,
    slope,
    std,
    variance,
)
from mcverify.statistic.jackknife import GROUPS, _sums, wrong_influence

LAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "far": lambda rng, shape: rng.standard_normal(shape) + 1e4,
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "coins": lambda rng, shape: rng.choice([-1.0, 1.0], shape),  # variances with no first order
    "products": lambda rng, shape: rng.standard_normal(shape) * rng.standard_normal(shape),
    "rare": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.01),
}


def values(statistic, draw, rng):
    if statistic is ratio or " of variance " in statistic.name:
        return draw(rng, (512, 4)), 2 + np.abs(draw(rng, (512, 4)))
    if statistic.name.startswith("slope"):
        return [(d, (draw(rng, (512, 4, d)) ** 2).sum(axis=2)) for d in (1, 2, 4)]
    return draw(rng, (512, 4))


SHIPPED = [mean, variance, std, kurtosis, ratio, slope(mean), slope(std),
           ratio_of(variance, std), difference_of(variance, mean)]


@pytest.mark.parametrize(("statistic", "law"), [
    (statistic, law) for statistic in SHIPPED for law in LAWS
    if not (law == "coins" and statistic.name == "slope of std")  # whose squares do not spread
], ids=lambda one: getattr(one, "name", one))
def test_shipped_statistics_have_the_influence_that_they_say(statistic, law):
    for seed in range(5):
        table = statistic.reduce(values(statistic, LAWS[law], np.random.default_rng(seed)))
        assert wrong_influence(statistic, table) == ""


def test_statistics_with_an_interval_of_their_own_are_not_asked():
    table = np.random.default_rng(0).random((512, 1))
    for statistic in (proportion, median):
        assert wrong_influence(replace(statistic, influence=None), table) == ""


def test_groups_move_a_mean_by_their_sum_and_its_square_by_just_the_second_order_more():
    n, m = 64, 64 // GROUPS
    table = np.arange(64.0)[:, None] ** 2
    own, twice, left_out = _sums(mean, table, *mean.influence(table))
    assert np.allclose(own, twice)
    assert np.allclose(own, left_out)

    def influence(table):
        centre = table.mean()
        return centre**2, 2 * centre * (table[:, 0] - centre)

    squared = replace(mean, influence=influence)
    sums, twice, left_out = _sums(squared, table, *influence(table))
    assert np.allclose(twice, sums + own**2 / (n + m))
    assert np.allclose(left_out, sums - own**2 / (n - m))


def wrong(change):
    def influence(table):
        value, values = variance.influence(table)
        return value, change(value, values)

    return replace(variance, influence=influence)


@pytest.mark.parametrize(("change", "told"), [
    (lambda value, values: values / 1000, "spread by 0.00"),
    (lambda value, values: 2 * values, "let each be what its block adds to the estimate"),
    (lambda value, values: values / 2, "let each be what its block adds to the estimate"),
    (lambda value, values: values / (2 * value**0.5), "spread by"),  # in the unit of the root
    (lambda value, values: values / len(values), "spread by"),
    (lambda value, values: values + value, "have mean 9"),
    (lambda value, values: values[::-1], "do not go with what groups of blocks add"),
    (lambda value, values: -values, "let each be that of its own block, with its sign"),
    (lambda value, values: np.zeros_like(values), "spread by 0,"),
    (lambda value, values: values[:-1], "have shape (511,)"),
])
def test_a_wrong_influence_is_told(change, told):
    table = variance.reduce(3 * np.random.default_rng(0).standard_normal((512, 4)))
    assert told in wrong_influence(wrong(change), table)


def test_a_statistic_of_ones_own():
    """Of a geometric mean: the influence that is right, and the one without the chain rule."""
    def logs(values):
        return np.log(values).reshape(len(values), -1).mean(axis=1, keepdims=True)

    def right(table):
        value = np.exp(table.mean())
        return value, value * (table[:, 0] - table.mean())

    def forgotten(table):
        return np.exp(table.mean()), table[:, 0] - table.mean()

    table = logs(5 * np.random.default_rng(0).random((512, 4)))
    assert wrong_influence(Statistic("geometric", logs, right, 3), table) == ""
    assert "geometric spread by" in wrong_influence(Statistic("geometric", logs, forgotten, 3),
                                                    table)
