"""From the block values of neighbouring blocks to those of one block that is twice as large.

Blocks are independent and alike, so what m neighbours hold together is a block again, of the same
law as all others of its size, and the blocks so made are independent. Whatever an interval asks of
blocks it may therefore ask of these:

- A known variance v of what a block adds to a mean: of the mean of m of them it is v/m.
- A calibrated interval rests on the blocks' influence values, and on what their skewness γ shows:
  that of the larger blocks is γ/√m over 1/m as many, so that γ/√blocks, by which its quantile
  moves, is the same.
- Of values in a range the mean lies there as well. But a bet on it wins less than the bets on the
  m values: so their variance is kept, too, by which ``bets_on_rows`` bounds what those win.

A mean of the larger blocks' values is that of all values. So estimates that are functions of such
means stay the same, but for rounding. A variance about the mean of the draws, whose own error is
taken out block by block, keeps its expectation and moves by 1/blocks of its standard error.
"""

import numpy as np

from mcverify.arrays import Array


def means(table: Array) -> Array:
    """Of block values that are a mean, and are followed by their variance once they are of several.

    >>> means(np.array([[1.0], [2.0], [3.0], [5.0]]))
    array([[1.5 , 0.25],
           [4.  , 1.  ]])
    """
    return central(_padded(table, 1, 2))


def pairs_of_means(table: Array) -> Array:
    """Of block values that are two means, and are followed by their variances and covariance.

    >>> pairs_of_means(np.array([[1.0, 0.0], [3.0, 4.0]]))
    array([[2., 2., 1., 2., 4.]])
    """
    first, second = (each := _padded(table, 2, 5))[0::2], each[1::2]
    x, y = ((first - second) / 2)[:, :2].T
    made = (first + second) / 2
    made[:, 2:] += np.stack([x * x, x * y, y * y], axis=1)
    return np.asarray(made)


def central(table: Array) -> Array:
    """Of a block's mean and second, or second to fourth, moments about it: (2n, 2 or 4) -> (n, …).

    The moments of two blocks of equally many values about their common mean, by the binomial
    theorem: each lies half the difference of the means away from it.

    >>> central(np.array([[1.0, 0.0], [3.0, 4.0]]))
    array([[2., 3.]])
    """
    made, differences = (table[0::2] + table[1::2]) / 2, (table[0::2] - table[1::2]) / 2
    apart = differences[:, 0]
    if table.shape[1] == 4:
        made[:, 3] += 4 * apart * differences[:, 2] + 6 * apart**2 * made[:, 1] + apart**4
        made[:, 2] += 3 * apart * differences[:, 1]
    made[:, 1] += apart**2
    return np.asarray(made)


def _padded(table: Array, few: int, all_: int) -> Array:
    """The table with columns of 0 for the variances of single values, if it has none yet."""
    return np.pad(table, [(0, 0), (0, all_ - few)]) if table.shape[1] == few else table
