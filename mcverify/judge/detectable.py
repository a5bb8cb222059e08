"""By how much a claim must be off for draws to tell."""

import math

import scipy

from mcverify.declare.claim import Claim
from mcverify.statistic import Basis, Estimate, Statistic
from mcverify.statistic.betting import threshold

POWER = 0.999


def detectable(
    claim: Claim, claimed: tuple[float, float], statistic: Statistic, estimate: Estimate,
    blocks: int, last: int, rate: float,
) -> float:
    """By how much a claim must be off to be REFUTED with a probability of 0.999, if need be at the
    last look; in proportion to the prediction if the margin is, nan where unknown.

    ``estimate`` is after ``blocks`` of at most ``last``, at an error rate of ``rate``.
    """
    edges = [edge for edge in claimed if math.isfinite(edge)]
    if not (edges and estimate.stderr >= 0):
        return math.nan
    stderr = estimate.stderr * math.sqrt(blocks / last)
    if stderr == 0 and statistic.support:  # the most that values of the range may vary
        low, high = statistic.support
        stderr = max(math.sqrt(max(0.0, (edge - low) * (high - edge)) / last) for edge in edges)
    departure = (reach_of(statistic, estimate, last, rate) + scipy.special.ndtri(POWER)) * stderr
    if claim.prediction[0] == "equals":
        departure += (claimed[1] - claimed[0]) / 2
    relative = claim.within is not None and claim.within.relative
    return float(departure / abs(sum(edges) / len(edges)) if relative else departure)


def reach_of(statistic: Statistic, estimate: Estimate, blocks: int, rate: float) -> float:
    """How many standard errors the interval reaches to either side, after so many blocks."""
    if statistic.at_all_looks:
        return math.sqrt(2 * threshold(blocks, rate))
    by_moments = statistic.rests_on is Basis.MOMENTS and estimate.stderr > 0
    reach = (estimate.high - estimate.low) / estimate.stderr / 2 if by_moments else math.inf
    return float(reach if math.isfinite(reach) else -scipy.special.ndtri(rate / 2))
