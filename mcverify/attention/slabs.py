"""What functions of rows share: a slab of rows at a time, a row's largest entry and its sum."""

import math
from collections.abc import Callable, Iterator
from functools import reduce

import numpy as np

from mcverify.arrays import Array

SLAB = 2**15  # numbers, which stay in the cache from one pass over them to the next
MODERATE = {kind: math.log(np.finfo(kind).max) / 4 for kind in "fd"}  # exponents of e
SHORT = 16  # entries of a row, up to which a call for each row takes longer than its numbers


def slabs(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Arrays of one shape, (..., keys), in slabs of some rows, (rows, keys), of which one or more.

    An array that is written into in this way has to be contiguous.

    >>> y = np.empty((3, 2, 4))
    >>> for into, x in slabs(y, np.ones((3, 2, 4))):
    ...     into[:] = 2 * x
    >>> float(y.sum())
    48.0
    """
    *lead, keys = arrays[0].shape
    flat, step = [x.reshape(math.prod(lead), keys) for x in arrays], max(1, SLAB // max(1, keys))
    for start in range(0, max(1, len(flat[0])), step):
        yield tuple(x[start:start + step] for x in flat)


def by_slabs(function: Callable[..., Array], x: Array, *others: Array) -> Array:
    """A function of rows, (rows, keys) -> (rows, ...), on the last axis: (..., keys) -> (..., ...).

    Of several arrays of one shape as well.

    >>> by_slabs(largest, np.array([[[3.0, 1.0]], [[2.0, 5.0]]]))
    array([[3.],
           [5.]])
    """
    made, flat, start = np.empty(0), np.empty(0), 0
    for slab in slabs(x, *others):
        of_slab = function(*slab)
        if start == 0:
            # Of its class, which knows chunks.
            made = np.empty_like(of_slab, shape=(*x.shape[:-1], *of_slab.shape[1:]))
            flat = made.reshape(math.prod(x.shape[:-1]), *of_slab.shape[1:])
        flat[start:start + len(of_slab)] = of_slab
        start += len(of_slab)
    return made


def exponentials(rows: Array, out: Array | None = None) -> tuple[Array, Array]:
    """exp(rows − top) for a number below which a row's exponentials do not overflow, and that top.

    (rows, keys) -> (rows, keys), which may be given, and (rows, 1) or (1, 1). The top is 0 for rows
    that are moderate throughout, else the largest entry of each; 0 where that is −inf, since
    −inf − (−inf) would be NaN and not masked.

    >>> e, top = exponentials(np.array([[0.0, -np.inf], [1000.0, 1000.0]]))
    >>> e.tolist(), top.tolist()
    ([[1.0, 0.0], [1.0, 1.0]], [[0.0], [1000.0]])
    """
    moderate = MODERATE.get(rows.dtype.char, 0.0)
    if -moderate < rows.min(initial=0) and rows.max(initial=0) < moderate:
        return np.exp(rows, out=out), np.zeros((1, 1), rows.dtype)
    top = largest(rows)[:, None]
    top = np.where(np.isneginf(top), rows.dtype.type(0), top)
    e: Array = np.subtract(rows, top, out=out)
    return np.exp(e, out=e), top


def by_columns(rows: Array) -> bool:
    """Whether passes over columns take less time than calls for each row."""
    return bool(rows.shape[1] <= SHORT or rows.flags.fnc)


def largest(rows: Array) -> Array:
    """The largest entry of each row, NaN if there is one: (rows, keys) -> (rows,)."""
    if by_columns(rows):
        return reduce(np.maximum, rows.T)
    return np.asarray(rows[np.arange(len(rows)), rows.argmax(axis=1)])


def total(rows: Array) -> Array:
    """The sum of each row: (rows, keys) -> (rows,)."""
    return rows @ np.ones(rows.shape[1], rows.dtype)


def inner(a: Array, b: Array) -> Array:
    """Σ ab of each row: (rows, keys) twice -> (rows,).

    Not by BLAS where rows are long, whose last digits depend on the machine: laws of arrays that
    were normed have names made of their digits.
    """
    return total(a * b) if by_columns(a) else np.einsum("ij,ij->i", a, b)


def dot(a: Array, b: Array) -> Array:
    """As ``inner`` in less time, by BLAS."""
    return total(a * b) if by_columns(a) else np.asarray(np.vecdot(a, b))
