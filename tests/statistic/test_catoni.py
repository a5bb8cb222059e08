"""Catoni's interval for a known variance: its inequality, exact ends, edges, and its misses."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from mcverify import laws
from mcverify.statistic import Basis, Known, kurtosis, mean, std, variance
from mcverify.statistic.catoni import CLIPPED_AT, MANY, catoni, in_groups

RNG = np.random.default_rng(11)
LAWS = {
    "normal": RNG.standard_normal(200), "skew": RNG.standard_exponential(200) ** 3,
    "heavy": RNG.standard_t(1.5, 200), "event": (np.arange(200) < 1) * 1.0,
    "one": np.array([2.0]), "two": np.array([0.0, 1.0]), "constant": np.full(200, 0.3),
}


def psi(x):
    return np.sign(x) * np.log(1 + np.abs(x) + x**2 / 2)


def solved(values, v, rate):
    """Where |Σψ(λ(X − θ))| is nλ²v/2 + ln(2/α), as it is printed, with SciPy."""
    n, log = len(values), math.log(2 / rate)
    scale = math.sqrt(2 * log / (n * v))
    limit = n * scale**2 * v / 2 + log
    far = np.abs(values).max() + 1e13 / scale
    return tuple(brentq(lambda theta, end: psi(scale * (values - theta)).sum() - end,
                        -far, far, (end,), xtol=1e-13 / scale) for end in (limit, -limit))


# --- the inequality, and the ends -------------------------------------------------------------


def test_psi_is_between_the_logarithms_that_bound_its_moments():
    x = np.concatenate([-np.geomspace(1e-6, 1e9, 500), np.geomspace(1e-6, 1e9, 500)])
    for y in (psi(x), psi(np.clip(x, -9, 9))):  # also where it no longer grows
        assert np.all(-np.log(1 - x + x**2 / 2) <= y + 1e-12)
        assert np.all(y <= np.log(1 + x + x**2 / 2) + 1e-12)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("v", "rate"), [(1.0, 1e-3), (2.5, 1e-11), (0.1, 0.5)])
def test_the_ends_solve_catonis_equation(name, v, rate):
    low, high = catoni(LAWS[name], v, rate)
    exact_low, exact_high = solved(LAWS[name], v, rate)
    wide = 1e-9 * max(1.0, exact_high - exact_low, np.ptp(LAWS[name]))
    assert exact_low - wide <= low <= exact_low + 1e-3 * wide  # rounded to the safe side
    assert exact_high - 1e-3 * wide <= high <= exact_high + wide


@pytest.mark.parametrize(("blocks", "rate"), [(1, 0.1), (512, 1e-11), (2**17, 1e-3)])
@pytest.mark.parametrize("v", [1e-200, 1.0, 1e290])
def test_of_a_constant_the_ends_are_closed_forms(blocks, rate, v):
    # n·ln(1 + d + d²/2) = 2·ln(2/α), d = λ·distance.
    log = math.log(2 / rate)
    d = math.sqrt(1 + 2 * math.expm1(2 * log / blocks)) - 1
    distance = d / math.sqrt(2 * log / blocks) * math.sqrt(v)
    low, high = catoni(np.zeros(blocks), v, rate)
    assert (low, high) == pytest.approx((-distance, distance), rel=1e-9)
    assert low <= -distance * (1 - 1e-13)


def test_it_is_as_narrow_as_it_is_said_to_be():
    # √(2v·ln(2/α)/n), which is z but for its second order: 1.06 times z at 8e-12.
    x = stats.norm.ppf((np.arange(512) + 0.5) / 512)
    low, high = catoni(x, 1.0, 8e-12)
    z = -stats.norm.ppf(4e-12)
    assert (high - low) / 2 == pytest.approx(math.sqrt(2 * math.log(2 / 8e-12) / 512), rel=0.05)
    assert 1.03 < (high - low) / 2 / (z / math.sqrt(512)) < 1.15


@pytest.mark.parametrize("blocks", [100, MANY, 3 * MANY, 2**16, 3 * 2**15 + 1])
def test_groups_of_many_values_give_nearly_the_same_interval_of_their_mean(blocks):
    x = np.random.default_rng(blocks).standard_exponential(blocks)
    means, variance = in_groups(x, 1.0)
    assert len(means) == blocks if blocks <= MANY or blocks % 2 else len(means) <= MANY
    assert means.mean() == pytest.approx(x.mean(), rel=1e-12)
    assert variance * len(x) == len(means)
    low, high = catoni(x, 1.0, 2e-12)
    assert np.diff(catoni(means, variance, 2e-12))[0] <= 1.01 * (high - low)


def test_a_variance_of_zero_leaves_what_rounding_has_made():
    assert catoni(np.array([0.3, 0.3, 0.1 + 0.2]), 0.0, 1e-10) == (0.3, 0.1 + 0.2)


@pytest.mark.parametrize("v", [5e-324, 1e-200, 1.0, 1e300, 1.7e308])
@pytest.mark.parametrize("far", [0.0, 1e-200, 1e100, 1e300])
def test_no_values_and_no_variance_overflow(v, far):
    x = np.append(np.zeros(99), far)
    low, high = catoni(x, v, 1e-10)
    sd = math.sqrt(max(v, 1e-300))
    assert -10 * sd < low < high < 1e3 * sd  # whatever the one value
    assert low < 0 or far > 1e30 * sd


def test_one_value_moves_the_interval_by_little_however_far_it_is():
    x = np.append(RNG.standard_normal(511), 0.0)
    plain = np.array(catoni(x, 1.0, 1e-10))
    for far in (1e3, 1e9, CLIPPED_AT, 1e200):
        x[-1] = far
        moved = np.array(catoni(x, 1.0, 1e-10)) - plain
        assert np.all((moved >= 0) & (moved < 4 * math.log(far) / math.sqrt(512)))


# --- properties -------------------------------------------------------------------------------

SAMPLES = st.tuples(st.integers(0, 2**32), st.integers(1, 100)).map(
    lambda drawn: np.random.default_rng(drawn[0]).standard_t(2.5, drawn[1]))
RATES = st.sampled_from([0.5, 1e-3, 1e-11])


@given(SAMPLES, RATES, st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_the_interval_moves_with_shift_scale_and_mirror(x, rate, shift, scale):
    low, high = catoni(x, 1.0, rate)
    slack = 1e-8 * (scale + abs(shift)) * (high - low + np.ptp(x))
    assert catoni(scale * x + shift, scale**2, rate) == pytest.approx(
        (scale * low + shift, scale * high + shift), abs=slack)
    assert catoni(-x, 1.0, rate) == pytest.approx((-high, -low), abs=slack)


@given(SAMPLES)
def test_a_larger_error_rate_narrows_the_interval_where_there_are_blocks_enough(x):
    x = np.resize(x, 200)
    widths = [np.diff(catoni(x, x.var(), rate))[0] for rate in (1e-11, 1e-6, 1e-3, 0.5)]
    assert widths == sorted(widths, reverse=True)


# --- as a statistic rests on it ---------------------------------------------------------------


def test_means_variances_and_deviations_of_a_known_variance():
    x = RNG.standard_normal((300, 4)) + 0.5
    of_mean = mean.with_variance(0.25).estimate(mean.reduce(x), 1e-3)
    assert (of_mean.low, of_mean.high) == catoni(x.mean(axis=1), 0.25, 1e-3)
    assert of_mean.value == pytest.approx(x.mean())
    squares = ((x - 0.5) ** 2).mean(axis=1)  # about the mean that is known, not the one found
    of_squares = variance.with_variance(0.5, 0.5).estimate(variance.reduce(x), 1e-3)
    assert (of_squares.low, of_squares.high) == pytest.approx(catoni(squares, 0.5, 1e-3), rel=1e-12)
    assert of_squares.value == pytest.approx(squares.mean(), rel=1e-12)
    assert of_squares.stderr == pytest.approx(stats.sem(squares), rel=1e-12)
    of_root = std.with_variance(0.5, 0.5).estimate(std.reduce(x), 1e-3)
    assert (of_root.value, of_root.low, of_root.high) == pytest.approx(
        [math.sqrt(end) for end in (of_squares.value, of_squares.low, of_squares.high)])
    for found in (of_mean, of_squares, of_root):
        assert (found.basis, found.reason) == (Basis.MOMENTS, "")
    assert mean.with_variance(0.25).blocks_needed(mean.reduce(x), 1e-3) == 0


def test_kurtosis_of_values_whose_moments_are_known():
    x = RNG.standard_normal((600, 16)) + 5
    known = Known(5.0, None, None, of_fourths=12.0, fourths=(1.5, 2.5))
    found = kurtosis.informed(known)
    assert (found.rests_on, found.missing_moments(laws.normal)) == (Basis.MOMENTS, "")
    z = (x - 5) / math.sqrt(1.5)  # as they are known, right or wrong
    values = (z**4 - 5 * (z**2 - 1)).mean(axis=1) - 3
    told = found.estimate(found.block_values(x), 1e-6)
    assert told.value == pytest.approx(values.mean())
    assert (told.low, told.high) == pytest.approx(catoni(values, 12.0, 1e-6))
    assert kurtosis.informed(Known(5.0, 1.0, 1.0)) is kurtosis
    with pytest.raises(ValueError, match="kurtosis is no mean of one value a block"):
        kurtosis.with_variance(12.0)


def test_a_known_mean_far_from_zero_costs_no_digits():
    x = np.where(np.arange(2000).reshape(500, 4) % 2, 1.0, -1.0) + 1e9
    found = variance.with_variance(1e-6, 1e9).estimate(variance.reduce(x), 1e-10)
    assert found.value == 1
    assert 0.999 < found.low < 1 < found.high < 1.001


# --- misses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.2, 1e-2, 1e-10])
@pytest.mark.parametrize("p", [0.002, 0.1, 0.5])
def test_of_zeros_and_ones_it_misses_no_more_often_than_it_may(p, rate):
    blocks = 200
    missed = [not low <= p <= high for low, high in (
        catoni((np.arange(blocks) < ones) * 1.0, p * (1 - p), rate) for ones in range(blocks + 1))]
    chance = stats.binom(blocks, p).pmf(np.arange(blocks + 1))[missed].sum()
    assert chance <= rate  # exactly: every number of ones is asked
    assert any(missed) or p == 0.002


CONTAMINATED = 0.99 + 0.01 * 40**2 - 0.4**2  # the variance of 99 % N(0, 1) and 1 % at 40


def contaminated(rng, blocks):
    return np.where(rng.random(blocks) < 0.01, 40.0, rng.standard_normal(blocks))


def test_contamination_that_the_draws_do_not_show_is_allowed_for():
    rng, runs, rate = np.random.default_rng(3), 1000, 1e-2
    intervals = [catoni(contaminated(rng, 256), CONTAMINATED, rate) for _ in range(runs)]
    missed = sum(not low <= 0.4 <= high for low, high in intervals)
    assert missed <= stats.binom(runs, rate).isf(1e-9)


def test_a_variance_that_is_too_small_would_be_caught():
    rng, runs, rate = np.random.default_rng(3), 1000, 1e-2
    intervals = [catoni(contaminated(rng, 256), 1.0, rate) for _ in range(runs)]
    missed = sum(not low <= 0.4 <= high for low, high in intervals)
    assert missed > stats.binom(runs, rate).isf(1e-9)
