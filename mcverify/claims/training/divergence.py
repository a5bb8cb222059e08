"""Whether a transformer of six layers with d_k = 512 reaches a NaN loss within ten steps, and what makes it."""

from functools import lru_cache

import numpy as np

from mcverify import Verdict, claim, grid
from mcverify.claims.training.models import Model
from mcverify.statistic import proportion

MODEL = Model(layers=6, width=512, steps=10)
D_K = 512
TINY = Model(layers=2, width=64, steps=10)
LENGTH = 16  # characters that one step sees
RATES = {True: (1e-3, 1e-2), False: (1e-2, 1e-1)}  # of Adam, and of plain descent
INITIALS = ("unit", "linear", "small")
POWERS = {"none": 0.0, "sqrt": 0.5}


@lru_cache(maxsize=4)  # two claims look at the same runs
def first_nan(seeds, progress, model, d_k, scale, softmax, initial="any"):
    """Whether the loss of each run is NaN within ten steps; what is not given a seed chooses: Adam or plain descent, one of two rates, one of three initialisations, norms before or after."""
    from mcverify.claims.training.models.training import Condition, Plan, train
    from mcverify.claims.training.models.transformer import Shape

    diverged = []
    for number, seed in enumerate(seeds):
        rng = np.random.default_rng((seed, 1))
        adam, high, before = (bool(rng.integers(2)) for _ in range(3))
        drawn = INITIALS[rng.integers(3)]
        shape = Shape(model.width, d_k, model.width // 4, model.layers, LENGTH, before)
        plan = Plan(shape, drawn if initial == "any" else initial, model.steps, RATES[adam][high], adam, 1, softmax)
        runs = train(plan, [seed], [Condition(d_k ** -POWERS[scale])], lambda share: None)
        progress((number + 1) / len(seeds))
        diverged.append(np.isnan(runs["loss"]).any())
    return np.array(diverged)


@claim(proportion, at_most=0.2, over=grid(model=MODEL, d_k=D_K, scale=["none", "sqrt"]), decides="B10", needs="torch",
       controls=grid(softmax="naive", initial="unit"))
def stable_softmax_reaches_no_nan(seeds, progress, model, d_k, scale, softmax="stable", initial="any"):
    """In float32 and with a softmax that subtracts the maximum, fewer than one in five transformers of 6 layers and d_k = 512 have a NaN loss within 10 steps, without the scale and with it, over Adam and plain descent at two rates, three initialisations, pre- and post-norm."""
    return first_nan(tuple(seeds), progress, model, d_k, scale, softmax, initial)


@claim(proportion, at_least=0.5, over=grid(model=MODEL, d_k=D_K, scale="none"), decides="B10", needs="torch", expect=Verdict.REFUTED)
def unscaled_transformer_reaches_nan(seeds, progress, model, d_k, scale):
    """A transformer of 6 layers and d_k = 512 without the scale has a NaN loss within 10 steps, more often than not, with the softmax of every library."""
    return first_nan(tuple(seeds), progress, model, d_k, scale, "stable")


@claim(proportion, at_least=0.8, over=grid(model=MODEL, d_k=D_K, scale="none", softmax="naive", initial="unit"), decides="B10", needs="torch",
       controls=grid(model=TINY, d_k=64))
def naive_softmax_reaches_nan(seeds, progress, model, d_k, scale, softmax, initial):
    """With a softmax that takes exponentials of the scores as they are, at least four in five such transformers have a NaN loss within 10 steps, if q and k begin with unit variance and no scale divides."""
    return first_nan(tuple(seeds), progress, model, d_k, scale, softmax, initial)


@claim(proportion, at_most=0.5, over=grid(model=MODEL, d_k=D_K, scale="sqrt", softmax="naive"), decides="B10", needs="torch",
       controls=grid(scale="none", initial="unit"))
def scale_keeps_naive_softmax_finite(seeds, progress, model, d_k, scale, softmax, initial="any"):
    """With the scale a softmax of plain exponentials reaches NaN within 10 steps in fewer than half of such transformers, over the same optimisers, rates, initialisations and norms."""
    return first_nan(tuple(seeds), progress, model, d_k, scale, softmax, initial)


# --- small models that reach NaN in other ways ---------------------------------------------------


def small_model(seeds, progress, model, scale, half=False, blind=False):
    """Whether the loss of a model of two layers and width 64 is NaN within ten steps of Adam."""
    from mcverify.claims.training.models.training import Condition, Plan, train
    from mcverify.claims.training.models.transformer import Shape

    shape = Shape(model.width, model.width, model.width, model.layers, LENGTH, blind=blind)
    plan = Plan(shape, "unit", model.steps, 1e-3, batch=1, half=half)
    runs = train(plan, seeds, [Condition(model.width ** -POWERS[scale])], progress)
    return np.isnan(runs["loss"]).any(axis=(1, 2))


@claim(proportion, at_least=0.8, over=grid(model=TINY, scale=["none", "sqrt"]), decides="B10", needs="torch", controls=grid(half=False))
def float16_reaches_nan(seeds, progress, model, scale, half=True):
    """A small model whose weights and Adam are float16 has a NaN loss within 10 steps without the scale and with it, in at least four of five runs: Adam's epsilon of 1e-8 is 0 in float16."""
    return small_model(seeds, progress, model, scale, half=half)


@claim(proportion, at_least=0.8, over=grid(model=TINY, scale=["none", "sqrt"]), decides="B10", needs="torch", controls=grid(blind=False))
def masked_row_reaches_nan(seeds, progress, model, scale, blind=True):
    """A small model with a row of attention all of whose keys are masked has a NaN loss without the scale and with it, in at least four of five runs."""
    return small_model(seeds, progress, model, scale, blind=blind)
