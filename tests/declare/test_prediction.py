"""The claimed interval: margins, printed numbers, and its edges."""

import math

import pytest

from mcverify.declare.prediction import (
    ClaimError,
    Margin,
    Printed,
    absolute,
    claimed_interval,
    printed,
    relative,
)


def test_margins_and_printed_numbers_read_as_they_were_written():
    assert [str(x) for x in (relative(0.02), absolute(0.02), printed("0.880"))] == [
        "2 %", "0.02", "0.880"]


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
