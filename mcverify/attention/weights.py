"""From scores to weights: softmax as it should be, as it should not, and read in blocks of keys."""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from mcverify.arrays import Array
from mcverify.attention.chunk import made_once
from mcverify.attention.slabs import by_slabs, dot, exponentials, slabs, total


def softmax(s: ArrayLike) -> Array:
    """exp(s)/Σexp(s) along the last axis, the maximum subtracted first; same shape as s.

    Entries of −inf are masked and get weight 0; a row with every entry masked attends to nothing
    and is all zeros. NaN stays NaN, and a row with +inf becomes NaN.

    >>> softmax([[0.0, 0.0], [-np.inf, 1.0], [-np.inf, -np.inf]])
    array([[0.5, 0.5],
           [0. , 1. ],
           [0. , 0. ]])
    """
    return made_once("softmax", s, lambda: _softmax(_scores(s)))


def _softmax(s: Array) -> Array:
    p = np.empty(s.shape, s.dtype)
    for weights, rows in slabs(p, s):
        exponentials(rows, out=weights)
        weights /= _divisor(total(weights))[:, None]  # e/e is 1, and e·(1/e) need not be
    return p


def softmax_entropy(s: ArrayLike) -> Array:
    """The entropy of softmax(s) in nats along the last axis, no weights kept: (..., keys) -> (...).

    ln Σe^s − Σ s e^s/Σe^s, which errs by some roundings of the largest score that is not masked,
    where ``entropy(softmax(s))`` keeps the digits of an entropy near 0. −inf, NaN and +inf as in
    ``softmax``: a row masked throughout has entropy 0.

    >>> float(softmax_entropy([-np.inf, 7.0, 7.0]) / np.log(2))
    1.0
    """
    return made_once("entropy", s, lambda: by_slabs(_entropy, _scores(s)))


def _entropy(s: Array) -> Array:
    e, top = exponentials(s)
    # Of what is masked 0·(−inf) is to be 0.
    x = s if top.shape[0] == 1 and len(s) > 1 else np.maximum(s - top, -np.finfo(s.dtype).max)
    whole = _divisor(total(e))
    return np.maximum(np.log(whole) - dot(e, x) / whole, 0)


def log_partition(s: ArrayLike) -> Array:
    """ln Σexp(s) along the last axis: (..., keys) -> (...).

    −inf, NaN and +inf as in ``softmax``: a row masked throughout has −inf.

    >>> float(np.exp(log_partition([-np.inf, 0.0, 0.0])).round(12))
    2.0
    """
    return made_once("log partition", s, lambda: by_slabs(_log_partition, _scores(s)))


def _log_partition(s: Array) -> Array:
    e, top = exponentials(s)
    with np.errstate(divide="ignore"):
        return np.log(total(e)) + top[:, 0]


def naive_softmax(s: ArrayLike) -> Array:
    """exp(s)/Σexp(s) along the last axis as it is written, no maximum subtracted; shape of s.

    In the type given, and quietly. An entry whose exp overflows becomes inf/inf = NaN and the rest
    of its row 0; if only the sum overflows, the row is all zeros; if every exp underflows, and so
    if every entry is masked, it is 0/0 = NaN.

    >>> naive_softmax([[0.0, 0.0], [710.0, 0.0], [709.5, 709.5], [-746.0, -746.0]])
    array([[0.5, 0.5],
           [nan, 0. ],
           [0. , 0. ],
           [nan, nan]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        p: Array = np.exp(_scores(s))
        p /= np.sum(p, axis=-1, keepdims=True)
    return p


def online_softmax(s: ArrayLike, block: int, order: Sequence[int] | None = None) -> Array:
    """The weights of ``softmax``, to rounding, from blocks of ``block`` keys read in any order.

    (..., keys) -> (..., keys); the last block may be shorter. ``order`` is a permutation of the
    numbers of the blocks. The first pass keeps a running maximum and the sum of the exponentials
    below it, rescaled when the maximum grows; the second makes the weights. −inf, NaN and +inf
    as in ``softmax``. Raises ValueError for an empty row, a block below 1 or another order.
    Source: Milakov and Gimelshein 2018, algorithm 3.

    >>> online_softmax([-np.inf, 5.0, 5.0], block=1, order=[2, 0, 1])
    array([0. , 0.5, 0.5])
    """
    s = _scores(s)
    pieces = [s[..., part] for part in _parts(s.shape[-1], block, order)]
    top = np.full((*s.shape[:-1], 1), -np.inf, s.dtype)
    total = np.zeros_like(top)
    for piece in pieces:
        top, shrink, raised = _absorb(top, piece)
        total = total * shrink + np.sum(raised, axis=-1, keepdims=True)
    p = np.empty_like(s)
    for part, piece in zip(_parts(s.shape[-1], block, order), pieces, strict=True):
        p[..., part] = np.exp(piece - _shift(top)) / _divisor(total)
    return p


def online_average(chunks: Iterable[tuple[ArrayLike, ArrayLike]]) -> Array:
    """softmax(scores) @ values in one pass over chunks of keys, no row of weights ever held.

    Each chunk is scores (..., b) with values (..., b, d_v), one set a row, or scores (..., rows, b)
    with values (..., b, d_v) that its rows share -> (..., d_v) or (..., rows, d_v). Chunks may
    have any sizes. Kept are a running maximum, and the sums of the exponentials and of the values
    times them, both rescaled when it grows. −inf, NaN and +inf as in ``softmax``: a row masked
    throughout averages to 0. Raises ValueError for no chunks, an empty one, or unlike shapes.
    Source: Dao et al. 2022 (FlashAttention), section 3.1.

    >>> online_average([([0.0], [[1.0]]), ([0.0, -np.inf], [[3.0], [7.0]])])
    array([2.])
    """
    iterator = iter(chunks)
    first = next(iterator, None)
    if first is None:
        raise ValueError("online_average of no chunks: it needs one or more; pass (scores, values)")
    s, v = _chunk(*first)
    top = np.full((*s.shape[:-1], 1), -np.inf, s.dtype)
    total = np.zeros_like(top)
    average = np.zeros((*s.shape[:-1], v.shape[-1]), np.result_type(s, v))
    for pair in chain([first], iterator):
        s, v = _chunk(*pair)
        if (*s.shape[:-1], v.shape[-1]) != average.shape:
            raise ValueError(f"a chunk has scores {s.shape} and values {v.shape}, the first gave "
                             f"averages {average.shape}: only the number of keys may change; "
                             "cut all chunks along their keys")
        top, shrink, raised = _absorb(top, s)
        total = total * shrink + np.sum(raised, axis=-1, keepdims=True)
        of_chunk = raised @ v if v.ndim == s.ndim else (raised[..., None, :] @ v)[..., 0, :]
        average = average * shrink + of_chunk
    return average / _divisor(total)


def _scores(s: ArrayLike) -> Array:
    s = _floating(s)
    if s.ndim == 0 or s.shape[-1] == 0:
        raise ValueError(f"scores have shape {s.shape}: the last axis must hold one key or more; "
                         "pass (..., keys), with −inf for keys that are masked")
    return s


def _floating(x: ArrayLike) -> Array:
    x = np.asarray(x)
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def _shift(top: Array) -> Array:
    # With nothing but masked entries so far, −inf − (−inf) would be NaN and not masked.
    return np.where(np.isneginf(top), top.dtype.type(0), top)


def _divisor(total: Array) -> Array:
    return total if total.all() else np.where(total == 0, total.dtype.type(1), total)


def _absorb(top: Array, s: Array) -> tuple[Array, Array, Array]:
    """The maximum with s, what sums below the old one shrink by, and exp(s) below the new one."""
    higher = np.maximum(top, np.max(s, axis=-1, keepdims=True))
    return higher, np.exp(top - _shift(higher)), np.exp(s - _shift(higher))


def _parts(keys: int, block: int, order: Sequence[int] | None) -> list[slice]:
    if block < 1:
        raise ValueError(f"online_softmax(block={block}): a block has 1 key or more; use block=1 "
                         "to read key by key")
    starts = range(0, keys, block)
    order = range(len(starts)) if order is None else list(order)
    if sorted(order) != list(range(len(starts))):
        raise ValueError(f"online_softmax(order={list(order)}) with {keys} keys in blocks of "
                         f"{block}: must hold each of 0 to {len(starts) - 1} once; or leave it out")
    return [slice(starts[i], starts[i] + block) for i in order]


def _chunk(scores: ArrayLike, values: ArrayLike) -> tuple[Array, Array]:
    s, v = _scores(scores), _floating(values)
    own = v.shape[:-1] == s.shape
    shared = s.ndim >= 2 and v.shape[:-1] == (*s.shape[:-2], s.shape[-1])
    if not (own or shared):
        raise ValueError(f"a chunk has scores {s.shape} and values {v.shape}: values must be "
                         f"{(*s.shape, 'd_v')}, or without the axis of rows if they share them")
    return s, v
