"""The measured interval against hand values, at its edges; and the claimed one at its own."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import special, stats

from mcverify.declare.fault import ClaimError
from mcverify.declare.prediction import (
    Margin,
    Printed,
    absolute,
    claimed_interval,
    printed,
    relative,
)
from mcverify.statistic import mean
from mcverify.statistic.estimate import Estimate
from mcverify.statistic.studentised import MIN_SPREAD, chernoff, studentised


def alternating(blocks):
    """Values of mean 0, variance 1 and no skewness, exactly."""
    return np.where(np.arange(blocks) % 2, 1.0, -1.0)


def kl(p, mu):
    return special.rel_entr(p, mu) + special.rel_entr(1 - p, 1 - mu)


# --- studentised ------------------------------------------------------------------------------


def test_two_blocks_by_hand():
    """One degree of freedom: t is tan of an angle, 1 at a quarter a side; stderr √(2/1/2)."""
    found = studentised(-3.0, np.array([-1.0, 1.0]), 0.5, caution=0)
    assert (found.value, found.stderr, found.reason) == (-3.0, 1.0, "")
    assert (found.low, found.high) == pytest.approx((-4, -2), rel=1e-10)


def test_squares_that_overflow_give_no_interval():
    found = studentised(0.0, 1e200 * alternating(400), 1e-3)
    assert (found.stderr, found.low, found.high) == (math.inf, -math.inf, math.inf)
    assert found.reason == "the squares of the values overflow; use a larger unit"


def test_one_block_keeps_its_value():
    found = studentised(7.0, np.zeros(1), 0.5, caution=0)
    assert found.value == 7
    assert math.isnan(found.stderr)
    assert found.reason == "one block has no spread to judge by"


@pytest.mark.parametrize("curvature", [0.0, 0.25, 100.0])
def test_curvature_widens_both_sides_by_t_squared_over_blocks(curvature):
    found = studentised(5.0, alternating(400), 1e-3, curvature=curvature)
    t, stderr = stats.t(399).isf(5e-4), math.sqrt(1 / 399)
    half = t * stderr + curvature * t**2 / 400
    assert (5 - found.low, found.high - 5) == pytest.approx((half, half), rel=1e-10)
    assert found.stderr == pytest.approx(stderr, rel=1e-14)


def second_order(values, t):
    return max(stats.kurtosis(values), 0.0) / 2 * t**3 / len(values)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_skewness_counts_whatever_its_sign(sign):
    skew = sign * np.random.default_rng(3).standard_exponential(4000)
    parts = np.stack([alternating(4000) + 9.0, skew], axis=1)
    found = studentised(0.0, alternating(4000), 1e-3, parts)
    t = stats.t(3999).isf(5e-4)
    delta = sign * stats.skew(skew) * (2 * t**2 + 1) / (6 * math.sqrt(4000))
    assert delta > 0.01
    expected = t + delta + second_order(skew, t)
    assert found.high / found.stderr == pytest.approx(expected, rel=1e-10)
    assert studentised(0.0, sign * (skew - skew.mean()), 1e-3).reason == ""


def test_heavy_values_pay_to_second_order_and_light_ones_do_not():
    u = (np.arange(400) + 0.5) / 400
    t = stats.t(399).isf(5e-4)
    for values in (u - 0.5, stats.laplace.ppf(u)):  # symmetric: of no skewness
        found = studentised(0.0, values, 1e-3)
        more = found.high / found.stderr - t
        assert more == pytest.approx(second_order(values, t), abs=1e-10)
        assert (more > 0.1) is (stats.kurtosis(values) > 0)


def test_lean_moves_both_ends_by_t_squared_over_the_root_of_blocks():
    t = stats.t(399).isf(5e-4)
    found = studentised(5.0, alternating(400), 1e-3, lean=0.7)
    half = (t + 0.7 * t**2 / 20) * math.sqrt(1 / 399)
    assert (5 - found.low, found.high - 5) == pytest.approx((half, half), rel=1e-10)
    for lean, given in ((0.49 * 20 / t**2, True), (0.51 * 20 / t**2, False)):
        reason = studentised(5.0, alternating(400), 1e-3, lean=lean).reason
        assert (reason == "") is given
    assert reason == ("the blocks are too skew for an interval: skewness 0 and lean "
                      f"{0.51 * 20 / t**2:.3g} over 400 blocks")


def test_parts_that_do_not_vary_cost_nothing():
    plain, paid = (studentised(0.0, alternating(200), 1e-3, parts)
                   for parts in (None, np.full((200, 2), 3.0)))
    assert plain == paid
    assert plain.reason == ""


@pytest.mark.parametrize("value", [1e3, -1e3, 1e-50])
def test_spread_below_a_trillionth_of_the_estimate_is_rounding(value):
    least = 1e-12 * abs(value)
    for share, reason in ((0.7, True), (1.5, False)):
        influence = share * least * alternating(100) * math.sqrt(99)  # stderr share · least
        found = studentised(value, influence, 1e-3)
        assert found.stderr == pytest.approx(share * least, rel=1e-12)
        assert found.value == value
        assert found.reason.startswith("the values do not vary") is reason
    assert MIN_SPREAD == 1e-12


def test_delta_is_trusted_up_to_a_half():
    """Ones among zeros from many to few: the skewness grows, and δ passes 1/2 within a step."""
    blocks, rate = 400, 1e-3
    t = stats.t(blocks - 1).isf(rate / 2)
    given, deltas = [], []
    for ones in range(200, 4, -1):
        x = (np.arange(blocks) < ones).astype(float)
        given.append(studentised(x.mean(), x - x.mean(), rate).reason == "")
        deltas.append(stats.skew(x) * (2 * t * t + 1) / (6 * math.sqrt(blocks)))
    assert given == [delta <= 0.5 for delta in deltas]
    assert 100 < sum(given) < 190


def test_an_interval_waits_for_eight_t_squared_blocks():
    first = 93  # 8·stats.t(92).isf(5e-4)² is 92.5, and 8·stats.t(91).isf(5e-4)² is 92.6
    for blocks in (2, first - 1, first):
        found = studentised(0.0, alternating(blocks) * math.sqrt(blocks), 1e-3)
        assert (found.reason == "") is (blocks == first)


def test_the_reasons_in_full():
    x = np.random.default_rng(1).standard_normal(64)
    assert studentised(0.0, x, 1e-3).reason == "64 blocks are too few at this error rate"
    assert studentised(1.0, 0 * x, 1e-3).reason == (
        "the values do not vary from block to block; for a share or an identity use the "
        "statistic proportion")
    one = (np.arange(256) < 1) - 1 / 256
    assert studentised(0.0, one, 1e-3).reason == (
        f"the blocks are too skew for an interval: skewness {stats.skew(one):.3g} over 256 blocks")


# --- chernoff ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("shares", "rate"), [
    (np.repeat([1.0, 0.0], [1, 1023]), 1e-11), (np.array([0.25]), 1e-3),
    (np.array([0.1, 0.2]), 0.5), (np.full(7, 1e-9), 1e-6),
])
def test_chernoffs_ends_solve_the_bound_however_near_to_the_edge(shares, rate):
    found = chernoff(shares, rate)
    p, allowed = shares.mean(), math.log(2 / rate) / len(shares)
    assert kl(p, found.high) == pytest.approx(allowed, rel=1e-9)
    # Where μ is small, kl(p, μ) = allowed is solved by p·exp(−(allowed − (1 − p) ln(1 − p))/p).
    if found.low < 1e-12:
        low = p * math.exp(-(allowed - (1 - p) * math.log1p(-p)) / p)
        assert found.low == pytest.approx(low, rel=1e-2, abs=1e-17)
    else:
        assert kl(p, found.low) == pytest.approx(allowed, rel=1e-9)
    assert 0 <= found.low < p < found.high < 1


@pytest.mark.parametrize("blocks", [2, 3, 64])
def test_chernoffs_standard_error_is_that_of_the_mean(blocks):
    shares = np.random.default_rng(blocks).uniform(size=blocks)
    assert chernoff(shares, 1e-3).stderr == pytest.approx(stats.sem(shares), rel=1e-12)


def test_chernoff_near_one_is_as_sharp_as_near_zero():
    """kl(p, μ) = kl(1 − p, 1 − μ): one end is the mirror image of the other."""
    shares = np.repeat([1.0, 0.0], [3, 997])
    found, mirrored = chernoff(shares, 1e-9), chernoff(1 - shares, 1e-9)
    assert 1 - mirrored.low == pytest.approx(found.high, rel=1e-12)
    assert 1 - mirrored.high == pytest.approx(found.low, rel=1e-6)


def test_chernoff_of_one_block_has_a_bound_and_no_standard_error():
    found = chernoff(np.array([0.5]), 0.5)
    assert math.isnan(found.stderr)
    # kl(1/2, μ) = −ln(4μ(1 − μ))/2 = ln 4 where 4μ(1 − μ) = 1/16.
    root = math.sqrt(15 / 64)
    assert (found.low, found.high) == pytest.approx((0.5 - root, 0.5 + root), rel=1e-12)


# --- the claimed interval ---------------------------------------------------------------------


def test_margins_and_printed_numbers_read_as_they_were_written():
    assert [str(x) for x in (relative(0.02), absolute(0.02), printed("0.880"))] == [
        "2 %", "0.02", "0.880"]


@pytest.mark.parametrize(("value", "field"), [
    (Estimate(1.0, 1.0, 0.0, 2.0), "value"), (printed("0.88"), "digits"), (relative(0.1), "size"),
    (mean, "name"),
], ids=lambda value: type(value).__name__)
def test_values_are_frozen_and_so_may_be_keys(value, field):
    assert {value: 1}[value] == 1
    with pytest.raises(FrozenInstanceError):
        setattr(value, field, 3)


def test_an_interval_may_be_one_point_and_not_less():
    assert claimed_interval("between", (1, 1), None) == (1, 1)
    assert claimed_interval("equals", 3, Margin(0.0, relative=False)) == (3, 3)
    for edges in ((1, math.nan), (-math.inf, math.inf), (1, 0.999)):
        with pytest.raises(ClaimError, match="the low one first"):
            claimed_interval("between", edges, None)
    with pytest.raises(ClaimError, match="nothing can confirm or refute"):
        claimed_interval("at_most", math.inf, None)


def test_a_printed_number_is_right_to_half_a_unit():
    assert printed("-2.50") == Printed("-2.50", -2.5, 0.005)
    assert printed("3e2") == Printed("3e2", 300.0, 50.0)
    assert claimed_interval("at_least", printed("7"), None) == (6.5, math.inf)
    assert claimed_interval("at_most", printed("7"), absolute(0.25)) == (-math.inf, 7.75)

