"""Closed forms against enumeration, and against other closed forms; nothing here draws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from mcverify import laws, theory
from mcverify.theory import enumeration
from mcverify.theory.enumeration import COIN, sparse_coin

D_K = [1, 2, 3, 8]
TERNARY = sparse_coin(Fraction(1, 4))


def fourth(law):
    return float(enumeration.moment(law, 4) / enumeration.moment(law, 2) ** 2)


def test_score_law_is_that_of_all_outcomes_counted_one_by_one():
    outcomes = itertools.product([-1, 0, 1], repeat=4)  # q₁ q₂ k₁ k₂
    weight = {-1: Fraction(1, 8), 0: Fraction(3, 4), 1: Fraction(1, 8)}
    counted: dict[int, Fraction] = {}
    for a, b, c, d in outcomes:
        s = a * c + b * d
        counted[s] = counted.get(s, 0) + weight[a] * weight[b] * weight[c] * weight[d]
    assert enumeration.score_law(TERNARY, TERNARY, 2) == counted


BENT = {Fraction(0): Fraction(3, 4), Fraction(4): Fraction(1, 4)}  # mean 1, variance 3, skew


def test_laws_that_are_not_symmetric_by_hand():
    # Of 0 or 1 with P(1) = 1/4: E (x − 1/4)⁴ = 21/256 over (3/16)², whatever the scale.
    assert enumeration.excess_kurtosis(BENT) == Fraction(21, 256) / Fraction(9, 256) - 3
    assert enumeration.variance(BENT) == 3
    assert enumeration.moment(BENT, 3, about=Fraction(1)) == 6
    assert enumeration.mean_size({Fraction(-4): Fraction(1, 4), Fraction(2): Fraction(3, 4)}
                                 ) == Fraction(5, 2)
    # q(3q + 4z)/5: 0 unless q = 4, then 48/5 with z = 0, 112/5 with z = 4.
    assert enumeration.correlated_term(BENT, Fraction(3, 5), Fraction(4, 5)) == {
        Fraction(0): Fraction(3, 4), Fraction(48, 5): Fraction(3, 16),
        Fraction(112, 5): Fraction(1, 16)}


def test_values_are_listed_in_their_order():
    for law in (enumeration.product(COIN, COIN), enumeration.total(BENT, 3),
                enumeration.correlated_term(COIN, Fraction(-3, 5), Fraction(4, 5))):
        assert list(law) == sorted(law)


@pytest.mark.parametrize("d_k", D_K)
@pytest.mark.parametrize(("q", "k"), [(COIN, COIN), (COIN, TERNARY), (TERNARY, TERNARY)])
def test_kurtosis_and_variance_of_scores(q, k, d_k):
    law = enumeration.score_law(q, k, d_k)
    assert float(enumeration.excess_kurtosis(law)) == pytest.approx(
        theory.dot_kurtosis(fourth(q), fourth(k), d_k))
    expected = d_k * enumeration.variance(q) * enumeration.variance(k)
    assert enumeration.variance(law) == expected


@pytest.mark.parametrize("d_k", D_K)
def test_variance_of_correlated_pairs(d_k):
    # Ternary coordinates scaled to variance 1 have variance 1/4: the score has 1/16 of it.
    term = enumeration.correlated_term(TERNARY, Fraction(3, 5), Fraction(4, 5))
    found = float(enumeration.variance(enumeration.total(term, d_k))) * 16
    assert found == pytest.approx(theory.correlated_variance(0.6, 4.0, d_k))


@pytest.mark.parametrize("d_k", [1, 2, 3, 7, 8, 64])
def test_mean_size_of_coin_sums(d_k):
    found = enumeration.mean_size(enumeration.total(COIN, d_k))
    assert float(found) == pytest.approx(theory.coin_sum_mean_size(d_k), rel=1e-14)


@pytest.mark.parametrize("d_k", [2, 8, 64])
def test_mean_size_of_normal_scores_is_that_of_coins(d_k):
    # Given ‖q‖ = r, q·k is N(0, r²): E abs = √(2/π) E r.
    expected = math.sqrt(2 / math.pi) * stats.chi(d_k).mean()
    assert theory.coin_sum_mean_size(d_k) == pytest.approx(expected, rel=1e-12)


def test_dot_variance_of_known_laws():
    rho, d = 0.3, 16
    assert theory.dot_variance(laws.equicorrelated(laws.normal, rho), d) == pytest.approx(
        d + d * (d - 1) * rho**2)
    one = laws.independent(laws.equicorrelated(laws.normal, rho), laws.normal)
    assert theory.dot_variance(one, d) == pytest.approx(d)
    two = laws.independent(laws.shifted(laws.normal, 2), laws.shifted(laws.normal, 0.5))
    assert theory.dot_variance(two, d) == pytest.approx(d * (1 + 4 + 0.25))
    assert theory.dot_mean(two, d) == pytest.approx(d)


@given(st.fractions(-2, 2, max_denominator=7), st.fractions(-2, 2, max_denominator=7),
       st.sampled_from([1, 2, 3]))
def test_dot_variance_with_means_against_enumeration(mean_q, mean_k, d_k):
    moved = [{value + m: p for value, p in COIN.items()} for m in (mean_q, mean_k)]
    law = enumeration.score_law(*moved, d_k)
    expected = laws.independent(laws.shifted(laws.rademacher, float(mean_q)),
                                laws.shifted(laws.rademacher, float(mean_k)))
    assert theory.dot_variance(expected, d_k) == pytest.approx(float(enumeration.variance(law)))
    assert theory.dot_mean(expected, d_k) == pytest.approx(float(enumeration.moment(law, 1)))


def test_matched_mean():
    assert theory.matched_mean(laws.identical(laws.laplace), 8) == pytest.approx(8)
    shifted = laws.shifted(laws.correlated(laws.normal, -0.5), 1.0)
    assert theory.matched_mean(shifted, 8) == pytest.approx(8 * (1 - 0.5))


@pytest.mark.parametrize("df", [9, 30])
def test_scaled_vector_kurtosis_from_the_moments_of_student_t(df):
    # At d_k = 1 the score is a product of two Student t variables of variance 1.
    fourth_t = 3 * (df - 2) / (df - 4)
    scale = laws.common_scale(laws.normal, df).scale_fourth_moment
    assert theory.scaled_vector_kurtosis(scale, scale, 1) == pytest.approx(fourth_t**2 - 3)
    moment, _ = integrate.quad(lambda u: u**-2 * stats.chi2(df).pdf(u), 0, np.inf)
    assert scale == pytest.approx(moment * (df - 2) ** 2, rel=1e-6)
