"""Additive scores against a loop over pairs, their variance against quadrature and draws."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify.attention import additive_scores
from mcverify.attention.chunk import Chunk
from mcverify.theory.additive import additive_variance


def drawn(seed, blocks, tokens, d_k, width, own=(True, True, True)):
    """q, k, w_q, w_k, v; ``own`` says which weights each block has for itself."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, blocks, tokens, d_k))
    lead = [(blocks,) if mine else () for mine in own]
    w_q, w_k = (rng.standard_normal((*first, d_k, width)) / math.sqrt(d_k) for first in lead[:2])
    return q, k, w_q, w_k, rng.standard_normal((*lead[2], width))


@given(st.tuples(*[st.integers(1, 4)] * 4), st.tuples(*[st.booleans()] * 3), st.integers(0, 2**32))
def test_additive_scores_are_those_of_each_pair(shape, own, seed):
    q, k, w_q, w_k, v = drawn(seed, *shape, own=own)
    found = additive_scores(q, k, w_q, w_k, v)
    assert found.shape == (*q.shape[:2], k.shape[1])
    for b, i, j in np.ndindex(found.shape):
        in_q, in_k, out = (w[b] if mine else w for w, mine in zip((w_q, w_k, v), own, strict=True))
        hidden = [math.tanh(sum(q[b, i] * in_q[:, m]) + sum(k[b, j] * in_k[:, m]))
                  for m in range(len(out))]
        assert found[b, i, j] == pytest.approx(sum(out * hidden), rel=1e-12, abs=1e-14)


@given(st.integers(0, 2**32), st.floats(0, 1e6))
def test_additive_scores_are_odd_and_bounded_by_the_output_weights(seed, size):
    q, k, w_q, w_k, v = drawn(seed, 2, 3, 4, 5)
    found = additive_scores(size * q, size * k, w_q, w_k, v)
    np.testing.assert_array_equal(additive_scores(-size * q, -size * k, w_q, w_k, v), -found)
    assert (np.abs(found) <= np.abs(v).sum(-1)[:, None, None] * (1 + 1e-14)).all()
    np.testing.assert_allclose(additive_scores(k, q, w_k, w_q, v),
                               np.swapaxes(additive_scores(q, k, w_q, w_k, v), 1, 2), rtol=1e-12)


def test_queries_and_keys_may_differ_in_number_and_width():
    q, _, w_q, _, v = drawn(1, 2, 3, 4, 6)
    _, k, _, w_k, _ = drawn(2, 2, 5, 7, 6)
    found = additive_scores(q, k, w_q, w_k, v)
    assert found.shape == (2, 3, 5)
    one = additive_scores(q[:, 1:2], k[:, 4:], w_q, w_k, v)
    np.testing.assert_allclose(found[:, 1:2, 4:], one, rtol=1e-12)
    single = additive_scores(*(x.astype(np.float32) for x in (q, k, w_q, w_k, v)))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, found, atol=1e-5)


def test_the_memory_is_that_of_one_hidden_layer():
    arguments = drawn(0, 2, 64, 8, 32)
    tracemalloc.start()
    additive_scores(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1 <= peak / (8 * 2 * 64**2 * 32) < 1.2


def test_all_pairs_can_be_refused():
    q, k, *weights = drawn(0, 1, 2, 3, 4)
    chunk = Chunk(q, k, "fix tokens")
    with pytest.raises(ValueError, match="fix tokens"):
        additive_scores(chunk.q, chunk.k, *weights)


@pytest.mark.parametrize(("place", "shape", "message"), [
    (0, (3,), "same blocks"), (1, (1, 3, 4), "same blocks"), (0, (2, 3, 5), "w_q has shape"),
    (2, (5, 4), "transpose"), (3, (3, 4, 5), "w_k has shape"), (3, (4,), "w_k has shape"),
    (3, (4, 6), "same width"), (4, (6,), "same width"), (4, (3, 5), "same width"),
    (4, (), "same width")])
def test_shapes_that_do_not_fit_are_refused(place, shape, message):
    arguments = list(drawn(0, 2, 3, 4, 5))
    arguments[place] = np.zeros(shape)
    with pytest.raises(ValueError, match=message):
        additive_scores(*arguments)


def mean_tanh_squares(density):
    return float(2 * mpmath.quad(lambda z: density(z) * mpmath.tanh(z) ** 2, [0, 1, 3, 8, 20, 60]))


def test_variance_of_fixed_norms_by_quadrature_over_the_normal_law():
    expected = mean_tanh_squares(lambda z: mpmath.exp(-(z**2) / 4) / mpmath.sqrt(4 * mpmath.pi))
    assert additive_variance(3, 0.5) == pytest.approx(1.5 * expected, rel=1e-12)
    assert additive_variance(3, 0.5, 10**15) == pytest.approx(1.5 * expected, rel=1e-12)


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
def test_variance_of_normal_vectors_by_quadrature_over_a_bessel_law(d_k):
    """z√d_k is r·N(0, 1) with r² ~ χ²(2d_k): the law of a q·k of 2d_k coordinates."""

    def density(z):
        y, order = abs(z) * mpmath.sqrt(d_k), d_k - mpmath.mpf(1) / 2
        bessel = (y / 2) ** order * mpmath.besselk(order, y)
        return mpmath.sqrt(d_k) * bessel / (mpmath.sqrt(mpmath.pi) * mpmath.gamma(d_k))

    assert additive_variance(1, 1.0, d_k) == pytest.approx(mean_tanh_squares(density), rel=1e-12)


def test_variance_in_one_dimension_is_that_of_a_laplace_variable():
    """With t = e^−|z|, E sech² is the integral of 4t²/(1 + t²)² over [0, 1], π/2 − 1."""
    assert additive_variance(5, 2.0, d_k=1) == pytest.approx(10 * (2 - math.pi / 2), rel=1e-14)


@given(st.integers(1, 10**6), st.integers(1, 1000), st.floats(1e-9, 10))
def test_variance_grows_with_the_width_of_heads_to_that_of_fixed_norms(d_k, width, output):
    values = [additive_variance(width, output, d) for d in (d_k, 2 * d_k, None)]
    assert values == sorted(values)
    assert values[0] >= 0.8 * values[2]
    assert values[2] <= width * output


@pytest.mark.parametrize(("law", "d_k", "known"), [("coins", 3, None), ("normal", 1, 1),
                                                   ("normal", 2, 2), ("normal", 64, 64)])
def test_variance_of_draws_with_weights_of_their_own(law, d_k, known):
    blocks, width = 20_000 if d_k < 64 else 4000, 4
    q, k, w_q, w_k, v = drawn(5, blocks, 2, d_k, width)
    if law == "coins":
        q, k = np.sign(q), np.sign(k)
    squares = (additive_scores(q, k, w_q, w_k, v * math.sqrt(0.3)) ** 2).mean(axis=(1, 2))
    stderr = squares.std() / math.sqrt(blocks)
    assert abs(squares.mean() - additive_variance(width, 0.3, known)) < 6 * stderr
    assert stderr < 0.03 * squares.mean()  # so that a wrong variance of z would show


def test_output_weights_of_no_variance_give_no_scores():
    assert additive_variance(3, 0.0) == 0


def test_arguments_of_the_variance_that_are_refused():
    for bad in [(0, 1.0), (2, -1.0), (2, math.nan), (2, 1.0, 0)]:
        with pytest.raises(ValueError, match="additive_variance"):
            additive_variance(*bad)
