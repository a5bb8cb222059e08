"""The rule that makes verdicts, and the budget that errors are paid from."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify.statistic import mean
from mcverify.verdict import (
    CASE_ERROR_RATE,
    FIRST_LOOK,
    LOOKS,
    SUITE_ERROR_RATE,
    Terms,
    Verdict,
    check_budget,
    check_rate,
    judge,
    look_rate,
    looks,
    overall,
)

edges = st.floats(-10, 10)
intervals = st.tuples(edges, edges).map(sorted).map(tuple)


@pytest.mark.parametrize(("measured", "claimed", "verdict"), [
    ((1, 2), (1, 2), Verdict.CONFIRMED),
    ((1, 2), (0, math.inf), Verdict.CONFIRMED),
    ((1, 2), (2, 3), Verdict.INCONCLUSIVE),
    ((1, 2), (2.1, 3), Verdict.REFUTED),
    ((1, 2), (-math.inf, 0.9), Verdict.REFUTED),
    ((-math.inf, math.inf), (0, 1), Verdict.INCONCLUSIVE),
    ((5, 5), (5, 5), Verdict.CONFIRMED),
])
def test_judge(measured, claimed, verdict):
    assert judge(measured, claimed) is verdict


@given(intervals, intervals, edges)
def test_an_interval_that_holds_the_truth_never_gives_a_false_verdict(measured, claimed, truth):
    verdict = judge(measured, claimed)
    if measured[0] <= truth <= measured[1]:
        assert not (verdict is Verdict.REFUTED and claimed[0] <= truth <= claimed[1])
        assert not (verdict is Verdict.CONFIRMED and not claimed[0] <= truth <= claimed[1])


@given(st.lists(st.sampled_from(Verdict), min_size=1))
def test_one_refuted_case_refutes_a_claim_and_all_must_be_confirmed(verdicts):
    found = overall(verdicts)
    assert (found is Verdict.REFUTED) == (Verdict.REFUTED in verdicts)
    assert (found is Verdict.CONFIRMED) == all(v is Verdict.CONFIRMED for v in verdicts)


def test_looks_grow_by_half_or_a_third_without_gap_or_overlap():
    found = looks()
    assert len(found) == LOOKS
    assert found[-1][1] == 2**20
    assert found[0] == (0, FIRST_LOOK)
    for (_, stop), (start, end) in itertools.pairwise(found):
        assert start == stop
        assert 3 * end in (4 * stop, 4.5 * stop)


def test_budget_pays_for_ten_thousand_cases():
    assert (CASE_ERROR_RATE, SUITE_ERROR_RATE) == (1e-10, 1e-6)
    check_budget(10_000)
    with pytest.raises(ValueError, match="more than the suite's 1e-06"):
        check_budget(10_001)
    for rate in (0.0, 1.0, 1.5, -1e-10, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            check_budget(1, rate)


def test_rates_that_no_draws_can_bear_are_refused_though_blocks_would_decide_them():
    for rate in (0.0, 1.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="must be between 0 and 1"):
            check_rate(rate)
    for rate in (1e-300, 2.9e-39):
        with pytest.raises(ValueError, match="the smallest that can be decided is 3e-39"):
            check_rate(rate)
    check_rate(3e-39)
    table = np.random.default_rng(0).standard_normal((looks()[-1][1] // 64, 1))
    for statistic in (mean, mean.with_variance(1.0), mean.within(-9, 9)):
        found = statistic.estimate(table, look_rate(1e-300))
        assert -1 < found.low < found.high < 1


@given(st.integers(FIRST_LOOK, 2**40))
def test_looks_go_as_far_as_asked_and_share_the_rate(max_blocks):
    found = looks(max_blocks)
    assert found == looks(2**41)[:len(found)]
    assert found[-1][1] <= max_blocks < looks(2**41)[len(found)][1]
    terms = Terms(max_blocks=max_blocks)
    assert terms.looks == found
    assert len(found) * terms.look_rate() == pytest.approx(CASE_ERROR_RATE)
    assert terms.look_rate(anytime=True) == CASE_ERROR_RATE


@pytest.mark.parametrize(("wrong", "message"), [
    ({"seed": -1}, "seed=-1: must be a whole number"),
    ({"seed": "1"}, "seed='1': must be a whole number"),
    ({"error_rate": 0}, "error rate 0: must be between 0 and 1"),
    ({"margin_scale": 0}, "margin scale 0: must be above 0"),
    ({"margin_scale": -0.5}, "margin scale -0.5: must be above 0"),
    ({"margin_scale": math.nan}, "margin scale nan: must be above 0"),
    ({"margin_scale": 1.5}, "at most 1, for margins only get tighter; use e.g. 0.05"),
    ({"max_blocks": 127}, "max_blocks=127: must be a whole number of at least 128"),
    ({"max_blocks": 1e6}, "must be a whole number"),
])
def test_terms_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Terms(**wrong)
