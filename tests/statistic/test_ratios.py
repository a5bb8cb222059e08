"""Ratios and slopes: estimates, what the calibrated interval pays for, exact ends of the bound."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

from mcverify.statistic import (
    Basis,
    Known,
    kurtosis,
    mean,
    median,
    quantile,
    ratio,
    slope,
    std,
    variance,
)
from mcverify.statistic.betting import threshold
from mcverify.statistic.studentised import studentised

RNG = np.random.default_rng(12)
RATE = 1e-3


def estimate(statistic, values, rate=RATE):
    return statistic.estimate(statistic.block_values(values), rate)


def same(found, expected):
    assert (found.value, found.stderr, found.low, found.high) == pytest.approx(
        (expected.value, expected.stderr, expected.low, expected.high), rel=1e-9)
    assert found.reason == expected.reason == ""


# --- the ratio, calibrated --------------------------------------------------------------------


def test_ratio_is_that_of_the_means_and_its_error_uses_the_pairing():
    a = RNG.gamma(3.0, size=(300, 4))
    found = estimate(ratio, (2 * a, a))
    assert found.value == pytest.approx(2)
    assert "do not vary" in found.reason
    b = a + 0.1 * RNG.standard_normal(a.shape)
    paired, apart = estimate(ratio, (a, b)), estimate(ratio, (a, b[::-1]))
    assert paired.value == pytest.approx(a.mean() / b.mean())
    assert paired.stderr < apart.stderr / 3


def test_ratio_pays_for_an_error_that_its_spread_shares():
    bottom = RNG.gamma(4.0, size=(500, 3)) + 5
    top = bottom.mean(axis=1, keepdims=True) ** 1.5 + RNG.standard_normal((500, 3))
    a, b = top.mean(axis=1), bottom.mean(axis=1)
    value = a.mean() / b.mean()
    influence = (a - value * b) / b.mean()
    lean = abs(np.cov(influence, b, ddof=0)[0, 1]) / influence.std() / b.mean()
    assert lean > 0.01
    same(estimate(ratio, (top, bottom)), studentised(value, influence, RATE, lean=lean))


def test_ratio_to_zero_is_not_a_number():
    table = np.array([[1.0, 1.0], [2.0, -1.0], [3.0, 0.0]])
    value, influence = ratio.influence(table)
    assert math.isnan(value)
    np.testing.assert_array_equal(influence, [0, 0, 0])
    assert math.isnan(ratio.within(-1, 3).estimate(table, RATE).value)


def test_ratio_takes_two_arrays():
    for values, told in ((np.ones((3, 3)), "ndarray"), ((np.ones((2, 1)),) * 3, "tuple"),
                         ([np.ones((2, 1))] * 2, "list")):
        with pytest.raises(ValueError, match=f"returned {told}; it must return a tuple of two arr"):
            ratio.reduce(values)


# --- the ratio of values in a stated range ----------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(0.158, 0.0722), (0.3, 0.3), (1.0, 0.5), (0.05, 1.0)])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.05, 1.0), (0.0, 3.0)])
def test_of_constants_the_ends_are_closed_forms(a, b, low, high):
    """A bet upwards makes 1 + (a − r·b)/(r·high − low) a block at most, one downwards
    1 + (r·b − a)/(high − r·low)."""
    blocks = 4096
    more = math.expm1(threshold(blocks, 1e-10) / blocks)
    table = np.tile([a, b], (blocks, 1))
    found = ratio.within(low, high).estimate(table, 1e-10)
    least, most = (a + more * low) / (b + more * high), (a + more * high) / (b + more * low)
    assert (found.low, found.high) == pytest.approx((least, most), rel=1e-8)
    assert found.low <= least * (1 + 1e-12)  # rounded to the safe side
    assert found.high >= most * (1 - 1e-12)
    assert found.value == pytest.approx(a / b, rel=1e-12)
    assert (found.reason, found.basis, found.final) == ("", Basis.BOUND, False)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 0.8), (0.0, 4.0)])
def test_the_ends_are_where_the_best_bet_makes_the_limit(low, high):
    x, y = 0.2 + 0.6 * np.random.default_rng(1).beta(2, 1, size=(2, 400))
    limit = threshold(400, RATE)

    def best(r):
        gains = x - r * y
        edges = -1 / (high - r * low), 1 / (r * high - low)
        return -minimize_scalar(lambda bet: -np.log1p(bet * gains).sum(), bounds=edges,
                                method="bounded", options={"xatol": 1e-12}).fun

    centre = x.mean() / y.mean()
    exact = [brentq(lambda r: best(r) - limit, *sorted((centre, far)), xtol=1e-12)
             for far in (0.5 * centre, 1.9 * centre)]
    found = estimate(ratio.within(low, high), (x[:, None], y[:, None]))
    assert (found.low, found.high) == pytest.approx(exact, rel=1e-7)


def pairs(rng, low, high):
    n = int(rng.integers(1, 150))
    x, y = rng.beta(*rng.uniform(0.2, 4, 2), (2, n, 1))
    y = np.maximum(y, 0.05) if rng.random() < 0.5 else np.round(y)
    y[0] = max(y[0], 0.5)  # so that the means are above 0
    return low + (high - low) * x, low + (high - low) * y


RANGES = st.sampled_from([(0.0, 1.0), (0.3, 1.0), (0.0, 20.0)])
SEEDS = st.integers(0, 2**32)


@given(SEEDS, RANGES)
def test_the_interval_of_the_reciprocal_is_the_reciprocal_interval(seed, ends):
    x, y = pairs(np.random.default_rng(seed), *ends)
    found, turned = (estimate(ratio.within(*ends), both) for both in ((x, y), (y, x)))
    assert found.low <= found.value <= found.high
    assert (1 / turned.high, 1 / turned.low) == pytest.approx((found.low, found.high), rel=1e-8)


@given(SEEDS, RANGES, st.sampled_from([1e-300, 1e-105, 1e-3, 1e3, 1e150, 1e300]))
def test_the_unit_does_not_matter(seed, ends, unit):
    x, y = pairs(np.random.default_rng(seed), *ends)
    found = estimate(ratio.within(*ends), (x, y))
    moved = estimate(ratio.within(unit * ends[0], unit * ends[1]), (unit * x, unit * y))
    assert (moved.low, moved.high) == pytest.approx((found.low, found.high), rel=1e-8)


@given(SEEDS)
def test_a_larger_error_rate_and_a_smaller_range_both_narrow_it(seed):
    both = pairs(np.random.default_rng(seed), 0.3, 1.0)
    found = [estimate(ratio.within(*ends), both, rate) for ends, rate in (
        ((0, 3), 1e-10), ((0, 1), 1e-10), ((0.3, 1), 1e-10), ((0.3, 1), 1e-2))]
    for wide, narrow in pairwise(found):
        assert wide.low <= narrow.low * (1 + 1e-8)
        assert narrow.high <= wide.high * (1 + 1e-8)


def test_no_interval_reaches_further_than_the_range_lets_it():
    # Of values in [0.5, 1] no ratio is beyond 1/2 and 2, however few the blocks.
    found = ratio.within(0.5, 1).estimate(np.array([[0.7, 0.7]]), 1e-10)
    assert (found.low, found.high) == pytest.approx((0.5, 2))
    assert found.low >= 0.5 * (1 - 1e-9)
    assert found.high <= 2 * (1 + 1e-9)
    # In [0, 1], one block and an error rate of 1e-300, just what double precision lets it be.
    far = ratio.within(0, 1).estimate(np.array([[0.7, 0.7]]), 1e-300)
    assert 0 <= far.low < 1e-295
    assert far.high > 1e295


def test_values_that_rounding_took_out_of_the_range_are_put_back():
    rng = np.random.default_rng(2)
    x = np.where(rng.random((512, 1)) < 0.5, -1e-12, 1 + 1e-12)
    y = np.where(rng.random((512, 1)) < 0.5, 0.2, 1 + 1e-12)
    found, exact = (estimate(ratio.within(0, 1), both)
                    for both in ((x, y), (np.clip(x, 0, 1), np.clip(y, 0, 1))))
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_where_a_stated_range_gives_no_ratio():
    y = RNG.random((64, 1))
    never = estimate(ratio.within(0, 1), (0 * y, y))
    signed = estimate(ratio.within(-1, 1), (y, y))
    for found, final in ((never, False), (signed, True)):
        assert (found.low, found.high, found.final) == (-math.inf, math.inf, final)
        assert found.reason == ("a ratio of values in a stated range needs numerator and "
                                "denominator of at least 0, with means above 0")


def test_a_true_ratio_that_rare_values_carry_is_missed_no_more_often_than_it_may():
    # Numerator and denominator are 1 in one block of 50, apart from each other: the ratio is 1.
    rng, runs, rate = np.random.default_rng(6), 300, 1e-2
    missed = 0
    for _ in range(runs):
        table = (rng.random((128, 2)) < 0.02) * 1.0
        table[:, 1] += 1e-3  # so that no denominator is 0
        table[:, 0] += 1e-3
        found = ratio.within(0, 2).estimate(table, rate)
        missed += not found.low <= 1 <= found.high
    assert missed <= stats.binom(runs, rate).isf(1e-9)


# --- slopes, calibrated -----------------------------------------------------------------------


def pairs_of(x):
    return [(d, np.exp(0.1 * x[:, i::3]) * d**0.7) for i, d in enumerate((1, 3, 4))]


def test_slope_finds_the_exponent():
    z = RNG.standard_normal((300, 64))
    found = estimate(slope(variance), [(d, z * d**1.5) for d in (1, 4, 16)])
    assert found.value == pytest.approx(3.0, abs=1e-12)
    of_std = estimate(slope(std), [(d, z * d**1.5) for d in (1, 4, 16)])
    assert of_std.value == pytest.approx(1.5, abs=1e-12)
    assert of_std.stderr == pytest.approx(found.stderr / 2, rel=1e-6)
    of_median = estimate(slope(median), [(d, abs(z) * d**1.5) for d in (1, 4, 16)])
    assert of_median.value == pytest.approx(1.5, abs=1e-12)
    assert of_median.low < 1.5 < of_median.high


@pytest.mark.parametrize("of", [mean, std, median, mean.within(-50, 50), mean.with_variance(1.0)],
                         ids=lambda s: f"{s.name}-{s.rests_on}")
def test_only_a_positive_number_grows_like_a_power(of):
    z = 0 * RNG.standard_normal((300, 4))
    for values in (z, z - 0.5) if of is not std else (z,):
        with pytest.raises(ValueError, match="only a positive number grows like a power"):
            estimate(slope(of), [(d, values) for d in (1, 2)])


def test_slope_takes_pairs():
    for values in (np.ones((3, 3)), [(1, np.ones((3, 3)))], (np.ones((3, 3)),) * 2):
        with pytest.raises(ValueError, match="list of at least two pairs"):
            slope(mean).reduce(values)


def test_slope_is_the_least_squares_line_through_logs_of_log():
    x = RNG.gamma(4.0, size=(300, 12))
    values = pairs_of(x)
    logs = [math.log(part.mean()) for _, part in values]
    expected = np.polyfit(np.log([1, 3, 4]), logs, 1)[0]
    found = estimate(slope(mean), values)
    assert found.value == pytest.approx(expected, rel=1e-12)
    columns = [part.mean(axis=1) for _, part in values]
    t = np.log([1, 3, 4]) - np.log(12) / 3
    shares = [(c - c.mean()) / c.mean() for c in columns]
    influence = t / (t @ t) @ shares
    bends = np.mean(shares * influence, axis=1) ** 2
    lean = abs(t / (t @ t) @ bends) / (2 * influence.std() ** 3)
    assert lean > 1e-4
    same(found, studentised(expected, influence, RATE, np.stack(columns, axis=1), lean=lean))


def test_slope_pays_for_the_parts_of_what_it_is_a_slope_of():
    x = RNG.uniform(-1, 1, (4000, 40))
    values = [(1, x[:, :20] ** 3), (2, x[:, 20:] ** 5)]
    tables = [kurtosis.reduce(part) for _, part in values]
    parts = np.concatenate([np.column_stack([kurtosis.influence(t)[1], kurtosis.parts(t)])
                            for t in tables], axis=1)
    whole = slope(kurtosis)
    value, influence = whole.influence(whole.reduce(values))
    same(estimate(whole, values, 0.3), studentised(
        value, influence, 0.3, parts, caution=64,
        lean=whole.lean(whole.reduce(values))))
    early = estimate(whole, [(d, part[:600]) for d, part in values])
    assert early.reason == "600 blocks are too few at this error rate"


# --- slopes of what has a theorem -------------------------------------------------------------


@pytest.mark.parametrize("of", [median, mean.within(0, 20), mean.with_variance(0.5)],
                         ids=lambda s: str(s.rests_on))
def test_slope_of_a_theorem_joins_intervals_that_share_the_error_rate(of):
    x = RNG.gamma(4.0, size=(500, 12))
    values = pairs_of(x)
    one, three, four = (estimate(of, part, RATE / 3) for _, part in values)
    t = np.log([1, 3, 4]) - np.log(12) / 3
    w = t / (t @ t)
    assert w[0] < 0 < w[1] < w[2]
    found = estimate(slope(of), values)
    for value, ends in ((found.value, (one.value, three.value, four.value)),
                        (found.low, (one.high, three.low, four.low)),
                        (found.high, (one.low, three.high, four.high))):
        assert value == pytest.approx(w @ np.log(ends), rel=1e-12)
    errors = [each.stderr / each.value for each in (one, three, four)]
    if of is median:  # as if apart; others by what each block adds, on the same draws
        assert found.stderr == pytest.approx(math.sqrt(sum((w * errors) ** 2)), rel=1e-12)
    else:
        logs = [part.mean(axis=1) / part.mean() for _, part in values]
        assert found.stderr == pytest.approx(np.std(w @ logs, ddof=1) / math.sqrt(500), rel=1e-9)
    assert (found.reason, found.basis) == ("", of.rests_on)


def test_a_range_may_be_stated_of_the_slope_or_of_what_it_is_a_slope_of():
    values = pairs_of(RNG.gamma(4.0, size=(500, 12)))
    found = estimate(slope(mean).within(0, 20), values)
    assert estimate(slope(mean.within(0, 20)), values) == found
    later = slope(mean.within(0, lambda keys: keys)).settled(lambda function: function(keys=20))
    assert estimate(later, values) == found
    never = slope(mean.within(0, lambda keys: None)).settled(lambda function: function(keys=20))
    assert estimate(never, values) == estimate(slope(mean), values)


def test_what_a_law_knows_at_each_x_makes_a_slope_a_theorem():
    values = pairs_of(RNG.gamma(4.0, size=(500, 12)) - 4)
    known = tuple(Known(0.0, None, 30.0 * d) for d in (1, 3, 4))
    found = estimate(slope(std).informed(known), values)
    ends = [estimate(std.with_variance(30.0 * d), part, RATE / 3) for d, part in values]
    w = np.log([1, 3, 4]) - np.log(12) / 3
    w /= w @ w
    assert found.basis is Basis.MOMENTS
    assert found.low == pytest.approx(
        w @ np.log([ends[0].high, ends[1].low, ends[2].low]), rel=1e-12)
    unknown = (*known[:2], Known(0.0, None, None))
    for left in (unknown, (*known[:2], None), known[0], None):
        assert estimate(slope(std).informed(left), values) == estimate(slope(std), values)
    assert not slope(std).informed(known).at_all_looks
    assert std.informed(known) is std
    later = slope(mean.within(0, lambda keys: None)).settled(lambda function: function(keys=20))
    assert later.informed(tuple(Known(0.0, 1.0, None) for _ in known)).rests_on is Basis.MOMENTS


def test_slope_waits_for_all_its_intervals():
    values = pairs_of(RNG.gamma(4.0, size=(500, 12)))
    early = estimate(slope(quantile(0.999)), [(d, part[:8, :1]) for d, part in values])
    assert early.reason == "too few blocks to bound quantile 0.999"
    assert early.high == math.inf
    few = estimate(slope(median), [(d, part[:3]) for d, part in values])
    assert (few.low, few.high) == (-math.inf, math.inf)
    assert few.reason == "too few blocks to bound median"


def test_an_end_that_counts_for_nothing_may_be_infinite():
    # Of x in equal ratios the one in the middle has no weight.
    values = [(d, np.full((64, 1), mean_at)) for d, mean_at in ((1, 1.0), (2, 0.1), (4, 1.0))]
    of = mean.with_variance(0.1)
    assert of.estimate(values[1][1], RATE).low < 0
    found = estimate(slope(of), values)
    assert -math.inf < found.low < 0 < found.high < math.inf
