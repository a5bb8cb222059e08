"""From one value a block to an interval for their mean that misses the truth at a known rate."""

import html
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import bisect
from scipy.special import rel_entr, stdtrit

Array = NDArray[np.float64]

MIN_SPREAD = 1e-12  # of the estimate's scale: below it the spread is rounding, not sampling


class Caution(NamedTuple):
    """When the expansion behind the interval is trusted: from blocks·t² blocks, up to a δ.

    A sample that misses by t standard errors with t² near its number of blocks does not show how
    skew its law is, so δ comes out small just when it should be large. For values of skewness 1
    and a rate of 7e-12, 64 blocks miss 123 times too often, 128 blocks 9 times, 512 blocks less
    than once. Beyond a δ of 1/2 the first-order correction is no small correction.
    """

    blocks: float
    delta: float


CAREFUL = Caution(blocks=8, delta=0.5)


@dataclass(frozen=True)
class Estimate:
    """What the draws say of a number.

    Attributes
    ----------
    value, stderr : the estimate and its Monte Carlo standard error, from block to block.
    low, high : the interval that misses the truth at most at the error rate asked for;
        infinite while the blocks allow none.
    reason : why there is no interval yet, "" when there is one.
    """

    value: float
    stderr: float
    low: float
    high: float
    reason: str = ""

    def __str__(self) -> str:
        told = f"{self.value:.6g} ± {self.stderr:.2g}, in [{self.low:.6g}, {self.high:.6g}]"
        return f"{told} ({self.reason})" if self.reason else told

    def _repr_html_(self) -> str:
        return f"<samp>{html.escape(str(self))}</samp>"


def no_interval(value: float, stderr: float, reason: str) -> Estimate:
    """An estimate that nothing can be concluded from yet, and why."""
    return Estimate(value, stderr, -math.inf, math.inf, reason)


def studentised(
    value: float, influence: Array, error_rate: float,
    parts: Array | None = None, curvature: float = 0.0, caution: Caution = CAREFUL,
) -> Estimate:
    """value ± ((t + δ)·stderr + curvature·t²/blocks), δ = abs(skewness)·(2t² + 1)/(6√blocks).

    t is Student's at blocks − 1 degrees of freedom. The studentised mean of skew values has
    P(T > t) = P(t) + skewness·(2t² + 1)φ(t)/(6√blocks) + … (Edgeworth), which moves its quantile
    by just δ; the direction is not used, so both sides are covered. ``parts``, (blocks, any
    number), are block values that the influence is made of: theirs counts, too, if it is larger.
    ``curvature`` is what the estimate loses to second order for each squared standard error of
    what it is a function of. No interval while the expansion cannot be trusted (see Caution), or
    while the values have not spread yet.
    """
    blocks = len(influence)
    if blocks < 2:
        return no_interval(value, math.nan, "one block has no spread to judge by")
    stderr = math.sqrt(float(np.dot(influence, influence)) / (blocks - 1) / blocks)
    if not stderr > MIN_SPREAD * abs(value):
        return no_interval(value, stderr, "the values do not vary from block to block; for a "
                                          "share or an identity use the statistic proportion")
    t = -float(stdtrit(blocks - 1, error_rate / 2))
    if blocks < caution.blocks * t * t:
        return no_interval(value, stderr, f"{blocks} blocks are too few at this error rate")
    columns = [influence] if parts is None else [influence, *(parts - parts.mean(axis=0)).T]
    skewness = max(abs(_skewness(column)) for column in columns)
    delta = skewness * (2 * t * t + 1) / (6 * math.sqrt(blocks))
    if not delta <= caution.delta:
        return no_interval(value, stderr, "the blocks are too skew for an interval: skewness "
                                          f"{skewness:.3g} over {blocks} blocks")
    half = (t + delta) * stderr + curvature * t * t / blocks
    return Estimate(value, stderr, value - half, value + half)


def _skewness(values: Array) -> float:
    squares = values * values
    second = float(squares.mean())
    return float(np.dot(squares, values)) / len(values) / second**1.5 if second > 0 else 0.0


def chernoff(shares: Array, error_rate: float) -> Estimate:
    """All μ with blocks·kl(p̂, μ) ≤ ln(2/error rate), for block values in [0, 1] with mean p̂.

    Chernoff's bound in Hoeffding's form: it holds for any law on [0, 1] and any number of blocks,
    even when no block differs from another.

    >>> found = chernoff(np.ones(64), 2e-3)
    >>> found.high, round(found.low, 6) == round(1e-3 ** (1 / 64), 6)
    (1.0, True)
    """
    blocks, p = len(shares), min(max(float(shares.mean()), 0.0), 1.0)
    allowed = math.log(2 / error_rate) / blocks

    def excess(mu: float) -> float:
        return float(rel_entr(p, mu) + rel_entr(1 - p, 1 - mu)) - allowed

    low = bisect(excess, 0.0, p, xtol=1e-18) if p > 0 else 0.0
    high = 1 - bisect(lambda nu: excess(1 - nu), 0.0, 1 - p, xtol=1e-15) if p < 1 else 1.0
    stderr = float(shares.std(ddof=1)) / math.sqrt(blocks) if blocks > 1 else math.nan
    return Estimate(p, stderr, low, high)
