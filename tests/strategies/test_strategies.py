"""What strategies draw has what was asked for, and shrinks to the corners worth reading."""

import importlib
import itertools
import math
import re
import sys
import textwrap
from functools import lru_cache
from pathlib import Path
from random import Random

import hypothesis
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import mcverify
from mcverify import laws, strategies
from mcverify.attention import max_weight, softmax
from mcverify.laws.real_tokens import Measured
from mcverify.strategies import kinds
from mcverify.strategies.kinds import FAMILIES, KINDS
from mcverify.strategies.numbers import COVARIANCES
from mcverify.strategies.wanted import Wanted

PACKAGE = Path(mcverify.__file__).parent
SAMPLED = {"derandomize": True, "database": None, "phases": [Phase.generate]}


def find(strategy, condition=lambda found: True):
    """The simplest that fits, by the same search in every run."""
    return hypothesis.find(strategy, condition, random=Random(0), settings=settings(
        database=None, max_examples=400, phases=[Phase.generate, Phase.shrink]))


def sample(strategy, count):
    """So many draws, of which the first is the simplest; what is loaded may change the others."""
    drawn = []

    @settings(**SAMPLED, max_examples=count)
    @given(strategy)
    def keep(value):
        drawn.append(value)

    keep()
    return drawn


# --- the properties that the docstring shows --------------------------------------------------

SHOWN = {}
exec(textwrap.dedent(re.search(r"::\n\n((?:    .*\n|\n)+)", strategies.__doc__)[1]), SHOWN)
PROPERTIES = [name for name in SHOWN if name.startswith("test_")]


@pytest.mark.parametrize("name", PROPERTIES)
def test_shown(name):
    SHOWN[name]()


def test_all_that_is_shown_runs():
    assert len(PROPERTIES) == strategies.__doc__.count("@given") == 4


# --- laws -------------------------------------------------------------------------------------


def test_every_name_has_laws_that_draw_and_are_told_apart_by_theirs():
    seen = {}
    drawn = sample(st.tuples(*[strategies.laws(name, d_k=4) for name in KINDS]), 20)
    for name, named in zip(KINDS, zip(*drawn, strict=True), strict=True):
        fixed = name in (*map(str, (*laws.STANDARD, laws.exponential)), "sign_products")
        assert (len(set(named)) == 1) == fixed
        for law in named:
            assert isinstance(law, laws.Law)
            assert str(law).startswith((name, "joint[") if name == "linear" else name)
            assert seen.setdefault(str(law), law) == law
            assert hash(seen[str(law)]) == hash(law)
            q, k = law.draw(np.random.default_rng(0), 2, 3, 4)
            assert q.shape == k.shape == (2, 3, 4)
            assert np.isfinite([q, k]).all()
    assert len(seen) == len(set(seen.values()))


def test_every_law_of_the_package_has_a_strategy():
    made = {name for name in laws.__all__ if callable(getattr(laws, name))} | {"sign_products"}
    assert made - set(KINDS) == {
        "BlockMoments", "FourthMoments", "Law", "Moments", "ScoreMoments", "block_moments",
        "fourth_moments", "iid", "measured_file", "minilm", "score_moments"}


def test_without_a_width_laws_can_be_drawn_at_any():
    drawn = sample(strategies.laws(), 60)
    for law, d_k in itertools.product(drawn, [1, 2, 5]):
        q, k = law.draw(np.random.default_rng(1), 1, 2, d_k)
        assert q.shape == k.shape == (1, 2, d_k)


# Each coupling with each order; a width by turns.
ASKED = [{"d_k": (None, 4)[place % 2], "coupled": coupled, "finite_moments": order}
         for place, (coupled, order) in enumerate(
             itertools.product([None, False, True], [0, 12, math.inf]))]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("declared", [False, True])
def test_laws_have_what_is_asked_for(family, standard, declared):
    asked = [a for a in ASKED if family != "iid" or not a["coupled"]]
    made = [strategies.laws(family, **a, standard=standard, declared=declared) for a in asked]
    for drawn in sample(st.tuples(*made), 3):
        for a, law in zip(asked, drawn, strict=True):
            assert a["coupled"] in (None, law.coupled)
            assert law.finite_moments > a["finite_moments"] or law.finite_moments == math.inf
            for d_k in ([a["d_k"]] if a["d_k"] else [1, 3, 8]) if standard or declared else []:
                m = law.moments(d_k)
                if declared:
                    assert all(np.isfinite(x).all() for x in vars(m).values())
                if standard:
                    np.testing.assert_allclose([m.mean_q, m.mean_k], 0, atol=1e-12)
                    np.testing.assert_allclose([np.diag(m.cov_q), np.diag(m.cov_k)], 1)


def test_laws_are_made_to_fit_and_not_drawn_until_they_do(monkeypatch):
    def recorded(wanted, law, real=Wanted.met_by):
        met.append(real(wanted, law))
        return met[-1]

    met = []
    monkeypatch.setattr(Wanted, "met_by", recorded)
    some = lru_cache(kinds.some.__wrapped__)  # none of whose strategies hold the real one
    monkeypatch.setattr(kinds, "some", some)
    for asked in (Wanted(4, True, 0, True), Wanted(4, False, 12, True, True),
                  Wanted(4, None, 12, False, True), Wanted(4, False, math.inf)):
        made = [some((name,), asked) for name in KINDS]
        met.clear()  # of what was tried, to see which laws can be made
        sample(st.tuples(*[strategy for strategy in made if not strategy.is_empty]), 5)
        assert set(met) == {True}


@pytest.mark.parametrize(("wanted", "law"), [
    (Wanted(coupled=True), laws.normal), (Wanted(coupled=False), laws.identical(laws.normal)),
    (Wanted(finite_moments=6), laws.student_t(6)), (Wanted(finite_moments=99), laws.stable(1)),
    (Wanted(standard=True), laws.shifted(laws.normal, 0.1)),
    (Wanted(standard=True), laws.scaled(laws.normal, 1.0, 1.1)),
    (Wanted(standard=True), laws.layer_norm(laws.normal)),
    (Wanted(declared=True), laws.student_t(2)), (Wanted(declared=True), laws.stable(1)),
    (Wanted(declared=True, d_k=2), laws.rms_norm(laws.correlated(laws.normal, 0.5))),
])
def test_a_law_that_lacks_what_is_wanted_is_told(wanted, law):
    assert not wanted.met_by(law)


def test_a_law_that_has_what_is_wanted_is_told():
    all_of_it = Wanted(d_k=2, coupled=False, finite_moments=99, standard=True, declared=True)
    assert all_of_it.met_by(laws.layer_norm(laws.normal))
    assert Wanted(finite_moments=6).met_by(laws.student_t(6.01))
    assert Wanted(finite_moments=math.inf).met_by(laws.normal)
    assert Wanted(standard=True).met_by(laws.rms_norm(laws.correlated(laws.normal, 0.5)))


def test_switches_leave_variety():
    drawn = sample(strategies.laws("transformed", d_k=4, standard=True, coupled=True), 30)
    assert {str(law).partition("[")[0] for law in drawn} == {"layer_norm", "rms_norm", "rotary"}
    drawn = sample(strategies.laws("transformed", d_k=4, declared=True), 40)
    assert {str(law).partition("[")[0] for law in drawn} == set(FAMILIES["transformed"])
    drawn = sample(strategies.laws("clipped", declared=True), 10)
    assert {law.coupled for law in drawn} == {False, True}
    drawn = sample(strategies.laws("unit_norm", finite_moments=math.inf), 20)
    assert min(law.base.finite_moments for law in drawn) < math.inf  # what is bounded has all


@pytest.mark.parametrize(("asked", "simplest"), [
    ({}, "normal"), ({"family": "iid", "standard": True}, "normal"),
    ({"coupled": True}, "identical[normal]"), ({"family": "dependent"}, "identical[normal]"),
    ({"family": "transformed"}, "layer_norm[normal]"), ({"family": "student_t"}, "student_t-1"),
    ({"family": "student_t", "finite_moments": 6}, "student_t-7"),
    ({"family": "shifted"}, "shifted[normal-0]"), ({"family": "topic"}, "topic[normal-0]"),
    ({"family": "rotary", "d_k": 2}, "rotary[normal-0]"),
])
def test_laws_shrink_to_the_simplest(asked, simplest):
    assert str(find(strategies.laws(**asked))) == simplest


def test_counterexamples_are_simple():
    heavy = find(strategies.laws("iid"), lambda law: law.finite_moments < 2)
    assert str(heavy) in ("student_t-1", "stable-1")
    skew = find(strategies.laws("iid"), lambda law: not law.symmetric)
    assert str(skew) == "exponential"
    apart = find(strategies.laws("equicorrelated"), lambda law: law.rho > 0.5)
    assert str(apart) == "equicorrelated[normal-0.51]"


@pytest.mark.parametrize(("asked", "message"), [
    ({"family": "iid", "coupled": True}, "ask for less"),
    ({"family": "identical", "coupled": False}, "ask for less"),
    ({"family": "student_t", "finite_moments": math.inf}, "ask for less"),
    ({"family": "common_scale", "finite_moments": math.inf}, "ask for less"),
    ({"family": "multivariate_t", "finite_moments": 1000}, "ask for less"),
    ({"family": "unit_norm", "standard": True}, "ask for less"),
    ({"family": "rotary"}, "or give the d_k"), ({"family": "gaussian"}, "or give the d_k"),
    ({"family": "rotary", "d_k": 3}, "ask for less"),
    ({"family": "layer_norm", "d_k": 1, "standard": True}, "ask for less"),
    ({"family": "Laplace"}, "neither a family nor the name of a law; use one of iid, dependent"),
])
def test_laws_that_do_not_exist(asked, message):
    with pytest.raises(ValueError, match=message):
        strategies.laws(**asked)


# --- numbers ----------------------------------------------------------------------------------


def test_numbers_shrink_to_the_simplest():
    assert [find(s) for s in (strategies.widths(), strategies.widths(even=True),
                              strategies.widths(9, min_d_k=4), strategies.tokens(),
                              strategies.seeds(), strategies.scales())] == [1, 2, 4, 1, 0, 1.0]
    assert find(strategies.scales(), lambda scale: scale < 1) == 0.5


def test_numbers_stay_within_their_bounds_and_reach_them():
    assert set(sample(strategies.widths(5), 40)) == {1, 2, 3, 4, 5}
    assert set(sample(strategies.widths(9, even=True, min_d_k=3), 30)) == {4, 6, 8}
    assert set(sample(strategies.tokens(3), 20)) == {1, 2, 3}
    scales = strategies.scales(0.1, 10)
    assert all(0.1 <= scale <= 10 for scale in sample(scales, 40))
    for corner in (0.1, 10, 1.0, 1 / 8, 8.0):
        assert find(scales, lambda scale, corner=corner: scale == corner) == corner
    for corner in (512**-0.5, 1 / 64):
        assert find(strategies.scales(), lambda scale, corner=corner: scale == corner) == corner
    seeds = sample(strategies.seeds(), 20)
    assert min(seeds) == 0
    assert len(set(seeds)) > 1


@pytest.mark.parametrize(("make", "message"), [
    (lambda: strategies.widths(1, even=True), "no such width"),
    (lambda: strategies.widths(4, min_d_k=5), "1 <= min_d_k <= max_d_k"),
    (lambda: strategies.widths(4, min_d_k=0), "1 <= min_d_k <= max_d_k"),
    (lambda: strategies.scales(2, 3), "1 must lie between"),
    (lambda: strategies.scales(0, 3), "1 must lie between"),
    (lambda: strategies.covariances(3, "toeplitzz"), "toeplitz, diagonal, block, low_rank"),
    (lambda: strategies.score_rows(min_keys=3, max_keys=2), "no such row"),
    (lambda: strategies.score_rows(0), "no such row"),
    (lambda: strategies.score_rows(size=0), "no such row"),
    (lambda: strategies.score_rows(size=math.inf), "no such row"),
])
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- means and covariances --------------------------------------------------------------------


@pytest.mark.parametrize("d_k", [1, 2, 6])
def test_covariances_are_those_of_a_law(d_k):
    kinds = st.tuples(*[strategies.covariances(d_k, kind) for kind in (*COVARIANCES, "any")])
    for cov in itertools.chain.from_iterable(sample(kinds, 10)):
        assert cov.shape == (d_k, d_k)
        assert np.trace(cov) == pytest.approx(d_k)
        law = laws.gaussian(cov)  # refuses what is no covariance
        np.testing.assert_allclose(law.moments(d_k).cov_q, cov, atol=1e-7)


def test_covariances_are_what_their_kind_says():
    d_k = 6
    for cov in sample(strategies.covariances(d_k, "toeplitz"), 8):
        np.testing.assert_allclose(cov[1:, 1:], cov[:-1, :-1])
    for cov in sample(strategies.covariances(d_k, "diagonal"), 8):
        np.testing.assert_array_equal(cov, np.diag(np.diag(cov)))
    for cov in sample(strategies.covariances(d_k, "block"), 8):
        assert len(np.unique(cov.round(12))) <= 3
        np.testing.assert_allclose(np.diag(cov), 1)
    low_rank = sample(strategies.covariances(d_k, "low_rank"), 20)
    assert {np.linalg.matrix_rank(cov, tol=1e-9) for cov in low_rank} == {1, 2, 3, 4, 5}
    ill = sample(strategies.covariances(d_k, "ill_conditioned"), 20)
    assert all(np.linalg.cond(cov) > 0.99e6 for cov in ill)
    for turned in (low_rank, ill):
        assert {bool(np.any(cov != np.diag(np.diag(cov)))) for cov in turned} == {False, True}


def test_means_and_covariances_shrink_to_the_simplest():
    for kind in ("toeplitz", "block", "any"):
        np.testing.assert_array_equal(find(strategies.covariances(3, kind)), np.eye(3))
    np.testing.assert_array_equal(find(strategies.covariances(2, "low_rank")), np.diag([2.0, 0.0]))
    np.testing.assert_array_equal(find(strategies.means(3)), np.zeros(3))
    means = np.array(sample(strategies.means(3), 50))
    assert means.shape == (50, 3)
    assert -3 <= means.min() < -2.5
    assert 2.5 < means.max() <= 3


# --- rows of scores ---------------------------------------------------------------------------


@pytest.mark.parametrize(("masked", "condition", "corner"), [
    (False, lambda s: True, [0, 0]),
    (False, lambda s: max_weight(softmax(s)) > 0.99, [0, 5]),  # ln 99 = 4.6
    (False, lambda s: softmax(s).min() == 0, [0, 746]),  # where exp underflows
    (False, lambda s: abs(s).max() >= 1e4, [0, 1e4]),
    (False, lambda s: len(s) > 2 and len({*s}) == 1, [0, 0, 0]),
    (False, lambda s: (np.signbit(s) & (s == 0)).any(), [0, -0.0]),
    (True, lambda s: np.isneginf(s).any(), [0, -math.inf]),
    ("fully", lambda s: np.isneginf(s).all(), [-math.inf, -math.inf]),
])
def test_rows_shrink_to_their_corners(masked, condition, corner):
    found = find(strategies.score_rows(masked=masked), condition)
    assert found.tolist() == corner
    assert np.signbit(found).tolist() == np.signbit(corner).tolist()


@pytest.mark.parametrize("condition", [
    lambda s: len(s) == 2, lambda s: len(s) == 16, lambda s: len({*s}) == len(s) > 2,
    lambda s: np.isneginf(s).any(), lambda s: (s == 1e4).any(),
    lambda s: len(s) > 4 and np.isneginf(s).all(),
    lambda s: np.sum(s == s.max()) > 1,
    lambda s: softmax(s).max() == 1, lambda s: 0.5 < softmax(s).max() < 0.9999,
])
def test_many_rows_have_all_the_corners(condition, rows):
    assert any(map(condition, rows))


@pytest.fixture(scope="module")
def rows():
    return sample(strategies.score_rows(masked="fully"), 600)


@pytest.mark.parametrize("keys", [1, 16, 300])
@pytest.mark.parametrize("masked", [False, True])
def test_rows_of_given_length(keys, masked):
    rows = sample(strategies.score_rows(keys, masked=masked, size=7), 30 if keys == 1 else 10)
    assert {s.shape for s in rows} == {(keys,)}
    assert all(s.max() > -math.inf and (masked or s.min() > -math.inf) for s in rows)
    assert max(s.max() for s in rows) == 7
    assert max(len({*s}) for s in rows) > min(keys, 17) // 2


def test_weights_are_rows_of_softmax():
    assert find(strategies.weights(3)).tolist() == [1 / 3] * 3
    assert find(strategies.weights(), lambda p: p.min() == 0).tolist() == [0, 1]
    for p in sample(strategies.weights(min_keys=1, max_keys=9), 20):
        assert 1 <= len(p) <= 9
        assert p.min() >= 0
        assert p.sum() == pytest.approx(1)


# --- worlds and draws -------------------------------------------------------------------------


def test_draws_are_of_the_world_that_comes_with_them():
    for law, d_k, q, k in sample(strategies.draws(), 20):
        assert q.shape == k.shape == (*q.shape[:2], d_k)
        assert isinstance(law, laws.Law)
        with pytest.raises(ValueError, match="read-only"):
            q += k
    drawn = sample(strategies.draws(laws.normal, 3, strategies.tokens(2), 5), 20)
    assert {(law, d_k, q.shape[0]) for law, d_k, q, _ in drawn} == {(laws.normal, 3, 5)}
    assert {q.shape[1] for _, _, q, _ in drawn} == {1, 2}
    assert len({q[0, 0, 0] for _, _, q, _ in drawn}) > 1


def test_laws_of_a_draw_may_be_a_strategy_or_follow_the_width():
    drawn = sample(strategies.draws(strategies.laws("topic")), 20)
    assert {str(one.law)[:5] for one in drawn} == {"topic"}
    turned = strategies.draws(lambda d_k: strategies.laws("rotary", d_k=d_k),
                              strategies.widths(8, even=True))
    assert {one.d_k for one in sample(turned, 40)} == {2, 4, 6, 8}
    assert {str(one.law).partition("[")[0] for one in sample(turned, 10)} == {"rotary"}


def test_draws_shrink_to_one_normal_coordinate():
    arrays = find(strategies.draws(), lambda one: isinstance(one.law, Measured))
    assert arrays.law.d_k == arrays.d_k == 1  # a law of one width has that of the draw
    found = find(strategies.draws())
    assert (found.law, found.d_k, found.q.shape) == (laws.normal, 1, (1, 1, 1))
    world = find(strategies.worlds(strategies.laws(coupled=True)), lambda world: world.d_k > 2)
    assert str(world) == "identical[normal], d_k = 3, 1 tokens"


# --- the package ------------------------------------------------------------------------------


def test_without_hypothesis_the_import_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("mcverify.strategies")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'mcverify[test]'")):
        importlib.import_module("mcverify.strategies")


def test_nothing_else_in_the_package_needs_hypothesis():
    imports = re.compile(r"^\s*(?:from|import)\s.*\b(?:hypothesis|strategies)\b", re.MULTILINE)
    users = {file.relative_to(PACKAGE).parts[0] for file in PACKAGE.rglob("*.py")
             if imports.search(file.read_text(encoding="utf-8"))}
    assert users == {"strategies"}
