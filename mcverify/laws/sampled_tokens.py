"""How much the mean over some tokens of a group, drawn without replacement, varies.

A block's values are y_ij of its tokens i and j, or y_i of each. Over the draw of the tokens the
mean of y_ij y_kl depends only on which of the four are the same, and is a mean over the group.
"""

import math
from typing import NamedTuple

import numpy as np

from mcverify.arrays import Array


class Drawn(NamedTuple):
    """Mean and mean square of a block's mean value, over the draw of its tokens."""

    mean: float
    square: float


def of_tokens(y: Array, tokens: int) -> Drawn:
    """Of y_i over so many different tokens of a group, (group,).

    >>> of_tokens(np.array([0.0, 2.0]), 1), of_tokens(np.array([0.0, 2.0]), 2)
    (Drawn(mean=1.0, square=2.0), Drawn(mean=1.0, square=1.0))
    """
    total, own = float(y.sum()), float(y @ y)
    return Drawn(total / len(y), _mean_square([(1, own), (2, total**2 - own)], len(y), tokens, 1))


def of_pairs(y: Array, tokens: int) -> Drawn:
    """Of y_ij over the pairs of so many different tokens of a group, (group, group), i ≠ j.

    >>> of_pairs(np.array([[9.0, 1.0], [3.0, 9.0]]), 2)
    Drawn(mean=2.0, square=4.0)
    """
    y = y - np.diag(y.diagonal())
    total, rows, columns = float(y.sum()), y.sum(axis=1), y.sum(axis=0)
    two = float((y * y).sum() + (y * y.T).sum())  # the same pair, and the same turned around
    # One token in common, in any of the four ways; a pair with itself is among each of two of them.
    three = float(((rows + columns) ** 2).sum()) - 2 * two
    shares = [(2, two), (3, three), (4, total**2 - two - three)]
    return Drawn(total / math.perm(len(y), 2), _mean_square(shares, len(y), tokens, 2))


def _mean_square(sums: list[tuple[int, float]], group: int, tokens: int, of: int) -> float:
    """From sums over the group of products in which so many different tokens occur."""
    square = sum(math.perm(tokens, different) / math.perm(group, different) * value
                for different, value in sums if different <= tokens)
    return square / math.perm(tokens, of) ** 2
