"""Coordinates that depend on each other within a vector, where no covariance shows it or does."""

import itertools
import math

import numpy as np
import pytest
from agreement import RATE, assert_drawn_from, assert_mean
from scipy import stats

from mcverify import laws, theory
from mcverify.laws.coordinates_tied import subset_products


@pytest.mark.parametrize("df", [0.8, 2.0, 5.0])
def test_multivariate_t_has_t_marginals_a_common_scale_and_the_correlation(df):
    rho, unit = 0.6, math.sqrt((df - 2) / df) if df > 2 else 1.0
    t = stats.t(df, scale=unit)
    for x in laws.multivariate_t(df, rho).draw(np.random.default_rng(5), 20000, 1, 3):
        first, second, third = x[:, 0].T
        # Projections of an elliptical vector have its marginal law.
        for y in (first, third, (first - second) / math.sqrt(2 * (1 - rho))):
            assert_drawn_from(y, t)
        # Kendall's τ = 2/π arcsin ρ in every elliptical law, from concordant pairs of vectors.
        concordant = np.sign((first[::2] - first[1::2]) * (second[::2] - second[1::2]))
        assert_mean(concordant, 2 / math.pi * math.asin(rho))


@pytest.mark.parametrize(("law", "df"), [
    (laws.multivariate_t(0.8, 0), 0.8), (laws.multivariate_t(5, 0), 5),
    (laws.common_scale(laws.normal, 6), 6)], ids=str)
def test_length_of_a_vector_with_a_common_scale(law, df):
    # x'x/d is F(d, df): a scale of each coordinate's own would make it a mean of independent ones.
    x, _ = law.draw(np.random.default_rng(6), 20000, 1, 8)
    unit = (df - 2) / df if df > 2 else 1.0
    assert_drawn_from((x[:, 0] ** 2).mean(axis=1) / unit, stats.f(8, df))


@pytest.mark.parametrize("df", [4.5, 5, 9, 30])
def test_fourth_moment_of_the_common_scale(df):
    inverse = stats.invgamma(df / 2, scale=0.5)  # of 1/χ²(df)
    assert inverse.moment(1) * (df - 2) == pytest.approx(1)
    exact = pytest.approx(inverse.moment(2) * (df - 2) ** 2)
    assert laws.common_scale(laws.normal, df).scale_fourth_moment == exact
    assert laws.multivariate_t(df, 0.3).side("q", 4).image.scale_fourth == exact


# --- coins that are products of coins ----------------------------------------------------------


def all_sign_products(d_k):
    return subset_products(np.array([*itertools.product([-1.0, 1.0], repeat=d_k.bit_length())]),
                           d_k)


@pytest.mark.parametrize("d_k", [1, 2, 3, 5, 7, 12, 15])
def test_sign_products_are_independent_in_pairs_and_not_in_threes(d_k):
    x = all_sign_products(d_k)
    outcomes = len(x)
    assert (x.sum(axis=0) == 0).all()  # a fair coin each
    for i, j in itertools.combinations(range(d_k), 2):
        counts = np.unique(2 * x[:, i] + x[:, j], return_counts=True)[1]
        assert counts.tolist() == [outcomes / 4] * 4
    for i, j, h in itertools.combinations(range(d_k), 3):
        dependent = (i + 1) ^ (j + 1) ^ (h + 1) == 0
        assert abs((x[:, i] * x[:, j] * x[:, h]).sum()) == (outcomes if dependent else 0)


@pytest.mark.parametrize("d_k", [1, 2, 3, 5, 7, 12, 15])
def test_scores_of_sign_products_enumerated(d_k):
    x = all_sign_products(d_k)
    s = x @ x.T  # all pairs of equally likely vectors
    assert s.sum() == 0
    assert (s**2).mean() == d_k == theory.dot_variance(laws.sign_products, d_k)
    if d_k + 1 == len(x):
        assert set(np.unique(s)) == {-1.0, float(d_k)}
        assert (s == d_k).mean() == 1 / (d_k + 1)


@pytest.mark.parametrize("d_k", [3, 5, 7])
def test_drawn_sign_products_are_the_enumerated_ones_equally_often(d_k):
    x = all_sign_products(d_k)
    code = 2.0 ** np.arange(d_k)
    q, k = laws.sign_products.draw(np.random.default_rng(3), 1000, 1, d_k)
    for side in (q, k):
        values, counts = np.unique(side[:, 0] @ code, return_counts=True)
        np.testing.assert_array_equal(values, np.unique(x @ code))
        assert stats.chisquare(counts).pvalue > RATE
    pairs = np.unique(np.stack([q[:, 0] @ code, k[:, 0] @ code]), axis=1)
    assert pairs.shape[1] == len(x) ** 2  # 64 of them, of which 1000 draws miss none


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.equicorrelated(laws.normal, -0.1), "between 0 and 1"),
    (lambda: laws.equicorrelated(laws.shifted(laws.normal, 1), 0.1), "independent coordinates"),
    (lambda: laws.common_scale(laws.normal, 2), "above 2"),
    (lambda: laws.common_scale(laws.iid(stats.norm(1), raw=True), 5), "mean 0"),
    (lambda: laws.multivariate_t(0, 0.1), "df must be positive"),
    (lambda: laws.multivariate_t(5, -0.1), "between 0 and 1"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
