"""From scores, queries or keys that a body returned as they are to what their law knows of them."""

import math
from functools import lru_cache
from typing import Any

from mcverify.attention.chunk import Made, Scores, Vectors
from mcverify.judge.world import World
from mcverify.laws import BlockMoments, block_moments, fourth_moments
from mcverify.statistic import Known

ROUNDING = 1e-12  # of the squared variance: what a difference of moments may lose


def known_values(
    world: World, made: Made | None, power: int = 1
) -> Known | tuple[Known | None, ...] | None:
    """Mean and variances of a block's values, where the law knows them; None where it does not.

    Of values at several widths one each. ``power`` is that of the statistic: only for the fourth
    are fourth powers asked for.
    """
    if made is None or isinstance(made, Scores | Vectors):
        known = made and _known(world, made)
        return _with_fourths(known, world, made) if known and made and power == 4 else known
    return tuple(_known(world, each) for each in made)


def _known(world: World, made: Scores | Vectors) -> Known | None:
    of, scale, width = (made.which, 1.0, 0) if isinstance(made, Vectors) else made
    law: Any = world.law
    moments = _moments(law, world.d_k, world.tokens, of, width or world.d_k)
    if moments is None or not math.isfinite(moments.mean):
        return None
    squares = moments.of_squares + ROUNDING * moments.variance**2
    return Known(scale * moments.mean, _if_known(scale**2 * moments.of_means),
                 _if_known(scale**4 * squares))


def _with_fourths(known: Known, world: World, made: Scores | Vectors) -> Known:
    if isinstance(made, Vectors) or made.pairs != "all" or made.width or known.mean:
        return known
    moments = fourth_moments(world.law, world.d_k, world.tokens)
    if moments is None or not _if_known(moments.of_fourths):
        return known
    fourths = (made.scale**2 * moments.variance, moments.kurtosis)
    return known._replace(of_fourths=moments.of_fourths * (1 + ROUNDING), fourths=fourths)


def _if_known(variance: float) -> float | None:
    return variance if 0 < variance < math.inf else None


@lru_cache(maxsize=256)
def _moments(law: Any, d_k: int, tokens: int, of: Any, width: int) -> BlockMoments | None:
    return block_moments(law, d_k, tokens, of, width)
