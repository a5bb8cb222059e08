"""Tokens as a sample of a law: a quantity's estimate, its error and its interval."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

import numpy as np

from mcverify.arrays import Array
from mcverify.declare.prediction import claimed_interval, relative
from mcverify.diagnose.blocks import UNITS_OF_A_BLOCK, block_sums, whole_sums
from mcverify.diagnose.population import Tokens
from mcverify.statistic import ratio
from mcverify.statistic.estimate import Estimate, no_interval
from mcverify.statistic.studentised import CAUTION, blocks_needed, quantile_of_t

RESERVE = 1.25  # so many times the blocks that an interval takes: more would only be smaller ones
LARGE = 64  # units a block, from which on there are more blocks instead of larger ones

Claimed = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One quantity.

    Attributes
    ----------
    value : exact for the arrays; textbook : what it is under the textbook's assumptions.
    estimate : of the law's value, if an interval makes sense; takes : so many units.
    claimed : where the law's value lies if the assumption holds within the margin, if it is one.
    """

    quantity: str
    formula: str
    value: float
    textbook: float = math.nan
    estimate: Estimate | None = None
    takes: int = 0
    claimed: Claimed | None = None
    note: str = ""


@dataclass(frozen=True)
class Sample:
    """What rows are made from: tokens, what a verdict may cost and allow, and sums.

    ``whole`` are those of all units and of all but each part of them, ``sums`` those of blocks.
    """

    tokens: Tokens
    rate: float
    margin: float
    whole: dict[str, Array]
    sums: dict[str, Array]

    @property
    def small(self) -> Claimed:
        """Where a number lies that is 0 but for the margin, and cannot be negative."""
        return claimed_interval("at_most", self.margin, None)

    @property
    def one(self) -> Claimed:
        """Where a number lies that is 1 but for the margin."""
        return claimed_interval("equals", 1.0, relative(self.margin))

    def quotient(
        self, quantity: str, formula: str, value: float, textbook: float,
        top: str, bottom: str, factor: float = 1.0,
        claimed: Claimed | None = None, note: str = "",
    ) -> Row:
        """The row of factor·E top/E bottom: from all units, with an interval from blocks of them.

        The standard error comes from leaving out each part (the jackknife).
        """
        takes = UNITS_OF_A_BLOCK * least_blocks(self.rate)
        if not self.sums:
            estimate = no_interval(math.nan, math.nan, "too few")
        else:
            whole, *left = factor * self.whole[top] / self.whole[bottom]
            table = np.column_stack([factor * self.sums[top], self.sums[bottom]])
            estimate = replace(
                ratio.estimate(table, self.rate), value=float(whole),
                stderr=math.sqrt((len(left) - 1) * float(np.var(left))) if left else math.nan)
        return Row(quantity, formula, value, textbook, estimate, takes, claimed, note)


@lru_cache
def least_blocks(rate: float, caution: float = CAUTION) -> int:
    """The fewest blocks that studentised gives an interval for.

    >>> least_blocks(1e-4)
    130
    """
    return next(blocks for blocks in count(2)
                if blocks >= blocks_needed(quantile_of_t(blocks, rate), caution, 0.0))


def number_of_blocks(units: int, rate: float) -> int:
    """How many blocks so many units are cut into: few and large ones, for small errors.

    >>> [number_of_blocks(units, 1e-4) for units in (21, 592, 5000, 10**6)]
    [5, 148, 162, 15625]
    """
    wanted = int(RESERVE * least_blocks(rate))
    return max(min(wanted, units // UNITS_OF_A_BLOCK), units // LARGE)


def sample_of(tokens: Tokens, rate: float, margin: float) -> Sample:
    """With the sums that as many units allow."""
    units = len(tokens.sizes)
    if units < UNITS_OF_A_BLOCK:
        return Sample(tokens, rate, margin, {}, {})
    return Sample(tokens, rate, margin, whole_sums(tokens),
                  block_sums(tokens, number_of_blocks(units, rate)))
