"""From scores to weights in the ways that models use beside softmax as it is."""

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from mcverify.arrays import Array
from mcverify.attention.weights import softmax


def sigmoid_weights(s: ArrayLike, bias: float | None = None) -> Array:
    """1/(1 + exp(−s − bias)) of each score by itself: (..., keys) -> (..., keys).

    Weights do not compete, so a row need not sum to 1. ``bias`` is −ln keys if left out. Entries of
    −inf are masked and get weight 0. Source: Ramapuram et al. 2024, section 3.

    >>> sigmoid_weights([0.0, 0.0, -np.inf], bias=0.0)
    array([0.5, 0.5, 0. ])
    """
    x = _floating(s)
    if bias is None:
        bias = -math.log(x.shape[-1])
    weights: Array = scipy.special.expit(x + x.dtype.type(bias))
    return weights.astype(x.dtype, copy=False)  # that of float16 is float64


def soft_cap(s: ArrayLike, cap: float) -> Array:
    """cap·tanh(s/cap): scores that are small stay, and none exceeds the cap; same shape as s.

    It goes before masks, since it turns −inf into −cap. Raises ValueError unless cap is positive
    and finite. Source: Gemma Team 2024 (Gemma 2), section 2; the cap is 50 there.

    >>> soft_cap([0.0, 1e9, -np.inf], cap=50.0)
    array([  0.,  50., -50.])
    """
    if not 0 < cap < math.inf:
        raise ValueError(f"soft_cap(cap={cap}): the cap must be positive and finite; leave "
                         "soft_cap out for scores without one")
    x = _floating(s)
    c = x.dtype.type(cap)
    capped: Array = c * np.tanh(x / c)
    return capped


def scalable_softmax(s: ArrayLike, strength: float) -> Array:
    """The softmax of strength·ln(keys)·s, sharper the longer the row: (..., keys) -> (..., keys).

    Source: Nakanishi 2025 (SSMax), where the strength is learned, and near 0.43 for most heads.

    >>> scalable_softmax(np.log([1.0, 3.0]), strength=1 / math.log(2))
    array([0.25, 0.75])
    """
    x = _floating(s)
    return softmax(x * x.dtype.type(strength * math.log(x.shape[-1])))


def differential_weights(s: ArrayLike, other: ArrayLike, strength: float) -> Array:
    """softmax(s) − strength·softmax(other): (..., keys) twice -> (..., keys).

    A row sums to 1 − strength, and weights may be negative. Source: Ye et al. 2024 (Differential
    Transformer), equation 1; the strength is λ, 0.8 at first in deep layers.

    >>> differential_weights([0.0, 0.0], np.log([1.0, 3.0]), strength=0.5)
    array([0.375, 0.125])
    """
    x = _floating(s)
    return softmax(x) - x.dtype.type(strength) * softmax(other)


def _floating(s: ArrayLike) -> Array:
    x = np.asarray(s)
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)
