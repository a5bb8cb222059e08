"""Laws of a given covariance: of a shape that is defined at any d_k, or of given matrices."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array
from mcverify.laws.coordinates import Iid, normal
from mcverify.laws.law import With, digest, require
from mcverify.laws.linear_image import Linear, linear
from mcverify.laws.parameters import Correlation, Range, Real, checked

# Rounding leaves a covariance of low rank with eigenvalues a little below 0: this much of the
# largest is taken for rounding, more for a mistake.
ROUNDING = 1e-9


@lru_cache(maxsize=4)  # a draw asks for it, and at a width of 512 that takes as long as to draw
def lagged(d_k: int, rho: float) -> Array:
    """The Cholesky root of ρ^abs(i−j): x_0 = z_0 and x_i = ρx_{i−1} + √(1−ρ²) z_i."""
    i = np.arange(d_k)
    root: Array = np.tril(rho ** np.abs(i[:, None] - i))
    root[:, 1:] *= math.sqrt(1 - rho**2)
    root.setflags(write=False)
    return root


def harmonic(d_k: int, rank: int) -> Array:
    """d_k unit vectors in ``rank`` dimensions whose covariance has equal eigenvalues d_k/rank.

    They sample the lowest frequencies of a circle: a harmonic tight frame.
    """
    if rank >= d_k:
        return np.ones(d_k)
    angle = 2 * math.pi / d_k * np.outer(np.arange(d_k), np.arange(1, rank // 2 + 1))
    constant = np.full((d_k, rank % 2), math.sqrt(0.5))
    return np.hstack([np.cos(angle), np.sin(angle), constant]) * math.sqrt(2 / rank)


def log_spread(d_k: int, decades: float) -> Array:
    """Standard deviations of variances that fall by ``decades`` powers of ten and have mean 1."""
    variances = 10 ** (-decades * np.linspace(0, 1, d_k))
    return np.asarray(np.sqrt(variances / variances.mean()))


@checked
def autoregressive(base: Iid, rho: Correlation) -> Linear:
    """Coordinates i and j of a vector have correlation ρ^abs(i−j), and variance 1 (of the base).

    >>> from mcverify import laws
    >>> autoregressive(laws.normal, 0.5).moments(3).cov_q.round(12)
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    root = With(lagged, float(rho))
    return Linear(f"autoregressive[{base}-{rho:.12g}]", base, root, root)


@checked
def low_rank(
    base: Iid, rank: Annotated[int, Range(1, rule="a whole number of at least 1", whole=True)],
) -> Linear:
    """Coordinates of variance 1 that span ``rank`` dimensions, the same for q and k, equally.

    The covariance is d_k/rank times a projection, so Var(q·k) = d_k²/rank. Up to d_k = rank the
    coordinates are independent.

    >>> from mcverify import laws
    >>> cov = low_rank(laws.normal, 2).moments(8).cov_q
    >>> np.linalg.eigvalsh(cov).round(9).tolist()[-3:], np.diag(cov).round(9).tolist() == [1.0] * 8
    ([0.0, 4.0, 4.0], True)
    """
    root = With(harmonic, rank)
    return Linear(f"low_rank[{base}-{rank}]", base, root, root)


@checked
def unequal(base: Iid, decades: Real) -> Linear:
    """Independent coordinates whose variances fall by ``decades`` powers of ten, with mean 1.

    >>> from mcverify import laws
    >>> np.diag(unequal(laws.normal, 2).moments(3).cov_k).round(12).tolist()
    [2.702702702703, 0.27027027027, 0.027027027027]
    """
    root = With(log_spread, decades)
    return Linear(f"unequal[{base}-{decades:.12g}]", base, root, root)


def gaussian(
    cov_q: NDArray[Any],
    cov_k: NDArray[Any] | None = None,
    mean_q: Any = 0.0,
    mean_k: Any = 0.0,
    cross: NDArray[Any] | None = None,
) -> Linear:
    """The normal law of given covariances, each (d_k, d_k), and means; it fixes d_k.

    ``cov_k`` is ``cov_q`` unless given. ``cross``, (d_k, d_k), is the covariance of q_i and k_j of
    the same token, which makes the law coupled; without it q and k are independent. Matrices may
    have any rank and condition. Raises ValueError for one that is no covariance.

    >>> law = gaussian(np.array([[4.0, 0.0], [0.0, 0.0]]), np.eye(2), mean_k=[1.0, 0.0])
    >>> law.moments(2).cov_q.tolist(), law.moments(2).mean_k.tolist(), law.coupled
    ([[4.0, 0.0], [0.0, 0.0]], [1.0, 0.0], False)
    """
    q = np.asarray(cov_q, dtype=np.float64)
    k = q if cov_k is None else np.asarray(cov_k, dtype=np.float64)
    if cross is None:
        law = linear(normal, _symmetric_root(q), _symmetric_root(k), mean_q, mean_k)
        told: tuple[object, ...] = (q.tolist(), k.tolist())
    else:
        c = np.asarray(cross, dtype=np.float64)
        require(q.shape == k.shape == c.shape, f"gaussian: cov_q has the shape {q.shape}, cov_k "
                                               f"{k.shape}, cross {c.shape}; all must be equal")
        root = _symmetric_root(np.block([[q, c], [c.T, k]]))
        law = linear(normal, root[:len(q)], root[len(q):], mean_q, mean_k, joint=True)
        told = (q.tolist(), k.tolist(), c.tolist())
    # Told apart by what was given: the last bits of a root differ from machine to machine.
    return replace(law, name=f"gaussian[{digest(*told, law.mean_q, law.mean_k)}]")


def _symmetric_root(cov: Array) -> Array:
    square = cov.ndim == 2 and cov.shape[0] == cov.shape[1] and cov.size > 0
    require(square and bool(np.isfinite(cov).all()),
            f"gaussian: a covariance has the shape {cov.shape}; it must be a finite square matrix")
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    allowed = ROUNDING * float(np.abs(values).max())
    require(bool(np.abs(cov - cov.T).max() <= allowed) and bool(values.min() >= -allowed),
            f"gaussian: a covariance with the smallest eigenvalue {values.min():g} and entries "
            f"up to {np.abs(cov - cov.T).max():g} from their mirror images; it must be symmetric "
            "and positive semidefinite, e.g. a @ a.T")
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
