"""The largest eigenvalue of the softmax Jacobian against bisection in many digits, row by row."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcverify.attention import jacobian_norm, softmax

# Gaps to the largest score: close, tied, tiny and dominant weights, in any mixture.
gaps = st.one_of(st.just(0.0), st.floats(0, 5), st.floats(0, 650),
                 st.floats(-16, 0).map(lambda x: 10.0**x))
scores = st.lists(gaps, min_size=1, max_size=12).map(lambda gaps: -np.array([0.0, *gaps]))


def spectral(p):
    return jacobian_norm(p, "spectral")


def by_bisection(p):
    """The root of m/(m − λ) = Σ r/(λ − r) between the two largest weights, to 20 digits."""
    with mpmath.workdps(50):
        m, *r = sorted((mpmath.mpf(float(x)) for x in [*p, 0]), reverse=True)
        if r[0] in (0, m):
            return float(r[0])
        # In x = λ − r[0], as if only r[0] counted, and as if all of r were as large.
        low, high = ((m - r[0]) * x / (x + m) for x in (r[0], mpmath.fsum(r)))
        for _ in range(70):
            x = (low + high) / 2
            above = m / (m - r[0] - x) > mpmath.fsum(a / (x + (r[0] - a)) for a in r)
            low, high = (low, x) if above else (x, high)
        return float(r[0] + high)


@given(scores)
@example(np.array([0.0, -650.0, -650.0, -650.0]))
@example(np.array([0.0, -1e-15, -1e-15, -1e-15, -40.0]))
@example(np.array([0.0, -1e-16, -5.0]))
@example(np.array([0.0, 0.0, 0.0, -300.0]))
def test_any_row_in_many_digits(s):
    p = softmax(s)
    assert spectral(p) == pytest.approx(by_bisection(p), rel=1e-12, abs=0)


@given(scores)
def test_any_row_in_single_precision(s):
    p = softmax(s.astype(np.float32))
    found = spectral(p)
    assert found.dtype == np.float32
    if p.min() > 1e-30:  # below, the weights themselves have lost digits
        assert found == pytest.approx(by_bisection(p), rel=3e-6, abs=0)


@pytest.mark.parametrize("keys", [2, 3, 16, 200])
@pytest.mark.parametrize("sigma", [1e-8, 0.1, 1, 3])
def test_many_rows_at_once_are_those_of_dense_matrices(keys, sigma):
    p = softmax(sigma * np.random.default_rng(keys).standard_normal((2, 5, keys)))
    dense = p[..., None] * np.eye(keys) - p[..., None] * p[..., None, :]
    np.testing.assert_allclose(spectral(p), np.linalg.eigvalsh(dense)[..., -1], rtol=1e-12)


def test_a_row_does_not_depend_on_its_company():
    s = np.random.default_rng(1).standard_normal((40, 9))
    p = softmax(s * np.geomspace(1e-9, 300, 40)[:, None])
    np.testing.assert_allclose(spectral(p), [spectral(row) for row in p], rtol=1e-14)


@pytest.mark.parametrize("keys", [1, 2, 3, 7, 1000])
def test_uniform_and_one_hot_rows_are_exact(keys):
    assert spectral(np.full(keys, 1 / keys)) == (1 / keys if keys > 1 else 0)
    assert spectral(np.eye(keys)).tolist() == [0] * keys


@pytest.mark.parametrize("tiny", [1e-8, 1e-30, 1e-150, 1e-300])
def test_one_hot_but_for_ties_of_tiny_weights(tiny):
    for k in (1, 2, 9):  # m/(m − λ) = k w/(λ − w) has the root m w (k + 1), as m + k w = 1
        m = 1 - k * tiny
        assert spectral([m, *[tiny] * k]) == pytest.approx(m * tiny * (k + 1), rel=1e-12, abs=0)


def test_a_million_keys_keep_their_digits():
    k, m = 10**6, 0.25  # as above
    w = (1 - m) / k
    assert spectral([m, *[w] * k]) == pytest.approx(m * w * (k + 1), rel=1e-12)


def test_subnormal_masked_and_nan_rows_end():
    assert spectral([1.0, 5e-324, 5e-324]) < 1e-322
    assert spectral([0.0, 0.0]) == 0
    assert np.isnan(spectral([np.nan, 0.5]))
    np.testing.assert_array_equal(spectral([[np.nan, 0.5], [0.5, 0.5]]), [np.nan, 0.5])
    assert spectral(np.zeros((0, 3))).shape == (0,)
