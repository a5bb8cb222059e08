"""From one value a block to Student's t interval, widened by what the draws show of their law.

It is calibrated and no theorem: no rule on draws alone bounds its error for every law (Bahadur and
Savage 1956), so it serves where nothing is known besides the draws.
"""

import math

import numpy as np
import scipy

from mcverify.arrays import Array
from mcverify.statistic.estimate import Estimate, no_interval

CALIBRATED_FROM = 512  # blocks: values that are equal in fewer may well not be so in more
MIN_SPREAD = 1e-12  # of the estimate's scale: below it the spread is rounding, not sampling


# The expansion behind the interval is trusted from CAUTION·t² blocks on. A sample that misses by t
# standard errors with t² near its number of blocks does not show how skew its law is, so δ comes
# out small just when it should be large: for values of skewness 1 and a rate of 7e-12, 64 blocks
# miss 123 times too often by first order, 128 blocks 9 times, 512 blocks less than once.
CAUTION = 8.0
MAX_DELTA = 0.5  # beyond it a first-order correction is no small one


def quantile_of_t(blocks: int, error_rate: float) -> float:
    """Student's t that is exceeded on either side at half the error rate, at blocks − 1 degrees."""
    return -float(scipy.special.stdtrit(blocks - 1, error_rate / 2))


def blocks_needed(t: float, caution: float, first: float) -> float:
    """Blocks from which the interval stands: the one place that says when.

    ``first`` is δ times the root of the blocks: see first_order, and lean in studentised.

    >>> blocks_needed(8.0, 8.0, 0.0), blocks_needed(8.0, 8.0, 20.0)
    (512.0, 1600.0)
    """
    return max(caution * t * t, (first / MAX_DELTA) ** 2)


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
    stderr = standard_error(influence)
    if not math.isfinite(stderr):
        return no_interval(value, stderr, "the squares of the values overflow; use a larger unit",
                           final=True)
    if not stderr > MIN_SPREAD * abs(value):
        return no_interval(value, stderr, "the values do not vary from block to block; for a "
                                          "share or an identity use the statistic proportion, for "
                                          "values in a known range mean.within or ratio.within",
                           final=True)
    t = quantile_of_t(blocks, error_rate)
    if blocks < blocks_needed(t, caution, 0.0):
        return no_interval(value, stderr, f"{blocks} blocks are too few at this error rate")
    columns = [influence] if parts is None else [influence, *(parts - parts.mean(axis=0)).T]
    skew = max(abs(skewness(column)) for column in columns)
    first = first_order(skew, t), lean * t * t
    if not blocks >= blocks_needed(t, caution, max(first)):
        curved = f" and lean {lean:.3g}" if lean else ""
        return no_interval(value, stderr, "the blocks are too skew for an interval: skewness "
                                          f"{skew:.3g}{curved} over {blocks} blocks"
                                          f"{_repair(influence)}")
    second = max(second_order(_standardised(column, 4) - 3, t, blocks) for column in columns)
    half = (t + sum(first) / math.sqrt(blocks) + second) * stderr + curvature * t * t / blocks
    return Estimate(value, stderr, value - half, value + half)


def standard_error(departures: Array) -> float:
    """Of the mean of independent values, by their departures from it; nan of a single one."""
    blocks = len(departures)
    if blocks < 2:
        return math.nan
    unit = float(np.abs(departures).max()) or 1.0  # in which squares do not underflow
    departures = departures / unit
    return unit * math.sqrt(float(np.dot(departures, departures)) / (blocks - 1) / blocks)


def _repair(influence: Array) -> str:
    """What would decide sooner: events are known by their two values."""
    two = np.all((influence == influence.min()) | (influence == influence.max()))
    return "; they take two values: for events use the statistic proportion" if two else ""


def skewness(values: Array) -> float:
    """Of values with mean 0, in any unit; 0 of a constant."""
    return _standardised(values, 3)


def _standardised(values: Array, order: int) -> float:
    """The mean of values with mean 0 to this power, over that of their deviation; 0 of a constant.
    """
    largest = float(np.abs(values).max())
    if not largest > 0:
        return 0.0
    values = values / largest  # so that no power of them underflows or overflows
    squares = values * values
    last = values if order == 3 else squares
    spread = math.sqrt(float(squares.mean()))
    return float(np.dot(squares, last)) / len(values) / spread**order


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
