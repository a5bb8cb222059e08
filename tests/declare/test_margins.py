"""Margins that are scaled: what is claimed then, by cases and by their controls."""

import math

import pytest

from mcverify import Claim, absolute, grid, laws, printed, relative
from mcverify.attention import scores
from mcverify.statistic import mean


def cases(**prediction):
    made = Claim("mine", "Mine.", mean, lambda q, k: scores(q, k),
                 over=grid(law=laws.normal, d_k=8), **prediction)
    return [*made.cases(), *made.control_cases()]


def test_a_margin_is_scaled_and_the_near_misses_are_off_by_three_of_the_scaled_ones():
    case, below, above = cases(equals=10, within=relative(0.1))
    assert [each.claimed for each in (case, below, above)] == [
        (9, 11), pytest.approx((6.3, 7.7)), pytest.approx((11.7, 14.3))]
    assert case.claimed_at(0.1) == pytest.approx((9.9, 10.1))
    assert below.claimed_at(0.1) == pytest.approx((9.7 * 0.99, 9.7 * 1.01))
    assert above.claimed_at(0.1) == pytest.approx((10.3 * 0.99, 10.3 * 1.01))
    assert str(above) == "mine-normal-d_k:8-control-equals:13"  # whatever the scale


def test_a_scale_of_one_changes_no_bit():
    for case in cases(equals=1 / 3, within=absolute(0.1)):
        assert case.claimed_at(1.0) == case.claimed


def test_bounds_have_no_margin_and_that_of_a_printed_number_is_in_its_digits():
    assert cases(at_most=2)[0].claimed_at(0.05) == (-math.inf, 2)
    assert cases(between=(1, 2))[0].claimed_at(0.05) == (1, 2)
    case, _, above = cases(equals=printed("0.88"))
    assert case.claimed_at(0.05) == case.claimed == pytest.approx((0.875, 0.885))
    assert above.claimed_at(0.05) == above.claimed
    case, *_ = cases(equals=printed("0.88"), within=absolute(0.1))
    assert case.claimed_at(0.05) == pytest.approx((0.875 - 0.005, 0.885 + 0.005))
    assert cases(at_most=2, within=absolute(1))[0].claimed_at(0.05) == (-math.inf, 2.05)
