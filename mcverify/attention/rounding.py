"""From numbers to the nearest numbers of a type that NumPy does not have."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

DROPPED = 16  # bits of a float32 that a bfloat16 does not have; the exponent is the same
QUIET = 1 << 22  # the bit that keeps a NaN a NaN when its low bits go


def bfloat16(x: NDArray[Any]) -> Array:
    """Each entry of a float32 array rounded to the nearest bfloat16, ties to even; same shape.

    The result is float32, whose low 16 bits are 0: 8 bits of significand are left, so numbers in
    [64, 128) are 0.5 apart. From 3.3961775e38 on it is infinite; NaN stays NaN. Raises ValueError
    for another type, since rounding twice is not rounding to nearest.

    >>> bfloat16(np.array([64.25, 64.75, 1.00390625, 88.7], dtype=np.float32))
    array([64. , 65. ,  1. , 88.5], dtype=float32)
    """
    x = np.asarray(x)
    if x.dtype != np.float32:
        raise ValueError(f"bfloat16 of {x.dtype}: takes float32, so that it rounds only once; use "
                         "x.astype(np.float32) if x is to pass through float32 anyway")
    bits = x.view(np.uint32)
    below_half = np.uint32((1 << (DROPPED - 1)) - 1)
    last = (bits >> np.uint32(DROPPED)) & np.uint32(1)
    with np.errstate(over="ignore"):  # of the bits of a NaN, which are not used
        up = bits + below_half + last
    rounded = np.where(np.isnan(x), bits | np.uint32(QUIET), up)
    kept: Array = (rounded & np.uint32(0xFFFF0000)).view(np.float32)
    return kept
