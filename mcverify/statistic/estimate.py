"""What the draws say of a number, and what its interval rests on."""

import html
import math
from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """What an interval rests on: all but CALIBRATED are theorems.

    EXACT: a calculation. BOUND: values in a stated range. MOMENTS: block values whose variance is
    known. ORDER: order statistics. CALIBRATED: Student's t widened by the skewness and kurtosis
    that the draws show, which is right on smooth laws and wrong on rare values not drawn yet.
    """

    EXACT = "exact"
    BOUND = "bound"
    MOMENTS = "moments"
    ORDER = "order"
    CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Estimate:
    """What the draws say of a number.

    Attributes
    ----------
    value, stderr : the estimate and its Monte Carlo standard error, from block to block.
    low, high : the interval that misses the truth at most at the error rate asked for;
        infinite while the blocks allow none.
    reason : why there is no interval yet, "" when there is one.
    basis : what the interval rests on.
    final : whether more draws of the same kind will not give an interval either.
    """

    value: float
    stderr: float
    low: float
    high: float
    reason: str = ""
    basis: Basis = Basis.CALIBRATED
    final: bool = False

    def __str__(self) -> str:
        told = f"{self.value:.6g} ± {self.stderr:.2g}, in [{self.low:.6g}, {self.high:.6g}]"
        return f"{told} ({self.reason})" if self.reason else told

    def _repr_html_(self) -> str:
        return f"<samp>{html.escape(str(self))}</samp>"


def no_interval(value: float, stderr: float, reason: str, final: bool = False) -> Estimate:
    """An estimate that nothing can be concluded from yet, or with ``final`` never, and why."""
    return Estimate(value, stderr, -math.inf, math.inf, reason, final=final)
