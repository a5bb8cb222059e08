"""Queries and keys tied token by token, or freed of each other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from agreement import assert_mean
from scipy import stats

from mcverify import laws, theory
from mcverify.attention import matched_scores, other_scores
from mcverify.theory import enumeration


def test_correlation_1_gives_the_query_as_key_and_independent_parts_them():
    q, k = laws.correlated(laws.laplace, 1.0).draw(np.random.default_rng(9), 3, 4, 5)
    np.testing.assert_array_equal(q, k)
    apart = laws.independent(laws.identical(laws.normal), laws.identical(laws.normal))
    assert not apart.coupled
    q, k = apart.draw(np.random.default_rng(9), 3, 4, 5)
    assert not (q == k).any()


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
def test_random_sign_variance(d_k):
    ternary = enumeration.sparse_coin(Fraction(1, 4))  # variance 1/4: ‖q‖⁴ has 1/16 of it
    square = {Fraction(0): Fraction(3, 4), Fraction(1): Fraction(1, 4)}
    length = enumeration.total(square, d_k)
    fourth = float(enumeration.moment(ternary, 4) / enumeration.variance(ternary) ** 2)
    assert float(enumeration.moment(length, 2)) * 16 == pytest.approx(
        theory.random_sign_variance(fourth, d_k))
    assert theory.random_sign_variance(3.0, d_k) == d_k * (d_k + 2) == pytest.approx(
        stats.chi2(d_k).moment(2))
    assert theory.random_sign_variance(1.0, d_k) == d_k**2


def test_random_sign_gives_plus_or_minus_the_query():
    q, k = laws.random_sign(laws.normal).draw(np.random.default_rng(4), 4096, 4, 6)
    ratio = (k / q).mean(axis=-1)
    np.testing.assert_allclose(np.abs(k / q - ratio[..., None]).max(), 0, atol=1e-12)
    assert set(np.unique(ratio.round(12))) == {-1.0, 1.0}
    s = matched_scores(q, k)
    assert_mean((s**2).mean(axis=1), theory.random_sign_variance(3.0, 6))
    assert_mean((other_scores(q, k) ** 2).mean(axis=(1, 2)), 6.0)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.correlated(laws.normal, 1.5), "between -1 and 1"),
    (lambda: laws.independent(laws.normal, 3), "is not a law"),
    (lambda: laws.identical(3), "is not a law"),
    (lambda: laws.random_sign(laws.sign_products), "independent coordinates"),
    (lambda: laws.identical(laws.unit_norm(laws.normal)),
     "another law of one coordinate, and put unit_norm around identical, not inside$"),
    (lambda: laws.correlated(laws.shifted(laws.normal, 1), 0.5), "put shifted around correlated"),
    (lambda: laws.identical(laws.identical(laws.normal)), "another law of one coordinate$"),
    (lambda: laws.shifted("normal", 1), "is not a law"),
    (lambda: laws.shifted(laws.normal, math.nan), "finite"),
    (lambda: laws.scaled(laws.normal, 0, 1), "must be positive"),
    (lambda: laws.scaled("normal", 1, 1), "is not a law"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
