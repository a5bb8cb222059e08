"""A quick look: cases, claims and plain functions; how findings and estimates are shown."""

import pytest

from mcverify import Verdict, absolute, check, discover, laws, relative
from mcverify.attention import scores
from mcverify.declare.fault import ClaimError
from mcverify.statistic import variance
from mcverify.statistic.estimate import Basis, Estimate

CLAIMS = {claim.name: claim for claim in discover()}


def test_a_claim_gives_its_findings_in_the_order_of_its_cases():
    claim = CLAIMS["hand_slope"]
    findings = check(claim)
    assert [finding.case for finding in findings] == claim.cases()
    assert [(f.estimate, f.verdict) for f in findings] == [
        (f.estimate, f.verdict) for f in map(check, claim.cases())]


@pytest.mark.parametrize(("given", "message"), [
    ({"statistics": variance}, "nothing looks at statistics=.*; did you mean statistic"),
    ({"scal": 0.125}, "nothing looks at scal=0.125; did you mean scale"),
    ({"equal": 8, "within": relative(0.1)}, "within=.* without a prediction; give one of equals"),
])
def test_misspelled_words_are_refused(given, message):
    with pytest.raises(ClaimError, match=message):
        check(scores, law=laws.normal, d_k=8, **given)


def test_a_function_with_a_prediction_gives_a_finding():
    finding = check(scores, statistic=variance, law=laws.normal, d_k=8, equals=8,
                    within=relative(0.1))
    assert finding.verdict is Verdict.CONFIRMED
    both = check(lambda q: q, law=laws.normal, d_k=[1, 8], equals=0.5, within=absolute(0.1))
    assert [finding.verdict for finding in both] == [Verdict.REFUTED] * 2


def test_a_function_alone_gives_an_estimate():
    found = check(scores, statistic=variance, law=laws.normal, d_k=8)
    assert isinstance(found, Estimate)
    assert found.low < 8 < found.high
    assert found.basis is Basis.MOMENTS
    assert found == check(scores, statistic=variance, law=laws.normal, d_k=8)
    assert found != check(scores, 1, statistic=variance, law=laws.normal, d_k=8)


@pytest.mark.parametrize(("what", "settings", "message"), [
    (5, {}, "takes a case, a claim, or a function of q and k"),
    (lambda q, wrong: q, {"d_k": 8}, "asks for wrong, which its grid does not name"),
    (lambda q: q, {"equals": 0}, "equals without within"),
])
def test_what_is_no_claim_is_refused(what, settings, message):
    with pytest.raises(ValueError, match=message):
        check(what, **settings)


def test_a_function_that_no_file_holds_as_a_claim_is_judged_again_from_python():
    finding = check(scores, 3, statistic=variance, law=laws.normal, d_k=8, equals=9,
                    within=relative(0.01))
    assert str(finding).splitlines()[-1] == "  rerun     check(…, seed=3)"
    other = check(CLAIMS["hand_slope"].cases()[0], error_rate=1e-9)
    assert str(other).splitlines()[-1] == (
        "  rerun     mcverify run hand_slope --seed 0 --error-rate 1e-09")


def test_what_a_prompt_shows_is_a_line_without_functions():
    finding = check(CLAIMS["hand_slope"].cases()[0])
    shown = repr([finding, finding.case, finding.case.claim, variance])
    assert shown.startswith(f"[<Finding {finding.case}: CONFIRMED, 1.12535e-07 in [")
    assert f"<Case {finding.case}>, <Claim hand_slope: {finding.case.claim.sentence}>" in shown
    assert shown.endswith("<Statistic variance>]")
    assert " at 0x" not in shown
    broken = check(lambda q: 1 / 0, law=laws.normal, d_k=8, equals=0, within=absolute(1))
    assert repr(broken) == "<Finding <lambda>-normal-d_k:8: ERROR>"


def test_estimates_and_findings_print_well():
    assert str(Estimate(64.0123456, 0.123, 63.5, 64.5)) == "64.0123 ± 0.12, in [63.5, 64.5]"
    assert "(too few)" in str(Estimate(1, 2, 3, 4, "too few"))
    assert Estimate(1, 2, 0, 4)._repr_html_() == "<samp>1 ± 2, in [0, 4]</samp>"
    shown = check(CLAIMS["hand_dot_product"])[0]._repr_html_()
    assert shown.startswith("<pre><b style=")
    assert "CONFIRMED: hand_dot_product: q = (1, 2)" in shown
