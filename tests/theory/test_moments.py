"""Var(q·k) for any means and covariances: enumerated, by quadrature, in algebra, and measured."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcverify import laws, theory
from mcverify.attention import matched_scores, scores
from mcverify.laws.coordinates import Iid
from mcverify.statistic import variance

SEEDS = st.integers(0, 2**32)
KINDS = st.sampled_from(["low rank", "ill-conditioned", "block", "Toeplitz", "diagonal"])


def covariance(kind, d_k, rng):
    """A random covariance of the kind, of trace d_k."""
    if kind == "low rank":
        a = rng.standard_normal((d_k, int(rng.integers(1, d_k + 1))))
        cov = a @ a.T
    elif kind == "ill-conditioned":
        turn, _ = np.linalg.qr(rng.standard_normal((d_k, d_k)))
        cov = (turn * 10.0 ** -rng.uniform(0, 12, d_k)) @ turn.T
    elif kind == "block":
        group = rng.integers(0, 2, d_k)
        cov = np.eye(d_k) + rng.uniform(0, 5) * (group[:, None] == group)
    elif kind == "Toeplitz":
        cov = rng.uniform(-1, 1) ** np.abs(np.arange(d_k)[:, None] - np.arange(d_k))
    else:
        cov = np.diag(rng.exponential(size=d_k))
    return cov * (d_k / np.trace(cov))


def two_point(p):
    """Variance 1, mean 0, the larger value with probability p: (law, values, shares, skewness)."""
    values = np.array([-math.sqrt(p / (1 - p)), math.sqrt((1 - p) / p)])
    skewness = (1 - 2 * p) / math.sqrt(p * (1 - p))
    law = Iid(f"two_point-{p}", lambda rng, shape: rng.choice(values, shape, p=[1 - p, p]),
              fourth_moment=1 + skewness**2, skewness=skewness)
    return law, values, np.array([1 - p, p])


def weighted_outcomes(values, shares, m):
    """All outcomes of m independent values, (outcomes, m), and their probabilities."""
    z = np.array([*itertools.product(values, repeat=m)])
    return z, np.prod(np.array([*itertools.product(shares, repeat=m)]), axis=1)


def variance_over(z, p, root_q, root_k, mean_q, mean_k):
    s = np.sum((z @ root_q.T + mean_q) * (z @ root_k.T + mean_k), axis=1)
    return p @ (s - p @ s) ** 2


def views(d_k, m, rng):
    """Two roots (d_k, m), of which M = A'B is not symmetric, and two means."""
    return (*rng.standard_normal((2, d_k, m)), *rng.standard_normal((2, d_k)))


# --- exact ------------------------------------------------------------------------------------


@given(st.just(0.5) | st.floats(0.05, 0.95), st.integers(1, 4), st.integers(1, 5), SEEDS)
def test_matched_variance_enumerated_with_coins(p, d_k, m, seed):
    given_ = views(d_k, m, np.random.default_rng(seed))
    base, values, shares = two_point(p)
    exact = variance_over(*weighted_outcomes(values, shares, m), *given_)
    law = laws.linear(base, *given_, joint=True)
    assert theory.matched_variance(law, d_k) == pytest.approx(exact, abs=1e-9)


@given(st.integers(1, 4), st.integers(1, 4), SEEDS)
def test_matched_variance_of_normal_vectors_by_quadrature(d_k, m, seed):
    given_ = views(d_k, m, np.random.default_rng(seed))
    # s² has degree 4 in each coordinate of z: three nodes of Gauss and Hermite are exact.
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    z, p = weighted_outcomes(nodes, weights / weights.sum(), m)
    exact = variance_over(z, p, *given_)
    law = laws.linear(laws.normal, *given_, joint=True)
    assert theory.matched_variance(law, d_k) == pytest.approx(exact, abs=1e-9)
    assert theory.normal_matched_variance(law.moments(d_k)) == pytest.approx(exact, abs=1e-9)


@given(st.floats(0.1, 0.9), st.floats(-2, 2), st.floats(0.2, 3), st.integers(1, 4), SEEDS)
def test_a_base_with_a_mean_and_a_scale_moves_into_the_means_and_roots(p, mean, std, d_k, seed):
    base, values, shares = two_point(p)
    moved = Iid("moved", lambda rng, shape: mean + std * base.sample(rng, shape),
                base.fourth_moment, mean=mean, variance=std**2, skewness=base.skewness)
    given_ = views(d_k, 3, np.random.default_rng(seed))
    exact = variance_over(*weighted_outcomes(mean + std * values, shares, 3), *given_)
    law = laws.linear(moved, *given_, joint=True)
    assert theory.matched_variance(law, d_k) == pytest.approx(
        exact, rel=1e-9, abs=1e-9)


@given(st.floats(0.1, 0.9), st.integers(1, 4), st.integers(1, 3), SEEDS)
def test_dot_variance_enumerated_for_independent_vectors(p, d_k, m, seed):
    root_q, root_k, mean_q, mean_k = views(d_k, m, np.random.default_rng(seed))
    base, values, shares = two_point(p)
    law = laws.linear(base, root_q, root_k, mean_q, mean_k)
    apart = [np.hstack([root_q, 0 * root_q]), np.hstack([0 * root_k, root_k])]
    exact = variance_over(*weighted_outcomes(values, shares, 2 * m), *apart, mean_q, mean_k)
    assert theory.dot_variance(law, d_k) == pytest.approx(exact, abs=1e-9)
    assert theory.matched_variance(law, d_k) == theory.dot_variance(law, d_k)
    # Written as two views of one z that have no coordinate in common, nothing is added to it.
    joint = laws.linear(base, *apart, mean_q, mean_k, joint=True)
    assert theory.matched_variance(joint, d_k) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("base", [*laws.STANDARD, laws.exponential, laws.sparse(0.2)], ids=str)
@pytest.mark.parametrize("rho", [0.0, 0.6, -0.8, 1.0])
def test_matched_variance_agrees_with_that_of_correlated_coordinates(base, rho):
    d_k, eye = 3, np.eye(3)
    law = laws.linear(base, np.hstack([eye, 0 * eye]),
                      np.hstack([rho * eye, math.sqrt(1 - rho**2) * eye]), joint=True)
    assert theory.matched_variance(law, d_k) == pytest.approx(
        theory.correlated_variance(rho, base.fourth_moment, d_k), abs=1e-12)


def test_matched_variance_says_when_it_does_not_know():
    unknown = Iid("unknown", laws.exponential.sample, fourth_moment=9.0)
    with pytest.raises(ValueError, match="needs the third moment of the coordinates"):
        theory.matched_variance(laws.linear(unknown, np.eye(2), mean_q=1.0, joint=True), 2)
    centred = laws.linear(unknown, np.eye(2), joint=True)
    assert theory.matched_variance(centred, 2) == 2 * 8  # κ − 1 a coordinate
    with pytest.raises(ValueError, match="linear in the same coordinates"):
        theory.matched_variance(laws.random_sign(laws.normal), 2)


# --- alignment and the minimal condition ------------------------------------------------------


@given(KINDS, KINDS, st.integers(1, 12), SEEDS)
def test_alignment_and_effective_rank(kind_q, kind_k, d_k, seed):
    rng = np.random.default_rng(seed)
    q, k = covariance(kind_q, d_k, rng), covariance(kind_k, d_k, rng)
    found = theory.alignment(q, k)
    assert -1e-9 <= found <= d_k + 1e-9
    assert found == pytest.approx(theory.alignment(3 * k, 0.1 * q))
    assert theory.dot_variance(laws.gaussian(q, k), d_k) == pytest.approx(
        np.trace(q) * np.trace(k) * found / d_k, abs=1e-9)
    assert 1 - 1e-9 <= theory.effective_rank(q) <= np.linalg.matrix_rank(q, tol=1e-15) + 1e-9
    assert theory.alignment(q, q) == pytest.approx(d_k / theory.effective_rank(q))


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_alignment_of_low_rank_vectors(rank):
    cov = laws.low_rank(laws.normal, rank).moments(8).cov_q
    assert theory.effective_rank(cov) == pytest.approx(rank)
    assert theory.alignment(cov, cov) == pytest.approx(8 / rank)


@given(KINDS, st.integers(1, 12), SEEDS)
def test_one_white_side_is_enough_in_algebra(kind, d_k, seed):
    rng = np.random.default_rng(seed)
    cov, mean = covariance(kind, d_k, rng), rng.standard_normal(d_k)
    assert theory.alignment(cov, np.eye(d_k)) == pytest.approx(1)
    length = np.trace(cov) + mean @ mean
    assert theory.dot_variance(laws.gaussian(cov, np.eye(d_k), mean), d_k) == pytest.approx(length)
    assert theory.dot_variance(laws.gaussian(np.eye(d_k), cov, 0.0, mean), d_k) == pytest.approx(
        length)


# --- measured ---------------------------------------------------------------------------------


def measured_variance(law, d_k, pairs, seed):
    """The variance of scores with an interval that misses at 1e-8, from as many blocks as needed.

    Long tails, as of the square of one coordinate, take more of them than the first 1024.
    """
    tokens = 12 if pairs is scores else 48
    rng, tables = np.random.default_rng(seed), []
    for _ in range(16):
        tables.append(variance.reduce(pairs(*law.draw(rng, 1024, tokens, d_k))))
        found = variance.estimate(np.concatenate(tables), 1e-8)
        if not found.reason:
            return found
    raise AssertionError(f"{law} has no interval: {found.reason}")


BASES = st.sampled_from([laws.normal, laws.rademacher, laws.uniform, laws.laplace])
LIGHT = st.sampled_from([laws.normal, laws.rademacher, laws.uniform])  # with k = q, s is a square


@settings(max_examples=30)
@given(KINDS, KINDS, BASES, st.integers(1, 6), SEEDS)
def test_dot_variance_measured(kind_q, kind_k, base, d_k, seed):
    rng = np.random.default_rng(seed)
    roots = [np.linalg.cholesky(covariance(kind, d_k, rng) + 1e-9 * np.eye(d_k))
             for kind in (kind_q, kind_k)]
    mean_q, mean_k = rng.standard_normal((2, d_k)) * rng.integers(0, 2, 2)[:, None]
    law = laws.linear(base, *roots, mean_q, mean_k)
    found = measured_variance(law, d_k, scores, seed)
    assert found.low <= theory.dot_variance(law, d_k) <= found.high


@settings(max_examples=20)
@given(KINDS, st.integers(1, 3), SEEDS)
def test_normal_matched_variance_measured(kind, d_k, seed):
    rng = np.random.default_rng(seed)
    joint = covariance(kind, 2 * d_k, rng)
    law = laws.gaussian(joint[:d_k, :d_k], joint[d_k:, d_k:], *rng.standard_normal((2, d_k)),
                        cross=joint[:d_k, d_k:])
    found = measured_variance(law, d_k, matched_scores, seed)
    assert found.low <= theory.normal_matched_variance(law.moments(d_k)) <= found.high


@settings(max_examples=20)
@given(LIGHT, st.integers(1, 5), st.integers(2, 6), SEEDS)
def test_matched_variance_measured(base, d_k, m, seed):
    law = laws.linear(base, *views(d_k, m, np.random.default_rng(seed)), joint=True)
    found = measured_variance(law, d_k, matched_scores, seed)
    assert found.low <= theory.matched_variance(law, d_k) <= found.high


@settings(max_examples=20)
@given(KINDS, BASES, st.integers(1, 6), SEEDS)
def test_one_white_side_is_enough_measured(kind, base, d_k, seed):
    cov = covariance(kind, d_k, np.random.default_rng(seed))
    law = laws.independent(laws.gaussian(cov), base)
    found = measured_variance(law, d_k, scores, seed)
    assert found.low <= d_k <= found.high


@pytest.mark.parametrize(("law", "d_k"), [
    (laws.autoregressive(laws.normal, 0.8), 16), (laws.low_rank(laws.normal, 2), 8),
    (laws.low_rank(laws.rademacher, 1), 4), (laws.unequal(laws.uniform, 3), 8),
    (laws.scaled(laws.normal, 2.0, 3.0), 8), (laws.sign_products, 12), (laws.sign_products, 5),
    (laws.multivariate_t(20, 0.5), 6), (laws.memory(laws.normal, 0.9), 4),
    (laws.shared_query(laws.normal), 4),
], ids=str)
def test_named_laws_have_the_variance_of_their_moments(law, d_k):
    found = measured_variance(law, d_k, scores, 20)
    assert found.low <= theory.dot_variance(law, d_k) <= found.high
    assert found.high - found.low < 0.5 * found.value
