"""Which scale learns better: the loss on held-out text of one small model trained with each, from the same seed."""

from mcverify import Verdict, claim, grid
from mcverify.claims.training.models import SCALES, SMALL_MODEL, under_each_scale
from mcverify.statistic import median, proportion

UNIT = grid(model=SMALL_MODEL, initial="unit", d_k=[16, 64, 128])
WIDE = grid(model=SMALL_MODEL, initial="unit", d_k=[64, 128])
SMALL = grid(model=SMALL_MODEL, initial="small", d_k=[64, 128])


def advantage(seeds, progress, model, initial, d_k, better, worse):
    """By how much the validation loss of each run is lower with the one scale than with the other, in nats."""
    validation = under_each_scale(seeds, progress, model, initial, d_k)["validation"]
    return validation[:, SCALES.index(worse)] - validation[:, SCALES.index(better)]


@claim(proportion, at_least=0.5, over=UNIT + SMALL, decides="C23", needs="torch",
       controls=grid(better="none", worse="sqrt"))
def scaled_learns_better_than_unscaled(seeds, progress, model, initial, d_k, better="sqrt", worse="none"):
    """Divided by √d_k a small character model of unit-variance queries and keys has a lower validation loss after 200 steps than unscaled, in most runs at d_k = 16, 64 and 128; from N(0, 0.02²) at 64 and 128."""
    return advantage(seeds, progress, model, initial, d_k, better, worse) > 0


GAINS = {16: (0.01, 0.08), 64: (0.05, 0.15), 128: (0.07, 0.25)}


@claim(median, between=lambda d_k: GAINS[d_k], over=UNIT, decides="B9 C23", needs="torch",
       controls=grid(better="none", worse="sqrt"))
def gain_of_the_scale(seeds, progress, model, initial, d_k, better="sqrt", worse="none"):
    """From unit variance the scale lowers the validation loss of a small character model after 200 steps by .01 to .08 nats at d_k = 16, .05 to .15 at 64, .07 to .25 at 128, in the median: unscaled, it learns nearly as well."""
    return advantage(seeds, progress, model, initial, d_k, better, worse)


@claim(median, between=(-0.05, 0.05), over=grid(model=SMALL_MODEL, initial="small", d_k=16), decides="C23", needs="torch",
       controls=grid(offset=0.15))
def small_weights_need_no_scale(seeds, progress, model, initial, d_k, offset=0.0):
    """From N(0, 0.02²) at d_k = 16 the scale changes the validation loss after 200 steps by less than .05 nats, in the median."""
    return offset + advantage(seeds, progress, model, initial, d_k, "sqrt", "none")


@claim(proportion, at_least=0.5, over=WIDE + grid(model=SMALL_MODEL, initial="small", d_k=128), decides="B7 C23", needs="torch",
       controls=grid(better="sqrt", worse="full"))
def dividing_by_the_width_learns_no_worse(seeds, progress, model, initial, d_k, better="full", worse="sqrt"):
    """Divided by d_k a small character model has a lower validation loss after 200 steps than divided by √d_k, in most runs: from unit variance at d_k = 64 and 128, from N(0, 0.02²) at 128."""
    return advantage(seeds, progress, model, initial, d_k, better, worse) > 0


@claim(proportion, at_least=0.5, over=WIDE, decides="B7 C23", needs="torch", expect=Verdict.REFUTED)
def square_root_learns_best(seeds, progress, model, initial, d_k):
    """Divided by √d_k a small character model learns better than divided by d_k, in most runs from unit variance at d_k = 64 and 128."""
    return advantage(seeds, progress, model, initial, d_k, "sqrt", "full") > 0
