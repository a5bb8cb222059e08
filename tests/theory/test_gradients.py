"""The mean square of ∂L/∂q with two keys, against quadrature by others and against limits."""

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from mcverify.attention import query_gradient, softmax
from mcverify.theory import gradients


def given_distance(sigma):
    """E (p(1 − p))² of scores that differ by N(0, σ²)."""
    def integrand(x):
        return math.exp(-(x / sigma) ** 2 / 2) / (2 * math.cosh(x / 2)) ** 4

    found = integrate.quad(integrand, 0, 60, points=[min(sigma, 50)])[0]
    return found * math.sqrt(2 / math.pi) / sigma


@pytest.mark.parametrize(("d_k", "scale"), [(1, 1.0), (4, 0.5), (64, 1.0), (64, 0.125),
                                             (512, 1.0)])
def test_two_keys_by_nested_quadrature(d_k, scale):
    chi2, norm = stats.chi2(d_k), d_k / 2 * math.log(2) + math.lgamma(d_k / 2)
    found, _ = integrate.quad(
        lambda x: 4 * scale**2 * x * given_distance(scale * math.sqrt(2 * x))
        * math.exp((d_k / 2 - 1) * math.log(x) - x / 2 - norm),
        max(chi2.ppf(1e-12), 1e-12), chi2.isf(1e-12), epsabs=1e-9)
    assert gradients.two_key_square(d_k, scale) == pytest.approx(found, rel=1e-6)


def test_the_transform_of_its_source():
    for w in (0.3, 1.0, 2.5):
        found = mpmath.quad(lambda x, w=w: mpmath.cos(w * x) / (2 * mpmath.cosh(x / 2)) ** 4,
                            [-80, 0, 80])
        assert float(found) == pytest.approx(math.pi * w * (1 + w**2) / 6 / math.sinh(math.pi * w))


def test_limits_of_the_scale():
    assert gradients.two_key_square(10**6, 1.0) == pytest.approx(
        1000 / (3 * math.sqrt(math.pi)), rel=1e-3)
    assert gradients.two_key_square(10**6, 1e-3) == pytest.approx(
        4 * given_distance(math.sqrt(2)), rel=1e-4)
    # No spread: weights of 1/2 and E ‖k₁ − k₂‖² = 2 d_k, of which (g₁ − g₂)²/16 pass on.
    assert gradients.two_key_square(8, 1e-4) == pytest.approx(1e-8 * 8 / 4, rel=1e-6)
    assert gradients.two_key_square(8, 0.0) == 0


def test_one_row_by_hand():
    """Given q and k, E over ∂L/∂p is 2(p(1 − p))²‖k₁ − k₂‖², of which the theory is the mean."""
    q, k = np.array([0.5, -1.0]), np.array([[1.0, 2.0], [0.0, -1.0]])
    p = softmax(k @ q)
    squares = [query_gradient(p[None], k, g[None]) for g in np.eye(2)]
    assert sum(float(np.sum(x * x)) for x in squares) == pytest.approx(
        2 * (p[0] * p[1]) ** 2 * float(np.sum((k[0] - k[1]) ** 2)))


@pytest.mark.parametrize("gap", [0.5, 2.0, 10.0])
def test_share_of_close_rows_by_quadrature(gap):
    def weight(x):
        return (2 * math.cosh(x / 2)) ** -4

    expected = integrate.quad(weight, 0, gap)[0] / integrate.quad(weight, 0, 60)[0]
    assert gradients.share_of_close_rows(gap) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("d_k", "scale"), [(0, 1.0), (8, -1.0), (8, math.inf), (8, math.nan)])
def test_arguments_that_are_refused(d_k, scale):
    with pytest.raises(ValueError, match="d_k is 1 or more"):
        gradients.two_key_square(d_k, scale)


@pytest.mark.parametrize(("size", "d_k", "scale"), [(1e-3, 64, 1.0), (0.2, 64, 1 / 8),
                                                     (0.1, 1, 1.0), (1e-6, 256, 1.0)])
def test_below_a_size_over_quantiles(size, d_k, scale):
    """The mean over equally likely squared lengths and distances, by midpoints."""
    reach = scale * np.sqrt(stats.chi2(d_k).ppf((np.arange(500) + 0.5) / 500))[:, None]
    y = stats.norm.isf((np.arange(8000) + 0.5) / 16000)
    root = math.sqrt(2)
    cosh = np.cosh(np.minimum(reach * y / root, 300))
    found = special.erf(root * size / reach * cosh**2).mean()
    assert gradients.two_key_below(size, d_k, scale) == pytest.approx(found, abs=2e-4)


@pytest.mark.parametrize(("d_k", "scale"), [(1, 1.0), (64, 1.0), (64, 1 / 8), (512, 1.0)])
def test_half_of_all_is_below_the_median(d_k, scale):
    median = gradients.two_key_median(d_k, scale)
    assert gradients.two_key_below(median, d_k, scale) == pytest.approx(0.5, abs=1e-5)


def test_a_median_that_is_as_good_as_zero():
    assert gradients.two_key_median(3, 0.0) == 0
