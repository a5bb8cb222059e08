"""From weights and values to what attention puts out, and how alike its rows are."""

from mcverify.arrays import Array
from mcverify.attention.products import scores
from mcverify.attention.vectors import unit_norm


def outputs(p: Array, v: Array) -> Array:
    """Σ p v of each row: (..., rows, keys) and (..., keys, d_v) -> (..., rows, d_v).

    Raises ValueError where there is not a value for each key.

    >>> import numpy as np
    >>> outputs(np.array([[0.25, 0.75]]), np.array([[4.0], [8.0]]))
    array([[7.]])
    """
    if p.ndim < 2 or v.ndim < 2 or p.shape[-1] != v.shape[-2]:
        raise ValueError(f"weights have shape {p.shape} and values {v.shape}: must be (..., rows, "
                         "keys) and (..., keys, d_v) with the same keys; give a value for each key")
    o: Array = p @ v
    return o


def cosines(x: Array) -> Array:
    """The cosine of every pair of rows, 0 with a zero row: (..., rows, d) -> (..., rows, rows).

    >>> import numpy as np
    >>> cosines(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0]]))
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    unit = unit_norm(x)
    return scores(unit, unit)
