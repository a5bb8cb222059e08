"""How the variances of q, k and scores of a small character model move in 200 steps, and its entropy."""

import numpy as np

from mcverify import Verdict, claim, grid
from mcverify.claims.training.gradients import seen
from mcverify.claims.training.models import SMALL_MODEL
from mcverify.statistic import median, proportion

WIDE = grid(model=SMALL_MODEL, initial="unit", d_k=[64, 128])
SMALL = grid(model=SMALL_MODEL, initial="small", d_k=[16, 64, 128])
FIRST, LAST = 0, -1


@claim(proportion, at_least=0.8, over=WIDE, decides="A17", needs="torch", controls=grid(scale="full"))
def queries_and_keys_keep_unit_variance(seeds, progress, model, initial, d_k, scale="sqrt"):
    """Scaled, from unit variance, q and k of a small character model still have a variance within a quarter of 1 after 200 steps of Adam at d_k = 64 and 128, as means over layers, in at least four of five runs."""
    sides = [seen(name, seeds, progress, model, initial, d_k, scale)[:, LAST].mean(axis=1)
             for name in ("q_variance", "k_variance")]
    return np.all([np.abs(side - 1) < 0.25 for side in sides], axis=0)


@claim(proportion, at_least=0.8, over=WIDE, decides="A17", needs="torch", controls=grid(at=FIRST))
def scores_leave_unit_variance(seeds, progress, model, initial, d_k, at=LAST):
    """Scaled, from unit variance, the scores of a small character model have a variance above 1.5 after 200 steps at d_k = 64 and 128, as a mean over layers, in at least four of five runs: q and k turn towards each other's directions, and do not grow."""
    return seen("score_variance", seeds, progress, model, initial, d_k, "sqrt")[:, at].mean(axis=1) > 1.5


@claim(median, between=(0.8, 1.2), over=WIDE, decides="A17", needs="torch", expect=Verdict.REFUTED)
def scores_keep_unit_variance(seeds, progress, model, initial, d_k):
    """Scaled, from unit variance, the scores of a small character model keep a variance of 1 to a fifth over 200 steps, in the median."""
    return seen("score_variance", seeds, progress, model, initial, d_k, "sqrt")[:, LAST].mean(axis=1)


@claim(proportion, at_least=0.8, over=SMALL, decides="A17", needs="torch", controls=grid(at=FIRST))
def small_queries_and_keys_grow(seeds, progress, model, initial, d_k, at=LAST):
    """Scaled, from N(0, 0.02²), the variances of q and k of a small character model grow at least fivefold over 200 steps, as means over layers, in at least four of five runs."""
    sides = [seen(name, seeds, progress, model, initial, d_k, "sqrt").mean(axis=2) for name in ("q_variance", "k_variance")]
    return np.all([side[:, at] > 5 * side[:, FIRST] for side in sides], axis=0)


@claim(proportion, at_least=0.8, over=WIDE, decides="A17", needs="torch", controls=grid(sign=-1))
def entropy_falls(seeds, progress, model, initial, d_k, sign=1):
    """From unit variance the mean entropy of the attention of a small character model falls over 200 steps with every scale, in at least four of five runs."""
    entropy = np.stack([seen("entropy", seeds, progress, model, initial, d_k, scale).mean(axis=2)
                        for scale in ("none", "sqrt", "full")])
    return np.all(sign * (entropy[:, :, FIRST] - entropy[:, :, LAST]) > 0, axis=0)
