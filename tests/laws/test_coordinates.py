"""Laws of independent coordinates: each follows its distribution."""

import math
from dataclasses import replace

import numpy as np
import pytest
from agreement import assert_drawn_from, assert_mean, assert_share
from scipy import integrate, stats

from mcverify import laws
from mcverify.attention import matched_scores


@pytest.mark.parametrize(("law", "distribution"), [
    (laws.normal, stats.norm()),
    (laws.uniform, stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
    (laws.laplace, stats.laplace(scale=math.sqrt(0.5))),
    (laws.exponential, stats.expon(-1)),
    (laws.student_t(9), stats.t(9, scale=math.sqrt(7 / 9))),
    (laws.student_t(1.5), stats.t(1.5)),
    (laws.stable(1), stats.cauchy()),
    (laws.stable(2), stats.norm()),
], ids=lambda one: one.dist.name if hasattr(one, "dist") else str(one))
def test_coordinates_follow_their_distribution(law, distribution):
    for x in law.draw(np.random.default_rng(7), 100, 10, 20):
        assert_drawn_from(x, distribution)
    moments = law.central_moments or {4: law.fourth_moment * law.variance**2}
    for n in range(9) if law.central_moments else moments if law.finite_moments > 4 else ():
        exact, _ = integrate.quad(lambda x, n=n: (x - law.mean) ** n * distribution.pdf(x),
                                  *distribution.support(), limit=200)
        assert exact == pytest.approx(moments[n], rel=1e-6, abs=1e-9)


def test_sizes_are_partial_moments_by_quadrature():
    for law, distribution in ((laws.normal, stats.norm()),
                              (laws.laplace, stats.laplace(scale=0.5**0.5)),
                              (laws.uniform, stats.uniform(-(3**0.5), 2 * 3**0.5))):
        for p in (2, 4):
            for b in (0.01, 0.7, 1.5, 4.0):
                end = min(b, distribution.support()[1])
                exact, _ = integrate.quad(
                    lambda x, p=p, law=distribution: 2 * x**p * law.pdf(x), 0, end, epsabs=1e-15)
                inside, beyond = law.sizes(p, np.array(b))
                assert inside == pytest.approx(exact, rel=1e-9)
                assert beyond == pytest.approx(2 * distribution.sf(b), rel=1e-12)


def test_rademacher_and_sparse_take_their_values_with_their_shares():
    assert set(np.unique(laws.rademacher.draw(np.random.default_rng(8), 9, 10, 11))) == {-1.0, 1.0}
    law = laws.sparse(0.1)
    q, _ = law.draw(np.random.default_rng(8), 1024, 10, 10)
    assert_mean((q != 0).mean(axis=(1, 2)), 0.1)
    assert_drawn_from(q[q != 0], stats.norm(scale=math.sqrt(10)))


@pytest.mark.parametrize("alpha", [0.3, 0.7, 0.999999, 1.0, 1.2, 1.8, 1.999])
def test_stable_characteristic_function(alpha):
    x, _ = laws.stable(alpha).draw(np.random.default_rng(12), 40000, 1, 1)
    t = np.array([0.05, 0.3, 1.0, 2.0, 5.0])
    assert_share((1 + np.cos(x[:, 0] * t)) / 2, (1 + np.exp(-(t**alpha))) / 2)
    assert_share((1 + np.sin(x[:, 0] * t)) / 2, 0.5)


@pytest.mark.parametrize("alpha", [0.7, 1.5])
def test_stable_shares_below_the_quantiles_that_scipy_integrates(alpha):
    x, _ = laws.stable(alpha).draw(np.random.default_rng(13), 40000, 1, 1)
    at = np.array([-20.0, -1.0, 0.0, 0.4, 3.0])
    assert_share(x[:, 0] <= at, stats.levy_stable.cdf(at, alpha, 0))


@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.5])
def test_sums_of_stable_coordinates_have_their_shape(alpha):
    d_k = 16  # with coins for keys, q·k is d^(1/α) times a coordinate
    law = laws.independent(laws.stable(alpha), laws.rademacher)
    s = matched_scores(*law.draw(np.random.default_rng(14), 10000, 1, d_k))
    x, _ = laws.stable(alpha).draw(np.random.default_rng(15), 10000, 1, 1)
    assert_drawn_from(s / d_k ** (1 / alpha), x)


@pytest.mark.parametrize("law", [laws.normal, laws.rademacher, laws.student_t(1), laws.sparse(0.1),
                                 laws.stable(0.7)], ids=str)
def test_symmetric_laws_are_symmetric_about_their_mean(law):
    assert law.symmetric
    x = law.sample(np.random.default_rng(4), (20_000,))
    assert_mean(np.sign(x), 0.0)
    assert_mean(np.sign(x) * (abs(x) > np.median(abs(x))), 0.0)  # and so far out


def test_symmetry_is_not_claimed_where_there_is_none_or_it_is_unknown():
    assert not laws.exponential.symmetric
    assert not laws.iid(stats.gamma(3)).symmetric
    moved = replace(laws.normal, name="moved", mean=1.0)  # about its mean, not about 0
    assert not moved.side("q", 3).symmetric


def test_moments_that_do_not_exist_are_declared_so():
    assert math.isnan(laws.student_t(1).mean)
    assert math.isinf(laws.student_t(2).variance)
    assert math.isinf(laws.student_t(4).fourth_moment)


@pytest.mark.parametrize("law", [
    laws.student_t(1), laws.stable(0.9), laws.iid(stats.cauchy(), raw=True),
], ids=str)
def test_laws_without_moments_equal_their_copies(law):
    assert math.isnan(law.mean)
    # Of a law whose numbers are not those of the same object: nan is not equal to itself.
    other = replace(law, mean=float("nan"), fourth_moment=float("nan"))
    assert (other == law, hash(other) == hash(law)) == (True, True)
    assert law != laws.student_t(2)
    assert len({laws.student_t(5), laws.student_t(5), laws.student_t(6)}) == 2


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.student_t(0), "df must be at least 0.05"),
    (lambda: laws.sparse(0), "above 0 and at most 1"),
    (lambda: laws.stable(0.05), "at least 0.1"),
    (lambda: laws.stable(2.1), "at most 2"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
