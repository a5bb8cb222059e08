"""From scores to weights."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]


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
