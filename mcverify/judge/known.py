"""From scores that a body returned as they are to what their law knows of a block's values."""

from mcverify.attention.chunk import Scores
from mcverify.judge.world import World
from mcverify.laws.coordinates import Iid
from mcverify.statistic import Known


def known_scores(world: World, which: Scores) -> Known | None:
    """Mean and variances of a block's scores, where the law knows them; None where it does not."""
    law, d, n, c = world.law, world.d_k, world.tokens, which.scale
    if not (isinstance(law, Iid) and law.mean == 0 and which.pairs == "all"):
        return None
    kappa, v2 = law.fourth_moment, law.variance**2
    square = d * v2
    fourth = (3 * (d * d + d * (kappa - 1)) + (kappa - 3) * kappa * d) * v2**2
    shared = (d * d + d * (kappa - 1)) * v2**2
    # At least as much: what rounding may take from a difference is added.
    of_squares = max(fourth - square**2 + 2 * (n - 1) * (shared - square**2), 0.0) / n**2
    of_squares += 1e-12 * square**2
    return Known(0.0, c**2 * square / n**2, c**4 * of_squares)
