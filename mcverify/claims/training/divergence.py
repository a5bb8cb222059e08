"""Whether a transformer of six layers with d_k = 512 reaches a NaN loss within ten steps, and what makes it."""

import numpy as np

from mcverify import Verdict, claim, grid
from mcverify.statistic import proportion

STEPS = 10
RATES = {True: (1e-3, 1e-2), False: (1e-2, 1e-1)}  # of Adam, and of plain descent
INITIALS = ("unit", "linear", "small")
SCALES = {"none": 1.0, "sqrt": 512**-0.5}


def first_nan(seeds, progress, scale, softmax, initial="any", **others):
    """Whether the loss of each run is NaN within ten steps; what is not given a seed chooses: Adam or plain descent, one of two rates, one of three initialisations, norms before or after."""
    from mcverify.claims.training.models.training import Condition, Plan, Shape, train

    found = []
    for number, seed in enumerate(seeds):
        rng = np.random.default_rng((seed, 1))
        adam, high, before = (bool(rng.integers(2)) for _ in range(3))
        drawn = INITIALS[rng.integers(3)]
        shape = Shape(model=512, d_k=512, hidden=128, layers=6, length=16, pre_norm=before, **others)
        plan = Plan(shape, drawn if initial == "any" else initial, STEPS, RATES[adam][high], adam, 1, softmax)
        runs = train(plan, [seed], [Condition(SCALES[scale])], lambda share, at=number: progress((at + share) / len(seeds)))
        found.append(np.isnan(runs["loss"]).any())
    return np.array(found)


@claim(proportion, at_most=0.2, over=grid(scale=["none", "sqrt"]), decides="B10", needs="torch",
       controls=grid(softmax="naive", initial="unit"))
def stable_softmax_reaches_no_nan(seeds, progress, scale, softmax="stable", initial="any"):
    """In float32 and with a softmax that subtracts the maximum, fewer than one in five transformers of 6 layers and d_k = 512 have a NaN loss within 10 steps, without the scale and with it, over Adam and plain descent at two rates, three initialisations, pre- and post-norm."""
    return first_nan(seeds, progress, scale, softmax, initial)


@claim(proportion, at_least=0.5, over=grid(scale="none"), decides="B10", needs="torch", expect=Verdict.REFUTED)
def unscaled_transformer_reaches_nan(seeds, progress, scale):
    """A transformer of 6 layers and d_k = 512 without the scale has a NaN loss within 10 steps, more often than not, whatever its softmax."""
    return first_nan(seeds, progress, scale, "stable")


@claim(proportion, at_least=0.8, over=grid(scale="none", softmax="naive", initial="unit"), decides="B10", needs="torch",
       controls=grid(scale="sqrt"))
def naive_softmax_reaches_nan(seeds, progress, scale, softmax, initial):
    """With a softmax that takes exponentials of the scores as they are, at least four in five such transformers have a NaN loss within 10 steps, if q and k begin with unit variance and no scale divides."""
    return first_nan(seeds, progress, scale, softmax, initial)


@claim(proportion, at_most=0.45, over=grid(scale="sqrt", softmax="naive"), decides="B10", needs="torch",
       controls=grid(scale="none", initial="unit"))
def scale_keeps_naive_softmax_finite(seeds, progress, scale, softmax, initial="any"):
    """With the scale a softmax of plain exponentials reaches NaN within 10 steps in fewer than .45 of such transformers, over the same optimisers, rates, initialisations and norms."""
    return first_nan(seeds, progress, scale, softmax, initial)


# --- small models that reach NaN in other ways ---------------------------------------------------


def small_model(seeds, progress, scale, half=False, blind=False):
    """Whether the loss of a model of two layers and width 64 is NaN within ten steps of Adam."""
    from mcverify.claims.training.models.training import Condition, Plan, Shape, train

    shape = Shape(model=64, d_k=64, hidden=64, layers=2, length=16, blind=blind)
    plan = Plan(shape, "unit", STEPS, 1e-3, batch=1, half=half)
    runs = train(plan, seeds, [Condition({"none": 1.0, "sqrt": 0.125}[scale])], progress)
    return np.isnan(runs["loss"]).any(axis=(1, 2))


@claim(proportion, at_least=0.8, over=grid(scale=["none", "sqrt"]), decides="B10", needs="torch", controls=grid(half=False))
def float16_reaches_nan(seeds, progress, scale, half=True):
    """A small model whose weights and Adam are float16 has a NaN loss within 10 steps without the scale and with it, in at least four of five runs: Adam's epsilon of 1e-8 is 0 in float16."""
    return small_model(seeds, progress, scale, half=half)


@claim(proportion, at_least=0.8, over=grid(scale=["none", "sqrt"]), decides="B10", needs="torch", controls=grid(blind=False))
def masked_row_reaches_nan(seeds, progress, scale, blind=True):
    """A small model with a row of attention all of whose keys are masked has a NaN loss without the scale and with it, in at least four of five runs."""
    return small_model(seeds, progress, scale, blind=blind)
