"""From the block values of neighbouring blocks to those of one block that is twice as large.

Blocks are independent and alike, so what m neighbours hold together is a block again, of the same
law as all others of its size, and the blocks so made are independent. Whatever an interval asks of
blocks it may therefore ask of these:

- Values in a range: a mean of values in [low, high] lies there as well, and its mean is the same;
  so is E(x − r·y) of a ratio. Ville's inequality holds for the larger blocks as it does for the
  smaller ones. It bounds all looks at blocks of one size together, so that a run that looks at
  blocks of several sizes shares its rate among them.
- A known variance v of what a block adds to a mean: of the mean of m of them it is v/m.
- A calibrated interval rests on the blocks' influence values, and on what their skewness γ shows:
  that of the larger blocks is γ/√m over 1/m as many, so that γ/√blocks, by which its quantile
  moves, is the same.

A mean of the larger blocks' values is that of all values. So estimates that are functions of such
means stay the same, but for rounding; a variance about the mean of the draws, whose own error is
taken out block by block, stays so to 1/blocks² of itself, with the same expectation.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def averaged(table: Array) -> Array:
    """Of block values that are means of what a block holds: (2n, …) -> (n, …).

    >>> averaged(np.array([[1.0], [2.0], [3.0], [5.0]]))[:, 0]
    array([1.5, 4. ])
    """
    return np.asarray((table[0::2] + table[1::2]) / 2)


def united(table: Array) -> Array:
    """Of a block's mean and second, or second to fourth, moments about it: (2n, 2 or 4) -> (n, …).

    The moments of two blocks of equally many values about their common mean, by the binomial
    theorem: each lies half the difference of the means away from it.

    >>> united(np.array([[1.0, 0.0], [3.0, 4.0]]))
    array([[2., 3.]])
    """
    made, apart = averaged(table), (table[0::2, 0] - table[1::2, 0]) / 2
    differences = (table[0::2] - table[1::2]) / 2
    if table.shape[1] == 4:
        made[:, 3] += (4 * apart * differences[:, 2] + 6 * apart**2 * made[:, 1] + apart**4)
        made[:, 2] += 3 * apart * differences[:, 1]
    made[:, 1] += apart**2
    return made
