"""Bounds on how much a block's mean over rows varies, by quadrature of small blocks."""

import math

import numpy as np
import pytest

from mcverify.laws.fourth_powers import Powers
from mcverify.theory.block_spread import (
    log_partition_spread,
    row_variance_mean_spread,
    row_variance_spread,
)

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
SHARES = WEIGHTS / WEIGHTS.sum()


def grid(m):
    """Nodes of m independent N(0, 1) numbers, each (points,), and the shares of the points."""
    z = [x.ravel() for x in np.meshgrid(*[NODES] * m, indexing="ij")]
    return z, np.prod(np.meshgrid(*[SHARES] * m, indexing="ij"), axis=0).ravel()


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(("queries", "n"), [(1, 2), (2, 2), (1, 3)])
def test_log_partitions_of_one_coordinate(scale, queries, n):
    z, p = grid(queries + n)
    scores = scale * np.array([[q * k for k in z[queries:]] for q in z[:queries]])
    mean = np.log(np.exp(scores).sum(axis=1)).mean(axis=0)
    variance = p @ (mean - p @ mean) ** 2
    found = log_partition_spread(n, scale, 1, queries, 1)
    assert variance <= found < 15 * variance  # of one coordinate, which is the loosest


def test_groups_of_keys():
    z, p = grid(5)
    scores = np.array([[z[0] * z[1], z[0] * z[2]], [z[0] * z[3], z[0] * z[4]]])
    mean = np.log(np.exp(scores).sum(axis=1)).mean(axis=0)
    variance = p @ (mean - p @ mean) ** 2
    assert variance <= log_partition_spread(2, 1.0, 1, 1, 2) < 12 * variance


@pytest.mark.parametrize(("d_k", "loose"), [(8, 8), (64, 3), (512, 2.2)])
def test_short_scores_are_nearly_linear(d_k, loose):
    # ln Σ exp(s) is ln n + Σ s/n then, whose mean over rows varies by scale²·d_k/(queries·keys).
    found = log_partition_spread(4, 1e-4, d_k, 16, 2)
    linear = 1e-8 * d_k / (16 * 8)
    assert linear <= found <= loose * linear
    assert math.isfinite(log_partition_spread(4096, 1.0, d_k, 32, 1))


COIN = ((-1.0, 1.0), (0.5, 0.5))
SKEWED = ((-1.0, 2.0), (2 / 3, 1 / 3))  # of mean 0, times 1/√2 of variance 1


@pytest.mark.parametrize(("queries", "n", "groups", "d_k"), [
    (2, 2, 2, 1), (1, 2, 2, 1), (2, 3, 1, 1), (2, 2, 1, 2), (1, 3, 1, 2)])
@pytest.mark.parametrize("law", ["normal", "coin", "skewed"])
def test_variances_of_rows_by_quadrature_that_is_exact(law, queries, n, groups, d_k):
    # (y − 1)⁴ has degree 8 in each coordinate.
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    normal = nodes, weights / weights.sum()
    values, shares = {"normal": normal, "coin": COIN, "skewed": SKEWED}[law]
    values = np.array(values) / (math.sqrt(2) if law == "skewed" else 1)
    sides = [(values, shares)] * (queries * d_k) + [normal] * (groups * n * d_k)
    z = np.stack([x.ravel() for x in np.meshgrid(*[x for x, _ in sides], indexing="ij")])
    p = np.prod(np.meshgrid(*[p for _, p in sides], indexing="ij"), axis=0).ravel()
    q = z[:queries * d_k].reshape(queries, d_k, -1)
    k = z[queries * d_k:].reshape(groups, n, d_k, -1)
    y = np.einsum("qdp,gndp->qgnp", q, k).var(axis=2, ddof=1) / d_k
    mean = ((y - 1) ** 2).mean(axis=(0, 1))
    powers = Powers(tuple(float(values**i @ np.array(shares)) for i in range(9)))
    found = row_variance_spread(powers, n, d_k, queries, groups)
    assert found == pytest.approx(p @ (mean - p @ mean) ** 2)
    if law == "normal":  # with a mean of 0.7 on every coordinate of a query
        y = np.einsum("qdp,gndp->qgnp", q + 0.7, k).var(axis=2, ddof=1) / d_k
        mean = y.mean(axis=(0, 1))
        found = row_variance_mean_spread(0.7, n, d_k, queries, groups)
        assert found == pytest.approx(p @ (mean - p @ mean) ** 2)
