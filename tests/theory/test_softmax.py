"""The softmax integrals against exact integrals of few scores, other formulas, and limits."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, gammaln, kve, log_ndtr, ndtr

from mcverify.theory import rows
from mcverify.theory.softmax import (
    entropy,
    jacobian_frobenius_squared,
    jacobian_trace,
    log_partition,
    max_weight,
    sum_squares,
    two_key_product,
    two_key_product_median,
)

# Each as a function of the difference x >= 0 of two scores, with q = 1 - p below 1/2.
OF_TWO = {
    entropy: lambda p, q, x: q * x + np.log1p(np.exp(-x)),
    max_weight: lambda p, q, x: p,
    sum_squares: lambda p, q, x: p**2 + q**2,
    jacobian_trace: lambda p, q, x: 2 * p * q,
    jacobian_frobenius_squared: lambda p, q, x: 4 * (p * q) ** 2,
    log_partition: lambda p, q, x: x / 2 + np.log1p(np.exp(-x)),
}
ALL = list(OF_TWO)


def difference_density(x, sigma, d_k):
    """Of |s_1 - s_2|: half-normal, or that of r |z|, which has a Bessel function."""
    if d_k is None:
        return np.exp(-((x / sigma) ** 2) / 4) / (sigma * math.sqrt(math.pi))
    scale = sigma * math.sqrt(2 / d_k)
    order, y = (d_k - 1) / 2, x / scale
    constant = math.log(2) - gammaln(d_k / 2) - order * math.log(2) - math.log(math.pi) / 2
    low = y if order <= 1 else np.maximum(y, 1e-6)  # where kve would overflow
    density = np.exp(constant + order * np.log(low) - low) * kve(order, low) / scale
    near = constant + (gammaln(order) + (order - 1) * math.log(2) if order > 1 else 0.0)
    return np.where(low == y, density, math.exp(near) / scale)


def expect_of_two(function, sigma, d_k=None):
    """In log x, which takes the peak of width 1, that of width sigma and the one of K_0 alike."""

    def integrand(v):
        x = np.exp(v)
        q = expit(-x)
        return OF_TWO[function](1 - q, q, x) * difference_density(x, sigma, d_k) * x

    nodes, weights = np.polynomial.legendre.leggauss(32)
    peak, end = math.log(sigma), math.log(sigma * (12 if d_k is None else 60))
    edges = sorted([-40.0, min(peak, 0) - 4, min(peak, 0), min(max(peak, 1), end - 0.1), end])
    edges = np.unique(np.concatenate([np.linspace(a, b, 17) for a, b in itertools.pairwise(edges)]))
    half = np.diff(edges)[:, None] / 2
    return np.sum(half * weights * integrand(edges[:-1, None] + half * (1 + nodes)))


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("sigma", [0.01, 0.5, 1.99, 2, 8, 50])
def test_two_scores(function, sigma):
    assert function(2, sigma) == pytest.approx(expect_of_two(function, sigma), rel=1e-9)


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(("d_k", "sigma"), [(1, 0.3), (1, 50), (3, 2), (64, 8)])
def test_two_scores_of_one_query(function, sigma, d_k):
    exact = expect_of_two(function, sigma, d_k)
    assert function(2, sigma, d_k) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.02, 1, 2.5])
def test_three_scores_on_a_fine_tensor_grid(sigma):
    step = min(sigma / 3, 0.2)
    a = np.arange(-13 * sigma, 13 * sigma, step)
    x, y = a[:, None], a[None, :]  # s_1 - s_3 and s_2 - s_3, of covariance sigma^2 (1 + [i = j])
    density = np.exp(-(x**2 - x * y + y**2) / (3 * sigma**2))
    density /= density.sum()
    z = np.logaddexp(np.logaddexp(x, y), 0)
    log_p = np.stack([x - z, y - z, -z])
    p = np.exp(log_p)
    squares = (p**2).sum(0)
    pairs = p[0] * p[1] + p[1] * p[2] + p[0] * p[2]
    for function, value in [
        (entropy, -(p * log_p).sum(0)),
        (sum_squares, squares),
        (jacobian_trace, 2 * pairs),
        (jacobian_frobenius_squared, squares - 2 * (p**3).sum(0) + squares**2),
        (log_partition, z),
    ]:
        assert function(3, sigma) == pytest.approx((value * density).sum(), rel=1e-9)


@pytest.mark.parametrize(("n", "sigma"), [(3, 1.5), (3, 20), (128, 0.1), (128, 8), (65536, 3)])
def test_max_weight_given_the_largest_score(n, sigma):
    """E 1 / (1 + W) = int e^-t E[e^{-ty}]^(n-1) dt, y = e^(s - m) of one score s below m."""
    x, w = np.polynomial.legendre.leggauss(200)
    low, high = (-8.3, 8.3) if n < 100 else (0.0, 8.3)
    m = (low + high) / 2 + (high - low) / 2 * x
    of_m = n * np.exp((n - 1) * log_ndtr(m) - m**2 / 2) / math.sqrt(2 * math.pi)
    log_t = np.arange(-36, 4, 0.25)
    chi = np.empty((len(m), len(log_t)))
    # The steepest part of exp(-t y) is narrow in s when sigma is large, hence panels.
    panel, weight = np.polynomial.legendre.leggauss(20)
    for i, top in enumerate(m):
        edges = top - np.concatenate([np.linspace(0, min(40 / sigma, 9), 21), [9 + top + 0.001]])
        edges = edges[edges >= -9.1]
        half = (edges[:-1] - edges[1:]) / 2
        s = (edges[1:, None] + half[:, None] * (1 + panel)).ravel()
        density = np.exp(-(s**2) / 2) * (half[:, None] * weight).ravel() / math.sqrt(2 * math.pi)
        y = np.exp(sigma * (s - top) + log_t[:, None])
        chi[i] = (-np.expm1(-y)) @ density / ndtr(top)
    log_chi = np.log1p(-np.minimum(chi, 1 - 1e-16))
    inner = 0.25 * np.exp(log_t - np.exp(log_t) + (n - 1) * log_chi)
    exact = (of_m * inner.sum(1)) @ w * (high - low) / 2
    assert max_weight(n, sigma) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(("n", "sigma"), [(65536, 50), (65536, 1)])
def test_at_30_digits_by_the_formulas_that_cancel(n, sigma):
    mp = pytest.importorskip("mpmath").mp
    with mp.workdps(30):
        h = mp.mpf(1) / 4
        ys = [h * j for j in range(-170, 24)]
        gumbel = [mp.exp(-mp.exp(y)) for y in ys]
        rows = [[h * mp.exp(k * y) * e for y, e in zip(ys, gumbel, strict=True)]
                for k in range(1, 5)]  # fmt: skip
        rows.append([y * a for y, a in zip(ys, rows[0], strict=True)])
        # 1 - exp(-e^y) less the normal distribution function, whose mean is known, is short.
        rows.append([h * (1 - e - mp.ncdf(y)) for y, e in zip(ys, gumbel, strict=True)])
        stride = max(1, round(sigma / 8))
        start, end = -20 * sigma, 4 * (9 * sigma + 50)  # of u / h
        lattice = [mp.npdf(h * j, 0, sigma) for j in range(start - 170, end + stride + 24)]
        sums = [mp.mpf(0)] * 6
        for j in range(0, end - start, stride):
            u = h * (start + j)
            *psi, psi_y, c = [mp.fdot(row, lattice[j : j + len(ys)]) for row in rows]
            phi = 1 - c - mp.ncdf(-u / mp.sqrt(sigma**2 + 1))
            if phi < 1e-12:  # to the power n
                continue
            pair = (n - 1) / phi * psi[1] ** 2
            terms = [psi[0] * u, psi_y + u * psi[0], psi[1], psi[2], psi[3], pair]
            power = n * phi ** (n - 1) * stride * h
            sums = [a + power * b for a, b in zip(sums, terms, strict=True)]
        log_z, squares = sums[0] - mp.euler, sums[2]
        frobenius = squares - 2 * sums[3] / 2 + (sums[4] + sums[5]) / 6
        for function, exact in [(log_partition, log_z), (entropy, log_z - sums[1]),
                                (sum_squares, squares), (jacobian_trace, 1 - squares),
                                (jacobian_frobenius_squared, frobenius)]:  # fmt: skip
            assert function(n, sigma) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("n", [2, 7, 128, 65536])
@pytest.mark.parametrize("sigma", [0.01, 0.7, 2, 9, 50])
def test_identities(n, sigma):
    trace = jacobian_trace(n, sigma)
    assert trace + sum_squares(n, sigma) == pytest.approx(1, rel=1e-10)
    # E sum_j p_j s_j = sigma^2 E tr J, by parts.
    mean_score = log_partition(n, sigma) - entropy(n, sigma)
    assert mean_score == pytest.approx(sigma**2 * trace, rel=1e-7 if sigma < 0.1 else 1e-10)


@pytest.mark.parametrize("n", [3, 4096])
def test_log_partition_grows_by_the_trace(n):
    x, w = np.polynomial.legendre.leggauss(40)
    sigmas = 10 * (x + 1) / 2
    slopes = [s * jacobian_trace(n, s) for s in sigmas]
    assert log_partition(n, 10) == pytest.approx(math.log(n) + 5 * (w @ slopes), rel=1e-10)


@pytest.mark.parametrize("function", ALL)
def test_a_mixture_is_the_mean_over_its_query(function):
    d_k, sigma = 5, 3.0
    x, w = np.polynomial.legendre.leggauss(40)
    r = 8.5 * (x + 1) / 2
    log_weight = (d_k - 1) * np.log(r) - r**2 / 2 - gammaln(d_k / 2) + (1 - d_k / 2) * math.log(2)
    values = [function(500, sigma * a / math.sqrt(d_k)) for a in r]
    exact = 8.5 / 2 * (w * np.exp(log_weight)) @ values
    assert function(500, sigma, d_k) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("d_k", [None, 64])
@pytest.mark.parametrize("n", [2, 65536])
def test_no_spread_is_uniform(n, d_k):
    uniform = [math.log(n), 1 / n, 1 / n, 1 - 1 / n, (n - 1) / n**2, math.log(n)]
    for f, value in zip(ALL, uniform, strict=True):
        assert f(n, 0, d_k) == pytest.approx(value, rel=1e-15)
        assert f(n, 1e-9, d_k) == pytest.approx(value, rel=1e-8)


def test_small_spread():
    assert math.log(9) - entropy(9, 0.001) == pytest.approx(0.001**2 / 2 * (1 - 1 / 9), rel=1e-5)


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_many_scores_of_unit_spread(n):
    expected = math.log(n) - 1 / 2 + (math.e + 1) / (2 * n)
    assert entropy(n, 1) == pytest.approx(expected, abs=100 / n**2)


@pytest.mark.parametrize("n", [2, 128, 65536])
def test_large_spread_leaves_the_gap_of_two_scores(n):
    """Its density at 0 is gap / sigma; the numbers are integrals over x > 0 of OF_TWO."""

    def integrand(x):
        return math.exp(-(x**2) + (n - 2) * log_ndtr(x)) / (2 * math.pi)

    gap = n * (n - 1) * quad(integrand, -9, 9, points=[0, 3, 5], epsrel=1e-10)[0]
    sigma = 1e5
    for value, integral in [
        (entropy(n, sigma), math.pi**2 / 6),
        (1 - max_weight(n, sigma), math.log(2)),
        (jacobian_trace(n, sigma), 1),
        (jacobian_frobenius_squared(n, sigma), 1 / 3),
    ]:
        assert value * sigma == pytest.approx(integral * gap, rel=1e-3)


def test_frozen_phase_of_the_random_energy_model():
    """At sigma = c sqrt(2 ln n), c > 1, sum p^2 tends to 1 - 1/c as n grows."""
    distance = [abs(sum_squares(n, 2 * math.sqrt(2 * math.log(n))) - 1 / 2)
                for n in (10**2, 10**4, 10**6, 10**9, 10**12)]  # fmt: skip
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 0.05


@pytest.mark.parametrize(("function", "n", "sigma", "d_k", "value", "digits"), [
    (entropy, 128, 1, 64, 4.366, 3),
    (entropy, 128, 8, 64, 0.668, 3),
    (entropy, 128, 8, None, 0.658, 3),
    (entropy, 128, math.sqrt(512), 512, 0.2035, 4),
    (entropy, 128, 1, 512, 4.366, 3),
    (entropy, 128, 1, 1, 4.413, 3),
    (max_weight, 2, 8, 64, 0.951, 3),
    (max_weight, 8, 8, 64, 0.875, 3),
    (max_weight, 128, 8, 64, 0.768, 3),
    (max_weight, 512, 8, 64, 0.725, 3),
    (max_weight, 4096, 8, 64, 0.669, 3),
])  # fmt: skip
def test_known_values(function, n, sigma, d_k, value, digits):
    assert round(function(n, sigma, d_k), digits) == value


@pytest.mark.parametrize("sigma", [0.01, 1, 50])
@pytest.mark.parametrize("d_k", [None, 1, 7.5, 1024])
def test_two_key_product_is_half_the_trace(sigma, d_k):
    assert two_key_product(sigma, d_k) == pytest.approx(jacobian_trace(2, sigma, d_k) / 2, rel=1e-9)


def test_two_key_product_falls_like_a_root():
    d_k = 1e5
    limit = 1 / (2 * math.sqrt(math.pi * d_k))
    assert two_key_product(math.sqrt(d_k), d_k) == pytest.approx(limit, rel=1e-4)


def test_two_key_product_of_no_spread():
    assert two_key_product(0, 3) == pytest.approx(1 / 4, rel=1e-12)
    assert two_key_product_median(0, 3) == 1 / 4


@pytest.mark.parametrize("sigma", [0.1, 1, 50])
def test_median_of_laplace_differences(sigma):
    """With d_k = 2, |s_1 - s_2| is exponential of mean sigma."""
    half = 2.0**-sigma
    assert two_key_product_median(sigma, 2) == pytest.approx(half / (1 + half) ** 2, rel=1e-8)


@pytest.mark.parametrize("d_k", [1, 64])
def test_median_splits_the_law_of_the_difference(d_k):
    value = two_key_product_median(3, d_k)
    x = 2 * math.acosh(1 / (2 * math.sqrt(value)))
    below = quad(lambda v: math.exp(v) * difference_density(math.exp(v), 3, d_k), -40, math.log(x))
    assert below[0] == pytest.approx(1 / 2, rel=1e-8)


def test_median_without_and_with_many_coordinates():
    p = math.exp(-math.sqrt(2) * 3 * 0.674489750196)
    assert two_key_product_median(3) == pytest.approx(p / (1 + p) ** 2, rel=1e-11)
    rate = -math.log(two_key_product_median(100, 10**4)) / 100
    assert rate == pytest.approx(0.9539, abs=2e-4)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    n=st.integers(2, 65536),
    sigma=st.floats(0.01, 50),
    factor=st.floats(1.01, 3),
)
def test_spread_concentrates_the_weights(n, sigma, factor):
    wider = sigma * factor
    assert entropy(n, wider) < entropy(n, sigma)
    assert max_weight(n, wider) > max_weight(n, sigma)
    assert sum_squares(n, wider) > sum_squares(n, sigma)
    assert 0 < jacobian_trace(n, wider) < jacobian_trace(n, sigma)
    assert log_partition(n, wider) > log_partition(n, sigma)


@pytest.mark.parametrize(("arguments", "message"), [
    ((1, 1.0), "n is 1: .*from 2 to .*pass the number"),
    ((2.5, 1.0), "n is 2.5: .*whole"),
    ((math.nan, 1.0), "n is nan"),
    ((10**12 + 1, 1.0), "n is 1000000000001: .*to 1e12"),
    ((2, -1.0), "sigma is -1.0: .*finite, from 0.*pass"),
    ((2, 1.001e6), "sigma is 1001000.0: .*to 1e6"),
    ((2, math.inf), "sigma is inf"),
    ((2, math.nan), "sigma is nan"),
    ((2, 1.0, 0.5), "d_k is 0.5: .*pass d_k >= 1"),
    ((2, 1.0, math.nan), "d_k is nan"),
])  # fmt: skip
def test_refusals(arguments, message):
    for function in ALL:
        with pytest.raises(ValueError, match=message):
            function(*arguments)


def test_two_key_refusals():
    for function in (two_key_product, two_key_product_median):
        with pytest.raises(ValueError, match="sigma is -1: "):
            function(-1)
        with pytest.raises(ValueError, match="d_k is 0: "):
            function(1, 0)


def test_infinitely_many_coordinates_are_independent_scores():
    for function in ALL:
        assert function(5, 2, math.inf) == function(5, 2)
    assert two_key_product(2, math.inf) == two_key_product(2)
    assert two_key_product_median(2, math.inf) == two_key_product_median(2)


def test_step_is_converged(monkeypatch):
    coarse = [f(4096, s) for f in ALL for s in (0.5, 5)]
    monkeypatch.setattr(rows, "STEP", 0.15)
    fine = [f.__wrapped__(4096, s) for f in ALL for s in (0.5, 5)]  # f remembers
    np.testing.assert_allclose(coarse, fine, rtol=1e-10)
