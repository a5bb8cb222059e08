"""Student's t interval with its widenings against hand values, at its edges, and why there is none.

How often it misses the truth is measured by `mcverify selfcheck`, whose tests are in selfcheck/.
"""

import math

import numpy as np
import pytest
from scipy import stats

from mcverify.statistic import kurtosis, mean, proportion, ratio, slope, std, variance
from mcverify.statistic.studentised import MIN_SPREAD, quantile_of_t, standard_error, studentised

RATE = 1e-3


def alternating(blocks):
    """Values of mean 0, variance 1 and no skewness, exactly."""
    return np.where(np.arange(blocks) % 2, 1.0, -1.0)


# --- the interval -----------------------------------------------------------------------------


def test_interval_by_hand():
    # 40 blocks, ten each of 1, 2, 3, 4: no skewness, variance 50/39, t(39) at 2.5 % a side.
    found = mean.estimate(np.tile(np.arange(1.0, 5.0), 10)[:, None], 0.05)
    half = stats.t(39).isf(0.025) * math.sqrt(50 / 39 / 40)
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half))
    assert found.stderr == pytest.approx(math.sqrt(50 / 39 / 40))


def test_two_blocks_by_hand():
    """One degree of freedom: t is tan of an angle, 1 at a quarter a side; stderr √(2/1/2)."""
    found = studentised(-3.0, np.array([-1.0, 1.0]), 0.5, caution=0)
    assert (found.value, found.stderr, found.reason) == (-3.0, 1.0, "")
    assert (found.low, found.high) == pytest.approx((-4, -2), rel=1e-10)


@pytest.mark.parametrize(("blocks", "rate"), [(2, 0.5), (512, 1e-10 / 12), (2**20, 1e-3)])
def test_quantile_of_t_is_scipys(blocks, rate):
    assert quantile_of_t(blocks, rate) == pytest.approx(stats.t(blocks - 1).isf(rate / 2), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_standard_error_in_any_unit(unit):
    x = np.random.default_rng(2).standard_exponential(64)
    assert standard_error(unit * (x - x.mean())) == pytest.approx(unit * stats.sem(x), rel=1e-12)
    assert standard_error(np.zeros(9)) == 0
    assert math.isnan(standard_error(np.zeros(1)))


def second_order(values, t):
    return max(stats.kurtosis(values), 0.0) / 2 * t**3 / len(values)


def test_interval_is_widened_for_skewness_by_the_edgeworth_term():
    x = np.concatenate([np.zeros(300), np.ones(100)])
    found = studentised(0.25, x - 0.25, RATE)
    t = stats.t(399).isf(5e-4)
    delta = stats.skew(x) * (2 * t**2 + 1) / (6 * 20)
    assert (found.high - found.low) / 2 / found.stderr == pytest.approx(t + delta, rel=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_skewness_counts_whatever_its_sign(sign):
    skew = sign * np.random.default_rng(3).standard_exponential(4000)
    parts = np.stack([alternating(4000) + 9.0, skew], axis=1)
    found = studentised(0.0, alternating(4000), RATE, parts)
    t = stats.t(3999).isf(5e-4)
    delta = sign * stats.skew(skew) * (2 * t**2 + 1) / (6 * math.sqrt(4000))
    assert delta > 0.01
    expected = t + delta + second_order(skew, t)
    assert found.high / found.stderr == pytest.approx(expected, rel=1e-10)
    assert studentised(0.0, sign * (skew - skew.mean()), RATE).reason == ""


def test_heavy_values_pay_to_second_order_and_light_ones_do_not():
    u = (np.arange(400) + 0.5) / 400
    t = stats.t(399).isf(5e-4)
    for values in (u - 0.5, stats.laplace.ppf(u)):  # symmetric: of no skewness
        found = studentised(0.0, values, RATE)
        more = found.high / found.stderr - t
        assert more == pytest.approx(second_order(values, t), abs=1e-10)
        assert (more > 0.1) is (stats.kurtosis(values) > 0)


@pytest.mark.parametrize("curvature", [0.0, 0.25, 100.0])
def test_curvature_widens_both_sides_by_t_squared_over_blocks(curvature):
    found = studentised(5.0, alternating(400), RATE, curvature=curvature)
    t, stderr = stats.t(399).isf(5e-4), math.sqrt(1 / 399)
    half = t * stderr + curvature * t**2 / 400
    assert (5 - found.low, found.high - 5) == pytest.approx((half, half), rel=1e-10)
    assert found.stderr == pytest.approx(stderr, rel=1e-14)


def test_lean_moves_both_ends_by_t_squared_over_the_root_of_blocks():
    t = stats.t(399).isf(5e-4)
    found = studentised(5.0, alternating(400), RATE, lean=0.7)
    half = (t + 0.7 * t**2 / 20) * math.sqrt(1 / 399)
    assert (5 - found.low, found.high - 5) == pytest.approx((half, half), rel=1e-10)


def test_parts_that_do_not_vary_cost_nothing():
    plain, paid = (studentised(0.0, alternating(200), RATE, parts)
                   for parts in (None, np.full((200, 2), 3.0)))
    assert plain == paid
    assert plain.reason == ""


# --- why there is none ------------------------------------------------------------------------

CONSTANT = ("the values do not vary from block to block; for a share or an identity use the "
            "statistic proportion, for values in a known range mean.within or ratio.within")


SKEW = (np.arange(256) < 1) + np.linspace(-1e-3, 1e-3, 256)


@pytest.mark.parametrize(("influence", "reason", "final"), [
    (np.zeros(1), "one block has no spread to judge by", False),
    (np.zeros(64), CONSTANT, True),
    (1e-15 * alternating(64), CONSTANT, True),  # rounding
    (alternating(64), "64 blocks are too few at this error rate", False),
    (1e200 * alternating(400), "", False),
    (np.where(np.arange(400), 1.0, math.inf),
     "the squares of the values overflow; use a larger unit", True),
    ((np.arange(256) < 1) - 1 / 256, "the blocks are too skew for an interval: skewness "
     f"{stats.skew(np.arange(256) < 1):.3g} over 256 blocks; they take two values: for events use "
     "the statistic proportion", False),
    (SKEW - SKEW.mean(), "the blocks are too skew for an interval: skewness "
     f"{stats.skew(SKEW):.3g} over 256 blocks", False),
], ids=["one", "constant", "rounding", "few", "large", "too-large", "event", "skew"])
def test_the_reasons_in_full(influence, reason, final):
    with np.errstate(invalid="ignore"):
        found = studentised(1.0, influence, RATE)
    assert (found.reason, found.final) == (reason, final)
    assert found.value == 1
    if reason:
        assert (found.low, found.high) == (-math.inf, math.inf)


@pytest.mark.parametrize(("statistic", "values"), [
    (mean, np.full((512, 3), 0.1)), (mean, np.zeros((512, 3))), (variance, np.full((512, 3), 0.1)),
    (std, alternating(512)[:, None] * [1, -1]), (ratio, (np.full((512, 1), 0.158),) * 2),
    (slope(mean), [(d, np.full((512, 1), 0.3 * d)) for d in (1, 2)]),
], ids=lambda value: getattr(value, "name", ""))
def test_a_constant_is_left_open_for_good(statistic, values):
    found = statistic.estimate(statistic.reduce(values), 1e-10)
    assert (found.reason, found.final) == (CONSTANT, True)


def test_a_rare_event_that_has_not_occurred_is_no_evidence_against_it():
    never = np.zeros((64, 1))
    assert mean.estimate(never, RATE).high == math.inf
    assert proportion.estimate(never, RATE).high > 0.1


@pytest.mark.parametrize("value", [1e3, -1e3, 1e-50])
def test_spread_below_a_trillionth_of_the_estimate_is_rounding(value):
    least = 1e-12 * abs(value)
    for share, constant in ((0.7, True), (1.5, False)):
        influence = share * least * alternating(100) * math.sqrt(99)  # stderr share · least
        found = studentised(value, influence, RATE)
        assert found.stderr == pytest.approx(share * least, rel=1e-12)
        assert found.value == value
        assert (found.reason == CONSTANT) is constant
    assert MIN_SPREAD == 1e-12


def test_delta_is_trusted_up_to_a_half():
    """Ones among zeros from many to few: the skewness grows, and δ passes 1/2 within a step."""
    blocks = 400
    t = stats.t(blocks - 1).isf(RATE / 2)
    given, deltas = [], []
    for ones in range(200, 4, -1):
        x = (np.arange(blocks) < ones).astype(float)
        given.append(studentised(x.mean(), x - x.mean(), RATE).reason == "")
        deltas.append(stats.skew(x) * (2 * t * t + 1) / (6 * math.sqrt(blocks)))
    assert given == [delta <= 0.5 for delta in deltas]
    assert 100 < sum(given) < 190


def test_lean_is_trusted_up_to_a_half():
    t = stats.t(399).isf(5e-4)
    for lean, given in ((0.49 * 20 / t**2, True), (0.51 * 20 / t**2, False)):
        reason = studentised(5.0, np.linspace(-1, 1, 400), RATE, lean=lean).reason
        assert (reason == "") is given
    assert reason.endswith(f" and lean {0.51 * 20 / t**2:.3g} over 400 blocks")


def test_an_interval_waits_for_eight_t_squared_blocks():
    first = 93  # 8·stats.t(92).isf(5e-4)² is 92.5, and 8·stats.t(91).isf(5e-4)² is 92.6
    for blocks in (2, first - 1, first):
        found = studentised(0.0, alternating(blocks) * math.sqrt(blocks), RATE)
        assert (found.reason == "") is (blocks == first)


@pytest.mark.parametrize("statistic", [mean, variance, ratio, kurtosis], ids=lambda s: s.name)
def test_blocks_needed_are_those_from_which_the_interval_stands(statistic):
    rng, shape = np.random.default_rng(4), (10_000, 4)
    x = rng.uniform(1, 3, shape) if statistic is kurtosis else rng.standard_exponential(shape)
    table = statistic.reduce((x[:, :2], x[:, 2:]) if statistic is ratio else x)
    given = {}
    for blocks in (50, 90, 100, 200, 400, 1000, 10_000):
        found = statistic.estimate(table[:blocks], RATE)
        needed = statistic.blocks_needed(table[:blocks], RATE)
        given[blocks] = found.reason == ""
        assert blocks >= needed or not given[blocks]
        if statistic.parts is None:
            assert given[blocks] == (blocks >= needed)
    assert set(given.values()) == {False, True}
