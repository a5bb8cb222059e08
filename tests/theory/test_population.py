"""The exact variance of a score over measured tokens, against all pairs written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify import laws, theory
from mcverify.theory.population import score_variance


@st.composite
def populations(draw):
    """(q, k, groups) of ragged groups, with means and scales of their own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(2, 6), min_size=1, max_size=5))
    d_k = draw(st.integers(1, 5))
    q, k = rng.standard_normal((2, sum(sizes), d_k)) @ rng.standard_normal((d_k, d_k))
    return q + 3 * rng.standard_normal(d_k), k - 2, np.repeat(np.arange(len(sizes)), sizes)


def pairs(groups):
    """(query, key, probability) of every pair of different tokens of one group."""
    sizes = np.bincount(groups)
    i, j = np.nonzero((groups[:, None] == groups) & ~np.eye(len(groups), dtype=bool))
    return i, j, 1 / (len(groups) * (sizes[groups[i]] - 1))


def by_pairs(q, k, groups):
    i, j, p = pairs(groups)
    s = np.sum(q[i] * k[j], axis=1)
    return p @ (s - p @ s) ** 2


@given(populations(), st.randoms())
def test_it_is_that_of_all_pairs_in_any_order_of_tokens(population, random):
    q, k, groups = population
    order = random.sample(range(len(q)), len(q))
    exact = by_pairs(q, k, groups)
    assert score_variance(laws.measured(q[order], k[order], groups[order])) == pytest.approx(exact)
    assert score_variance(laws.measured(q, k)) == pytest.approx(by_pairs(q, k, 0 * groups))


def test_a_mean_far_away_costs_no_digits():
    q, k = np.random.default_rng(0).standard_normal((2, 60, 4))
    groups, far = np.arange(60) // 6, np.array([0, 1e8, 0, 0])
    # Σ over pairs of (s + 1e8 x)², s the score and x of the key, both less their means.
    i, j, p = pairs(groups)
    s, x = np.sum(q[i] * k[j], axis=1), k[j, 1]
    s, x = s - p @ s, x - p @ x
    exact = p @ s**2 + 2e8 * (p @ (s * x)) + 1e16 * (p @ x**2)
    assert score_variance(laws.measured(q + far, k, groups)) == pytest.approx(exact, rel=1e-12)


@given(populations())
def test_the_full_formula_is_the_variance_over_all_queries_and_keys(population):
    q, k, _ = population
    predicted = theory.predicted_variances(laws.measured(q, k).moments(q.shape[1]))
    centred_q, centred_k = q - q.mean(0), k - k.mean(0)
    assert predicted["means"] == pytest.approx((q @ k.T).var())
    assert predicted["correlations"] == pytest.approx((centred_q @ centred_k.T).var())
    assert predicted["variances"] == pytest.approx(
        (centred_q**2).mean() * (centred_k**2).mean() * q.shape[1])
