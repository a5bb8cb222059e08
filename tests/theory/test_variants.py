"""Variants of attention on normal scores, against mpmath, SciPy and exact quadrature elsewhere."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from mcverify.attention import bfloat16, entropy, softmax
from mcverify.theory import precision, variants
from mcverify.theory import softmax as quadrature


def normal_mean(f, sigma):
    value = mpmath.quad(lambda z: f(sigma * z) * mpmath.npdf(z), [-12, -4, 0, 4, 12])
    return float(value)


@pytest.mark.parametrize(("n", "sigma", "bias"), [(1, 1.0, 0.0), (128, 1.0, -math.log(128)),
                                                  (8192, 2.0, -9.0), (16, 8.0, 1.0)])
def test_sigmoid_total(n, sigma, bias):
    expected = n * normal_mean(lambda s: 1 / (1 + mpmath.exp(-s - bias)), sigma)
    assert variants.sigmoid_total(n, sigma, bias) == pytest.approx(expected, rel=1e-9)


def test_sigmoid_total_by_its_series():
    n = 10**4
    assert variants.sigmoid_total(n, 1.0, -math.log(n)) == pytest.approx(
        math.exp(0.5) - math.exp(2) / n, abs=1e-5)
    assert variants.sigmoid_total(7, 3.0, 0.0) == pytest.approx(3.5)  # by symmetry


@given(st.floats(0.1, 8), st.floats(0.2, 50))
def test_capped_moments(sigma, cap):
    variance = variants.capped_variance(sigma, cap)
    assert 0 < variance < min(sigma**2, cap**2)
    # Squares lie in [0, c²], so that their variance is at most that of two values of their mean.
    assert 0 < variants.capped_square_variance(sigma, cap) <= variance * (cap**2 - variance) * 1.001


@pytest.mark.parametrize(("sigma", "cap"), [(1.0, 0.5), (1.0, 5.0), (8.0, 5.0)])
def test_capped_variance_by_mpmath(sigma, cap):
    expected = normal_mean(lambda s: (cap * mpmath.tanh(s / cap)) ** 2, sigma)
    assert variants.capped_variance(sigma, cap) == pytest.approx(expected, rel=1e-8)
    fourth = normal_mean(lambda s: (cap * mpmath.tanh(s / cap)) ** 4, sigma)
    assert variants.capped_square_variance(sigma, cap) == pytest.approx(fourth - expected**2)


def test_capped_variance_by_its_series():
    x = 1 / 20
    assert variants.capped_variance(1.0, 20.0) == pytest.approx(
        1 - 2 * x**2 + 17 / 3 * x**4, abs=200 * x**6)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
@pytest.mark.parametrize("n", [512, 4096])
def test_entropy_without_a_cap_is_that_of_exact_quadrature(n, sigma):
    assert variants.capped_entropy(n, sigma, cap=1e6) == pytest.approx(
        quadrature.entropy(n, sigma), abs=40 / n**2)


def coin_rows(n, cap):
    """E H over n scores of ±cap by fair coins, by enumeration of how many are up."""
    rows = np.where(np.arange(n) < np.arange(n + 1)[:, None], cap, -cap)
    return float(stats.binom(n, 0.5).pmf(np.arange(n + 1)) @ entropy(softmax(rows)))


@pytest.mark.parametrize("cap", [0.5, 1.0, 2.0])
def test_capped_entropy_of_wide_scores_is_that_of_coins(cap):
    assert variants.capped_entropy(400, 1e6, cap) == pytest.approx(coin_rows(400, cap), abs=1e-3)
    assert coin_rows(400, cap) == pytest.approx(
        math.log(400) - cap * math.tanh(cap) + math.log(math.cosh(cap)), abs=0.03)


@pytest.mark.parametrize("slope", [2.0**-3, 2.0**-6])
def test_alibi_without_spread_is_a_geometric_row(slope):
    p = softmax(-slope * np.arange(5000.0))
    assert variants.alibi_entropy(slope, 0.0) == pytest.approx(float(entropy(p)), rel=1e-9)
    assert variants.alibi_entropy(slope, 0.0, keys=10) == pytest.approx(
        float(entropy(softmax(-slope * np.arange(10.0)))), rel=1e-9)


def test_alibi_without_a_slope_is_softmax():
    assert variants.alibi_entropy(1e-9, 1.0, keys=2048) == pytest.approx(
        quadrature.entropy(2048, 1.0), abs=1e-5)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_alibi_ceiling(sigma):
    m = 2.0**-12
    limit = 1 - math.log(m) - sigma**2 / 2
    assert variants.alibi_entropy(m, sigma) == pytest.approx(limit, abs=1e-3)


@given(st.floats(0, 1), st.integers(2, 500))
def test_differential_maps_of_equal_scores(strength, n):
    """Without spread both maps are uniform, and all of their weight but 1 − λ cancels."""
    assert variants.differential_sum_squares(n, 0.0, strength) == pytest.approx(
        (1 - strength) ** 2 / n)
    assert variants.differential_sum_squares(n, 1.0, 0.0) == quadrature.sum_squares(n, 1.0)


def test_yarn_growth():
    assert variants.yarn_growth(1.0) == 0
    h = 1e-6
    assert variants.yarn_growth(math.exp(h)) / h == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize("spacing", [0.125, 0.5, 1.0, 2.0])
def test_rounding_distance_by_quadrature(spacing):
    half = spacing / 2
    mean = integrate.quad(lambda x: math.exp(x) / spacing, -half, half)[0]
    edge = math.log(mean)
    expected = integrate.quad(lambda x: (math.exp(x) / mean - 1) / spacing, edge, half)[0]
    assert precision.rounding_distance(spacing) == pytest.approx(expected, rel=1e-9)
    assert precision.rounding_distance(spacing) == pytest.approx(spacing / 8, rel=0.2 * half)


def test_rounding_distance_of_scores_that_are_spread_evenly():
    s = stats.norm.ppf((np.arange(10**5) + 0.5) / 10**5)
    rounded = bfloat16((s + 200).astype(np.float32)).astype(float)
    found = 0.5 * np.abs(softmax(rounded) - softmax(s)).sum()
    assert found == pytest.approx(precision.rounding_distance(1.0), rel=1e-3)
