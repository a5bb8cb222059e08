"""From softmax weights to how much of a gradient passes through them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcverify.attention.spread import sum_squares

Array = NDArray[np.floating[Any]]


def jacobian_norm(p: ArrayLike, kind: str = "frobenius") -> Array:
    """The size of ∂softmax/∂s = diag(p) − ppᵀ, a matrix that is never built: (..., keys) -> (...).

    ``kind`` is "frobenius", "spectral" (the largest eigenvalue) or "trace" (1 − Σp²). All keep
    their relative accuracy when p is nearly one-hot and the norm tiny. Raises ValueError for
    another kind.

    >>> [round(float(jacobian_norm([0.5, 0.5], kind)), 12) for kind in JACOBIAN_NORMS]
    [0.5, 0.5, 0.5]
    """
    if kind not in JACOBIAN_NORMS:
        raise ValueError(f"jacobian_norm(kind={kind!r}): kind must be one of "
                         f"{', '.join(JACOBIAN_NORMS)}")
    return JACOBIAN_NORMS[kind](*top_and_rest(np.asarray(p)))


def top_and_rest(p: Array) -> tuple[Array, Array]:
    """The largest weight, (...), and the weights with 0 in its place, (..., keys)."""
    rest = np.array(p, dtype=p.dtype if np.issubdtype(p.dtype, np.floating) else np.float64)
    np.put_along_axis(rest, np.argmax(p, axis=-1)[..., None], 0.0, axis=-1)
    return np.max(p, axis=-1), rest


# The three below take the largest weight m apart from the others r, and write every 1 − m as Σr:
# near one-hot, 1 − m has lost its digits and Σr has not.


def _frobenius(m: Array, r: Array) -> Array:
    # Σᵢpᵢ²(1−pᵢ)² + Σᵢ≠ⱼ pᵢ²pⱼ²; all four terms are positive, as r ≤ 1/2.
    sum1, sum2 = np.sum(r, axis=-1), sum_squares(r)
    inner = np.einsum("...i,...i,...i->...", r, r, 1 - 2 * r)
    return np.asarray(np.sqrt(m**2 * sum1**2 + inner + 2 * m**2 * sum2 + sum2**2))


def _trace(m: Array, r: Array) -> Array:
    return np.asarray(m * np.sum(r, axis=-1) + np.einsum("...i,...i->...", r, 1 - r))


def _spectral(m: Array, r: Array) -> Array:
    # The largest eigenvalue λ lies between the second weight w and the first, where it solves
    # Σ r/(λ−r) = m/(m−λ). Were all of r at w, it would be larger, and at the mean of r smaller:
    # what is sought, x = λ−w, is within some percent of the geometric mean of the two.
    rows, shape = r.reshape(-1, r.shape[-1]), m.shape
    m, second, rest = m.reshape(-1), np.max(rows, axis=-1), np.sum(rows, axis=-1)
    g = m - second
    with np.errstate(divide="ignore", invalid="ignore"):
        high = g * (rest / (rest + m))  # exact for two keys
        low = m * ((rest + sum_squares(rows) / rest) / (rest + m)) - second
        x = np.where(low > 0, np.sqrt(high) * np.sqrt(low), high)  # their product may underflow
        _settle(x, m, g, rows, second[:, None] - rows)
    # Where the step is 0/0, for a tie of the first two, one-hot or all masked, x is 0; NaN stays.
    return np.asarray(second + np.where(high > 0, x, g * rest)).reshape(shape)


def _settle(x: Array, m: Array, g: Array, r: Array, gaps: Array) -> None:
    # Each term of Σ r/(x+gap) is concave in 1/x, so its tangent there, in all a/x + c, lies above
    # it. A step solves a/x + c = m/(g−x), a quadratic whose solution never falls short of x, and at
    # least squares the relative error of 1/x. Rounding is relative to x as well, so neither close
    # nor tiny weights cost digits.
    near = np.sqrt(np.finfo(r.dtype).eps)  # the step after one this small is exact to rounding
    left, now = np.arange(len(x)), x.copy()
    for _ in range(64):  # 2 to 4 serve; a bound because subnormal weights never settle
        t = now[:, None] + gaps
        np.divide(now[:, None], t, out=t)
        total = np.einsum("ij,ij->i", r, t)
        a = np.einsum("ij,ij,ij->i", r, t, t)
        c = (total - a) / now
        b = m + a - c * g
        half = 0.5 * (np.sqrt(b * b + 4 * c * a * g) + np.abs(b))  # of c x² + b x = a g
        x[left] = new = np.where(b > 0, a * g / half, half / c)
        moving = np.abs(new - now) > near * now
        now = new
        if not moving.any():
            return
        if 2 * np.count_nonzero(moving) < len(moving):
            left, now, m, g, r, gaps = (each[moving] for each in (left, now, m, g, r, gaps))


JACOBIAN_NORMS = {"frobenius": _frobenius, "spectral": _spectral, "trace": _trace}


def score_gradient(p: Array, upstream: Array) -> Array:
    """∂L/∂s = (diag(p) − ppᵀ)g for g = ∂L/∂p: (..., keys) twice -> (..., keys).

    >>> score_gradient(np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    array([-0.25,  0.25])
    """
    gradient: Array = p * (upstream - np.einsum("...i,...i->...", p, upstream)[..., None])
    return gradient


def query_gradient(p: Array, k: Array, upstream: Array, scale: float = 1.0) -> Array:
    """∂L/∂q = scale · kᵀ(diag(p) − ppᵀ)g for an upstream gradient g = ∂L/∂p.

    Weights (..., rows, keys), keys (..., keys, d_k), upstream (..., rows, keys)
    -> (..., rows, d_k): each row is one query that meets all the keys.

    >>> p, k = np.array([[0.5, 0.5]]), np.array([[1.0], [3.0]])
    >>> query_gradient(p, k, np.array([[0.0, 1.0]]))
    array([[0.5]])
    """
    gradient: Array = score_gradient(p, upstream) @ k
    return gradient if scale == 1.0 else gradient * gradient.dtype.type(scale)
