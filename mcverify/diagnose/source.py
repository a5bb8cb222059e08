"""From tokens to what every quantity is made from: exact moments, unbiased sums, an error rate."""

import math
from dataclasses import dataclass, replace

import numpy as np

from mcverify.declare.prediction import claimed_interval, relative
from mcverify.diagnose.blocks import (
    LEAST,
    block_sums,
    blocks_needed,
    number_of_blocks,
    whole_sums,
)
from mcverify.diagnose.population import Tokens
from mcverify.laws.law import Array
from mcverify.statistic import ratio
from mcverify.statistic.interval import Estimate, no_interval

Claimed = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One quantity.

    Attributes
    ----------
    value : exact for the arrays; textbook : what it is under the textbook's assumptions.
    estimate : of the law's value, if an interval makes sense; claimed : where that lies if the
        assumption holds within the margin, if it is an assumption.
    """

    quantity: str
    formula: str
    value: float
    textbook: float = math.nan
    estimate: Estimate | None = None
    claimed: Claimed | None = None
    note: str = ""


@dataclass(frozen=True)
class Source:
    """What rows are made from: tokens, what a verdict may cost and allow, and sums.

    ``whole`` are those of all units and of all but each part of them, ``sums`` those of blocks.
    """

    tokens: Tokens
    rate: float
    margin: float
    whole: dict[str, Array]
    sums: dict[str, Array]

    @property
    def sides(self) -> list[tuple[str, Array, Array, Array]]:
        """The name, the vectors, their mean and their covariance, of q and of k."""
        t = self.tokens
        return [("q", t.q, t.mean_q, t.cov_q), ("k", t.k, t.mean_k, t.cov_k)]

    @property
    def small(self) -> Claimed:
        """Where a number lies that is 0 but for the margin, and cannot be negative."""
        return claimed_interval("at_most", self.margin, None)

    @property
    def one(self) -> Claimed:
        """Where a number lies that is 1 but for the margin."""
        return claimed_interval("equals", 1.0, relative(self.margin))

    def quotient(self, top: str, bottom: str, factor: float = 1.0) -> Estimate:
        """factor·E top/E bottom: from all units, with an interval from blocks of them.

        The standard error comes from leaving out each part (the jackknife).
        """
        if not self.sums:
            return no_interval(math.nan, math.nan, self.too_few(LEAST))
        value, *left = factor * self.whole[top] / self.whole[bottom]
        spread = math.sqrt((len(left) - 1) * float(np.var(left))) if left else math.nan
        table = np.column_stack([factor * self.sums[top], self.sums[bottom]])
        found = self.worded(ratio.estimate(table, self.rate), LEAST * blocks_needed(self.rate))
        return replace(found, value=float(value), stderr=spread)

    def worded(self, found: Estimate, least: int) -> Estimate:
        """The same, with a reason that speaks of units and not of blocks if they are too few."""
        few = found.reason and len(self.tokens.sizes) < least
        return replace(found, reason=self.too_few(least)) if few else found

    def too_few(self, least: int) -> str:
        unit = "groups" if self.tokens.grouped else "tokens"
        return f"{len(self.tokens.sizes)} {unit} are too few: an interval takes {least}"


def source_of(tokens: Tokens, rate: float, margin: float) -> Source:
    """With the sums that as many units allow."""
    units = len(tokens.sizes)
    enough = units >= LEAST
    return Source(tokens, rate, margin, whole_sums(tokens) if enough else {},
                  block_sums(tokens, number_of_blocks(units, rate)) if enough else {})
