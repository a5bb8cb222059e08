"""From what a body returns to arrays, and to a mean for each block."""

from typing import Any

import numpy as np

from mcverify.arrays import Array


def flat(values: Any) -> Array:
    """The values of each block in a row: (blocks, any number)."""
    if isinstance(values, tuple | list):
        raise ValueError(f"the body returned a {type(values).__name__}; this statistic takes one "
                         "array: a tuple of two is for a ratio or a difference, a list of pairs "
                         "for a slope")
    x: Array = np.asarray(values, dtype=np.float64)
    return x.reshape(len(x), -1)


def parts_of(values: Any) -> list[Array]:
    """The arrays in what a body returned: one, or those in a tuple or a list of pairs (x, …).

    ValueError for any other list, as of numbers.
    """
    if isinstance(values, tuple):
        return [array for part in values for array in parts_of(part)]
    if isinstance(values, list):
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 and np.ndim(pair[0]) == 0
                   and not np.isscalar(pair[1]) for pair in values):
            raise ValueError("the body returned a list, which is for a slope and holds pairs (x, "
                             "values); return one array whose first axis is the blocks")
        return [array for pair in values for array in parts_of(pair[-1])]
    return [np.asarray(values)]


def block_means(values: Any) -> Array:
    """The mean of each block's values: (blocks, 1)."""
    return np.asarray(flat(values).mean(axis=1, keepdims=True))
