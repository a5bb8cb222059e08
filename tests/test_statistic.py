"""Statistics against numpy and scipy on all values, and their intervals against hand values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify.interval import Caution
from mcverify.statistic import (
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
    studentised,
    variance,
)

RNG = np.random.default_rng(12)
VALUES = RNG.standard_normal((200, 7, 5)) ** 3
RATE = 1e-3


def estimate(statistic, values, rate=RATE):
    return statistic.estimate(statistic.reduce(values), rate)


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
    single = VALUES[:, :1, 0]
    assert estimate(variance, single).value == pytest.approx(single.var(ddof=1), rel=1e-12)
    assert estimate(variance, VALUES).value == pytest.approx(VALUES.var(), rel=1e-2)


def test_std_is_the_root_of_the_variance_with_its_interval():
    squared = estimate(variance, np.cbrt(VALUES))
    found = estimate(std, np.cbrt(VALUES))
    assert (found.value, found.low, found.high) == pytest.approx(
        tuple(math.sqrt(x) for x in (squared.value, squared.low, squared.high)))
    assert found.stderr == pytest.approx(squared.stderr / (2 * found.value), rel=1e-2)


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


@pytest.mark.parametrize("statistic", [mean, variance, std, kurtosis, median, quantile(0.8)],
                         ids=lambda s: s.name)
def test_standard_error_is_the_scatter(statistic):
    found = [estimate(statistic, np.random.default_rng(i).gamma(4.0, size=(256, 10)))
             for i in range(400)]
    scatter = np.std([f.value for f in found])
    assert np.sqrt(np.mean([f.stderr**2 for f in found])) == pytest.approx(scatter, rel=0.2)


def test_scores_that_share_a_query_do_not_count_as_independent():
    q, k = RNG.standard_normal((2, 500, 30, 1))
    s = q @ np.swapaxes(k, 1, 2)
    honest = estimate(variance, s).stderr
    naive = estimate(variance, s.reshape(-1, 1)).stderr
    assert honest > 2.5 * naive


def test_ratio_is_that_of_the_means_and_its_error_uses_the_pairing():
    a = RNG.gamma(3.0, size=(300, 4))
    found = estimate(ratio, (2 * a, a))
    assert found.value == pytest.approx(2)
    assert "do not vary" in found.reason
    b = a + 0.1 * RNG.standard_normal(a.shape)
    paired, apart = estimate(ratio, (a, b)), estimate(ratio, (a, b[::-1]))
    assert paired.value == pytest.approx(a.mean() / b.mean())
    assert paired.stderr < apart.stderr / 3


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
    with pytest.raises(ValueError, match="positive number"):
        estimate(slope(mean), [(d, z - 10) for d in (1, 2)])
    with pytest.raises(ValueError, match="list of at least two pairs"):
        slope(mean).reduce(z)


def test_interval_by_hand():
    # 40 blocks, ten each of 1, 2, 3, 4: no skewness, variance 50/39, t(39) at 2.5 % a side.
    found = mean.estimate(np.tile(np.arange(1.0, 5.0), 10)[:, None], 0.05)
    half = stats.t(39).isf(0.025) * math.sqrt(50 / 39 / 40)
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half))
    assert found.stderr == pytest.approx(math.sqrt(50 / 39 / 40))


def test_interval_is_widened_for_skewness_by_the_edgeworth_term():
    x = np.concatenate([np.zeros(300), np.ones(100)])
    found = studentised(0.25, x - 0.25, 1e-3)
    t = stats.t(399).isf(5e-4)
    skewness = stats.skew(x)
    delta = skewness * (2 * t**2 + 1) / (6 * 20)
    assert (found.high - found.low) / 2 / found.stderr == pytest.approx(t + delta, rel=1e-9)


def test_parts_of_a_curved_influence_pay_for_their_skewness():
    x = RNG.standard_normal(1000)
    skew = RNG.standard_exponential((1000, 2))
    plain, paid = (studentised(0.0, x - x.mean(), 1e-3, parts) for parts in (None, skew))
    t = stats.t(999).isf(5e-4)
    delta = np.abs(stats.skew(skew)).max() * (2 * t**2 + 1) / (6 * math.sqrt(1000))
    assert paid.high / paid.stderr == pytest.approx(t + delta, rel=1e-9)
    assert plain.high < paid.high
    assert "too few" in studentised(0.0, x - x.mean(), 1e-3, caution=Caution(1000, 0.5)).reason


@pytest.mark.parametrize(("values", "reason"), [
    (np.ones((64, 3)), "do not vary"),
    (np.zeros((64, 3)), "do not vary"),
    (np.ones((64, 3)) + 1e-15 * RNG.standard_normal((64, 3)), "do not vary"),
    (np.eye(256)[:, :1] + 1e-3 * RNG.standard_normal((256, 1)), "too skew"),
    (RNG.standard_normal((64, 3)), "64 blocks are too few at this error rate"),
    (np.ones((1, 3)), "one block"),
])
def test_no_interval_where_none_is_honest(values, reason):
    found = estimate(mean, values)
    assert reason in found.reason
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_quantile_interval_is_made_of_values_that_the_draws_do_not_contradict():
    x = np.sort(RNG.standard_normal(4000))[:, None]
    found = estimate(median, x)
    # Independent values: the binomial interval of order statistics, from t instead of z.
    low, high = stats.binom(4000, 0.5).interval(1 - RATE)
    assert abs(np.searchsorted(x[:, 0], found.low) - low) < 8
    assert abs(np.searchsorted(x[:, 0], found.high) - high) < 8
    assert found.low < found.value < found.high
    assert "do not vary" in estimate(median, np.ones((64, 3))).reason
    assert "too few blocks" in estimate(quantile(0.999), x[:64]).reason


@given(st.integers(0, 64), st.sampled_from([64, 1024, 2**20]), st.sampled_from([1e-3, 1e-11]))
def test_proportion_interval_solves_chernoffs_bound(share, blocks, rate):
    p = share / 64
    table = np.repeat([1.0, 0.0], [share, 64 - share])[:, None]
    found = proportion.estimate(np.tile(table, (blocks // 64, 1)), rate)
    assert found.value == p
    for mu in (found.low, found.high):
        if 0 < mu < 1:
            kl = sum(a * math.log(a / b) for a, b in ((p, mu), (1 - p, 1 - mu)) if a > 0)
            assert blocks * kl == pytest.approx(math.log(2 / rate), rel=1e-3)
        else:
            assert mu == p
    if p == 1:
        assert found.low == pytest.approx((rate / 2) ** (1 / blocks), rel=1e-9)


def test_a_rare_event_that_has_not_occurred_is_no_evidence_against_it():
    never = np.zeros((64, 1))
    assert estimate(mean, never).high == math.inf
    assert estimate(proportion, never).high > 0.1


def test_what_a_statistic_cannot_take_it_says():
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        proportion.reduce(np.array([[2.0]]))
    with pytest.raises(ValueError, match="one number"):
        exact.reduce([1.0, 2.0])
    with pytest.raises(ValueError, match="tuple of two arrays"):
        ratio.reduce(np.ones((3, 3)))
    for level in (0, 1, 1.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            quantile(level)
    assert math.isnan(kurtosis.influence(kurtosis.reduce(np.ones((3, 2))))[0])


def test_a_statistic_of_ones_own_needs_only_the_two_halves():
    second = Statistic("second moment", lambda x: (np.asarray(x) ** 2).mean(axis=1, keepdims=True),
                       mean.influence, moments=6)
    found = estimate(second, VALUES[:, :, 0])
    assert found.value == pytest.approx((VALUES[:, :, 0] ** 2).mean())


def test_moments_asked_for():
    assert [s.moments for s in (mean, variance, std, kurtosis, median, proportion, exact)] == [
        3, 6, 6, 12, 0, 0, 0]
    assert variance.of_degree(2).moments == 12
    assert mean.bounded.moments == 0
    assert slope(variance).moments == 6
