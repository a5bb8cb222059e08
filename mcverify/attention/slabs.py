"""What functions of rows share: a slab of rows at a time, a row's largest entry and its sum."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

SLAB = 2**15  # numbers, which stay in the cache from one pass over them to the next
SHORT = 16  # entries of a row, up to which passes over columns are faster than a call for each row


def by_slabs(function: Callable[[Array], Array], x: Array) -> Array:
    """A function of rows, (rows, keys) -> (rows, ...), on the last axis: (..., keys) -> (..., ...).

    >>> by_slabs(largest, np.array([[[3.0, 1.0]], [[2.0, 5.0]]]))
    array([[3.],
           [5.]])
    """
    *lead, keys = x.shape
    rows, step = x.reshape(math.prod(lead), keys), max(1, SLAB // max(1, keys))
    first = function(rows[:step])
    if len(rows) <= step:
        return first.reshape((*lead, *first.shape[1:]))
    order: Literal["F", "C"] = "F" if first.flags.fnc else "C"
    made = np.empty((len(rows), *first.shape[1:]), first.dtype, order)
    made[:step] = first
    for start in range(step, len(rows), step):
        made[start:start + step] = function(rows[start:start + step])
    return made.reshape((*lead, *first.shape[1:]))


def largest(rows: Array) -> Array:
    """The largest entry of each row, NaN if there is one: (rows, keys) -> (rows,)."""
    if rows.shape[1] <= SHORT:
        return reduce(np.maximum, rows.T)
    return np.asarray(rows[np.arange(len(rows)), rows.argmax(axis=1)])


def total(rows: Array) -> Array:
    """The sum of each row: (rows, keys) -> (rows,)."""
    return rows @ np.ones(rows.shape[1], rows.dtype)


def inner(a: Array, b: Array) -> Array:
    """Σ ab of each row: (rows, keys) twice -> (rows,)."""
    return total(a * b) if a.shape[1] <= SHORT else np.einsum("ij,ij->i", a, b)
