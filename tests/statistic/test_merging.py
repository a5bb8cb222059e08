"""Blocks taken together are blocks: the same block values, estimates, and intervals that hold."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mcverify.statistic import (
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
from mcverify.statistic.bets_on_rows import log_wealth_of_rows
from mcverify.statistic.betting import log_wealth
from mcverify.statistic.known import Known

BLOCKS, VALUES = 256, 6


def values(seed=0, shift=0.3):
    """Skew, and with a mean that is not 0."""
    return np.random.default_rng(seed).exponential(size=(BLOCKS, VALUES)) + shift


def united(x):
    return x.reshape(BLOCKS // 2, 2 * VALUES)


def both(x, how):
    """The values that a body returns of x for each statistic, with ``how`` x is united or not."""
    y = values(1, 0.1)
    return {
        mean: how(x), variance: how(x), std: how(x), kurtosis: how(x),
        proportion: how(x > 1), ratio: (how(x), how(y)),
        slope(mean): [(1, how(x)), (2, how(y)), (3, how(x + y))],
        slope(kurtosis): [(1, how(x)), (2, how(y))],
        difference_of(variance, mean): (how(x), how(y)),
        ratio_of(mean.within(0, 99), kurtosis): (how(x), how(y)),
        difference_of(slope(mean), variance): ([(1, how(x)), (2, how(y))], how(x)),
    }


# Statistics that are made anew are not equal, so that their places stand for them.
CASES = list(zip(both(values(), united).items(), both(values(), lambda x: x).items(), strict=True))


@pytest.mark.parametrize(("whole", "halves"), CASES, ids=[str(each[0][0]) for each in CASES])
def test_merged_block_values_are_those_of_one_block_with_the_values_of_both(whole, halves):
    (statistic, large), (same, small) = whole, halves
    assert statistic.name == same.name
    merged, expected = same.merge(same.reduce(small)), statistic.reduce(large)
    if same in (mean, proportion, ratio):  # behind whose means stand their variances
        merged = merged[:, :expected.shape[1]]
    if str(same) == "<Statistic slope of mean>":
        merged = merged[:, :, :2]
    if "mean" in str(same) and "of" in str(same) and merged.ndim == 2:
        return  # two tables in one, of which that of the mean has become wider
    np.testing.assert_allclose(merged, expected, rtol=1e-12)


@pytest.mark.parametrize(("whole", "halves"), CASES, ids=[str(each[0][0]) for each in CASES])
def test_an_estimate_stays_what_it_was(whole, halves):
    statistic, small = halves
    table = statistic.reduce(small)
    before, after = (statistic.influence(each)[0] for each in (table, statistic.merge(table)))
    # A variance undoes the bias of its own mean, by a term that differs with the blocks.
    error = statistic.estimate(table, 0.5).stderr / BLOCKS
    bias = 2 * error if "variance" in str(statistic) or "std" in str(statistic) else 0.0
    assert after == pytest.approx(before, rel=1e-12, abs=bias)


def test_a_median_is_of_all_values_and_merges_nothing():
    for statistic in (median, slope(median), difference_of(mean, median)):
        assert statistic.merge is None


def test_a_known_variance_is_divided_by_the_blocks_of_a_row():
    assert mean.with_variance(8.0, 1.0).of_merged(4).known == (2.0, 1.0)
    fourths = kurtosis.informed(Known(0.0, 1.0, 2.0, 6.0, (1.0, 3.0)))
    assert fourths.of_merged(2).known == (3.0, (0.0, 1.0, 3.0))
    assert mean.of_merged(4) == mean
    assert mean.within(0, 1).of_merged(4).support == (0, 1)


@pytest.mark.parametrize("merged", [1, 2, 16])
def test_an_interval_by_moments_is_catonis_for_the_larger_blocks(merged):
    """Of values that are all 0 its end solves ln(1 + x + x²/2) = 2 ln(2/α)/rows, x = λ·end."""
    rate, rows, variance_ = 1e-6, 2**12 // merged, 3.0
    log_rate = math.log(2 / rate)
    x = math.sqrt(2 * math.exp(2 * log_rate / rows) - 1) - 1
    end = x / math.sqrt(2 * log_rate / rows / (variance_ / merged))
    statistic, table = mean.with_variance(variance_), np.zeros((rows, 1))
    found = statistic.of_merged(merged).estimate(table, rate)
    assert (found.low, found.high) == pytest.approx((-end, end), rel=1e-6)
    # As wide as of the blocks themselves, but for what a logarithm bends over a row.
    assert end == pytest.approx(math.sqrt(2 * variance_ * log_rate / 2**12), rel=0.05)
    of_two = difference_of(statistic, statistic)
    twice = of_two.of_merged(merged).estimate(of_two.reduce((table, table)), 2 * rate)
    assert (twice.low, twice.high) == pytest.approx((-2 * end, 2 * end), rel=1e-6)


def test_a_slope_by_moments_knows_what_each_of_its_means_does():
    known = slope(mean).informed(tuple(Known(1.0, v, None) for v in (1.0, 4.0)))
    table = slope(mean).reduce([(1, np.ones((512, 1))), (2, np.full((512, 1), 2.0))])
    found = known.of_merged(4).estimate(table, 2e-3)
    logs = [np.log([each.low, each.high]) for each in (
        mean.with_variance(0.25).estimate(np.ones((512, 1)), 1e-3),
        mean.with_variance(1.0).estimate(np.full((512, 1), 2.0), 1e-3))]
    assert found.low == pytest.approx((logs[1][0] - logs[0][1]) / math.log(2))
    assert found.high == pytest.approx((logs[1][1] - logs[0][0]) / math.log(2))


def merged_by(statistic, table, times):
    for _ in range(times):
        table = statistic.merge(table)
    return table


@pytest.mark.parametrize("times", [0, 1, 4])
def test_an_interval_by_a_bound_is_that_of_all_blocks_where_those_of_a_row_are_equal(times):
    table = np.repeat(np.random.default_rng(3).uniform(size=(32, 2)), 16, axis=0)
    for statistic in (proportion, ratio.within(0, 1)):
        expected = statistic.estimate(statistic.reduce((table[:, 0], table[:, 1])) if statistic.name
                                      == "ratio" else table[:, :1], 1e-10)
        rows = merged_by(statistic, table if statistic.name == "ratio" else table[:, :1], times)
        found = statistic.of_merged(2**times).estimate(rows, 1e-10)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-6)


@pytest.mark.parametrize("values", [
    np.random.default_rng(7).uniform(size=2**15), np.random.default_rng(8).random(2**15) < 0.01,
    np.random.default_rng(9).beta(0.1, 3, 2**15), np.repeat([0.0, 1.0], 2**14), np.zeros(2**15),
    np.ones(2**15)], ids=["uniform", "rare", "skew", "coins", "zeros", "ones"])
def test_bets_on_rows_refute_no_more_than_those_on_blocks_and_not_much_less(values):
    table = values.astype(float)[:, None]
    within = proportion.estimate(table, 1e-10)
    for times in (2, 4, 8):
        rows = merged_by(proportion, table, times)
        found = proportion.of_merged(2**times).estimate(rows, 1e-10)
        slack = 1e-9
        assert found.low <= within.low * (1 + slack)
        assert found.high >= within.high * (1 - slack)
        assert found.high - found.low < 1.15 * (within.high - within.low) + 1e-12


@pytest.mark.parametrize("statistic", [
    mean, variance, kurtosis, ratio, mean.within(0, 6), mean.with_variance(1 / VALUES)],
    ids=lambda each: f"{each.name}-{each.rests_on}")
def test_intervals_of_merged_blocks_are_nearly_as_wide_and_about_as_high(statistic):
    rng, blocks = np.random.default_rng(5), 2**15
    x = rng.exponential(size=(blocks, VALUES))
    table = statistic.reduce((x, x + rng.exponential(size=x.shape)) if statistic is ratio else x)
    if statistic is kurtosis:  # of four more standard deviations in a row
        statistic = replace(statistic, caution=8)
    before, after = statistic.estimate(table, 1e-6), table
    for _ in range(3):
        after = statistic.merge(after)
    found = statistic.of_merged(8).estimate(after, 1e-6)
    assert found.stderr == pytest.approx(before.stderr, rel=0.05)
    assert found.high - found.low == pytest.approx(before.high - before.low, rel=0.1)
    assert found.value == pytest.approx(before.value, rel=1e-7)
    assert found.low < {"mean": 1, "variance": 1, "kurtosis": 6, "ratio": 0.5}[
        statistic.name] < found.high


def test_the_bound_of_a_row_is_reached_by_two_points():
    """0 and h with the weights p and 1 − p have the row's mean and variance, and the bound is
    what they make; with 3:1 of them in each row it is what all bets make."""
    gains = np.tile([-0.25, 0.5, 0.5, 0.5], 64)
    rows = gains.reshape(64, 4)
    found = log_wealth_of_rows(rows.mean(axis=1), rows.var(axis=1), 4, -0.25)
    assert found == pytest.approx(log_wealth(gains, -1 / 0.75, 4.0), rel=1e-9)
    assert log_wealth_of_rows(-rows.mean(axis=1), rows.var(axis=1), 4, -0.75) == 0
