"""Inputs projected by initialised weights: entries, the shortcut of normal weights, names."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from agreement import assert_drawn_from, assert_mean
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify import laws, theory
from mcverify.attention import other_scores
from mcverify.laws import initialisation as init
from mcverify.laws import projected, projection
from mcverify.laws.coordinates import Iid
from mcverify.theory import projections

INITS = [init.xavier(), init.xavier("head", "normal"), init.xavier("fused"), init.lecun(),
         init.he("uniform"), init.uniform_fan_in(), init.gaussian(0.02)]
ONES = Iid("ones", lambda rng, shape: np.ones(shape), math.nan, mean=1.0, variance=0.0)
BASES = [laws.normal, laws.exponential, laws.shifted(laws.uniform, 0.5),
         laws.equicorrelated(laws.rademacher, 0.4), laws.correlated(laws.normal, -0.5),
         laws.independent(laws.normal, laws.shifted(laws.normal, 1.0))]


@pytest.mark.parametrize("how", INITS, ids=str)
def test_entries_have_their_law(how):
    std = math.sqrt(how.variance(512, 64))
    w = how.draw(np.random.default_rng(1), (4, 50, 100), std)
    shape = {"normal": stats.norm(0, std), "uniform": stats.uniform(-3**0.5 * std, 12**0.5 * std)}
    expected = shape[how.distribution]
    assert_drawn_from(w, expected)
    assert expected.stats(moments="k") + 3 == pytest.approx(how.fourth_moment)
    assert expected.var() == pytest.approx(how.variance(512, 64))
    if how.name == "uniform_fan_in":
        assert expected.support()[1] == pytest.approx(1 / math.sqrt(512))


@pytest.mark.parametrize("shared", [True, False])
def test_fixed_weights_have_the_moments_of_all_inputs_counted_one_by_one(shared):
    moved = laws.shifted(laws.rademacher, 0.5)
    law = projected(moved, init.xavier("fused", "normal"), 3, weights=7, shared=shared)
    w_q, w_k = law.weights_at(2)
    x_q = x_k = np.array(list(itertools.product([-0.5, 1.5], repeat=3)))
    if not shared:
        x_q, x_k = np.repeat(x_q, 8, axis=0), np.tile(x_k, (8, 1))
    joint = np.cov(np.hstack([x_q @ w_q, x_k @ w_k]).T, bias=True)
    m = law.moments(2)
    np.testing.assert_allclose(m.mean_q, (x_q @ w_q).mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(m.mean_k, (x_k @ w_k).mean(axis=0), atol=1e-14)
    declared = np.block([[m.cov_q, m.cross], [m.cross.T, m.cov_k]])
    np.testing.assert_allclose(declared, joint, atol=1e-14)
    assert theory.matched_mean(law, 2) == pytest.approx(
        np.mean(np.sum((x_q @ w_q) * (x_k @ w_k), axis=1)))


@given(st.sampled_from(INITS), st.integers(1, 20), st.integers(1, 9), st.floats(0.1, 3),
       st.sampled_from(BASES[:3]), st.booleans())
def test_both_levels_together_give_the_closed_form(how, width, d_k, gain, base, shared):
    law = projected(base, how, width, gain=gain, shared=shared)
    second = base.moments(1).cov_q[0, 0] + base.moments(1).mean_q[0] ** 2
    found = theory.dot_variance(law, d_k)
    assert found == pytest.approx(
        projections.score_variance(width, law.weight_variance(d_k), d_k, second))
    assert found == pytest.approx(gain**4 * theory.dot_variance(replace(law, gain=1.0), d_k))
    assert theory.matched_mean(law, d_k) == theory.dot_mean(law, d_k) == 0


@given(st.sampled_from(INITS), st.integers(1, 9), st.integers(1, 5), st.integers(1, 9),
       st.integers(1, 9), st.none() | st.integers(0, 2**40), st.booleans(), st.integers(0, 2**32))
def test_draws_follow_shape_and_seed(how, width, blocks, tokens, d_k, weights, shared, seed):
    law = projected(laws.laplace, how, width, weights=weights, shared=shared)
    first, second = (law.draw(np.random.default_rng(seed), blocks, tokens, d_k) for _ in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.shape == (blocks, tokens, d_k)
        assert a.dtype == np.float64
        assert a.base is None
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(*first)
    if weights is not None:
        x = laws.laplace.sample(np.random.default_rng(seed), (blocks, tokens, width))
        np.testing.assert_array_equal(first[0], x @ law.weights_at(d_k)[0])
        if shared:
            np.testing.assert_array_equal(first[1], x @ law.weights_at(d_k)[1])


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32), st.booleans())
def test_a_root_has_the_products_of_the_inputs(tokens, more, seed, singular):
    x = np.random.default_rng(seed).standard_normal((3, tokens, tokens + more))
    if singular:
        x[:, -1] = x[:, 0]
        x[1] = 0
    found = projection.root(x)
    assert found.shape == (3, tokens, tokens)
    np.testing.assert_allclose(found @ found.swapaxes(1, 2), x @ x.swapaxes(1, 2), atol=1e-11)


@pytest.mark.parametrize("how", [init.lecun(), init.xavier()], ids=str)
@pytest.mark.parametrize("batch", [1, 2**18])
def test_a_block_has_its_own_weights_and_all_its_tokens_share_them(how, batch, monkeypatch):
    monkeypatch.setattr(projection, "BATCH", batch)
    q, k = projected(ONES, how, 8).draw(np.random.default_rng(3), 4096, 4, 5)
    for x in (q, k):  # the input never changes, so what does are the weights
        np.testing.assert_allclose(x, np.broadcast_to(x[:, :1], x.shape), atol=1e-13)
        assert len(np.unique(x[:, 0])) == 4096 * 5
        assert_mean((x[:, 0] ** 2).mean(axis=1), 1.0)
    assert_mean((q[:-1:2, 0] * q[1::2, 0]).mean(axis=1), 0.0)
    assert_mean((q[:, 0] * k[:, 0]).mean(axis=1), 0.0)
    q, k = projected(ONES, how, 8, weights=3).draw(np.random.default_rng(3), 400, 4, 5)
    np.testing.assert_allclose(q, np.broadcast_to(q[0, 0], q.shape), atol=1e-13)


@pytest.mark.parametrize(("weights", "tokens"), [(None, 40), (11, 40)])
def test_scores_do_not_depend_on_how_blocks_are_drawn_together(weights, tokens, monkeypatch):
    law = projected(laws.normal, init.lecun(), 16, weights=weights)

    def squares(q, k):
        return (other_scores(q, k) ** 2).mean(axis=(1, 2))

    def one_by_one(blocks):
        rng = np.random.default_rng(6)
        return np.concatenate([squares(*law.draw(rng, 1, tokens, 4)) for _ in range(blocks)])

    for batch in (projection.BATCH, 3000):
        monkeypatch.setattr(projection, "BATCH", batch)
        together = squares(*law.draw(np.random.default_rng(4), 2**11, tokens, 4))
        assert_mean(together, theory.dot_variance(law, 4))
    assert_mean(one_by_one(2**11), theory.dot_variance(law, 4))


def test_coupling_is_that_of_a_shared_input_or_of_the_base():
    assert projected(laws.normal, init.lecun(), 8).coupled
    assert not projected(laws.normal, init.lecun(), 8, shared=False).coupled
    assert projected(laws.identical(laws.normal), init.lecun(), 8, shared=False).coupled


@pytest.mark.parametrize("change", [
    {"weights": 4}, {"weights": None}, {"gain": 2.0000001}, {"width": 9}, {"shared": False},
    {"initialisation": init.lecun("uniform")}, {"initialisation": init.xavier("head", "normal")},
    {"initialisation": init.xavier("fused", "normal")}, {"base": laws.laplace},
], ids=str)
def test_what_determines_the_draws_stands_in_the_name(change):
    law = projected(laws.normal, init.lecun(), 8, gain=2.0, weights=3)
    other = replace(law, **change)
    assert law != other
    assert str(law) != str(other)
    drawn = (x.draw(np.random.default_rng(9), 2, 3, 5) for x in (law, other))
    assert not np.array_equal(*(np.stack(pair) for pair in drawn))


def test_weights_stay_those_of_their_seed_and_take_part_in_nothing_else():
    law = projected(laws.normal, init.lecun(), 8, weights=3)
    w_q, w_k = law.weights_at(4)
    expected = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(8, 4)))
    np.testing.assert_allclose(np.stack([w_q, w_k]) * math.sqrt(8),
                               expected.standard_normal((2, 8, 4)), rtol=1e-15)
    np.testing.assert_array_equal(w_q, replace(law, base=laws.laplace).weights_at(4)[0])
    np.testing.assert_allclose(replace(law, gain=3.0).weights_at(4), [3 * w_q, 3 * w_k])


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: projected("normal", init.lecun(), 8), "is not a law"),
    (lambda: projected(laws.normal, init.lecun, 8), r"xavier\(\)"),
    (lambda: projected(laws.normal, init.lecun(), 0), "at least 1"),
    (lambda: projected(laws.normal, init.lecun(), 8.0), "whole number"),
    (lambda: projected(laws.normal, init.lecun(), 8, gain=0), "gain must be positive"),
    (lambda: projected(laws.normal, init.lecun(), 8, weights=-1), "must be a seed"),
    (lambda: projected(laws.normal, init.lecun(), 8, weights=True), "must be a seed"),
    (lambda: projected(laws.normal, init.lecun(), 8).weights_at(4), "weights=seed"),
    (lambda: init.gaussian(0), "positive and finite"),
    (lambda: init.xavier("square"), "'model', 'head', 'fused'"),
    (lambda: init.he("laplace"), "'normal', 'uniform'"),
    (lambda: init.Initialisation("mine", 1.0, "out"), "'in', 'average', 'none'"),
    (lambda: init.Initialisation("mine", math.nan, "in"), "positive and finite"),
])
def test_what_is_wrong_is_said(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
