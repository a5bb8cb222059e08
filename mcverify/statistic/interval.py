"""From one value a block to an interval for their mean that misses the truth at a known rate."""

import html
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import bisect
from scipy.special import rel_entr, stdtrit

Array = NDArray[np.float64]

MIN_SPREAD = 1e-12  # of the estimate's scale: below it the spread is rounding, not sampling


# The expansion behind the interval is trusted from CAUTION·t² blocks on. A sample that misses by t
# standard errors with t² near its number of blocks does not show how skew its law is, so δ comes
# out small just when it should be large: for values of skewness 1 and a rate of 7e-12, 64 blocks
# miss 123 times too often by first order, 128 blocks 9 times, 512 blocks less than once.
CAUTION = 8.0
MAX_DELTA = 0.5  # beyond it a first-order correction is no small one


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


@np.errstate(over="ignore", invalid="ignore")  # of values near the largest there are
def studentised(
    value: float, influence: Array, error_rate: float,
    parts: Array | None = None, curvature: float = 0.0, caution: float = CAUTION,
    lean: float = 0.0,
) -> Estimate:
    """value ± ((t + δ + ε)·stderr + curvature·t²/blocks).

    t is Student's at blocks − 1 degrees of freedom.

    - δ = (abs(skewness)·(2t² + 1)/6 + lean·t²)/√blocks is the first order of Cornish and Fisher's
      expansion: the studentised mean of skew values has P(T > t) = P(t) +
      skewness·(2t² + 1)φ(t)/(6√blocks) + … (Edgeworth), which moves its quantile by just the
      first term. ``lean`` is for a curved statistic, whose studentised error is
      z + lean·z²/√blocks + … with z that of a mean. The direction is not used, so both sides are
      covered.
    - ε is the second order, where values are skew and heavy: see second_order.
    - ``curvature`` is what the estimate loses to second order for each squared standard error of
      what it is a function of.

    ``parts``, (blocks, any number), are block values that the influence is made of: their
    skewness and ε count, too, if they are larger. No interval while the expansion cannot be
    trusted, before ``caution``·t² blocks or for a term of δ beyond a half, or while the values
    have not spread yet.
    """
    blocks = len(influence)
    if blocks < 2:
        return no_interval(value, math.nan, "one block has no spread to judge by")
    stderr = math.sqrt(float(np.dot(influence, influence)) / (blocks - 1) / blocks)
    if not math.isfinite(stderr):
        return no_interval(value, stderr, "the squares of the values overflow; use a larger unit")
    if not stderr > MIN_SPREAD * abs(value):
        return no_interval(value, stderr, "the values do not vary from block to block; for a "
                                          "share or an identity use the statistic proportion")
    t = -float(stdtrit(blocks - 1, error_rate / 2))
    if blocks < caution * t * t:
        return no_interval(value, stderr, f"{blocks} blocks are too few at this error rate")
    columns = [influence] if parts is None else [influence, *(parts - parts.mean(axis=0)).T]
    skewness = max(abs(_skewness(column)) for column in columns)
    first = first_order(skewness, t) / math.sqrt(blocks), lean * t * t / math.sqrt(blocks)
    if not max(first) <= MAX_DELTA:
        curved = f" and lean {lean:.3g}" if lean else ""
        return no_interval(value, stderr, "the blocks are too skew for an interval: skewness "
                                          f"{skewness:.3g}{curved} over {blocks} blocks")
    second = max(second_order(_excess(column), t, blocks) for column in columns)
    half = (t + sum(first) + second) * stderr + curvature * t * t / blocks
    return Estimate(value, stderr, value - half, value + half)


def _skewness(values: Array) -> float:
    squares = values * values
    second = float(squares.mean())
    return float(np.dot(squares, values)) / len(values) / second**1.5 if second > 0 else 0.0


def first_order(skewness: float, t: float) -> float:
    """By how many standard errors skew values move the quantile t, for each 1/√blocks.

    >>> first_order(-2.0, 1.0)
    1.0
    """
    return abs(skewness) * (2 * t * t + 1) / 6


def second_order(excess: float, t: float, blocks: int) -> float:
    """By how many standard errors the half-width t + δ may be too small, for skew, heavy values.

    Let values have skewness γ and excess kurtosis κ, let η = t/√blocks, and let the estimate be
    too low while γ > 0, the side on which the tail that makes the values skew is missing from the
    sample. The nearest law q, in relative entropy, under which the interval just misses is, with
    h the relative change of the probabilities and X the standardised value,

        h = −ηX + η²γX/6 + O(η³),  blocks·KL(q) = (blocks/2)·ln(1 + η²) + (t⁴/blocks)(2γ²/9 − κ/4).

    The first term is Student's t, so that with δ alone the interval misses exp((t⁴/blocks)·(κ/4 −
    2γ²/9)) times as often as it may; t³/blocks·(κ/4 − 2γ²/9) more standard errors mend it. On the
    other side, and at γ = 0, it misses less than it may. A sample that misses shows less of κ and
    γ than its law has, so this gives t³/blocks·κ/2, which is enough if it shows half of κ. Of laws
    that are far more skew it shows nearly none, and then MAX_DELTA, which gives few of their
    samples an interval, has to do; how it all comes out is for `mcverify selfcheck` to measure.

    >>> second_order(6.0, 2.0, 8), second_order(-1.0, 2.0, 8)
    (3.0, 0.0)
    """
    return t**3 / blocks * max(excess, 0.0) / 2


def _excess(values: Array) -> float:
    squares = values * values
    second = float(squares.mean())
    return float(np.dot(squares, squares)) / len(values) / second**2 - 3 if second > 0 else 0.0


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
