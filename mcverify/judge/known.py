"""From scores that a body returned as they are to what their law knows of a block's values."""

import math
from functools import lru_cache
from typing import Any

from mcverify.attention.chunk import Scores
from mcverify.judge.world import World
from mcverify.laws import ScoreMoments, score_moments
from mcverify.statistic import Known

ROUNDING = 1e-12  # of the squared variance: what a difference of moments may lose


def known_scores(world: World, which: Scores | None) -> Known | None:
    """Mean and variances of a block's scores, where the law knows them; None where it does not."""
    if which is None:
        return None
    law: Any = world.law
    moments = _moments(law, world.d_k)
    if moments is None:
        return None
    c, mean = which.scale, moments.mean_over(which.pairs)
    if not math.isfinite(mean):
        return None
    matched = which.pairs == "matched"
    slack = ROUNDING * (moments.matched_variance if matched else moments.variance) ** 2
    of_means = moments.mean_variance(world.tokens, which.pairs)
    of_squares = moments.square_variance(world.tokens, which.pairs)
    return Known(c * mean, _if_known(c**2 * of_means), _if_known(c**4 * (of_squares + slack)))


def _if_known(variance: float) -> float | None:
    return variance if 0 < variance < math.inf else None


@lru_cache(maxsize=256)
def _moments(law: Any, d_k: int) -> ScoreMoments | None:
    return score_moments(law, d_k)
