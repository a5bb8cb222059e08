"""Ratios and differences of two statistics: exact values, what is paid for, joined intervals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mcverify import absolute, check, laws, relative
from mcverify.attention import scores
from mcverify.statistic import (
    Basis,
    difference_of,
    exact,
    kurtosis,
    mean,
    median,
    proportion,
    quantile,
    ratio,
    ratio_of,
    slope,
    std,
    variance,
)
from mcverify.statistic.jackknife import wrong_influence
from mcverify.statistic.studentised import studentised

RNG = np.random.default_rng(21)
RATE = 1e-3
X = RNG.gamma(4.0, size=(600, 6))
Y = X[:, :4] + RNG.standard_normal((600, 4)) + 3


def estimate(statistic, values, rate=RATE):
    return statistic.estimate(statistic.block_values(values), rate)


def same(found, expected):
    assert (found.value, found.stderr, found.low, found.high) == pytest.approx(
        (expected.value, expected.stderr, expected.low, expected.high), rel=1e-6)
    assert found.reason == expected.reason == ""


# --- means of block values --------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [
    (variance, variance), (variance, mean), (std, std), (mean, std), (kurtosis, variance)],
    ids=lambda s: s.name)
def test_values_are_those_of_the_two(first, second):
    a, b = (estimate(one, part).value for one, part in ((first, X), (second, Y)))
    assert estimate(difference_of(first, second), (X, Y)).value == pytest.approx(a - b)
    assert estimate(ratio_of(first, second), (X, Y)).value == pytest.approx(a / b)


def test_the_ratio_of_two_means_is_the_statistic_ratio():
    same(estimate(ratio_of(mean, mean), (X, Y)), estimate(ratio, (X, Y)))


def test_the_difference_of_two_means_is_the_mean_of_differences():
    one = X.mean(axis=1, keepdims=True) - Y.mean(axis=1, keepdims=True)
    same(estimate(difference_of(mean, mean), (X, Y)), estimate(mean, one))


def test_the_difference_of_two_variances_has_the_influence_of_both_and_pays_for_their_curvature():
    value, influence = 0.0, np.zeros(len(X))
    for sign, part in ((1, X), (-1, Y)):
        squares = ((part - part.mean()) ** 2).mean(axis=1)
        shift = (part.mean(axis=1) - part.mean()) ** 2 / (len(part) - 1)
        value += sign * (squares + shift).mean()
        influence += sign * (squares + shift)
    bends = X.mean(axis=1).var() + Y.mean(axis=1).var()
    same(estimate(difference_of(variance, variance), (X, Y)),
         studentised(value, influence - influence.mean(), RATE, curvature=bends))


def test_the_ratio_of_two_variances_is_that_of_scipy_and_its_error_uses_the_pairing():
    found = estimate(ratio_of(variance, variance), (X, Y[:, ::-1]))
    assert found.value == pytest.approx(X.var() / Y.var(), rel=1e-3)  # but for block means' bias
    apart = estimate(ratio_of(variance, variance), (X, Y[::-1]))
    assert found.stderr < 0.9 * apart.stderr
    constant = estimate(ratio_of(variance, variance), (3 * X, X))
    assert constant.value == pytest.approx(9)
    assert "do not vary from block to block" in constant.reason


def test_a_standard_deviation_counts_on_its_own_scale():
    squared, plain = (estimate(ratio_of(one, one), (X, Y)) for one in (variance, std))
    assert plain.value == pytest.approx(math.sqrt(squared.value))
    assert plain.stderr == pytest.approx(squared.stderr / (2 * plain.value), rel=1e-6)


PAIRS = [ratio_of(variance, variance), ratio_of(std, std), ratio_of(mean, std),
         difference_of(std, mean), difference_of(variance, std), ratio_of(kurtosis, mean)]


@pytest.mark.parametrize("statistic", PAIRS, ids=lambda s: s.name)
def test_influence_is_what_blocks_add(statistic):
    table = statistic.reduce((X, Y))
    assert wrong_influence(statistic, table) == ""
    broken = replace(statistic, influence=lambda t: (
        statistic.influence(t)[0], 0.5 * statistic.influence(t)[1]))
    assert "spread by" in wrong_influence(broken, table)


def test_a_difference_of_means_has_no_lean_and_a_kurtosis_pays_for_its_parts():
    assert difference_of(variance, mean).lean(difference_of(variance, mean).reduce((X, Y))) == 0
    both = ratio_of(mean, kurtosis)
    parts = both.parts(both.reduce((X, Y)))
    np.testing.assert_array_equal(parts, kurtosis.parts(kurtosis.reduce(Y)))
    assert (both.caution, both.moments) == (kurtosis.caution, kurtosis.moments)


def test_a_ratio_to_zero_is_not_a_number():
    table = ratio_of(variance, mean).reduce((X, 0 * Y))
    value, influence = ratio_of(variance, mean).influence(table)
    assert math.isnan(value)
    assert not influence.any()


def test_known_ratios_and_differences_of_scores():
    """Half of the coordinates give half of the variance, d_k/2 less, and more kurtosis."""
    def halves(q, k, d_k):
        return scores(q, k), scores(q[..., :d_k // 2], k[..., :d_k // 2])

    common = dict(law=laws.normal, d_k=16)
    for statistic, truth, margin in (
            (ratio_of(variance, variance), 2, relative(0.03)),
            (ratio_of(std, std), math.sqrt(2), relative(0.02)),
            (difference_of(variance, variance), 8, relative(0.04)),
            (difference_of(kurtosis, kurtosis), 6 / 16 - 6 / 8, absolute(0.1))):
        right = check(halves, statistic=statistic, equals=truth, within=margin, **common)
        wrong = check(halves, statistic=statistic, equals=1.4 * truth, within=margin, **common)
        assert (str(right.verdict), str(wrong.verdict)) == ("CONFIRMED", "REFUTED"), str(right)
        assert right.basis == "calibrated"


# --- statistics with intervals of their own -----------------------------------------------------

OWN = [(median, Basis.ORDER), (mean.within(0, 40), Basis.BOUND), (mean.with_variance(1.0),
       Basis.MOMENTS), (variance, Basis.CALIBRATED), (slope(mean), Basis.CALIBRATED)]


@pytest.mark.parametrize(("second", "basis"), OWN, ids=lambda x: getattr(x, "name", None))
def test_intervals_of_their_own_share_the_error_rate_and_the_weaker_basis_is_told(second, basis):
    y = [(1, Y[:, :2]), (2, 3 * Y[:, 2:])] if second.name.startswith("slope") else Y
    a, b = estimate(median, X, RATE / 2), estimate(second, y, RATE / 2)
    found = estimate(difference_of(median, second), (X, y))
    assert found.value == pytest.approx(a.value - b.value)
    assert (found.low, found.high) == pytest.approx((a.low - b.high, a.high - b.low), rel=1e-12)
    assert found.basis is max(Basis.ORDER, basis, key=[*Basis].index)
    of = estimate(ratio_of(median, second), (X, y))
    assert (of.low, of.high) == pytest.approx((a.low / b.high, a.high / b.low), rel=1e-12)


def test_its_standard_error_knows_how_the_two_go_together():
    one, other = mean.within(0, 40), mean.within(0, 50)
    found = estimate(difference_of(one, other), (X, Y))
    assert found.stderr == pytest.approx(estimate(difference_of(mean, mean), (X, Y)).stderr)
    plain = estimate(ratio_of(one, other), (X, Y))
    assert plain.stderr == pytest.approx(estimate(ratio, (X, Y)).stderr)
    assert estimate(difference_of(median, median), (X, X)).stderr == pytest.approx(0, abs=1e-9)


def test_quotients_keep_their_signs_and_a_divisor_that_may_be_0_gives_none():
    centred = mean.within(-40, 40)
    low = estimate(ratio_of(centred, centred), (X, -Y))
    plain = estimate(ratio_of(centred, centred), (X, Y))
    assert (low.low, low.high) == pytest.approx((-plain.high, -plain.low))
    none = estimate(ratio_of(median, centred), (X, Y - Y.mean()))
    assert none.reason == "the mean may be 0 so far, and nothing is divided by it"
    assert (none.low, none.high, none.final) == (-math.inf, math.inf, False)


def test_it_holds_at_all_looks_if_both_do_and_waits_for_both():
    assert difference_of(median, proportion).at_all_looks
    assert not difference_of(median, mean).at_all_looks
    assert difference_of(median, mean.with_variance(1.0)).moments == 0
    early = estimate(difference_of(quantile(0.999), mean), (X[:8, :1], Y[:8]))
    assert early.reason == "too few blocks to bound quantile 0.999"


def test_a_theorem_is_missed_no_more_often_than_it_may():
    both, rng, runs, rate = difference_of(proportion, median), np.random.default_rng(3), 300, 0.1
    missed = 0
    for _ in range(runs):
        x = rng.random((128, 1))
        found = estimate(both, ((x < 0.3) * 1.0, x), rate)
        missed += not found.low <= 0.3 - 0.5 <= found.high
    assert missed <= stats.binom(runs, rate).isf(1e-9)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("values", [X, [(1, X), (2, X)], (X,), (X, X, X)],
                         ids=["array", "pairs", "one", "three"])
def test_the_body_returns_the_values_of_each(values):
    with pytest.raises(ValueError, match="a tuple of two, the values of each"):
        ratio_of(variance, mean).reduce(values)


@pytest.mark.parametrize(("one", "message"), [
    (exact, "exact is a calculation without draws"),
    (mean.within(0, lambda keys: keys), "must be a number for all settings"),
    (mean.with_variance(math.inf), "must be a number for all settings"),
])
def test_what_two_cannot_be_made_of(one, message):
    with pytest.raises(ValueError, match=message):
        difference_of(mean, one)


def test_values_outside_of_a_stated_range_are_refused():
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        difference_of(mean, mean.within(0, 1)).block_values((X, Y))
