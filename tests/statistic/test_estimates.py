"""Estimates, influence values and standard errors against numpy and scipy on all values."""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify.declare.prediction import printed, relative
from mcverify.statistic import (
    Basis,
    Estimate,
    Known,
    Statistic,
    exact,
    kurtosis,
    mean,
    median,
    proportion,
    quantile,
    ratio,
    slope,
    std,
    variance,
)
from mcverify.statistic.studentised import studentised

RNG = np.random.default_rng(12)
VALUES = RNG.standard_normal((200, 7, 5)) ** 3
RATE = 1e-3


def estimate(statistic, values, rate=RATE):
    return statistic.estimate(statistic.block_values(values), rate)


# --- estimates --------------------------------------------------------------------------------


@pytest.mark.parametrize(("statistic", "expected"), [
    (mean, np.mean),
    (kurtosis, lambda x: stats.kurtosis(x, axis=None)),
    (median, lambda x: np.quantile(x, 0.5, method="inverted_cdf")),
    (quantile(0.9), lambda x: np.quantile(x, 0.9, method="inverted_cdf")),
])
def test_estimates_are_those_of_all_values_together(statistic, expected):
    assert estimate(statistic, VALUES).value == pytest.approx(expected(VALUES), rel=1e-12)


def test_variance_is_unbiased_from_block_to_block():
    # With one value a block it is the usual unbiased variance, block by block.
    assert estimate(variance, np.array([[1.0], [4.0]])).value == 4.5
    assert estimate(variance, np.array([[1.0, 3.0]])).value == 1  # has no spread of its own
    single = VALUES[:, :1, 0]
    assert estimate(variance, single).value == pytest.approx(single.var(ddof=1), rel=1e-12)
    assert estimate(variance, VALUES).value == pytest.approx(VALUES.var(), rel=1e-2)


def test_std_is_the_root_of_the_variance_with_its_interval():
    squared = estimate(variance, np.cbrt(VALUES))
    found = estimate(std, np.cbrt(VALUES))
    assert (found.value, found.low, found.high) == pytest.approx(
        tuple(math.sqrt(x) for x in (squared.value, squared.low, squared.high)))
    assert found.stderr == pytest.approx(squared.stderr / (2 * found.value), rel=1e-2)
    assert [std.back(value) for value in (4.0, 0.0, -1.0)] == [2.0, 0.0, 0.0]


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("cut", [1, 2, 50])
def test_variance_survives_a_large_mean_and_any_chunking(offset, cut):
    x = np.tile(np.array([1.0, 2.0, 3.0]), (100, 1)) + offset
    x[::2] = x[::2, ::-1]
    table = np.concatenate([variance.reduce(part) for part in np.split(x, cut)])
    assert variance.influence(table)[0] == pytest.approx(2 / 3, rel=1e-12)


@given(st.integers(0, 2**32), st.floats(-3, 3), st.floats(0.1, 10))
def test_moments_move_with_shift_and_scale(seed, shift, scale):
    x = np.random.default_rng(seed).standard_exponential((64, 4))
    moved = scale * x + shift
    for statistic, power in ((mean, 1), (variance, 2), (std, 1), (kurtosis, 0)):
        expected = estimate(statistic, x).value * scale**power + (shift if statistic is mean else 0)
        assert estimate(statistic, moved).value == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_statistic_of_ones_own_needs_only_the_two_halves():
    second = Statistic("second moment", lambda x: (np.asarray(x) ** 2).mean(axis=1, keepdims=True),
                       mean.influence, moments=6)
    found = estimate(second, VALUES[:, :, 0])
    assert found.value == pytest.approx((VALUES[:, :, 0] ** 2).mean())


def test_a_hand_calculation_is_its_own_interval():
    found = estimate(exact, 2.5)
    assert found == Estimate(2.5, 0.0, 2.5, 2.5, basis=Basis.EXACT)
    assert exact.influence(exact.reduce([[3.0]]))[0] == 3


# --- standard errors and influence values -----------------------------------------------------


@pytest.mark.parametrize("statistic", [mean, variance, std, kurtosis, median, quantile(0.8)],
                         ids=lambda s: s.name)
def test_standard_error_is_the_scatter(statistic):
    found = [estimate(statistic, np.random.default_rng(i).gamma(4.0, size=(128, 10)))
             for i in range(300)]
    scatter = np.std([f.value for f in found])
    assert np.sqrt(np.mean([f.stderr**2 for f in found])) == pytest.approx(scatter, rel=0.2)


@pytest.mark.parametrize("statistic", [mean, mean.within(-99, 99), mean.with_variance(9.0)],
                         ids=lambda s: str(s.rests_on))
@pytest.mark.parametrize("unit", [1e-170, 1.0])
def test_standard_error_of_a_mean_is_scipys_whatever_the_interval_rests_on(statistic, unit):
    x = RNG.standard_exponential((300, 1))
    assert estimate(statistic, unit * x).stderr == pytest.approx(unit * stats.sem(x[:, 0]))
    assert math.isnan(estimate(statistic, x[:1]).stderr)


def test_scores_that_share_a_query_do_not_count_as_independent():
    q, k = RNG.standard_normal((2, 500, 30, 1))
    s = q @ np.swapaxes(k, 1, 2)
    honest = estimate(variance, s).stderr
    naive = estimate(variance, s.reshape(-1, 1)).stderr
    assert honest > 2.5 * naive


def pairs_of(x):
    return [(d, np.exp(0.1 * x[:, i::3]) * d**0.7) for i, d in enumerate((1, 3, 4))]


SMOOTH = {
    mean: lambda x: x, variance: lambda x: x, kurtosis: lambda x: x,
    ratio: lambda x: (x[:, :2] + 5, x[:, 2:] + 3), slope(mean): pairs_of, slope(std): pairs_of,
    slope(kurtosis): lambda x: [(d, np.sinh(x[:, i::3])) for i, d in enumerate((1, 3, 4))],
}


@pytest.mark.parametrize("statistic", SMOOTH, ids=lambda s: s.name)
def test_influence_is_what_one_block_more_changes(statistic):
    """With every block counted 2000 times, once more for one of them moves the estimate by its
    influence over all that are counted."""
    x = np.random.default_rng(5).gamma(4.0, size=(16, 12))
    table = statistic.reduce(SMOOTH[statistic](x))
    many = np.tile(table, (2000,) + (1,) * (table.ndim - 1))
    value, influence = statistic.influence(many)
    assert influence.mean() == pytest.approx(0, abs=1e-9 * np.abs(influence).max())
    for block in (0, 7, 15):
        more = statistic.influence(np.concatenate([many, table[block : block + 1]]))[0]
        change = (more - value) * (len(many) + 1)
        assert change == pytest.approx(influence[block], abs=2e-3 * np.abs(influence).max())


# --- what moments pay for besides -------------------------------------------------------------


def same(found, expected):
    assert (found.value, found.stderr, found.low, found.high) == pytest.approx(
        (expected.value, expected.stderr, expected.low, expected.high), rel=1e-9)
    assert found.reason == expected.reason == ""


def test_variance_pays_for_the_square_of_its_blocks_mean():
    x = RNG.standard_normal((400, 4)) + 0.5
    means = x.mean(axis=1)
    squares = x.var(axis=1) + (means - means.mean()) ** 2 * 400 / 399
    value = squares.mean()
    same(estimate(variance, x), studentised(value, squares - value, RATE,
                                            curvature=((means - means.mean()) ** 2).mean()))


def test_kurtosis_pays_for_its_second_and_fourth_moments():
    x = RNG.uniform(-1, 1.5, (4000, 8)) ** 3
    about = x - x.mean()
    y2, y4 = (about**2).mean(axis=1), (about**4).mean(axis=1)
    value, influence = kurtosis.influence(kurtosis.reduce(x))
    same(estimate(kurtosis, x), studentised(value, influence, RATE, np.stack([y2, y4], axis=1),
                                            caution=128))
    n = np.arange(2, 4000)
    first = n[n >= 128 * stats.t.isf(RATE / 2, n - 1) ** 2][0]
    assert estimate(kurtosis, x[:first]).reason == ""
    for n in (first - 1, first - 100):
        assert estimate(kurtosis, x[:n]).reason == f"{n} blocks are too few at this error rate"


def test_kurtosis_is_trusted_up_to_a_half():
    u = np.random.default_rng(8).uniform(-1, 1, (1600, 8))
    t = stats.t(1599).isf(RATE / 2)
    deltas = []
    for power in np.arange(1.0, 80.0, 2.0):
        x = np.sign(u) * np.abs(u) ** power
        about = x - x.mean()
        columns = [kurtosis.influence(kurtosis.reduce(x))[1],
                   *((about**n).mean(axis=1) for n in (2, 4))]
        skewness = max(abs(stats.skew(column)) for column in columns)
        deltas.append(skewness * (2 * t**2 + 1) / (6 * math.sqrt(1600)))
        assert (estimate(kurtosis, x).reason == "") == (deltas[-1] <= 0.5)
    for low, high in ((0.2, 0.35), (0.35, 0.5), (0.5, 0.7)):
        assert any(low < delta < high for delta in deltas)


# --- what is known, and what the interval rests on --------------------------------------------


def test_what_an_interval_rests_on():
    assert [str(s.rests_on) for s in (
        exact, proportion, mean.within(0, 1), ratio.within(0, 1), slope(mean).within(0, 1),
        slope(proportion), std.with_variance(1.0), slope(mean.with_variance(1.0)), median,
        slope(median), mean, ratio, slope(std), mean.with_variance(None).settled(None))] == [
        "exact", *["bound"] * 5, "moments", "moments", "order", "order", *["calibrated"] * 4]
    assert not any(s.at_all_looks for s in (mean, variance, ratio, mean.with_variance(1.0),
                                            replace(mean, anytime=True).with_variance(1.0),
                                            slope(mean.with_variance(1.0))))
    assert all(s.at_all_looks for s in (proportion, mean.within(0, 1), ratio.within(0, 1), median,
                                   slope(proportion), slope(median), slope(mean).within(0, 1)))


def test_what_a_law_knows_is_used_unless_more_is_stated():
    known = Known(mean=0.5, of_means=2.0, of_squares=3.0)
    assert mean.informed(known).known == (2.0, 0.5)
    assert variance.informed(known).known == std.informed(known).known == (3.0, 0.5)
    assert mean.informed(known._replace(of_means=None)) is mean
    for statistic in (mean.within(0, 1), mean.with_variance(1.0), kurtosis, ratio, median):
        assert statistic.informed(known) is statistic
        assert statistic.informed(None) is statistic


def test_ranges_and_variances_may_depend_on_the_settings():
    def call(function):
        return function(keys=8)

    bound = mean.within(0.0, lambda keys: math.log(keys)).settled(call)
    assert bound.support == (0.0, math.log(8))
    assert variance.with_variance(lambda keys: 1 / keys, 0.5).settled(call).known == (1 / 8, 0.5)
    assert mean.with_variance(lambda keys: None).settled(call) == mean
    assert mean.settled(call) is mean
    for one in (mean.within(0, lambda keys: None), slope(mean.within(lambda keys: None, 1))):
        assert one.rests_on is Basis.BOUND
        assert one.settled(call).rests_on is Basis.CALIBRATED
        assert not one.settled(call).at_all_looks
    with pytest.raises(ValueError, match=r"mean.within\(0, -8\): the range must be finite"):
        mean.within(0, lambda keys: -keys).settled(call)
    with pytest.raises(ValueError, match=r"with_variance\(-8\): a variance is at least 0"):
        mean.with_variance(lambda keys: -keys).settled(call)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: mean.within(1, 1), r"mean.within\(1, 1\): the range must be finite, and its low end"),
    (lambda: mean.within(1, 0), "its low end below its high one"),
    (lambda: mean.within(0, math.inf), "the range must be finite"),
    (lambda: mean.within(-1.5e308, 1.5e308), "the range must be finite"),
    (lambda: mean.within(math.nan, 1), "the range must be finite"),
    (lambda: median.within(0, 1), "median has no interval for values of a stated range"),
    (lambda: variance.within(0, 1), "use mean or ratio"),
    (lambda: slope(std).within(0, 1), "slope of std has no interval"),
    (lambda: slope(mean.with_variance(1.0)).within(0, 1), "slope of mean has no interval"),
    (lambda: slope(mean.with_variance(lambda d_k: 1.0)), "a variance that is known must be a num"),
    (lambda: mean.with_variance(-1.0), "a variance is at least 0"),
    (lambda: mean.with_variance(math.nan), "a variance is at least 0"),
    (lambda: ratio.with_variance(1.0), "ratio is no mean of one value a block"),
    (lambda: proportion.with_variance(1.0), "both a range and a variance are stated"),
    (lambda: mean.with_variance(1.0).within(0, 1), "state one of the two"),
])
def test_what_cannot_be_known_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Law:
    def __init__(self, finite_moments, coupled=False):
        self.finite_moments, self.coupled = finite_moments, coupled

    def __str__(self):
        return "heavy"


def test_moments_asked_for():
    assert [s.moments for s in (mean, variance, std, kurtosis, ratio, median, proportion, exact)
            ] == [3, 6, 6, 12, 3, 0, 0, 0]
    assert variance.of_degree(2).moments == 12
    assert mean.of_degree(0).moments == 0
    assert slope(variance).moments == 6
    assert slope(proportion).moments == slope(variance.with_variance(1.0)).moments == 0


def test_moments_that_a_law_lacks():
    assert mean.missing_moments(Law(3.1)) == ""
    assert mean.missing_moments(Law(3)) == (
        "the interval needs the moment of order 3 of a coordinate; heavy has those below 3")
    assert "order 6" in mean.missing_moments(Law(6, coupled=True))
    for statistic in (median, mean.within(0, 1), mean.with_variance(1.0), exact):
        assert statistic.missing_moments(Law(0)) == ""
    assert mean.with_variance(math.inf).missing_moments(Law(99)) == (
        "the variance of a block's value, inf, is not finite")


# --- what a statistic cannot take -------------------------------------------------------------


def test_what_a_statistic_cannot_take_it_says():
    for bad in (-1e-9, 1 + 1e-9, math.nan):
        with pytest.raises(ValueError, match=r"from .* to .*in \[0, 1\]; use the statistic mean"):
            proportion.reduce(np.array([[0.5, bad]]))
    with pytest.raises(ValueError, match="one number"):
        exact.reduce([1.0, 2.0])
    with pytest.raises(ValueError, match="tuple; this statistic takes one array"):
        mean.reduce((np.ones((3, 3)), np.ones((3, 3))))
    for level in (0, 1, 1.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            quantile(level)


def test_shares_reach_from_zero_to_one():
    shares = proportion.reduce(np.array([[0.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(shares, [[0.5], [1.0]])


def test_values_leave_a_stated_range_by_no_more_than_rounding():
    within = mean.within(-1, 3)
    np.testing.assert_array_equal(within.block_values(np.array([[-1.0, 3 + 3e-9]])), [[1 + 1.5e-9]])
    for statistic, values in (
        (within, np.array([[0.0, 3 + 5e-9]])), (within, np.array([[-1 - 5e-9, 0.0]])),
        (within, np.array([[0.0, math.nan]])),
        (ratio.within(-1, 3), (np.ones((1, 1)), np.full((1, 1), 4.0))),
        (slope(mean).within(-1, 3), [(1, np.ones((1, 1))), (2, np.full((1, 1), 4.0))]),
    ):
        with pytest.raises(ValueError, match=r"they must lie in \[-1, 3\], the range that is stat"):
            statistic.block_values(values)


@pytest.mark.parametrize("unit", [1e-320, 1e-105, 1e-17, 1e150])
@pytest.mark.parametrize("statistic", [mean, variance, std, kurtosis, median, mean.within(-1, 9),
                                       mean.with_variance(9.0)],
                         ids=lambda s: f"{s.name}-{s.rests_on}")
def test_no_unit_breaks_a_statistic(statistic, unit):
    x = np.abs(np.random.default_rng(3).standard_normal((2048, 4)))
    if statistic.support:
        statistic = mean.within(-unit, 9 * unit)
    if statistic.known:
        statistic = mean.with_variance(9 * unit**2)
    with np.errstate(over="ignore", invalid="ignore"):
        table = statistic.block_values(unit * x)
    found = statistic.estimate(table, RATE)
    assert not found.low > found.high
    if statistic is kurtosis and unit != 1e-17:
        assert math.isnan(found.value)  # no fourth powers in this unit
    else:
        assert statistic.blocks_needed(table, RATE) == pytest.approx(
            statistic.blocks_needed(statistic.reduce(x), RATE), rel=0.01) or unit == 1e-320


def test_a_constant_is_no_kurtosis():
    value, influence = kurtosis.influence(kurtosis.reduce(np.full((3, 2), 0.1)))
    assert math.isnan(value)
    np.testing.assert_array_equal(influence, [0, 0, 0])


def test_names():
    assert [s.name for s in (mean, variance, std, kurtosis, ratio, proportion, exact, median,
                             quantile(0.9), slope(std))] == [
        "mean", "variance", "std", "kurtosis", "ratio", "proportion", "exact", "median",
        "quantile 0.9", "slope of std"]


@pytest.mark.parametrize(("value", "field"), [
    (Estimate(1.0, 1.0, 0.0, 2.0), "value"), (printed("0.88"), "digits"), (relative(0.1), "size"),
    (mean, "name"), (mean.within(0, 1), "support"),
], ids=lambda value: type(value).__name__)
def test_values_are_frozen_and_so_may_be_keys(value, field):
    assert {value: 1}[value] == 1
    assert replace(value) == value
    with pytest.raises(FrozenInstanceError):
        setattr(value, field, 3)


def test_what_a_law_knows_of_scores_is_for_block_means_and_squares_alone():
    known = Known(0.0, 1.0, 2.0)
    assert mean.informed(known).known == (1.0, 0.0)
    assert variance.informed(known).known == (2.0, 0.0)
    other = replace(mean, reduce=lambda values: np.asarray(values).max(axis=1, keepdims=True))
    assert other.informed(known) is other
    outside = replace(mean.within(0, 1), reduce=lambda values: 2 + 0 * np.asarray(values)[:, :1])
    with pytest.raises(ValueError, match="the block values: the body returned values from 2 to 2"):
        outside.estimate(outside.block_values(np.full((64, 3), 0.5)), 1e-3)
