"""The block values of a case: all of them or, in a long run, those of merged blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.narrowed import Narrowed


class Kept:
    """Block values that come chunk by chunk, in the order of their blocks.

    Row j of ``table`` is of the blocks from j·``merged`` on, which ``merge`` has taken together by
    pairs, pairs of pairs and so on: by what is drawn alone, whatever its chunks are, and however
    often the rows were merged further in between.
    """

    def __init__(self, merge: Callable[[Array], Array] | None) -> None:
        self.merge = merge
        self.blocks = 0
        self.merged = 1  # blocks of a row, a power of two
        self._rows: list[Array] = []
        self._waiting: list[Array] = []  # of blocks that do not make a row yet
        self._count = 0  # of those
        self._narrowed: Narrowed | None = None

    def coarsen(self, merged: int) -> None:
        """From now on rows are of so many blocks each, of which those so far must be a multiple."""
        while self.merged < merged:
            assert self.merge is not None
            self._rows, self.merged = [self.merge(self.table)], 2 * self.merged

    def add(self, table: Array) -> None:
        """Take in the next blocks' values, (blocks, …)."""
        self.blocks += len(table)
        if self._narrowed is not None:
            self._narrowed.add(table)
            return
        self._waiting.append(table)
        self._count += len(table)
        if self._count >= self.merged:
            waiting = np.concatenate(self._waiting) if len(self._waiting) > 1 else table
            whole = self._count // self.merged * self.merged
            row = waiting[:whole]
            for _ in range(self.merged.bit_length() - 1):
                assert self.merge is not None
                row = self.merge(row)
            self._rows.append(row)
            self._count -= whole
            self._waiting = [waiting[whole:].copy()] if self._count else []

    def narrow(self, low: float, high: float) -> None:
        """From now on tell no values apart but those in an interval that holds a quantile."""
        if self._narrowed is None:
            self._narrowed, self._rows = Narrowed(self._table, low, high), []
        else:
            self._narrowed.narrow(low, high)

    @property
    def table(self) -> Any:
        """The rows so far, (blocks // merged, …), or what is left of them."""
        return self._table if self._narrowed is None else self._narrowed

    @property
    def _table(self) -> Array:
        if len(self._rows) != 1:
            self._rows = [np.concatenate(self._rows)]
        return self._rows[0]
