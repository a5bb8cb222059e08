"""Other ways from scores to weights: exact values, limits, and what holds for all scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcverify.attention import (
    alibi_bias,
    alibi_slopes,
    causal_rows,
    cosines,
    differential_weights,
    entropy,
    outputs,
    scalable_softmax,
    score_gradient,
    scores,
    sigmoid_weights,
    soft_cap,
    softmax,
    top_share,
)

TYPES = [np.float16, np.float32, np.float64]
rows = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 9)),
              elements=st.floats(-30, 30))
squares = st.integers(1, 6).flatmap(lambda t: arrays(np.float64, (2, t, 3),
                                                     elements=st.floats(-3, 3)))


@given(rows, st.floats(-5, 5))
def test_sigmoid_weights_look_at_one_score_at_a_time(s, bias):
    p = sigmoid_weights(s, bias)
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-s - bias)), rtol=1e-12)
    np.testing.assert_allclose(p + sigmoid_weights(-s, -bias), 1)
    np.testing.assert_array_equal(p[:, :1], sigmoid_weights(s[:, :1], bias))


def test_sigmoid_weights_of_equal_scores_sum_nearly_to_one():
    assert float(sigmoid_weights(np.zeros(1000)).sum()) == pytest.approx(1000 / 1001)


@given(rows, st.floats(0.1, 1e3))
def test_a_cap_bounds_scores_and_keeps_their_order_and_sign(s, cap):
    capped = soft_cap(s, cap)
    assert (np.abs(capped) <= np.minimum(cap, np.abs(s) * (1 + 1e-12) + 1e-300)).all()
    np.testing.assert_allclose(soft_cap(-s, cap), -capped)
    order = np.argsort(s, axis=-1)
    assert (np.diff(np.take_along_axis(capped, order, -1), axis=-1) >= 0).all()
    np.testing.assert_allclose(soft_cap(s, 1e9), s, atol=1e-6)


@pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan])
def test_caps_that_are_refused(cap):
    with pytest.raises(ValueError, match="positive and finite"):
        soft_cap([1.0], cap)


@given(rows, st.floats(0, 2))
def test_scalable_softmax_is_softmax_at_a_temperature_of_the_length(s, strength):
    n = s.shape[-1]
    np.testing.assert_allclose(scalable_softmax(s, strength), softmax(strength * np.log(n) * s),
                               atol=1e-12)
    # A row that is one of 0 among zeros: n^strength against n − 1 ones.
    one = scalable_softmax(np.eye(9)[0], strength)
    assert one[0] == pytest.approx(9**strength / (9**strength + 8))


@given(rows, st.floats(0, 1))
def test_differential_weights_sum_to_what_is_left(s, strength):
    w = differential_weights(s, s[:, ::-1], strength)
    np.testing.assert_allclose(w.sum(-1), 1 - strength, atol=1e-12)
    np.testing.assert_allclose(differential_weights(s, s, strength), (1 - strength) * softmax(s),
                               atol=1e-15)


@pytest.mark.parametrize("dtype", TYPES)
def test_variants_answer_in_the_type_given(dtype):
    s = np.array([[0.5, -1.0, 2.0]], dtype=dtype)
    for p in (sigmoid_weights(s), soft_cap(s, 2.0), scalable_softmax(s, 0.5),
              differential_weights(s, s, 0.5), causal_rows(s, s), score_gradient(softmax(s), s)):
        assert p.dtype == dtype
    assert sigmoid_weights([1, 2]).dtype == np.float64


@given(squares)
def test_a_causal_row_is_the_full_row_of_a_shorter_sequence(x):
    p = softmax(causal_rows(x, x, 0.5))
    for i in range(x.shape[1]):
        np.testing.assert_allclose(p[:, i, :i + 1], softmax(scores(x, x, 0.5)[:, i, :i + 1]))
        assert (p[:, i, i + 1:] == 0).all()
    assert (entropy(p)[:, 0] == 0).all()
    places = np.array([[x.shape[1] - 1, 0], [0, 0]])
    np.testing.assert_allclose(
        causal_rows(x, x, 0.5, places), np.take_along_axis(causal_rows(x, x, 0.5),
                                                           places[..., None], axis=1))


@given(st.integers(1, 12), st.floats(0, 3))
def test_alibi_falls_by_its_slope_and_masks_what_comes_later(tokens, slope):
    bias = alibi_bias(tokens, slope)
    assert (np.diag(bias) == 0).all()
    before = np.tri(tokens, dtype=bool)
    assert np.isneginf(bias[~before]).all()
    np.testing.assert_allclose(np.diff(bias[-1]), slope, atol=1e-12)
    # A Toeplitz matrix: weights of equal scores depend on the distance alone.
    np.testing.assert_array_equal(bias[1:, 1:], bias[:-1, :-1])
    np.testing.assert_array_equal(alibi_bias(tokens, slope, queries=1), bias[-1:])


def test_alibi_slopes_of_the_paper():
    np.testing.assert_array_equal(alibi_slopes(8), 0.5 ** np.arange(1, 9))
    assert alibi_slopes(16)[0] == pytest.approx(2**-0.5)
    for slope in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="not negative"):
            alibi_bias(2, slope)


@given(rows, st.integers(0, 2**32))
def test_outputs_of_uniform_weights_are_the_mean_value(s, seed):
    v = np.random.default_rng(seed).standard_normal((s.shape[-1], 4))
    o = outputs(np.full(s.shape, 1 / s.shape[-1]), v)
    np.testing.assert_allclose(o, np.broadcast_to(v.mean(0), o.shape), atol=1e-12)
    np.testing.assert_allclose(cosines(o), np.ones((len(o), len(o))))


def test_outputs_need_a_value_for_each_key():
    with pytest.raises(ValueError, match="a value for each key"):
        outputs(np.ones((2, 3)), np.ones((2, 4)))


# Half of the least number there is would be 0.
@given(arrays(np.float64, (4, 3), elements=st.floats(-5, 5, allow_subnormal=False)),
       st.floats(0.1, 10))
def test_cosines_ignore_lengths(x, factor):
    c = cosines(x)
    assert (np.abs(c) <= 1 + 1e-12).all()
    np.testing.assert_allclose(cosines(factor * x), c, atol=1e-9)


@given(rows, st.floats(0.01, 1))
def test_top_share_is_that_of_sorted_weights(s, share):
    p = softmax(s)
    count = math.ceil(share * p.shape[-1] - 1e-9)
    expected = np.sort(p, axis=-1)[:, ::-1][:, :count].sum(-1)
    np.testing.assert_allclose(top_share(p, share), expected)
    np.testing.assert_allclose(top_share(p, 1.0), 1)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_shares_that_are_refused(share):
    with pytest.raises(ValueError, match="above 0"):
        top_share([1.0], share)


@given(rows, st.integers(0, 2**32))
def test_score_gradient_is_that_of_a_weighted_sum(s, seed):
    """∂(p·g)/∂s by a difference, and no gradient along a constant."""
    g, h = np.random.default_rng(seed).standard_normal(s.shape), 1e-6
    found = score_gradient(softmax(s), g)
    np.testing.assert_allclose(found.sum(-1), 0, atol=1e-12)
    step = np.eye(s.shape[-1])[0] * h
    loss = [(softmax(s + sign * step) * g).sum(-1) for sign in (1, -1)]
    np.testing.assert_allclose(found[:, 0], (loss[0] - loss[1]) / (2 * h), atol=1e-6)
