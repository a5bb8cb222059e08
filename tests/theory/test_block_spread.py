"""Bounds on how much a block's mean over rows varies, by quadrature of small blocks."""

import math

import numpy as np
import pytest

from mcverify.theory.block_spread import log_partition_spread

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
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
