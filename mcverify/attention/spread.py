"""From softmax weights to how concentrated they are."""

import math

import numpy as np
from numpy.typing import ArrayLike

from mcverify.arrays import Array
from mcverify.attention.chunk import made_once
from mcverify.attention.slabs import by_slabs, dot, largest, total


def entropy(p: ArrayLike) -> Array:
    """H = −Σ p ln p in nats along the last axis: (..., keys) -> (...).

    >>> float(entropy([0.25, 0.25, 0.25, 0.25]) / np.log(4))
    1.0
    """
    weights = np.asarray(p)
    tiny = np.finfo(weights.dtype if weights.dtype.kind == "f" else np.float64).smallest_subnormal

    def of_slab(p: Array) -> Array:
        x = np.maximum(p, tiny)  # 0 ln 0 is 0
        np.log(x, out=x)
        x *= p
        return -total(x)

    return made_once("entropy of weights", p, lambda: by_slabs(of_slab, weights))


def max_weight(p: ArrayLike) -> Array:
    """The largest weight of each row: (..., keys) -> (...).

    >>> float(max_weight([0.25, 0.75]))
    0.75
    """
    return made_once("largest", p, lambda: by_slabs(largest, np.asarray(p)))


def sum_squares(p: ArrayLike) -> Array:
    """Σp² of each row, 1 for one-hot and 1/keys for uniform weights: (..., keys) -> (...).

    >>> float(sum_squares([0.25, 0.75]))
    0.625
    """
    return made_once("squares", p, lambda: by_slabs(lambda p: dot(p, p), np.asarray(p)))


def variance_under(p: ArrayLike, x: ArrayLike) -> Array:
    """Σpx² − (Σpx)², the variance of numbers under weights: (..., keys) twice -> (...).

    >>> float(variance_under([0.25, 0.75], [0.0, 4.0]))
    3.0
    """
    def of_slab(p: Array, x: Array) -> Array:
        weighted = p * x
        return dot(weighted, x) - total(weighted) ** 2

    return by_slabs(of_slab, np.asarray(p), np.asarray(x))


def top_share(p: ArrayLike, share: float) -> Array:
    """What the largest ⌈share·keys⌉ weights of each row sum to: (..., keys) -> (...).

    Raises ValueError unless 0 < share <= 1.

    >>> float(top_share([0.1, 0.5, 0.2, 0.2], share=0.5))
    0.7
    """
    if not 0 < share <= 1:
        raise ValueError(f"top_share(share={share}): the share of the keys must be above 0 and at "
                         "most 1; pass 0.1 for the top tenth")
    p = np.asarray(p)
    count = math.ceil(share * p.shape[-1] - 1e-9)  # 0.1·1000 may come out above 100
    return np.asarray(np.sum(np.partition(p, -count, axis=-1)[..., -count:], axis=-1))
