"""Whether a small character model converges without the scale, and whether it explodes."""

from mcverify import Verdict, claim, grid
from mcverify.claims.training.gradients import seen
from mcverify.claims.training.models import SMALL_MODEL
from mcverify.statistic import proportion

UNIT = grid(model=SMALL_MODEL, initial="unit", d_k=[16, 64, 128])


def last(loss):
    """The mean training loss of the last ten steps."""
    return loss[:, -10:].mean(axis=1)


@claim(proportion, at_least=0.8, over=UNIT, decides="B9", needs="torch", controls=grid(share=0.3))
def unscaled_model_converges(seeds, progress, model, initial, d_k, share=0.7):
    """From unit variance and without the scale the training loss of a small character model falls below .7 of its first value in 200 steps, in at least four of five runs."""
    loss = seen("loss", seeds, progress, model, initial, d_k, "none")
    return last(loss) < share * loss[:, 0]


@claim(proportion, at_least=0.5, over=UNIT, decides="B9", needs="torch", expect=Verdict.REFUTED)
def unscaled_model_does_not_converge(seeds, progress, model, initial, d_k):
    """Without the scale the training loss of a small character model stays above nine tenths of its first value for 200 steps, in most runs from unit variance."""
    loss = seen("loss", seeds, progress, model, initial, d_k, "none")
    return last(loss) > 0.9 * loss[:, 0]


@claim(proportion, at_most=0.2, over=UNIT, decides="B9", needs="torch", controls=grid(factor=0.9))
def unscaled_loss_does_not_explode(seeds, progress, model, initial, d_k, factor=1.5):
    """From unit variance and without the scale the training loss of a small character model never rises to 1.5 times its first value in 200 steps, in at least four of five runs."""
    loss = seen("loss", seeds, progress, model, initial, d_k, "none")
    return loss.max(axis=1) > factor * loss[:, 0]
