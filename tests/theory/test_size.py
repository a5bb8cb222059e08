"""The sizes of q·k of normal vectors against other routes: Bessel functions and quadrature."""

import math

import pytest
from scipy import integrate, stats
from scipy.special import k0

from mcverify.theory import size


def by_quadrature(f, d_k):
    law = stats.chi2(d_k)
    return integrate.quad(lambda x: f(x) * law.pdf(x), law.ppf(1e-13), law.isf(1e-13),
                          points=[law.median()], limit=300)[0]


@pytest.mark.parametrize("d_k", [2, 8, 64, 512])
def test_share_within_and_its_spread_by_quadrature(d_k):
    def share(x):
        return math.erf(3 * math.sqrt(d_k / 2 / x))

    expected = by_quadrature(share, d_k)
    assert size.share_within(3, d_k) == pytest.approx(expected, abs=1e-9)
    assert size.spread_of_share(3, d_k) ** 2 == pytest.approx(
        by_quadrature(lambda x: (share(x) - expected) ** 2, d_k), rel=1e-6)


def test_one_coordinate_has_the_density_of_a_product_of_normals():
    """The density of xy is K₀(abs(t))/π."""
    share, _ = integrate.quad(lambda t: 2 / math.pi * k0(t), 0, size.median(1), limit=300)
    assert share == pytest.approx(0.5, abs=1e-9)
    inside, _ = integrate.quad(lambda t: 2 / math.pi * k0(t), 0, 3, limit=300)
    assert size.share_within(3, 1) == pytest.approx(inside, abs=1e-9)


def test_two_coordinates_have_a_laplace_score():
    """With two coordinates q·k has the density e^(−abs(t))/2."""
    assert size.median(2) == pytest.approx(math.log(2), rel=1e-9)
    assert size.share_within(3, 2) == pytest.approx(1 - math.exp(-3 * math.sqrt(2)), rel=1e-9)


def test_many_coordinates_have_a_normal_score():
    assert size.median(10**5) / 10**2.5 == pytest.approx(stats.norm.isf(0.25), rel=1e-4)
    assert size.share_within(3, 10**6) == pytest.approx(size.share_within(3, 10**9), abs=1e-6)
