"""Attention against exact values: by hand, by scipy, by dense matrices, by two derivatives."""

import ctypes
import weakref

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcverify.attention import (
    JACOBIAN_NORMS,
    entropy,
    jacobian_norm,
    log_partition,
    matched_scores,
    max_weight,
    other_scores,
    query_gradient,
    rows,
    scores,
    softmax,
    softmax_entropy,
    sum_squares,
    variance_under,
)
from mcverify.attention.chunk import Chunk, Scores, Vectors
from mcverify.attention.products import MIN_QUERIES, ROW_ENTRIES
from mcverify.attention.vectors import rotate, unit_norm

vectors = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(2, 6)),
                 elements=st.floats(-30, 30))
RNG = np.random.default_rng(11)
Q, K = RNG.standard_normal((2, 3, 6, 4))


def dense_jacobian(p):
    return np.diag(p) - np.outer(p, p)


def test_scores_are_the_dot_products():
    expected = np.einsum("bid,bjd->bij", Q, K)
    np.testing.assert_allclose(scores(Q, K), expected, rtol=1e-12)
    np.testing.assert_allclose(scores(Q, K, scale=0.5), expected / 2, rtol=1e-12)
    np.testing.assert_allclose(matched_scores(Q, K), np.einsum("bii->bi", expected), rtol=1e-12)


def test_other_scores_leave_out_the_diagonal():
    full = scores(Q, K)
    for i in range(6):
        np.testing.assert_array_equal(other_scores(Q, K)[:, i], np.delete(full[:, i], i, axis=1))


@given(st.floats(-5, 5), st.integers(0, 2**32))
def test_scores_are_bilinear(a, seed):
    q, r, k = np.random.default_rng(seed).standard_normal((3, 2, 3, 4))
    np.testing.assert_allclose(scores(a * q + r, k), a * scores(q, k) + scores(r, k), atol=1e-10)
    np.testing.assert_allclose(scores(k, q), np.swapaxes(scores(q, k), 1, 2), atol=1e-12)


def test_rows_cut_few_keys_into_groups():
    found = rows(Q, K, keys=2)
    assert found.shape == (3, 18, 2)
    np.testing.assert_array_equal(found[:, 0], scores(Q, K)[:, 0, :2])
    np.testing.assert_array_equal(found[:, 4], scores(Q, K)[:, 1, 2:4])


@pytest.mark.parametrize("keys", [2, 64, 256, 1024, 4096])
def test_rows_of_many_keys_use_few_queries(keys):
    q = k = np.ones((1, max(keys, 64), 2), dtype=np.float32)
    found = rows(q, k, keys)
    assert found.shape[-1] == keys
    assert found.nbytes <= 4 * max(ROW_ENTRIES, MIN_QUERIES * keys)


def test_rows_refuse_keys_that_do_not_divide_the_tokens():
    with pytest.raises(ValueError, match="multiple of keys"):
        rows(Q, K, keys=4)


def test_unequal_widths_are_refused():
    with pytest.raises(ValueError, match="same d_k"):
        scores(Q, K[..., :3])


def test_all_pairs_can_be_refused():
    chunk = Chunk(Q.copy(), K.copy(), "fix tokens")
    for function in (scores, lambda q, k: rows(q, k, 2),
                     lambda q, k: scores(unit_norm(q)[..., :2], rotate(k[..., :2], 3))):
        with pytest.raises(ValueError, match="fix tokens"):
            function(chunk.q, chunk.k)
    assert matched_scores(chunk.q, chunk.k).shape == (3, 6)
    assert other_scores(chunk.q, chunk.k).shape == (3, 6, 5)
    assert scores(Q, K).shape == (3, 6, 6)


def test_a_chunk_knows_what_was_made_of_it():
    chunk = Chunk(Q.copy(), K.copy())
    q, k = chunk.q, chunk.k
    s, narrow = scores(q, k, 0.5), other_scores(q[..., :2], k[..., :2])
    assert chunk.made(s) == Scores("all", 0.5)
    assert chunk.made(q) == Vectors("q")
    assert chunk.made(k) == Vectors("k")
    assert chunk.made(narrow) == Scores("other", 1.0, width=2)
    assert chunk.made([(2, narrow), (4, s)]) == (Scores("other", 1.0, 2), Scores("all", 0.5))
    for other in (s + 1, q + 0, q[..., 1:], scores(q[..., 1:], k[..., 1:]), scores(k, q),
                  scores(q[:, :3], k[:, :3]), scores(q[..., :2], k[..., 1:3]),
                  [(2, narrow), (4, s + 1)]):
        assert chunk.made(other) is None
    assert chunk.made(scores(q, q)) is chunk.made(scores(k, k)) is None
    assert not chunk.changed()


def test_what_is_made_of_a_chunk_is_made_once_and_read_only():
    chunk = Chunk(Q.copy(), K.copy())
    made = [lambda q, k: scores(q, k, 0.5), lambda q, k: scores(q, q), lambda q, k: scores(k, k),
            lambda q, k: scores(q[:, :2, :3], k[:, :5, :3]),
            matched_scores, other_scores, lambda q, k: rows(q, k, 2), lambda q, k: rows(q, k, 6)]
    made += [lambda q, k, f=f: softmax(f(q, k)) for f in made]
    made += [lambda q, k, f=f, g=g: g(f(q, k)) for f in made
             for g in (softmax, softmax_entropy, entropy, max_weight, sum_squares, jacobian_norm)]
    for function in made:
        first, again = function(chunk.q, chunk.k), function(chunk.q, chunk.k)
        assert np.shares_memory(first, again)
        assert not first.flags.writeable
        assert type(first[..., :1] + 0).name is None
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(first, function(Q, K))
    assert not np.shares_memory(scores(chunk.q, chunk.k), scores(chunk.q, chunk.k, 0.5))
    assert not chunk.changed()


def test_a_chunk_sees_that_memory_has_been_changed_by_some_way():
    for function in (lambda q, k: q, scores, lambda q, k: softmax(scores(q, k))):
        chunk = Chunk(Q.copy(), K.copy())
        s = function(chunk.q, chunk.k)
        at = np.ctypeslib.as_array((ctypes.c_double * s.size).from_address(s.ctypes.data))
        at *= 2
        assert chunk.changed()


def test_a_chunk_is_let_go_with_what_is_kept():
    chunk = Chunk(Q.copy(), K.copy())
    entropy(softmax(rows(chunk.q, chunk.k, 2)))
    matched_scores(chunk.q, chunk.k)
    gone = weakref.ref(chunk)
    del chunk
    assert gone() is None  # by counting, before cycles are looked for


@given(vectors)
def test_softmax_is_scipys_and_ignores_shifts(s):
    np.testing.assert_allclose(softmax(s), scipy.special.softmax(s, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(softmax(s + 7.5), softmax(s), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(softmax(s).sum(-1), 1)


def test_softmax_of_large_masked_and_small_types():
    np.testing.assert_array_equal(softmax([1e300, 0.0]), [1, 0])
    np.testing.assert_array_equal(softmax([-np.inf, 3.0]), [0, 1])
    np.testing.assert_array_equal(softmax([-np.inf, -np.inf]), [0, 0])
    assert np.isnan(softmax([np.nan, 1.0])).all()
    for kind in (np.float16, np.float32, np.float64):
        assert softmax(np.array([1, 2], dtype=kind)).dtype == kind
    assert softmax([1, 2]).dtype == np.float64
    s = np.array([1.0, 2.0])
    softmax(s)
    np.testing.assert_array_equal(s, [1, 2])


@given(vectors)
def test_entropy_weights_and_squares(s):
    p = softmax(s)
    np.testing.assert_allclose(entropy(p), scipy.special.entr(p).sum(-1))
    np.testing.assert_allclose(sum_squares(p), (p**2).sum(-1))
    assert (max_weight(p) == p.max(-1)).all()
    assert (entropy(p) <= np.log(p.shape[-1]) + 1e-12).all()


@given(vectors)
def test_entropy_of_scores_is_that_of_their_weights(s):
    for x in (s, s.T.copy(), 40 * s, s - 1e5, np.tile(s, 20)):
        np.testing.assert_allclose(softmax_entropy(x), entropy(softmax(x)), atol=1e-12)
        assert (softmax_entropy(x) >= 0).all()


@given(vectors)
def test_variance_under_weights_is_the_slope_of_the_entropy_in_ln_temperature(s):
    x = np.concatenate([s, 0 * s[:1]])
    p = softmax(x)
    mean = (p * x).sum(-1, keepdims=True)
    np.testing.assert_allclose(variance_under(p, x), (p * (x - mean) ** 2).sum(-1), atol=1e-10)


@given(vectors)
def test_log_partition_is_scipys(s):
    for x in (s, 40 * s, s - 1e5, np.where(s > 0, s, -np.inf)):
        np.testing.assert_allclose(log_partition(x), scipy.special.logsumexp(x, axis=-1),
                                   rtol=1e-12, atol=1e-12)


def test_entropy_of_scores_that_are_masked_or_equal():
    inf = np.inf
    found = softmax_entropy([[2.0, 2.0], [-inf, 3.0], [-inf, -inf], [1e300, -1e300]])
    np.testing.assert_allclose(found, [np.log(2), 0, 0, 0], rtol=1e-15)
    with np.errstate(invalid="ignore"):
        assert np.isnan(softmax_entropy([[np.nan, 1.0], [inf, 1.0]])).all()
    assert softmax_entropy(np.zeros((0, 4))).shape == (0,)
    for kind in (np.float16, np.float32):
        assert softmax_entropy(np.array([1, 2], dtype=kind)).dtype == kind


@given(vectors)
def test_jacobian_norms_are_those_of_the_dense_matrix(s):
    p = softmax(s)
    for row, *found in zip(p, *(jacobian_norm(p, kind) for kind in JACOBIAN_NORMS), strict=True):
        dense = dense_jacobian(row)
        expected = [np.linalg.norm(dense), np.linalg.eigvalsh(dense)[-1], np.trace(dense)]
        np.testing.assert_allclose(found, expected, atol=1e-14, rtol=1e-12)


@given(vectors)
def test_jacobian_identities(s):
    p = softmax(s)
    frobenius, spectral, trace = (jacobian_norm(p, kind) for kind in JACOBIAN_NORMS)
    m = max_weight(p)
    assert (spectral <= frobenius * (1 + 1e-12)).all()
    assert (frobenius <= trace * (1 + 1e-12)).all()
    assert (spectral <= 2 * m * (1 - m) + 1e-15).all()
    assert (spectral <= 0.5 + 1e-15).all()
    if p.shape[-1] == 2:
        np.testing.assert_allclose(spectral, trace, rtol=1e-12)


@pytest.mark.parametrize("s", [[0, 0], [16, 0], [40, 0, -3], [300, 290, 0], [5, 5, 5, -20]])
def test_jacobian_norms_keep_their_digits_when_tiny(s):
    with mpmath.workdps(400):
        weights = [mpmath.exp(x) for x in s]
        p = [w / mpmath.fsum(weights) for w in weights]
        dense = mpmath.matrix(len(p), len(p))
        for i, a in enumerate(p):
            for j, b in enumerate(p):
                dense[i, j] = (a if i == j else 0) - a * b
        expected = [mpmath.norm(dense, 2), max(mpmath.eigsy(dense, eigvals_only=True)),
                    mpmath.fsum(dense[i, i] for i in range(len(p)))]
        found = [float(jacobian_norm(softmax(s), kind)) for kind in JACOBIAN_NORMS]
    np.testing.assert_allclose(found, [float(x) for x in expected], rtol=1e-12)


def test_jacobian_norm_of_half_and_half_and_of_one_hot():
    for kind in JACOBIAN_NORMS:
        assert jacobian_norm([0.5, 0.5], kind) == pytest.approx(0.5)
        assert jacobian_norm([1.0, 0.0, 0.0], kind) == 0
    with pytest.raises(ValueError, match="frobenius, spectral, trace"):
        jacobian_norm([1.0], "nuclear")


def loss(q, k, upstream, scale):
    s = (k @ q) * scale
    weights = np.exp(s - s.max().real)  # analytic in s, so that a complex step is exact
    return weights @ upstream / weights.sum()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_query_gradient_is_the_derivative(scale):
    q, k, upstream = Q[0, 0], K[0], RNG.standard_normal(6)
    p = softmax(scores(Q[:1, :1], K[:1], scale))
    found = query_gradient(p, K[:1], upstream[None, None], scale)[0, 0]
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1.0
        complex_step = loss(q + 1e-30j * step, k, upstream, scale).imag / 1e-30
        difference = (loss(q + 1e-6 * step, k, upstream, scale)
                      - loss(q - 1e-6 * step, k, upstream, scale)) / 2e-6
        assert found[i] == pytest.approx(complex_step, rel=1e-12)
        assert found[i] == pytest.approx(difference, rel=1e-6)


@given(vectors)
def test_jacobian_is_the_derivative_of_softmax(s):
    row = s[0]
    p = softmax(row)
    for j in range(len(row)):
        shifted = row.astype(complex)
        shifted[j] += 1e-30j
        weights = np.exp(shifted - row.max())
        column = (weights / weights.sum()).imag / 1e-30
        np.testing.assert_allclose(column, dense_jacobian(p)[:, j], atol=1e-13)


def test_scores_of_a_worlds_draws_are_remembered_without_being_shared():
    q, k = RNG.standard_normal((3, 6, 4)), RNG.standard_normal((3, 6, 4))
    fresh = scores(q, k)
    q.setflags(write=False)
    k.setflags(write=False)
    for scale in (1.0, 2.0, 1.0):
        found = scores(q, k, scale)
        np.testing.assert_array_equal(found, fresh * scale)
        found[:] = np.nan  # a caller may do what it likes with its scores
    np.testing.assert_array_equal(scores(q, k[::1]), fresh)
    q.setflags(write=True)
    q += 1
    assert not np.array_equal(scores(q, k), fresh)
