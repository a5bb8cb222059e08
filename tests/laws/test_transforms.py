"""Laws after a transform of a vector: moments by enumeration and quadrature, and the unknown."""

import inspect
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from agreement import assert_mean
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from mcverify import laws, theory
from mcverify.attention import scores, vectors

NORMS = [laws.layer_norm, laws.rms_norm, laws.unit_norm]
COIN = laws.rademacher
BOUNDS = [0.4, 1.0, 1.6, 3.0]


@pytest.mark.parametrize("d_k", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("law", "function"), [
    (laws.layer_norm(COIN), vectors.layer_norm), (laws.rms_norm(COIN), vectors.rms_norm),
    (laws.unit_norm(COIN), vectors.unit_norm),
    (laws.layer_norm(laws.equicorrelated(COIN, 0.0), gain=3.0),
     lambda x: 3 * vectors.layer_norm(x)),
    *((laws.clipped(COIN, b), lambda x, b=b: vectors.clip(x, b)) for b in BOUNDS),
    *((laws.quantised(COIN, 3, b), lambda x, b=b: vectors.quantise(x, 3, b)) for b in BOUNDS),
], ids=lambda one: "drawn" if inspect.isfunction(one) else str(one))
def test_moments_of_coins_by_enumeration(law, function, d_k):
    y = function(np.array(list(itertools.product([-1.0, 1.0], repeat=d_k))))
    m = law.moments(d_k)
    np.testing.assert_allclose(m.mean_q, y.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(m.cov_q, y.T @ y / len(y), atol=1e-14)
    np.testing.assert_array_equal(m.cov_q, m.cov_k)


@settings(max_examples=25)
@given(st.sampled_from([(laws.normal, stats.norm()), (laws.laplace, stats.laplace(0, 0.5**0.5)),
                        (laws.uniform, stats.uniform(-(3**0.5), 2 * 3**0.5))]),
       st.floats(1e-3, 12), st.integers(2, 6))
def test_variances_of_clipped_and_quantised_coordinates_by_quadrature(pair, bound, bits):
    law, distribution = pair
    end = min(bound, distribution.support()[1])
    inside, _ = integrate.quad(lambda x: 2 * x**2 * distribution.pdf(x), 0, end, epsabs=1e-13)
    expected = inside + 2 * bound**2 * distribution.sf(bound)
    found = laws.clipped(law, bound).moments(2)
    assert found.cov_q[0, 0] == pytest.approx(expected, rel=1e-9)
    assert found.cov_q[0, 1] == 0
    n = 2 ** (bits - 1) - 1
    levels = np.arange(-n, n + 1) * bound / n
    edges = [-math.inf, *(levels[1:] + levels[:-1]) / 2, math.inf]
    expected = np.sum(levels**2 * np.diff(distribution.cdf(edges)))
    found = laws.quantised(law, bits, bound).moments(2)
    assert found.cov_k[1, 1] == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("base", laws.STANDARD, ids=str)
def test_clips_that_do_nothing_and_fine_levels(base):
    for law in (laws.clipped(base, 1e200), laws.clipped(base, 60.0)):
        assert law.moments(1).cov_q[0, 0] == pytest.approx(1, rel=1e-14)
    # Far within a step, a quantiser adds step²/12 to the variance of a smooth density.
    found = laws.quantised(laws.normal, 8, 12.0).moments(1).cov_q[0, 0]
    assert found == pytest.approx(1 + (12 / 127) ** 2 / 12, abs=1e-12)
    assert laws.quantised(base, 3, 1e200).moments(1).cov_q[0, 0] == 0


def mean_variance_and_covariance(law, d_k=4):
    m = law.moments(d_k)
    return [m.mean_k[0], m.cov_k[0, 0], m.cov_k[0, 1]]


@pytest.mark.parametrize(("law", "mean", "covariance"), [
    (laws.layer_norm(laws.iid(stats.gamma(3))), 0.0, math.nan),  # may have ties, who knows
    (laws.layer_norm(laws.correlated(laws.exponential, 0.6)), 0.0, math.nan),
    (laws.layer_norm(laws.normal, epsilon=1e-5), 0.0, math.nan),
    (laws.rms_norm(laws.normal, epsilon=1e-5), 0.0, 0.0),
    (laws.rms_norm(laws.exponential), math.nan, math.nan),
    (laws.unit_norm(laws.shifted(laws.normal, 1.0)), math.nan, math.nan),
    (laws.clipped(laws.exponential, 1.0), math.nan, 0.0),
    (laws.clipped(laws.student_t(1), 1.0), 0.0, 0.0),
    (laws.clipped(laws.shifted(laws.normal, 1.0), 1.0), math.nan, 0.0),
    (laws.clipped(laws.equicorrelated(laws.normal, 0.5), 1.0), math.nan, math.nan),
    (laws.rms_norm(replace(laws.normal, name="moved", mean=1.0)), math.nan, math.nan),
], ids=str)
def test_moments_that_are_not_known_are_nan_and_the_rest_is_declared(law, mean, covariance):
    np.testing.assert_array_equal(mean_variance_and_covariance(law), [mean, math.nan, covariance])


def test_cross_covariances():
    for transform in NORMS:
        m = transform(laws.correlated(laws.normal, 0.6)).moments(4)
        assert np.isnan(m.cross).all()
        # A side of a normal pair is normal itself, so all but the cross-covariance is known.
        np.testing.assert_array_equal(m.cov_k, transform(laws.normal).moments(4).cov_k)
        same = transform(laws.shifted(laws.identical(laws.normal), 0.0)).moments(4)
        np.testing.assert_array_equal(same.cross, same.cov_q)


@pytest.mark.parametrize("d_k", [2, 3, 8, 64])
@pytest.mark.parametrize("base", [laws.normal, laws.exponential, laws.shifted(laws.laplace, 3.0)],
                         ids=str)
def test_variance_of_layer_normalised_scores(base, d_k):
    law = laws.layer_norm(base)
    expected = d_k**2 / (d_k - 1)
    assert theory.dot_variance(law, d_k) == pytest.approx(expected, rel=1e-13)
    s = scores(*law.draw(np.random.default_rng(d_k), 2048, 16, d_k))
    assert_mean((s**2).mean(axis=(1, 2)), expected)


def test_coins_lose_their_ties():
    expected = 16 / 3 * (1 - 2**-3) ** 2
    assert theory.dot_variance(laws.layer_norm(COIN), 4) == pytest.approx(expected)
    x = vectors.layer_norm(np.array(list(itertools.product([-1.0, 1.0], repeat=4))))
    assert np.mean((x @ x.T) ** 2) == pytest.approx(expected)


@settings(max_examples=25)
@given(st.sampled_from([*laws.STANDARD, laws.exponential, laws.student_t(2.5), laws.sparse(0.3),
                        laws.shifted(laws.normal, 9.0)]),
       st.integers(1, 70), st.integers(0, 2**32))
def test_scores_of_norms_are_bounded(base, d_k, seed):
    for norm, bound in ((laws.layer_norm, d_k), (laws.rms_norm, d_k), (laws.unit_norm, 1.0)):
        q, k = norm(base).draw(np.random.default_rng(seed), 2, 5, d_k)
        assert abs(scores(q, k)).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("d_k", [1, 4, 64])
def test_variance_of_cosines(d_k):
    law = laws.unit_norm(laws.normal)
    assert theory.dot_variance(law, d_k) == pytest.approx(1 / d_k)
    s = scores(*law.draw(np.random.default_rng(d_k), 1024, 16, d_k))
    assert_mean((s**2).mean(axis=(1, 2)), 1 / d_k)


def test_both_sides_are_transformed_but_only_queries_are_rotated():
    base = laws.correlated(laws.laplace, 0.5)
    x, y = base.draw(np.random.default_rng(2), 3, 4, 6)
    for law, function in (
        (laws.layer_norm(base, 2.0, 0.1), lambda v: vectors.layer_norm(v, 2.0, epsilon=0.1)),
        (laws.rms_norm(base, 2.0, 0.1), lambda v: vectors.rms_norm(v, 2.0, 0.1)),
        (laws.unit_norm(base), vectors.unit_norm),
        (laws.clipped(base, 0.5), lambda v: vectors.clip(v, 0.5)),
        (laws.quantised(base, 3, 2.0), lambda v: vectors.quantise(v, 3, 2.0)),
    ):
        q, k = law.draw(np.random.default_rng(2), 3, 4, 6)
        np.testing.assert_array_equal(q, function(x))
        np.testing.assert_array_equal(k, function(y))
    q, k = laws.rotary(base, 5, 100.0, "neighbours").draw(np.random.default_rng(2), 3, 4, 6)
    np.testing.assert_array_equal(q, vectors.rotate(x, 5, 100.0, "neighbours"))
    np.testing.assert_array_equal(k, y)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.layer_norm("normal"), "is not a law"),
    (lambda: laws.layer_norm(laws.normal, gain=math.inf), "gain must be finite"),
    (lambda: laws.rms_norm(laws.normal, epsilon=-1.0), "at least 0"),
    (lambda: laws.clipped(laws.normal, 0.0), "bound must be positive and finite"),
    (lambda: laws.clipped(laws.normal, math.inf), "bound must be positive and finite"),
    (lambda: laws.quantised(laws.normal, 1, 2.0), "from 2 to 16"),
    (lambda: laws.quantised(laws.normal, 4, -2.0), "positive"),
    (lambda: laws.rotary(3, 1), "is not a law"),
    (lambda: laws.rotary(laws.normal, 0.5), "whole numbers"),
    (lambda: laws.rotary(laws.normal, 1, theta=-1.0), "theta"),
    (lambda: laws.rotary(laws.normal, 1, pairing="both"), "one of"),
    (lambda: laws.rotary(laws.normal, 1).draw(np.random.default_rng(0), 1, 1, 3), "pad to 4"),
    (lambda: laws.rotary(laws.normal, 1).moments(3), "even"),
])
def test_impossible_transforms_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
