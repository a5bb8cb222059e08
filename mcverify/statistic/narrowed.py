"""The block values that still matter to a quantile, once an interval is known to hold it.

The interval of a quantile holds at all looks together: what was refuted at one of them may stay
refuted. So after a look that leaves [low, high], later ones ask of each x in there for the shares
of values up to x of all blocks, and a bettor asks only how many blocks have which share. A block
without a value in [low, high] has the same share for all x, so that it need only be counted. What
is left are the blocks with a value in there: in n blocks of k values about as many as the interval
is wide in probability times nk, which grows with √(nk) as the interval narrows.
"""

import math

import numpy as np

from mcverify.arrays import Array


class Narrowed:
    """Block values of n blocks of k values, of which those in [low, high] are told apart."""

    def __init__(self, table: Array, low: float, high: float) -> None:
        self.low, self.high, self.values = low, high, table.shape[1]
        self.counted = np.zeros(self.values + 1, dtype=np.int64)  # blocks by their values below
        self._rows: list[Array] = []
        self.add(table)

    def add(self, table: Array) -> None:
        """Take in more blocks, (blocks, k)."""
        inside = np.any((table >= self.low) & (table <= self.high), axis=1)
        below = np.sum(table[~inside] < self.low, axis=1)
        self.counted += np.bincount(below, minlength=self.values + 1)
        self._rows.append(table[inside])

    def narrow(self, low: float, high: float) -> None:
        """Tell apart no more than those in [low, high], which lies in the interval so far."""
        rows, self._rows = self.rows, []
        self.low, self.high = low, high
        self.add(rows)

    @property
    def rows(self) -> Array:
        """The blocks with a value inside, with all their values."""
        if len(self._rows) != 1:
            self._rows = [np.concatenate(self._rows)]
        return self._rows[0]

    def __len__(self) -> int:
        return int(self.counted.sum()) + len(self.rows)

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return self.rows.size + self.counted.size

    @property
    def inside(self) -> Array:
        """The values in [low, high], sorted."""
        rows = self.rows
        return np.sort(rows[(rows >= self.low) & (rows <= self.high)])

    def at(self, value: float) -> Array:
        """How many blocks have 0, 1, … k values up to this one, in [low, high] or just below."""
        own = np.bincount(np.sum(self.rows <= value, axis=1), minlength=self.values + 1)
        return np.asarray(self.counted + own)

    def rank(self, share: float) -> int:
        """The place among those inside of the least value that so many of all are no larger than.
        """
        before = int(np.arange(self.values + 1) @ self.at(math.nextafter(self.low, -math.inf)))
        return int(np.ceil(share * (len(self) * self.values))) - before - 1
