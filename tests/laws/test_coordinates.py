"""Laws: what each declares is what its draws have, and what is wrong is said."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from mcverify import laws
from mcverify.laws.coordinates import tail_index

SHAPE = (400, 50, 6)  # 120 000 numbers a side
IID = [*laws.STANDARD, laws.exponential, laws.sparse(0.3), laws.student_t(9),
       laws.iid(stats.gamma(3)), laws.iid(stats.binom(5, 0.3)), laws.iid(stats.beta(2, b=5)),
       laws.iid(stats.norm(2, 3), raw=True)]
DEPENDENT = [
    laws.shifted(laws.normal, 0.7), laws.equicorrelated(laws.laplace, 0.4),
    laws.correlated(laws.uniform, -0.6), laws.identical(laws.normal),
    laws.common_scale(laws.normal, 14), laws.independent(laws.rademacher, laws.exponential),
    laws.independent(laws.equicorrelated(laws.normal, 0.5), laws.shifted(laws.normal, 1.0)),
    laws.shifted(laws.correlated(laws.normal, 0.3), -0.5),
]


@pytest.mark.parametrize("law", IID + DEPENDENT, ids=str)
def test_declared_moments_are_those_of_the_draws(law):
    q, k = law.draw(np.random.default_rng(5), *SHAPE)
    d_k = SHAPE[-1]
    q, k = q.reshape(-1, d_k), k.reshape(-1, d_k)
    declared = law.moments(d_k)
    joint = np.cov(np.hstack([q, k]).T)
    # 20 000 tokens: an entry's standard error is about √(2/20000)·(heavy tails: a few times more).
    spread = 0.075 * max(1.0, float(declared.cov_q.max()))
    np.testing.assert_allclose(q.mean(0), declared.mean_q, atol=0.06 * spread / 0.075)
    np.testing.assert_allclose(k.mean(0), declared.mean_k, atol=0.06 * spread / 0.075)
    np.testing.assert_allclose(joint[:d_k, :d_k], declared.cov_q, atol=spread)
    np.testing.assert_allclose(joint[d_k:, d_k:], declared.cov_k, atol=spread)
    np.testing.assert_allclose(joint[:d_k, d_k:], declared.cross, atol=spread)


@pytest.mark.parametrize("law", IID, ids=str)
def test_declared_fourth_moment_is_that_of_the_draws(law):
    q, _ = law.draw(np.random.default_rng(6), 4000, 50, 10)
    z = (q - law.mean) / math.sqrt(law.variance)
    fourth = (z**4).reshape(4000, -1).mean(axis=1)
    error = fourth.std() / math.sqrt(4000)
    assert abs(fourth.mean() - law.fourth_moment) < 5 * error + 1e-12


@pytest.mark.parametrize(("law", "distribution"), [
    (laws.normal, stats.norm()),
    (laws.uniform, stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))),
    (laws.laplace, stats.laplace(scale=math.sqrt(0.5))),
    (laws.exponential, stats.expon(-1)),
    (laws.student_t(9), stats.t(9, scale=math.sqrt(7 / 9))),
    (laws.student_t(1.5), stats.t(1.5)),
], ids=str)
def test_coordinates_follow_their_distribution(law, distribution):
    q, k = law.draw(np.random.default_rng(7), 100, 10, 10)
    for x in (q, k):
        assert stats.kstest(x.ravel(), distribution.cdf).pvalue > 1e-4
    if law.finite_moments > 4:
        def square(x):
            return (x - law.mean) ** 4 * distribution.pdf(x)
        exact, _ = integrate.quad(square, *distribution.support(), limit=200)
        assert exact == pytest.approx(law.fourth_moment * law.variance**2, rel=1e-6)


def test_rademacher_and_sparse_take_their_values_with_their_shares():
    q, k = laws.rademacher.draw(np.random.default_rng(8), 100, 10, 11)
    assert set(np.unique(np.concatenate([q, k]))) == {-1.0, 1.0}
    assert abs(q.mean()) < 0.05
    q, _ = laws.sparse(0.1).draw(np.random.default_rng(8), 100, 10, 10)
    assert abs((q != 0).mean() - 0.1) < 0.02


@given(st.sampled_from(IID + DEPENDENT), st.integers(1, 5), st.integers(1, 7), st.integers(1, 9),
       st.integers(0, 2**32))
def test_draws_have_the_shape_asked_for_and_follow_the_seed(law, blocks, tokens, d_k, seed):
    first, second = (law.draw(np.random.default_rng(seed), blocks, tokens, d_k) for _ in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.shape == (blocks, tokens, d_k)
        assert a.dtype == np.float64
        np.testing.assert_array_equal(a, b)


def test_identical_gives_the_query_as_key_and_correlated_at_one_too():
    for law in (laws.identical(laws.laplace), laws.correlated(laws.laplace, 1.0)):
        q, k = law.draw(np.random.default_rng(9), 3, 4, 5)
        np.testing.assert_array_equal(q, k)
        assert law.coupled
    assert not laws.independent(laws.identical(laws.normal), laws.normal).coupled


def test_common_scale_is_multivariate_student_t():
    law = laws.common_scale(laws.normal, 6)
    q, _ = law.draw(np.random.default_rng(10), 2000, 1, 3)
    assert stats.kstest(q[:, 0, 0], stats.t(6, scale=math.sqrt(4 / 6)).cdf).pvalue > 1e-4
    length = np.linalg.norm(q[:, 0], axis=1)
    assert np.corrcoef(q[:, 0, 0] ** 2, q[:, 0, 1] ** 2)[0, 1] > 0.1
    # ‖x‖²/d of a multivariate t of unit variance is (df − 2)/df · F(d, df).
    assert stats.kstest(length**2 / 3 * 6 / 4, stats.f(3, 6).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("distribution", "index"), [
    (stats.t(3), 3), (stats.t(9), 9), (stats.cauchy(), 1), (stats.pareto(2.5), 2.5),
    (stats.invgamma(3), 3), (stats.burr12(2, 3), 6), (stats.norm(), math.inf),
    (stats.expon(), math.inf), (stats.uniform(), math.inf), (stats.poisson(3), math.inf),
    (stats.zipf(4), 3), (stats.f(5, 6), 3),
], ids=lambda value: value.dist.name if hasattr(value, "dist") else "")
def test_tail_index(distribution, index):
    assert tail_index(distribution) == pytest.approx(index, rel=1e-3)


def test_quantiles_that_stand_still_do_not_make_a_tail_light(monkeypatch):
    # As those of Cauchy's law did in SciPy before 1.15: ±1.6e16 from 1e-17 on.
    cauchy = type(stats.cauchy)
    monkeypatch.setattr(cauchy, "_isf", lambda _, p: np.minimum(1 / np.pi / p, 1.6e16))
    monkeypatch.setattr(cauchy, "_ppf", lambda _, p: np.maximum(-1 / np.pi / p, -1.6e16))
    frozen = stats.cauchy()
    assert frozen.isf(1e-50) == frozen.isf(1e-100) == 1.6e16
    assert tail_index(frozen) == 1


def test_moments_that_do_not_exist_are_declared_so():
    assert math.isnan(laws.student_t(1).mean)
    assert math.isinf(laws.student_t(2).variance)
    assert math.isinf(laws.student_t(4).fourth_moment)
    assert laws.student_t(5).finite_moments == 5
    assert laws.common_scale(laws.student_t(9), 7).finite_moments == 7
    assert laws.independent(laws.normal, laws.student_t(3)).finite_moments == 3
    cauchy = laws.iid(stats.cauchy(), raw=True)
    assert math.isnan(cauchy.mean)
    assert cauchy.finite_moments == pytest.approx(1)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.student_t(0), "df must be at least 0.05"),
    (lambda: laws.sparse(0), "above 0 and at most 1"),
    (lambda: laws.iid(stats.norm), "freeze it"),
    (lambda: laws.iid(stats.cauchy()), "raw=True"),
    (lambda: laws.correlated(laws.normal, 1.5), "between -1 and 1"),
    (lambda: laws.equicorrelated(laws.normal, -0.1), "between 0 and 1"),
    (lambda: laws.equicorrelated(laws.shifted(laws.normal, 1), 0.1), "independent coordinates"),
    (lambda: laws.shifted("normal", 1), "is not a law"),
    (lambda: laws.shifted(laws.normal, math.nan), "finite"),
    (lambda: laws.independent(laws.normal, 3), "is not a law"),
    (lambda: laws.identical(3), "is not a law"),
    (lambda: laws.common_scale(laws.normal, 2), "above 2"),
    (lambda: laws.common_scale(laws.iid(stats.norm(1), raw=True), 5), "mean 0"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_laws_made_from_tables_are_told_apart():
    one, other = (laws.iid(stats.rv_discrete(values=([0, 1, 5], p))())
                  for p in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]))
    assert one != other
    assert str(one) != str(other)
    heights = np.histogram([1.0, 2.0, 2.5, 7.0], bins=3)
    assert str(laws.iid(stats.rv_histogram(heights, density=False)())) == str(
        laws.iid(stats.rv_histogram(heights, density=False)()))


def test_laws_are_values():
    assert laws.correlated(laws.normal, 0.3) == laws.correlated(laws.normal, 0.3)
    assert len({laws.student_t(5), laws.student_t(5), laws.student_t(6)}) == 2
    assert all(isinstance(law, laws.Law) for law in IID + DEPENDENT)
    assert str(laws.correlated(laws.normal, 0.3)) == "correlated[normal-0.3]"


@pytest.mark.parametrize("law", [
    laws.student_t(1), laws.stable(0.9), laws.iid(stats.cauchy(), raw=True),
], ids=str)
def test_laws_without_moments_equal_their_copies(law):
    assert math.isnan(law.mean)
    # Of a law whose numbers are not those of the same object: nan is not equal to itself.
    other = replace(law, mean=float("nan"), fourth_moment=float("nan"))
    assert (other == law, hash(other) == hash(law)) == (True, True)
    assert law != laws.student_t(2)
