"""Rotary positions: what a rotation can do to the variance of scores, and to their mean."""

import math

import numpy as np
import pytest
from agreement import assert_mean
from hypothesis import given, settings
from hypothesis import strategies as st

from mcverify import laws, theory
from mcverify.attention import matched_scores, scores, vectors
from mcverify.theory import rotary as rotations

D_K = 6


def gaussian(seed):
    """Normal q and k of any covariances and means."""
    a, b = np.random.default_rng(seed).standard_normal((2, D_K, D_K)) / math.sqrt(D_K)
    return laws.gaussian(a @ a.T, b @ b.T, a[0], -a[0])


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(-10**5, 10**5), st.sampled_from(vectors.PAIRINGS),
       st.floats(2, 1e6))
def test_rotations_keep_the_variance_if_one_side_is_isotropic_with_mean_0(
        seed, distance, pairing, theta):
    for base in (laws.independent(laws.normal, gaussian(seed)),
                 laws.independent(gaussian(seed), laws.laplace)):
        turned = laws.rotary(base, distance, theta, pairing)
        assert theory.dot_variance(turned, D_K) == pytest.approx(theory.dot_variance(base, D_K))


def blocks_of(seed, pairs, pairing):
    """Random covariances without entries between pairs."""
    order = np.arange(2 * pairs).reshape(2, pairs).T.ravel() if pairing == "halves" else slice(None)
    a = np.random.default_rng(seed).standard_normal((pairs, 2, 2))
    cov = np.zeros((2 * pairs, 2 * pairs))
    own = np.zeros((2 * pairs, 2 * pairs))
    for i, block in enumerate(a):
        own[2 * i:2 * i + 2, 2 * i:2 * i + 2] = block @ block.T
    cov[np.ix_(order, order) if pairing == "halves" else ...] = own
    return cov


def turned_variance(cov_q, cov_k, angles, pairing):
    """tr(R Σ_q R' Σ_k), R with any angle for each pair."""
    turn = np.eye(len(cov_q))
    for i, angle in enumerate(angles):
        pair = [i, i + len(angles)] if pairing == "halves" else [2 * i, 2 * i + 1]
        c, s = math.cos(angle), math.sin(angle)
        turn[np.ix_(pair, pair)] = [[c, -s], [s, c]]
    return np.trace(turn @ cov_q @ turn.T @ cov_k)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from(vectors.PAIRINGS),
       st.lists(st.floats(-math.pi, math.pi), min_size=4, max_size=4))
def test_rotations_stay_within_the_bounds_and_some_reach_them(seed, pairs, pairing, angles):
    cov_q, cov_k = blocks_of(seed, pairs, pairing), blocks_of(seed + 1, pairs, pairing)
    low, high = rotations.variance_bounds(cov_q, cov_k, pairing)
    found = turned_variance(cov_q, cov_k, angles[:pairs], pairing)
    assert low - 1e-9 <= found <= high + 1e-9
    # The pairs do not meet, so each has its own best angle, and a pair's part of the variance is
    # c + a cos 2φ + b sin 2φ: three angles give its range.
    at = np.array([[turned_variance(cov_q, cov_k, angle * np.eye(pairs)[i], pairing)
                    for angle in (0, math.pi / 4, math.pi / 2)] for i in range(pairs)])
    centre = (at[:, 0] + at[:, 2]) / 2
    reach = np.hypot(at[:, 0] - centre, at[:, 1] - centre)
    still = turned_variance(cov_q, cov_k, np.zeros(pairs), pairing)
    assert still + (centre + reach - at[:, 0]).sum() == pytest.approx(high, rel=1e-9, abs=1e-9)
    assert still + (centre - reach - at[:, 0]).sum() == pytest.approx(low, rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(vectors.PAIRINGS), st.integers(-500, 500))
def test_one_side_without_entries_between_pairs_is_enough(seed, pairing, distance):
    cov_q = blocks_of(seed, 3, pairing)
    a = np.random.default_rng(seed).standard_normal((6, 6))
    low, high = rotations.variance_bounds(cov_q, a @ a.T, pairing)
    turned = vectors.rotate(vectors.rotate(cov_q, distance, pairing=pairing).T, distance,
                            pairing=pairing)
    assert low - 1e-9 <= np.trace(turned @ a @ a.T) <= high + 1e-9


@pytest.mark.parametrize("scale", [1.0, 2.0**20, 2.0**-20])
@pytest.mark.parametrize(("pairing", "other"), [("halves", 1), ("neighbours", 2)])
def test_one_entry_between_pairs_on_both_sides_is_refused(pairing, other, scale):
    """Coordinate 0 is paired with 2 in halves and with 1 as neighbours."""
    for entry, meets in ((0.5, True), (-0.5, True), (1e-11, True), (1e-13, False), (0.0, False)):
        cov = np.eye(4)
        cov[0, other] = cov[other, 0] = entry
        cov *= scale
        if meets:
            with pytest.raises(ValueError, match="entries between different pairs"):
                rotations.variance_bounds(cov, cov, pairing)
        else:
            assert rotations.variance_bounds(cov, cov, pairing) == (4 * scale**2, 4 * scale**2)
        assert rotations.variance_bounds(cov, np.eye(4), pairing) == (4 * scale, 4 * scale)
        assert rotations.variance_bounds(2 * np.eye(4), cov, pairing) == (8 * scale, 8 * scale)


def test_bounds_of_one_pair_by_hand():
    """Eigenvalues 4 and 1, at an angle to the axes, and 3 and 1: 4·3 + 1·1 and 4·1 + 1·3."""
    for pairing in vectors.PAIRINGS:
        found = rotations.variance_bounds([[3.4, 1.2], [1.2, 1.6]], [[3, 0], [0, 1]], pairing)
        assert found == pytest.approx((7, 13), rel=1e-14)


def test_matched_mean_by_hand():
    assert rotations.matched_mean(4, 2, theta=100.0) == pytest.approx(
        2 * math.cos(2) + 2 * math.cos(0.2), rel=1e-14)
    assert rotations.matched_mean(6, -5, theta=8.0) == pytest.approx(
        2 * math.cos(5) + 2 * math.cos(5 / 2) + 2 * math.cos(5 / 4), rel=1e-14)


def test_variance_of_rotated_scores_by_draws():
    # Pairs (0, 2) and (1, 3): variances 9 and 1, 4 and 1.
    cov = np.diag([9.0, 4, 1, 1])
    base = laws.gaussian(cov)
    low, high = rotations.variance_bounds(cov, cov, "halves")
    assert (low, high) == (9 + 9 + 4 + 4, 81 + 1 + 16 + 1)
    seen = []
    for distance in (0, 1, 157):  # 157 · 0.01 is nearly a quarter turn
        law = laws.rotary(base, distance)
        seen.append(theory.dot_variance(law, 4))
        s = scores(*law.draw(np.random.default_rng(distance), 4096, 16, 4))
        assert_mean((s**2).mean(axis=(1, 2)), seen[-1])
        assert low <= seen[-1] <= high
    assert seen[0] == high
    assert seen[1] < 0.7 * high


@pytest.mark.parametrize("pairing", vectors.PAIRINGS)
@pytest.mark.parametrize(("d_k", "distance"), [(2, 3), (6, 1), (64, 0), (64, 40), (64, -725)])
def test_mean_of_a_token_with_itself_at_a_distance(pairing, d_k, distance):
    law = laws.rotary(laws.identical(laws.normal), distance, pairing=pairing)
    expected = rotations.matched_mean(d_k, distance)
    assert theory.matched_mean(law, d_k) == pytest.approx(expected, abs=1e-11)
    q, k = law.draw(np.random.default_rng(3), 4096, 1, d_k)
    assert_mean(matched_scores(q, k)[:, 0], expected)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: rotations.variance_bounds(np.eye(2), np.eye(4), "halves"), "equally many"),
    (lambda: rotations.variance_bounds(np.eye(3), np.eye(3), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.eye(4)[:2], np.eye(4), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.eye(4)[:, :2], np.eye(4), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.ones(4), np.eye(4), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.eye(2), np.eye(2), "both"), "neighbours"),
    (lambda: rotations.variance_bounds(np.ones((4, 4)), np.ones((4, 4)), "halves"), "between"),
    (lambda: rotations.matched_mean(3, 1), "even"),
])
def test_impossible_questions_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
