"""Linear images of independent coordinates: roots, covariances, and what tells them apart."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify import laws, theory
from mcverify.laws.covariance import harmonic, lagged, log_spread
from mcverify.laws.linear_image import Given

COV = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
CROSS = np.array([[0.4, 0.3, 0.0], [-0.2, 0.1, 0.2], [0.0, 0.1, -0.1]])
ROOT = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, -1.0, 0.7, 0.0], [0.3, 0.0, 0.0, 1.5]])


def rising(d_k):
    return np.sqrt(np.arange(1.0, d_k + 1))


@given(st.floats(-1, 1), st.integers(1, 40))
def test_lagged_root(rho, d_k):
    root, i = lagged(d_k, rho), np.arange(d_k)
    np.testing.assert_allclose(root @ root.T, rho ** np.abs(i[:, None] - i), atol=1e-12)


@given(st.integers(1, 20), st.integers(1, 60))
def test_low_rank_has_unit_variances_and_equal_eigenvalues(rank, d_k):
    law = laws.low_rank(laws.normal, rank)
    cov, least = law.moments(d_k).cov_q, min(rank, d_k)
    np.testing.assert_allclose(np.diag(cov), 1, atol=1e-12)
    eigenvalues = np.sort(np.linalg.eigvalsh(cov))[::-1]
    np.testing.assert_allclose(eigenvalues[:least], d_k / least, atol=1e-11)
    np.testing.assert_allclose(eigenvalues[least:], 0, atol=1e-11)
    assert harmonic(d_k, rank).shape[-1] == least
    assert theory.dot_variance(law, d_k) == pytest.approx(d_k**2 / least)


@given(st.floats(-8, 8), st.integers(2, 60))
def test_log_spread_variances(decades, d_k):
    variances = log_spread(d_k, decades) ** 2
    assert variances.mean() == pytest.approx(1)
    assert variances[0] / variances[-1] == pytest.approx(10**decades, rel=1e-9)
    steps = np.diff(np.log10(variances))
    np.testing.assert_allclose(steps, -decades / (d_k - 1), atol=1e-9)


@given(st.integers(1, 8), st.integers(0, 8), st.floats(0, 12), st.integers(0, 2**32))
def test_gaussian_takes_any_covariance(d_k, rank, decades, seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((2 * d_k, rank)) * 10 ** -rng.uniform(0, decades, rank)
    cov = a @ a.T
    q, k, c = cov[:d_k, :d_k], cov[d_k:, d_k:], cov[:d_k, d_k:]
    for law, cross in ((laws.gaussian(q, k), 0 * c), (laws.gaussian(q, k, cross=c), c)):
        m = law.moments(d_k)
        for found, given_ in ((m.cov_q, q), (m.cov_k, k), (m.cross, cross)):
            np.testing.assert_allclose(found, given_, atol=1e-12 * (1 + np.abs(cov).max()))


def test_names_tell_apart_what_is_given_by_numbers():
    nudged = ROOT + 1e-12 * (ROOT == 1.5)
    variants = [laws.linear(laws.normal, ROOT), laws.linear(laws.normal, nudged),
                laws.linear(laws.normal, ROOT, nudged), laws.linear(laws.normal, ROOT, joint=True),
                laws.linear(laws.normal, ROOT, mean_q=1), laws.linear(laws.normal, ROOT, mean_k=1),
                laws.linear(laws.laplace, ROOT), laws.linear(laws.normal, ROOT, name="mine"),
                laws.gaussian(COV), laws.gaussian(COV, np.eye(3)), laws.gaussian(COV, mean_q=1),
                laws.gaussian(COV, cross=CROSS), laws.gaussian(COV, cross=0 * CROSS)]
    assert len({str(law) for law in variants}) == len(set(variants)) == len(variants)
    assert laws.linear(laws.normal, ROOT.copy()) == laws.linear(laws.normal, ROOT.tolist())


def test_a_given_array_is_copied_and_travels():
    root = ROOT.copy()
    law = laws.linear(laws.normal, root)
    root[:] = 0
    np.testing.assert_array_equal(law.side("q", 3).image.root, ROOT)
    assert pickle.loads(pickle.dumps(law.root_q)) == Given(ROOT.shape, ROOT.tobytes())


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.linear(3, ROOT), "is not a law"),
    (lambda: laws.linear(laws.topic(laws.normal, 0.1), ROOT), "independent coordinates"),
    (lambda: laws.linear(laws.normal, rising), "needs a name"),
    (lambda: laws.linear(laws.normal, np.zeros((2, 0))), "a root has the shape"),
    (lambda: laws.linear(laws.normal, np.zeros((2, 2, 2))), "a root has the shape"),
    (lambda: laws.linear(laws.normal, [[math.nan]]), "a root has the shape"),
    (lambda: laws.linear(laws.normal, ROOT, np.eye(2)), r"have \[2, 3\] coordinates"),
    (lambda: laws.linear(laws.normal, ROOT, mean_q=[1.0, 2.0]), r"have \[2, 3\] coordinates"),
    (lambda: laws.linear(laws.normal, ROOT, mean_k=math.inf), "must be a finite number"),
    (lambda: laws.linear(laws.normal, ROOT).moments(4), "d_k is 4; give d_k=3"),
    (lambda: laws.gaussian(COV).draw(np.random.default_rng(0), 1, 1, 8), "d_k is 8; give d_k=3"),
    (lambda: laws.linear(laws.normal, ROOT, np.eye(3), joint=True).moments(3), "4 and 3 columns"),
    (lambda: laws.linear(laws.normal, rising, mean_q=[1.0], name="a").moments(2),
     "1 coordinates and d_k is 2"),
    (lambda: laws.linear(laws.normal, lambda d_k: np.ones(3), name="a").moments(2),
     "a root has the shape"),
    (lambda: laws.gaussian(np.ones(3)), "square matrix"),
    (lambda: laws.gaussian(np.array([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
    (lambda: laws.gaussian(np.diag([1.0, -0.1])), "smallest eigenvalue -0.1"),
    (lambda: laws.gaussian(COV, cross=3 * CROSS), "positive semidefinite"),
    (lambda: laws.gaussian(COV, cross=np.eye(2)), "all must be equal"),
    (lambda: laws.autoregressive(laws.normal, 1.1), "between -1 and 1"),
    (lambda: laws.low_rank(laws.normal, 0), "whole number of at least 1"),
    (lambda: laws.low_rank(laws.normal, 1.5), "whole number of at least 1"),
    (lambda: laws.unequal(laws.normal, math.inf), "finite"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
