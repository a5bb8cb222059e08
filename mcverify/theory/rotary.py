"""From covariances to what rotary positions can do to the variance and the mean of q·k."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-12  # entries that a rotation or a product of matrices leaves where there is a zero


def variance_bounds(cov_q: ArrayLike, cov_k: ArrayLike, pairing: str) -> tuple[float, float]:
    """The least and the largest Var(q·k) over all rotations of q's pairs, for means of 0.

    With R_i turning pair i, Var = Σ_ij tr(R_i A_ij R_j' B_ji), A_ij and B_ij the 2×2 blocks of
    Σ_q and Σ_k, both (d_k, d_k). If one of them has no entries between different pairs, only Σ_i
    tr(R_i A_ii R_i' B_ii) is left, each term free between the products of eigenvalues sorted
    oppositely and alike: a₁b₂ + a₂b₁ and a₁b₁ + a₂b₂. If either side is isotropic the bounds meet
    at tr(Σ_q Σ_k). Every choice of angles is allowed: those of one distance, m·θ_i, need not reach
    the bounds. If both covariances have entries between pairs, the terms share their angles and
    these bounds do not hold: ValueError, as for shapes that do not fit or another pairing.

    >>> variance_bounds(np.diag([1.5, 1.0, 0.5, 1.0]), np.diag([1.5, 1.0, 0.5, 1.0]), "halves")
    (3.5, 4.5)
    >>> variance_bounds(np.diag([1.5, 1.0, 0.5, 1.0]), np.eye(4), "halves")
    (4.0, 4.0)
    """
    a, b = _blocks(cov_q, pairing), _blocks(cov_k, pairing)
    if len(a) != len(b):
        raise ValueError(f"variance_bounds: queries have {2 * len(a)} coordinates and keys "
                         f"{2 * len(b)}; q·k needs equally many")
    if _crossing(a) and _crossing(b):
        raise ValueError("variance_bounds: both covariances have entries between different pairs, "
                         "and the bounds need one that has none; rotate and use dot_variance")
    mean_a, half_a = _eigenvalues(a)
    mean_b, half_b = _eigenvalues(b)
    middle, reach = 2 * float(mean_a @ mean_b), 2 * float(half_a @ half_b)
    return middle - reach, middle + reach


def matched_mean(d_k: int, distance: int, theta: float = 10000.0) -> float:
    """E q·(R_m q) at distance m for q of mean 0 and identity covariance: Σ_i 2 cos(m·θ^(−2i/d_k)).

    It is the trace of the rotation, the same for every pairing; with k = q it is the mean score
    of what a token says to itself ``distance`` positions away. Raises ValueError for odd d_k.
    Source: Su et al. 2021, "RoFormer", section 3.4.3, which bounds how it decays.

    >>> matched_mean(64, 0), matched_mean(2, 3) == 2 * math.cos(3)
    (64.0, True)

    It decays unevenly, and at width 64 it is negative for the first time at distance 725:

    >>> [round(matched_mean(64, m), 1) for m in (5, 6, 64, 724, 725)]
    [47.0, 47.1, 27.8, 0.2, -0.8]
    """
    if d_k % 2:
        raise ValueError(f"matched_mean(d_k={d_k}): coordinates turn in pairs; d_k must be even")
    return math.fsum(2 * math.cos(distance * theta ** (-2 * i / d_k)) for i in range(d_k // 2))


def _blocks(cov: ArrayLike, pairing: str) -> NDArray[Any]:
    """The 2×2 blocks of a covariance: (pairs, pairs, 2, 2)."""
    x = np.asarray(cov, dtype=np.float64)
    if x.ndim != 2 or x.shape[0] != x.shape[1] or x.shape[0] % 2:
        raise ValueError(f"variance_bounds: a covariance has the shape {x.shape}; it must be "
                         "(d_k, d_k) with even d_k")
    pairs = x.shape[0] // 2
    if pairing == "halves":
        return x.reshape(2, pairs, 2, pairs).transpose(1, 3, 0, 2)
    if pairing == "neighbours":
        return x.reshape(pairs, 2, pairs, 2).transpose(0, 2, 1, 3)
    raise ValueError(f"variance_bounds(pairing={pairing!r}): must be 'halves' or 'neighbours'")


def _crossing(blocks: NDArray[Any]) -> bool:
    """Whether coordinates of different pairs are correlated."""
    between = np.abs(blocks).max(axis=(2, 3))
    largest = between.max()
    np.fill_diagonal(between, 0.0)
    return bool(between.max() > ROUNDING * largest)


def _eigenvalues(blocks: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The mean of each diagonal block's two eigenvalues, and half their difference."""
    own = blocks[np.arange(len(blocks)), np.arange(len(blocks))]
    first, second, mixed = own[:, 0, 0], own[:, 1, 1], own[:, 0, 1]
    return (first + second) / 2, np.hypot((first - second) / 2, mixed)
