"""Declaring claims: what a claim is, and a clear refusal for each rule that it can break."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from mcverify import Claim, Verdict, absolute, claim, grid, laws, printed, relative
from mcverify.attention import scores
from mcverify.declare.claim import statement_ids
from mcverify.declare.fault import ClaimError
from mcverify.declare.prediction import claimed_interval
from mcverify.declare.rules import number_of_cases
from mcverify.statistic import exact, mean, variance


def body(q, k):
    """Var(q·k) = d_k.

    More words, which are not the sentence.
    """
    return scores(q, k)


def declared(**changes):
    given = {"equals": lambda d_k: d_k, "within": relative(0.02)} | changes
    statistic, function = given.pop("statistic", variance), given.pop("body", body)
    return claim(statistic, **given)(function)


def test_a_claim_is_a_frozen_hashable_value_of_its_parts():
    made = declared(over=grid(law=laws.normal, d_k=[8, 64]), decides="A5 B2")
    assert [field.name for field in dataclasses.fields(Claim)] == [
        "name", "sentence", "statistic", "body", "equals", "at_least", "at_most", "between",
        "within", "over", "decides", "expect", "controls", "needs"]
    assert (made.name, made.sentence) == ("body", "Var(q·k) = d_k.")
    assert made.expect is Verdict.CONFIRMED
    assert hash(made) == hash(dataclasses.replace(made))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"


def test_cases_are_hashable_points_with_readable_names():
    made = declared(over=grid(scale=[0.5, 2.0], law=laws.student_t(9), d_k=[8, 64]))
    assert [str(case) for case in made.cases()] == [
        "body-student_t-9-d_k:8-scale:0.5", "body-student_t-9-d_k:64-scale:0.5",
        "body-student_t-9-d_k:8-scale:2", "body-student_t-9-d_k:64-scale:2"]
    assert len({*made.cases(), *made.cases()}) == 4


def test_defaults_are_the_standard_laws_and_widths():
    assert len(declared().cases()) == 16
    assert len(declared(over=grid(d_k=64)).cases()) == 4
    assert len(declared(over=grid(law=laws.normal)).cases()) == 4


def test_replace_gives_a_changed_claim():
    made = declared(over=grid(law=laws.normal, d_k=64))
    changed = dataclasses.replace(made, equals=lambda d_k: 2 * d_k)
    assert changed.cases()[0].claimed == (125.44, 130.56)
    assert made.cases()[0].claimed == (62.72, 65.28)
    with pytest.raises(ClaimError, match="equals and at_least"):
        dataclasses.replace(made, at_least=3)


@pytest.mark.parametrize(("kind", "prediction", "within", "expected"), [
    ("equals", 64, relative(0.02), (62.72, 65.28)),
    ("equals", -10, relative(0.1), (-11, -9)),
    ("equals", 0, absolute(0.5), (-0.5, 0.5)),
    ("equals", printed("0.88"), None, (0.875, 0.885)),
    ("equals", printed("1.1e-7"), None, (1.05e-7, 1.15e-7)),
    ("equals", printed("120"), None, (119.5, 120.5)),
    ("at_least", 2, None, (2, math.inf)),
    ("at_least", 2, absolute(0.5), (1.5, math.inf)),
    ("at_most", 2, relative(0.5), (-math.inf, 3)),
    ("between", (1, 2), None, (1, 2)),
    ("between", (1, 2), absolute(0.5), (0.5, 2.5)),
])
def test_claimed_intervals(kind, prediction, within, expected):
    assert claimed_interval(kind, prediction, within) == pytest.approx(expected)


def no_docstring(q, k):
    return q


def asks_for_more(q, k, keys):
    """A sentence."""
    return q


def draws_nothing():
    """A sentence."""
    return 1.0


@pytest.mark.parametrize(("changes", "message"), [
    ({"body": no_docstring}, "no_docstring: has no docstring; its first line must be"),
    ({"within": None}, "equals without within.*add e.g. within=relative"),
    ({"equals": 3, "within": None}, "equals without within"),
    ({"equals": 0}, r"relative\(0.02\) at a prediction of 0.*use within=absolute"),
    ({"equals": None}, "has no prediction; give just one of"),
    ({"at_most": 3}, "has equals and at_most; give just one"),
    ({"within": 0.02}, "within=0.02 is no margin"),
    ({"within": relative(0)}, "it must be above 0"),
    ({"within": relative(math.nan)}, "it must be above 0"),
    ({"statistic": "variance"}, "'variance' is no Statistic"),
    ({"expect": "REFUTED"}, "is no verdict; use e.g. Verdict.REFUTED"),
    ({"over": [1, 2]}, r"is no grid with points; use grid\("),
    ({"over": grid(d_k=[])}, "is no grid with points"),
    ({"over": grid(law="normal")}, "law='normal' is not a law; use laws.normal"),
    ({"over": grid(law=stats.norm())}, "is not a law"),
    ({"over": grid(law=laws.normal, d_k=[8, 8])}, "2 points of its grid are all named body-normal"),
    ({"over": grid(d_k=0)}, "d_k=0: must be a whole number of at least 1"),
    ({"over": grid(d_k=8.0)}, "d_k=8.0: must be a whole number"),
    ({"over": grid(d_k=True)}, "d_k=True: must be a whole number"),
    ({"over": grid(keys=-2)}, "keys=-2: must be"),
    ({"over": grid(seed=3)}, "'seed' has the name of a column of results"),
    ({"over": grid(claim=3)}, "'claim' has the name of a column of results"),
    ({"over": grid(law=laws.student_t)}, "law=student_t makes laws; call it"),
    ({"over": grid(f=lambda x: x)}, "has no name of its own, which ids and tables go by"),
    ({"over": grid(q=3)}, "'q' has the name of a column of results, of a draw or"),
    ({"over": grid(table={})}, "can be changed; use a number, a text or a tuple"),
    ({"body": asks_for_more}, "asks_for_more asks for keys, which its grid does not name"),
    ({"equals": lambda depth: depth}, "asks for depth"),
    ({"body": draws_nothing, "equals": 1}, "exact is for a body that draws nothing"),
    ({"statistic": exact, "equals": 1}, "exact is for a body that draws nothing"),
    ({"equals": None, "within": None, "between": (2, 1)}, "the low one first"),
    ({"equals": None, "within": None, "at_least": -math.inf}, "nothing can confirm or refute"),
    ({"equals": lambda d_k: {8: 8}[d_k], "within": None}, "equals raises KeyError: 1; mend it"),
    ({"equals": "much"}, "could not convert"),
])
def test_a_broken_rule_is_refused_in_one_line(changes, message):
    with pytest.raises(ClaimError, match=message) as caught:
        declared(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("digits", ["many", "", None, "nan"])
def test_printed_takes_numbers_only(digits):
    with pytest.raises(ClaimError, match="takes a number as text"):
        printed(digits)


def test_grids_add_up():
    both = grid(law=laws.normal, d_k=8) + grid(law=laws.laplace, d_k=[8, 64])
    assert len(both.points) == 3
    made = declared(statistic=mean, equals=1, over=both)
    assert [str(case) for case in made.cases()] == [
        "body-normal-d_k:8", "body-laplace-d_k:8", "body-laplace-d_k:64"]


@dataclasses.dataclass(frozen=True, repr=False)
class Nameless:
    coupled: bool = False
    finite_moments: float = math.inf

    def moments(self, d_k):
        return laws.normal.moments(d_k)

    def draw(self, rng, blocks, tokens, d_k):
        return laws.normal.draw(rng, blocks, tokens, d_k)


def test_a_law_needs_a_name_that_is_the_same_in_every_process():
    with pytest.raises(ClaimError, match=r"has no name of its own.*give it a __str__"):
        declared(over=grid(law=Nameless(), d_k=8))


@pytest.mark.parametrize("name", ["verdicts", "ledger", "saturation_atlas"])
def test_a_claim_may_not_be_named_like_a_table_of_results(name):
    with pytest.raises(ClaimError, match="the name of a table of results"):
        dataclasses.replace(declared(), name=name)


def test_numpy_numbers_are_numbers():
    assert grid(d_k=np.arange(1, 3)) == grid(d_k=[np.int64(1), 2]) == grid(d_k=[1, 2])


def test_statement_ids():
    assert statement_ids("A13 B2, C7") == ["A13", "B2", "C7"]


@pytest.mark.parametrize("name", ["x" * 201, "ü" * 101])
def test_a_name_too_long_for_a_file_is_refused_and_cut_short(name):
    with pytest.raises(ClaimError, match=f"^{name[:20]}…?.*: the name has {len(name)} letters, and "
                                         "a file is named after it; use at most 200"):
        dataclasses.replace(declared(), name=name)
    assert dataclasses.replace(declared(), name="x" * 200).name == "x" * 200


def test_a_grid_that_no_memory_holds_is_refused_before_it_is_made():
    with pytest.raises(ClaimError, match="grid: 1000000000000 points are more than memory holds"):
        grid(a=range(10**6), b=range(10**6))


def test_more_cases_than_the_error_budget_pays_for_are_counted_and_not_made():
    with pytest.raises(ClaimError, match="its grid has 10001 cases, and the error budget of 1e-06"):
        Claim("big", "Too many.", mean, lambda q, seed_of: q, equals=0, within=absolute(1),
              over=grid(law=laws.normal, d_k=1, seed_of=range(10_001)))
    assert number_of_cases(Claim("few", "A few.", mean, lambda q: q, equals=0, within=absolute(1),
                                 over=grid(d_k=[1, 2]) + grid(law=laws.exponential))) == 12
