"""Shares of a unit length against closed forms, and the score variances that they make."""

import numpy as np
import pytest
from scipy import stats

from mcverify import laws
from mcverify.theory import norms


@pytest.mark.parametrize("ratio", [1e-4, 0.3, 1.0, 50.0])
def test_two_directions_share_as_their_deviations(ratio):
    """y₁²/(y₁² + y₂²) has the mean σ₁/(σ₁ + σ₂), an integral of arctangents."""
    share, _ = norms.shares(np.array([ratio**2, 1.0]))
    assert share == pytest.approx(ratio / (ratio + 1), rel=1e-9)


def test_shares_of_many_directions_sum_to_one_and_are_equal_where_variances_are():
    found = norms.shares(np.array([*[5.0] * 3, *[1.0] * 60, 1e-9]))
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert np.ptp(found[:3]) == pytest.approx(0, abs=1e-12)


def test_shares_by_draws():
    variances = np.array([3.0, 1.0, 0.5, 0.1])
    y = np.random.default_rng(0).standard_normal((200_000, 4)) * np.sqrt(variances)
    found = (y**2 / np.sum(y**2, axis=1, keepdims=True)).mean(axis=0)
    assert norms.shares(variances) == pytest.approx(found, abs=0.003)


@pytest.mark.parametrize(("d_k", "rank"), [(8, 4), (64, 16), (64, 4)])
def test_a_norm_leaves_low_rank_as_it_was(d_k, rank):
    cov = laws.low_rank(laws.normal, rank).moments(d_k).cov_q
    for centred in (False, True):
        assert norms.normed_score_variance(cov, centred) == pytest.approx(d_k / rank)


def test_white_vectors_lose_the_dimension_that_centring_takes():
    assert norms.normed_score_variance(np.eye(8), centred=True) == pytest.approx(8 / 7)
    assert norms.normed_score_variance(np.eye(8), centred=False) == pytest.approx(1)


@pytest.mark.parametrize("d_k", [1, 8, 64])
def test_kept_magnitude_is_the_squared_mean_length(d_k):
    assert norms.kept_magnitude(d_k) == pytest.approx(stats.chi(d_k).mean() ** 2 / d_k)


def test_wide_vectors_keep_all_but_half_a_coordinate_of_their_magnitude():
    assert norms.kept_magnitude(10**4) == pytest.approx(1 - 1 / (2 * 10**4), abs=1e-8)
