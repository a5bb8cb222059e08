"""From softmax weights to how much of a gradient passes through them."""


import numpy as np
from numpy.typing import ArrayLike

from mcverify.arrays import Array
from mcverify.attention.chunk import made_once
from mcverify.attention.slabs import SHORT, by_columns, by_slabs, dot, largest, slabs, total


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
    norm = JACOBIAN_NORMS[kind]
    return made_once(("norm", kind), p,
                     lambda: by_slabs(lambda rows: norm(*top_and_rest(rows)), np.asarray(p)))


def top_and_rest(p: Array) -> tuple[Array, Array]:
    """The largest weight, (rows,), and the weights with 0 in its place, (rows, keys)."""
    rest = np.array(p, dtype=p.dtype if np.issubdtype(p.dtype, np.floating) else np.float64)
    return take_top(rest), rest


def take_top(p: Array) -> Array:
    """The largest weight of each row, (rows,), in whose place a 0 is left: (rows, keys)."""
    if not by_columns(p):
        place = np.arange(len(p)), np.argmax(p, axis=1)
        top = p[place]
        p[place] = 0.0
        return np.asarray(top)
    top = p[:, 0].copy()
    p[:, 0] = 0.0
    for column in p.T[1:]:  # the smaller one of each and of the largest so far stays
        larger = np.maximum(top, column)
        np.minimum(top, column, out=column)
        top = larger
    return np.asarray(top)


# The three below take the largest weight m apart from the others r, and write every 1 − m as Σr:
# near one-hot, 1 − m has lost its digits and Σr has not.


def _frobenius(m: Array, r: Array) -> Array:
    # Σᵢpᵢ²(1−pᵢ)² + Σᵢ≠ⱼ pᵢ²pⱼ². Σr³ takes few digits: r ≤ 1/2, and the rest is at least r²/8.
    square = r * r
    sum1, sum2, sum3 = total(r), total(square), dot(square, r)
    return np.asarray(np.sqrt((m * sum1) ** 2 + (1 + 2 * m**2) * sum2 - 2 * sum3 + sum2**2))


def _trace(m: Array, r: Array) -> Array:
    return np.asarray((1 + m) * total(r) - dot(r, r))


def _spectral(m: Array, r: Array) -> Array:
    # The largest eigenvalue λ lies between the second weight w and the first, where it solves
    # Σ r/(λ−r) = m/(m−λ). Were all of r at w, it would be larger, and at the mean of r smaller:
    # what is sought, x = λ−w, is within some percent of the geometric mean of the two.
    r = np.asfortranarray(r) if r.shape[1] <= SHORT else r  # so that sums go along the rows
    second, rest = largest(r), total(r)
    g = m - second
    with np.errstate(divide="ignore", invalid="ignore"):
        high = g * (rest / (rest + m))  # exact for two keys
        low = m * ((rest + dot(r, r) / rest) / (rest + m)) - second
        x = np.where(low > 0, np.sqrt(high) * np.sqrt(low), high)  # their product may underflow
        _settle(x, m, g, r, second[:, None] - r)
    # Where the step is 0/0, for a tie of the first two, one-hot or all masked, x is 0; NaN stays.
    return np.asarray(second + np.where(high > 0, x, g * rest))


def _settle(x: Array, m: Array, g: Array, r: Array, gaps: Array) -> None:
    # Each term of Σ r/(x+gap) is concave in 1/x, so its tangent there, in all a/x + c, lies above
    # it. A step solves a/x + c = m/(g−x), a quadratic whose solution never falls short of x, and at
    # least squares the relative error of 1/x. Rounding is relative to x as well, so neither close
    # nor tiny weights cost digits.
    near = np.sqrt(np.finfo(r.dtype).eps)  # the step after one this small is exact to rounding
    left, now, t = np.arange(len(x)), x.copy(), np.empty_like(gaps)
    for _ in range(64):  # 2 to 4 serve; a bound because subnormal weights never settle
        np.add(gaps, now[:, None], out=t)
        np.divide(now[:, None], t, out=t)
        both = dot(r, t)
        t *= t
        a = dot(r, t)
        c = (both - a) / now
        b = m + a - c * g
        half = 0.5 * (np.sqrt(b * b + 4 * c * a * g) + np.abs(b))  # of c x² + b x = a g
        x[left] = new = np.where(b > 0, a * g / half, half / c)
        moving = np.abs(new - now) > near * now
        now = new
        if not moving.any():
            return
        if 2 * np.count_nonzero(moving) < len(moving):
            left, now, m, g, r, gaps = (each[moving] for each in (left, now, m, g, r, gaps))
            t = t[:len(left)]


JACOBIAN_NORMS = {"frobenius": _frobenius, "spectral": _spectral, "trace": _trace}


def score_gradient(p: Array, upstream: Array) -> Array:
    """∂L/∂s = (diag(p) − ppᵀ)g for g = ∂L/∂p: (..., keys) twice -> (..., keys).

    >>> score_gradient(np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    array([-0.25,  0.25])
    """
    p, g = np.broadcast_arrays(np.asarray(p), np.asarray(upstream))
    gradient: Array = np.empty(p.shape, np.result_type(p, g))
    for into, weights, of_weights in slabs(gradient, p, g):
        np.subtract(of_weights, dot(weights, of_weights)[:, None], out=into)
        into *= weights
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
