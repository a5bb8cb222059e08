"""Projected inputs: entries, moments at both levels, the shortcut, names; and their theory."""

import itertools
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify import laws, theory
from mcverify.attention import matched_scores, other_scores
from mcverify.laws import initialisation as init
from mcverify.laws import projected as make
from mcverify.laws.coordinates import Iid
from mcverify.laws.projected import root
from mcverify.theory import projections

INITS = [init.xavier(), init.xavier("head", "normal"), init.xavier("fused"), init.lecun(),
         init.he("uniform"), init.uniform_fan_in(), init.gaussian(0.02)]
ONES = Iid("ones", lambda rng, shape: np.ones(shape), math.nan, mean=1.0, variance=0.0)
BASES = [laws.normal, laws.exponential, laws.shifted(laws.uniform, 0.5),
         laws.equicorrelated(laws.rademacher, 0.4), laws.correlated(laws.normal, -0.5),
         laws.independent(laws.normal, laws.shifted(laws.normal, 1.0))]
MODULE = sys.modules[make.__module__]  # laws.projected itself is the law
WIDTH, D_K = 6, 3
LAWS = [make(base, how, WIDTH, gain=1.5, weights=weights, shared=shared)
        for base, how, weights, shared in itertools.product(
            BASES, (init.lecun(), init.xavier("head")), (None, 3), (True, False))]


def agree(values, expected):
    """The mean over blocks, the first axis, within 6 standard errors of what is expected."""
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    np.testing.assert_array_less(abs(values.mean(axis=0) - expected), 6 * error + 1e-12)


@pytest.mark.parametrize(("how", "variance"), [
    (init.xavier(), 1), (init.xavier("model", "normal"), 1), (init.xavier("head"), 16 / 9),
    (init.xavier("fused"), 1 / 2), (init.uniform_fan_in(), 1 / 3), (init.gaussian(0.02), 0.2048),
    (init.lecun(), 1), (init.he(), 2), (init.he("uniform"), 2),
], ids=str)
def test_variance_of_coordinates_and_scores_at_512_inputs_and_heads_of_64(how, variance):
    entry = how.variance(512, 64)
    assert projections.coordinate_variance(512, entry) == pytest.approx(variance, rel=1e-14)
    score = projections.score_variance(512, entry, 64) / 64
    assert score == pytest.approx(variance**2, rel=1e-14)
    assert theory.dot_variance(make(laws.rademacher, how, 512), 64) / 64 == pytest.approx(score)


@pytest.mark.parametrize("how", INITS, ids=str)
def test_entries_have_their_law(how):
    std = math.sqrt(how.variance(512, 64))
    w = how.draw(np.random.default_rng(1), (4, 50, 100), std)
    shape = {"normal": stats.norm(0, std), "uniform": stats.uniform(-3**0.5 * std, 12**0.5 * std)}
    expected = shape[how.distribution]
    assert stats.kstest(w.ravel(), expected.cdf).pvalue > 1e-6
    assert expected.stats(moments="k") + 3 == pytest.approx(how.fourth_moment)
    assert expected.var() == pytest.approx(how.variance(512, 64))
    if how.name == "uniform_fan_in":
        assert expected.support()[1] == pytest.approx(1 / math.sqrt(512))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("tokens", [2, 7])  # with the shortcut of normal weights, and without
def test_declared_moments_are_those_of_the_draws(law, tokens):
    q, k = law.draw(np.random.default_rng(2), 2000, tokens, D_K)
    m = law.moments(D_K)
    agree(q.mean(axis=1), m.mean_q)
    agree(k.mean(axis=1), m.mean_k)
    for a, b, mean_a, mean_b, cov in ((q, q, m.mean_q, m.mean_q, m.cov_q),
                                      (k, k, m.mean_k, m.mean_k, m.cov_k),
                                      (q, k, m.mean_q, m.mean_k, m.cross)):
        agree(np.swapaxes(a, 1, 2) @ b / tokens, np.outer(mean_a, mean_b) + cov)


@pytest.mark.parametrize("shared", [True, False])
def test_fixed_weights_have_the_moments_of_all_inputs_counted_one_by_one(shared):
    moved = laws.shifted(laws.rademacher, 0.5)
    law = make(moved, init.xavier("fused", "normal"), 3, weights=7, shared=shared)
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
    law = make(base, how, width, gain=gain, shared=shared)
    second = base.moments(1).cov_q[0, 0] + base.moments(1).mean_q[0] ** 2
    found = theory.dot_variance(law, d_k)
    assert found == pytest.approx(
        projections.score_variance(width, law.weight_variance(d_k), d_k, second))
    assert found == pytest.approx(gain**4 * theory.dot_variance(replace(law, gain=1.0), d_k))
    assert theory.matched_mean(law, d_k) == theory.dot_mean(law, d_k) == 0


@given(st.sampled_from(INITS), st.integers(1, 9), st.integers(1, 5), st.integers(1, 9),
       st.integers(1, 9), st.none() | st.integers(0, 2**40), st.booleans(), st.integers(0, 2**32))
def test_draws_follow_shape_and_seed(how, width, blocks, tokens, d_k, weights, shared, seed):
    law = make(laws.laplace, how, width, weights=weights, shared=shared)
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
    found = root(x)
    assert found.shape == (3, tokens, tokens)
    np.testing.assert_allclose(found @ found.swapaxes(1, 2), x @ x.swapaxes(1, 2), atol=1e-11)


@pytest.mark.parametrize("how", [init.lecun(), init.xavier()], ids=str)
@pytest.mark.parametrize("batch", [1, 2**18])
def test_a_block_has_its_own_weights_and_all_its_tokens_share_them(how, batch, monkeypatch):
    monkeypatch.setattr(MODULE, "BATCH", batch)
    q, k = make(ONES, how, 8).draw(np.random.default_rng(3), 4000, 4, 5)
    for x in (q, k):  # the input never changes, so what does are the weights
        np.testing.assert_allclose(x, np.broadcast_to(x[:, :1], x.shape), atol=1e-13)
        assert len(np.unique(x[:, 0])) == 20_000
        agree(x[:, 0] ** 2, 1.0)
        agree((x[:, 0] ** 4).mean(axis=1), 3 + (how.fourth_moment - 3) / 8)
    agree(q[:-1, 0] * q[1:, 0], 0.0)
    agree(q[:, 0] * k[:, 0], 0.0)
    q, k = make(ONES, how, 8, weights=3).draw(np.random.default_rng(3), 400, 4, 5)
    np.testing.assert_allclose(q, np.broadcast_to(q[0, 0], q.shape), atol=1e-13)


@pytest.mark.parametrize("weights", [None, 11])
@pytest.mark.parametrize("tokens", [3, 40])
def test_scores_do_not_depend_on_how_blocks_are_drawn_together(weights, tokens, monkeypatch):
    law = make(laws.normal, init.lecun(), 16, weights=weights)
    expected = theory.dot_variance(law, 4)
    whole = law.draw(np.random.default_rng(4), 600, tokens, 4)
    monkeypatch.setattr(MODULE, "BATCH", 3000)
    batches = law.draw(np.random.default_rng(5), 600, tokens, 4)
    rng = np.random.default_rng(6)
    single = [law.draw(rng, 1, tokens, 4) for _ in range(600)]
    for q, k in (whole, batches, map(np.concatenate, zip(*single, strict=True))):
        agree((other_scores(q, k) ** 2).mean(axis=(1, 2)), expected)


@pytest.mark.parametrize("how", [init.he(), init.he("uniform")], ids=str)
@pytest.mark.parametrize("tokens", [2, 8])
def test_a_token_scores_itself_with_the_fourth_moment_of_its_length(how, tokens):
    law = make(laws.exponential, how, 4)
    q, k = law.draw(np.random.default_rng(7), 20_000, tokens, 3)
    v = law.weight_variance(3)
    s = matched_scores(q, k)
    agree(s.mean(axis=1), 0.0)
    agree((s**2).mean(axis=1), projections.matched_score_variance(4, v, 3, fourth_moment=9.0))
    agree((other_scores(q, k) ** 2).mean(axis=(1, 2)), projections.score_variance(4, v, 3))


def test_at_fixed_weights_a_token_scores_itself_with_a_mean():
    law = make(laws.uniform, init.lecun(), 8, weights=1)
    w_q, w_k = law.weights_at(4)
    expected = np.trace(w_q.T @ w_k)
    assert theory.matched_mean(law, 4) == pytest.approx(expected)
    q, k = law.draw(np.random.default_rng(8), 4000, 5, 4)
    agree(matched_scores(q, k).mean(axis=1), expected)
    agree(other_scores(q, k).mean(axis=(1, 2)), 0.0)
    crossed = replace(law, shared=False)
    q, k = crossed.draw(np.random.default_rng(8), 4000, 5, 4)
    agree(matched_scores(q, k).mean(axis=1), 0.0)
    assert abs(expected) > 0.3


def test_coupling_is_that_of_a_shared_input_or_of_the_base():
    assert make(laws.normal, init.lecun(), 8).coupled
    assert not make(laws.normal, init.lecun(), 8, shared=False).coupled
    assert make(laws.identical(laws.normal), init.lecun(), 8, shared=False).coupled


def all_weights(values, shares, fan_in, d_k):
    """Every (fan_in, d_k) matrix with such entries, and its probability."""
    chosen = np.array(list(itertools.product(range(len(values)), repeat=fan_in * d_k)))
    return (np.array(values)[chosen].reshape(-1, fan_in, d_k),
            np.array(shares)[chosen].prod(axis=1))


@pytest.mark.parametrize(("values", "shares"), [
    ([-1, 1], [1 / 2, 1 / 2]), ([-2, 0, 2], [1 / 8, 3 / 4, 1 / 8]),
    # Three nodes of Gauss and Hermite: moments of the normal law up to the fifth, all that count.
    ([-math.sqrt(3), 0, math.sqrt(3)], [1 / 6, 2 / 3, 1 / 6]),
], ids=["coin", "ternary", "normal"])
@pytest.mark.parametrize(("fan_in", "d_k"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)])
def test_spread_over_weights_against_all_weights(values, shares, fan_in, d_k):
    w, p = all_weights(values, shares, fan_in, d_k)
    m = 0.7  # Σ = m·I
    gram = m * np.swapaxes(w, 1, 2) @ w
    variances = np.einsum("aij,bij->ab", gram, gram)  # rows: W_Q, columns: W_K
    joint = np.outer(p, p)
    v = float(np.square(values) @ np.array(shares))
    mean = float((joint * variances).sum())
    assert mean == pytest.approx(projections.score_variance(fan_in, v, d_k, m), rel=1e-12)
    relative = math.sqrt(max(float((joint * variances**2).sum()) / mean**2 - 1, 0.0))
    fourth = float(np.power(values, 4) @ np.array(shares)) / v**2
    assert projections.relative_spread(fan_in, d_k, fourth) == pytest.approx(relative, abs=1e-7)
    trace = m * np.einsum("aij,bij->ab", w, w)
    assert projections.matched_mean_spread(fan_in, v, d_k, m) == pytest.approx(
        math.sqrt(float((joint * trace**2).sum())), rel=1e-12)


@pytest.mark.parametrize(("x", "y"), [([-1, 1], [.5, .5]), ([-2, 0, 2], [.125, .75, .125])])
@pytest.mark.parametrize(("fan_in", "d_k"), [(1, 1), (2, 1), (1, 2)])
def test_matched_variance_against_all_inputs_and_weights(x, y, fan_in, d_k):
    w, p = all_weights([-1, 0, 1], [0.1, 0.8, 0.1], fan_in, d_k)
    total = 0.0
    for chosen in itertools.product(range(len(x)), repeat=fan_in):
        q = np.array(x, float)[list(chosen)] @ w
        weight = np.prod(np.array(y)[list(chosen)])
        total += weight * float(np.outer(p, p).ravel() @ ((q @ q.T) ** 2).ravel())
    second, fourth = (float(np.power(x, n) @ np.array(y)) for n in (2, 4))
    assert total == pytest.approx(projections.matched_score_variance(
        fan_in, 0.2, d_k, second, fourth / second**2), rel=1e-12)


@pytest.mark.parametrize(("how", "rho"), [
    (init.lecun(), 0.0), (init.lecun("uniform"), 0.0), (init.lecun(), 0.5)])
def test_fixed_weights_lie_off_the_average_by_the_predicted_spread(how, rho):
    fan_in, d_k, draws = 12, 3, 1500
    base = laws.equicorrelated(laws.normal, rho) if rho else laws.normal
    law = make(base, how, fan_in)
    average = theory.dot_variance(law, d_k)
    ratios = np.array([theory.dot_variance(replace(law, weights=seed), d_k) / average
                       for seed in range(draws)])
    cov = base.moments(fan_in).cov_q
    effective = float(np.trace(cov) ** 2 / np.sum(cov**2))
    spread = projections.relative_spread(effective, d_k, how.fourth_moment)
    agree(ratios, 1.0)
    agree((ratios - 1) ** 2, spread**2)
    if not rho:
        means = np.array([theory.matched_mean(replace(law, weights=seed), d_k)
                          for seed in range(draws)])
        agree(means, 0.0)
        agree(means**2, projections.matched_mean_spread(fan_in, law.weight_variance(d_k), d_k)**2)


@pytest.mark.parametrize("change", [
    {"weights": 4}, {"weights": None}, {"gain": 2.0000001}, {"width": 9}, {"shared": False},
    {"initialisation": init.lecun("uniform")}, {"initialisation": init.xavier("head", "normal")},
    {"initialisation": init.xavier("fused", "normal")}, {"base": laws.laplace},
], ids=str)
def test_what_determines_the_draws_stands_in_the_name(change):
    law = make(laws.normal, init.lecun(), 8, gain=2.0, weights=3)
    other = replace(law, **change)
    assert law != other
    assert str(law) != str(other)
    drawn = (x.draw(np.random.default_rng(9), 2, 3, 5) for x in (law, other))
    assert not np.array_equal(*(np.stack(pair) for pair in drawn))


def test_projected_laws_are_values():
    law = make(laws.normal, init.xavier("head"), 512, gain=0.5, weights=3, shared=False)
    assert law == make(laws.normal, init.xavier("head"), 512, gain=0.5, weights=3, shared=False)
    assert len({law, replace(law), replace(law, weights=2)}) == 2
    assert str(law) == "projected[normal-xavier_uniform_head-512-gain:0.5-weights:3-cross]"
    assert isinstance(law, laws.Law)
    assert make(laws.student_t(5), init.he(), 8).finite_moments == 5


def test_weights_stay_those_of_their_seed_and_take_part_in_nothing_else():
    law = make(laws.normal, init.lecun(), 8, weights=3)
    w_q, w_k = law.weights_at(4)
    expected = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(8, 4)))
    np.testing.assert_allclose(np.stack([w_q, w_k]) * math.sqrt(8),
                               expected.standard_normal((2, 8, 4)), rtol=1e-15)
    np.testing.assert_array_equal(w_q, replace(law, base=laws.laplace).weights_at(4)[0])
    np.testing.assert_allclose(replace(law, gain=3.0).weights_at(4), [3 * w_q, 3 * w_k])


def test_moments_that_do_not_exist_are_declared_so():
    for weights in (None, 1):
        m = make(laws.student_t(2), init.lecun(), 4, weights=weights).moments(3)
        assert not np.isfinite(np.diag(m.cov_q)).any()


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: make("normal", init.lecun(), 8), "is not a law"),
    (lambda: make(laws.normal, init.lecun, 8), r"xavier\(\)"),
    (lambda: make(laws.normal, init.lecun(), 0), "at least 1"),
    (lambda: make(laws.normal, init.lecun(), 8.0), "whole number"),
    (lambda: make(laws.normal, init.lecun(), 8, gain=0), "gain must be positive"),
    (lambda: make(laws.normal, init.lecun(), 8, weights=-1), "must be a seed"),
    (lambda: make(laws.normal, init.lecun(), 8, weights=True), "must be a seed"),
    (lambda: make(laws.normal, init.lecun(), 8).weights_at(4), "weights=seed"),
    (lambda: init.gaussian(0), "positive and finite"),
    (lambda: init.xavier("square"), "'model', 'head', 'fused'"),
    (lambda: init.he("laplace"), "'normal', 'uniform'"),
    (lambda: init.Initialisation("mine", 1.0, "out"), "'in', 'average', 'none'"),
    (lambda: init.Initialisation("mine", math.nan, "in"), "positive and finite"),
])
def test_what_is_wrong_is_said(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
