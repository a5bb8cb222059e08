"""From queries and keys to what attention makes of them: scores, weights, their spread and slope.

Shapes: q and k are (blocks, tokens, d_k); p stands for softmax weights, whose last axis sums to 1.
Every function is pure, and works in the floating type that it is given.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]

ROW_ENTRIES = 2**15  # softmax entries a block: enough rows to use the keys that were drawn
MIN_QUERIES = 32  # with thousands of keys a query costs little next to drawing the keys

_refusal: ContextVar[str] = ContextVar("_refusal", default="")


@contextmanager
def refuse_all_pairs(reason: str) -> Iterator[None]:
    """Inside it, what crosses all tokens of a block raises ValueError(reason); "" refuses nothing.

    Under a law that ties a token's key to its own query, the law of a block's scores depends on
    the number of tokens, so a claim on all pairs must say that number.
    """
    token = _refusal.set(reason)
    try:
        yield
    finally:
        _refusal.reset(token)


_last: tuple[Array, Array, Array] | None = None  # q, k and their products


def _products(q: Array, k: Array) -> Array:
    # Many claims ask for the same scores of a world's draws, which are read-only and own their
    # numbers, so that the same arrays have the same products; everything else is computed anew.
    global _last
    s: Array
    if any(x.flags.writeable or x.base is not None for x in (q, k)):
        s = q @ np.swapaxes(k, -1, -2)
        return s
    if _last is None or _last[0] is not q or _last[1] is not k:
        _last = q, k, q @ np.swapaxes(k, -1, -2)
    return _last[2].copy()


def _cross(q: Array, k: Array, scale: float) -> Array:
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: both must end in (tokens, d_k) "
                         "with the same d_k; pad or project the narrower one")
    if _refusal.get():
        raise ValueError(_refusal.get())
    s = _products(q, k)
    if scale != 1.0:
        s *= s.dtype.type(scale)
    return s


def scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Every query with every key: (blocks, tokens, d_k) twice -> (blocks, tokens, tokens).

    >>> scores(np.array([[[1.0, 2.0]]]), np.array([[[3.0, 1.0]]]))
    array([[[5.]]])
    """
    return _cross(q, k, scale)


def matched_scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Each token's query with its own key: (blocks, tokens, d_k) twice -> (blocks, tokens).

    >>> matched_scores(np.array([[[1.0, 2.0], [1.0, 0.0]]]), np.array([[[3.0, 1.0], [7.0, 9.0]]]))
    array([[5., 7.]])
    """
    s: Array = np.einsum("...d,...d->...", q, k)
    return s if scale == 1.0 else s * s.dtype.type(scale)


def other_scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Each query with the keys of all other tokens -> (blocks, tokens, tokens − 1).

    >>> other_scores(np.array([[[1.0], [2.0]]]), np.array([[[3.0], [5.0]]]))
    array([[[5.],
            [6.]]])
    """
    with refuse_all_pairs(""):  # without its own key a query meets independent keys only
        s = _cross(q, k, scale)
    *lead, tokens, _ = s.shape
    # Cut after each diagonal entry, the matrix falls into runs of exactly the others.
    runs = s.reshape(*lead, tokens * tokens)[..., 1:].reshape(*lead, tokens - 1, tokens + 1)
    return runs[..., :-1].reshape(*lead, tokens, tokens - 1)


def rows(q: Array, k: Array, keys: int, scale: float = 1.0) -> Array:
    """Rows of ``keys`` scores that share a query: q and k as above -> (blocks, rows, keys).

    Few keys: the block's keys are cut into tokens/keys groups and each query meets each group.
    Many keys: only the first queries are used, about 2^15 scores a block. Raises ValueError unless
    tokens is a multiple of keys.

    >>> rows(np.array([[[1.0], [2.0]]]), np.array([[[3.0], [5.0]]]), keys=2)
    array([[[ 3.,  5.],
            [ 6., 10.]]])
    """
    tokens = k.shape[-2]
    if not 1 <= keys <= tokens or tokens % keys:
        raise ValueError(f"rows(keys={keys}) with {tokens} tokens: the number of tokens must be a "
                         "multiple of keys; name `keys` in the grid and the runner sees to it")
    queries = min(tokens, max(MIN_QUERIES, ROW_ENTRIES // tokens))
    s = _cross(q if queries == tokens else q[..., :queries, :], k, scale)
    return s.reshape(*s.shape[:-2], queries * (tokens // keys), keys)


def softmax(s: ArrayLike) -> Array:
    """exp(s)/Σexp(s) along the last axis, the maximum subtracted first; same shape as s.

    Entries of −inf are masked and get weight 0; a row with every entry masked attends to nothing
    and is all zeros. NaN stays NaN.

    >>> softmax([[0.0, 0.0], [-np.inf, 1.0], [-np.inf, -np.inf]])
    array([[0.5, 0.5],
           [0. , 1. ],
           [0. , 0. ]])
    """
    s = np.asarray(s)
    if not np.issubdtype(s.dtype, np.floating):
        s = s.astype(np.float64)
    top = np.max(s, axis=-1, keepdims=True)
    p: Array = s - np.where(np.isneginf(top), s.dtype.type(0), top)
    np.exp(p, out=p)
    total = np.sum(p, axis=-1, keepdims=True)
    p /= np.where(total == 0, s.dtype.type(1), total)
    return p


def entropy(p: ArrayLike) -> Array:
    """H = −Σ p ln p in nats along the last axis: (..., keys) -> (...).

    >>> float(entropy([0.25, 0.25, 0.25, 0.25]) / np.log(4))
    1.0
    """
    p = np.asarray(p)
    # 0 ln 0 is 0. Twice as fast as scipy.special.entr, whose logarithm is not vectorised.
    return np.asarray(-np.einsum("...i,...i->...", p, np.log(np.where(p > 0, p, 1))))


def max_weight(p: ArrayLike) -> Array:
    """The largest weight of each row: (..., keys) -> (...).

    >>> float(max_weight([0.25, 0.75]))
    0.75
    """
    return np.asarray(np.max(p, axis=-1))


def sum_squares(p: ArrayLike) -> Array:
    """Σp² of each row, 1 for one-hot and 1/keys for uniform weights: (..., keys) -> (...).

    >>> float(sum_squares([0.25, 0.75]))
    0.625
    """
    p = np.asarray(p)
    return np.asarray(np.einsum("...i,...i->...", p, p))


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
    p = np.asarray(p)
    top = np.max(p, axis=-1)
    rest = np.array(p, dtype=p.dtype if np.issubdtype(p.dtype, np.floating) else np.float64)
    np.put_along_axis(rest, np.argmax(p, axis=-1)[..., None], 0.0, axis=-1)
    return JACOBIAN_NORMS[kind](top, rest)


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
    # Σ r/(λ−r) = m/(m−λ). Each term on the left is concave in 1/x, x = λ−w, so its tangent there,
    # in all a/x + c, lies above it. A step solves a/x + c = m/(g−x), g = m−w, a quadratic whose
    # solution never falls short of λ, and at least squares the relative error of 1/x. Rounding is
    # relative to x as well, so neither close nor tiny weights cost digits.
    second = np.max(r, axis=-1)
    g, gaps, rest = m - second, second[..., None] - r, np.sum(r, axis=-1)
    near = np.sqrt(np.finfo(r.dtype).eps)  # the step after one this small is exact to rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        start = x = g * (rest / (rest + m))  # as if all of r were at w; exact for two keys
        for _ in range(64):  # 3 to 5 serve; a bound because subnormal weights never settle
            t = x[..., None] + gaps
            np.divide(x[..., None], t, out=t)
            total = np.einsum("...i,...i->...", r, t)
            a = np.einsum("...i,...i,...i->...", r, t, t)
            c = (total - a) / x
            b = m + a - c * g
            half = 0.5 * (np.sqrt(b * b + 4 * c * a * g) + np.abs(b))  # of c x² + b x = a g
            last, x = x, np.where(b > 0, a * g / half, half / c)
            if not np.any(np.abs(x - last) > near * x):
                break
    # Where the step is 0/0, for a tie of the first two, one-hot or all masked, x is 0; NaN stays.
    return np.asarray(second + np.where(start > 0, x, g * rest))


JACOBIAN_NORMS = {"frobenius": _frobenius, "spectral": _spectral, "trace": _trace}


def query_gradient(p: Array, k: Array, upstream: Array, scale: float = 1.0) -> Array:
    """∂L/∂q = scale · kᵀ(diag(p) − ppᵀ)g for an upstream gradient g = ∂L/∂p.

    Weights (..., rows, keys), keys (..., keys, d_k), upstream (..., rows, keys)
    -> (..., rows, d_k): each row is one query that meets all the keys.

    >>> p, k = np.array([[0.5, 0.5]]), np.array([[1.0], [3.0]])
    >>> query_gradient(p, k, np.array([[0.0, 1.0]]))
    array([[0.5]])
    """
    dot = np.einsum("...i,...i->...", p, upstream)[..., None]
    gradient: Array = (p * (upstream - dot)) @ k
    return gradient if scale == 1.0 else gradient * gradient.dtype.type(scale)
