"""Quantile intervals against every value asked one by one, with ties, and their misses exactly."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from mcverify.statistic import Basis, median, quantile
from mcverify.statistic.betting import log_wealth, threshold

RATE = 1e-3


def kl(p, m):
    return special.rel_entr(p, m) + special.rel_entr(1 - p, 1 - m)


# --- the interval -----------------------------------------------------------------------------


def one_by_one(x, level, rate):
    """The quantile, and the interval of what is not refuted, of all values asked one by one."""
    limit, values = threshold(len(x), rate), np.unique(x)
    low, high = -math.inf, math.inf

    def refuting(share):
        return log_wealth(share - level, -1 / (1 - level), 1 / level) > limit

    if refuting(np.zeros(len(x))):
        low = values[0]
    for value, following in zip(values, [*values[1:], math.inf], strict=True):
        share = (x <= value).mean(axis=1)
        if refuting(share) and share.mean() < level:
            low = following
        if refuting(share) and share.mean() > level:
            high = min(high, value)
    return np.quantile(x, level, method="inverted_cdf"), low, high


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5, 0.9, 0.97]),
       st.sampled_from([(1, 150), (3, 60), (20, 12)]), st.sampled_from([1e-2, 1e-6]), st.booleans())
def test_the_interval_ends_at_the_nearest_values_that_are_refuted(seed, level, shape, rate, coarse):
    tokens, blocks = shape
    x = np.random.default_rng(seed).standard_normal((blocks, tokens))
    x = np.round(2 * x) if coarse else x  # with ties
    expected = one_by_one(x, level, rate)
    found = quantile(level).estimate(x, rate)
    assert (found.value, found.low, found.high) == expected
    assert found.low <= found.value <= found.high
    decided = math.isfinite(found.high - found.low)
    name = "median" if level == 0.5 else f"quantile {level}"
    assert found.reason == ("" if decided else f"too few blocks to bound {name}")
    assert (found.basis, found.final) == (Basis.ORDER, False)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("rate", [1e-3, 1e-10])
def test_of_one_value_a_block_it_runs_between_two_order_statistics(level, rate):
    blocks, ranks = 2000, np.arange(2001)
    beyond = blocks * kl(ranks / blocks, level) > threshold(blocks, rate)  # so many at or below
    few = ranks[beyond & (ranks < level * blocks)].max()
    many = ranks[beyond & (ranks > level * blocks)].min()
    x = np.random.default_rng(1).permutation(np.arange(1.0, blocks + 1))[:, None]
    found = quantile(level).estimate(x, rate)
    assert (found.low, found.high) == (few + 1, many)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_first_blocks_that_bound_it(level):
    """The low end is the smallest value from blocks·ln(1/(1 − level)) > limit on, and the high one
    the largest from blocks·ln(1/level) > limit on."""
    for blocks in range(2, 140):
        found = quantile(level).estimate(np.arange(float(blocks))[:, None], RATE)
        limit = threshold(blocks, RATE)
        assert math.isfinite(found.low) == (-blocks * math.log(1 - level) > limit)
        assert math.isfinite(found.high) == (-blocks * math.log(level) > limit)
    assert math.isfinite(found.high - found.low)


def test_it_moves_with_every_map_that_keeps_the_order():
    x = np.random.default_rng(2).standard_normal((300, 3))
    plain, moved = (quantile(0.8).estimate(y, RATE) for y in (x, np.exp(x)))
    for name in ("value", "low", "high"):
        assert getattr(moved, name) == math.exp(getattr(plain, name))


# --- ties -------------------------------------------------------------------------------------


def test_the_middle_of_three_values_is_decided():
    # P of .2, .6, .2 on −1, 0, 1: the median is 0, and nothing else once 0.2 is surely below 1/2.
    x = np.random.default_rng(4).choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=(512, 1))
    found = median.estimate(x, 1e-10)
    assert (found.value, found.low, found.high, found.reason) == (0, 0, 0, "")
    early = median.estimate(x[:60], 1e-10)
    assert (early.low, early.high) == (-1, 1)


def test_a_constant_is_its_own_quantiles():
    assert median.estimate(np.full((9, 2), 5.0), 1e-3).reason == "too few blocks to bound median"
    found = median.estimate(np.full((512, 2), 5.0), 1e-10)
    assert (found.value, found.low, found.high, found.reason) == (5, 5, 5, "")
    for other in (4.0, 6.0):
        most = np.repeat([5.0, other], [63, 1])[:, None]
        assert (median.estimate(most, 1e-3).low, median.estimate(most, 1e-3).high) == (5, 5)


def test_one_block_is_no_evidence():
    found = median.estimate(np.array([[1.0, 2.0, 3.0]]), 1e-3)
    assert (found.value, found.low, found.high) == (2.0, -math.inf, math.inf)
    assert math.isnan(found.stderr)


# --- misses, at all numbers of blocks together ------------------------------------------------


def ever_missed(before, upto, level, rate, blocks):
    """The probability that the quantile is missed at any number of blocks: exactly, by the numbers
    of values before it and of those up to it, which have probabilities ``before`` and ``upto``."""
    alive, lost = np.zeros((blocks + 1, blocks + 1)), 0.0
    alive[0, 0] = 1.0
    for n in range(1, blocks + 1):
        new = alive * (1 - upto)
        new[:, 1:] += alive[:, :-1] * (upto - before)
        new[1:, 1:] += alive[:-1, :-1] * before
        share = np.arange(blocks + 1) / n
        beyond = n * kl(np.minimum(share, 1), level) > threshold(n, rate)
        out = (beyond & (share > level))[:, None] | (beyond & (share < level))[None, :]
        lost, alive = lost + new[out].sum(), np.where(out, 0, new)
    return lost


@pytest.mark.parametrize(("before", "upto", "level"), [
    (0.5, 0.5, 0.5), (0.49, 0.51, 0.5), (0.2, 0.8, 0.5), (0.5, 0.9, 0.5), (0.88, 0.9, 0.9),
    (0.9, 1.0, 0.9),
])
def test_the_quantile_is_missed_no_more_often_than_it_may(before, upto, level):
    lost = ever_missed(before, upto, level, 0.1, 150)
    assert lost <= 0.1
    assert lost > 1e-3 or (before, upto) == (0.2, 0.8)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 300), st.floats(0.3, 0.5), st.floats(0.5, 0.7),
       st.sampled_from([0.1, 0.3]))
def test_a_miss_is_that_of_the_two_shares(seed, blocks, before, upto, rate):
    x = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], size=(blocks, 1),
                                           p=[before, upto - before, 1 - upto])
    found = median.estimate(x, rate)
    lower, upper = (x < 0).mean(), (x <= 0).mean()
    limit = threshold(blocks, rate)
    assert (found.high < 0) == (lower > 0.5 and blocks * kl(lower, 0.5) > limit)
    assert (found.low > 0) == (upper < 0.5 and blocks * kl(upper, 0.5) > limit)


# --- standard error, influence ----------------------------------------------------------------


@pytest.mark.parametrize("level", [0.002, 0.1, 0.5, 0.97, 0.998])
def test_standard_error_is_a_quarter_of_the_distance_of_two_on_either_side(level):
    x = np.random.default_rng(9).laplace(size=(60, 12)).cumsum(axis=1)  # dependent in a block
    found = quantile(level).estimate(x, 1e-2)
    below = (x <= found.value).mean(axis=1)
    error = stats.sem(below)
    ends = np.quantile(x, np.clip([level - 2 * error, level + 2 * error], 0, 1),
                       method="inverted_cdf")
    assert found.stderr == pytest.approx((ends[1] - ends[0]) / 4, rel=1e-12)
    assert found.stderr > 0


def test_influence_is_in_units_of_probability():
    value, influence = quantile(0.25).influence(np.arange(8.0).reshape(4, 2))
    assert value == 1.0  # a quarter of the values lie at or below it
    np.testing.assert_array_equal(influence, [-0.75, 0.25, 0.25, 0.25])
