"""Gradients of W_Q and W_K over the first hundred steps: larger without the scale, although rows die."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, relative
from mcverify.claims.training.models import SCALES, SMALL_MODEL, under_each_scale
from mcverify.statistic import median, proportion

UNIT, SMALL = (grid(model=SMALL_MODEL, initial=initial, d_k=[16, 64, 128]) for initial in ("unit", "small"))
ONE = grid(model=SMALL_MODEL, initial="unit", d_k=64)


def seen(name, seeds, progress, model, initial, d_k, scale):
    """What was seen of each run with one of the scales: (seeds, …)."""
    return under_each_scale(seeds, progress, model, initial, d_k)[name][:, SCALES.index(scale)]


def ratio(seeds, progress, model, initial, d_k, larger="none", smaller="sqrt"):
    """The RMS of ∂L/∂W_Q and ∂L/∂W_K with the one scale over that with the other: (seeds, steps, layers, 2)."""
    top, bottom = (seen("gradient", seeds, progress, model, initial, d_k, scale) for scale in (larger, smaller))
    return top / bottom


# --- at the first step ----------------------------------------------------------------------------


@claim(median, equals=lambda d_k: math.sqrt(d_k), within=relative(0.03), over=SMALL, decides="B9 A11", needs="torch",
       controls=grid(smaller="full") + grid(larger="sqrt", smaller="full", equals=1.0))
def first_gradients_of_small_weights(seeds, progress, model, initial, d_k, larger="none", smaller="sqrt"):
    """From N(0, 0.02²), where softmax is uniform at first, the first gradients of W_Q and W_K of a small character model are √d_k times as large unscaled, in both layers."""
    return ratio(seeds, progress, model, initial, d_k, larger, smaller)[:, 0].reshape(len(seeds), -1)


@claim(median, between=(4, 9), over=ONE, decides="B9 A11", needs="torch", controls=grid(larger="sqrt", smaller="none"))
def first_gradients_of_the_first_layer(seeds, progress, model, initial, d_k, larger="none", smaller="sqrt"):
    """From unit variance at d_k = 64 the first gradients of W_Q and W_K in the first layer of a small character model are 4 to 9 times as large unscaled, in the median."""
    return ratio(seeds, progress, model, initial, d_k, larger, smaller)[:, 0, 0]


@claim(median, between=(2.5, 6), over=ONE, decides="B9 A11", needs="torch", controls=grid(smaller="full"))
def first_gradients_of_the_second_layer(seeds, progress, model, initial, d_k, larger="none", smaller="sqrt"):
    """From unit variance at d_k = 64 the first gradients of W_Q and W_K in the second layer of a small character model are 2.5 to 6 times as large unscaled, in the median."""
    return ratio(seeds, progress, model, initial, d_k, larger, smaller)[:, 0, 1]


# --- over the first hundred steps -----------------------------------------------------------------


@claim(proportion, at_least=0.8, over=UNIT + SMALL, decides="A3 A11 B9", needs="torch",
       controls=grid(larger="sqrt", smaller="none"))
def projections_learn_for_a_hundred_steps(seeds, progress, model, initial, d_k, larger="none", smaller="sqrt"):
    """Over the first hundred steps of a small character model the gradients of W_Q and W_K are over 1.5 times as large unscaled as scaled in every layer, as a geometric mean over the steps, in at least four of five runs."""
    steps = np.log(ratio(seeds, progress, model, initial, d_k, larger, smaller)[:, :100])
    return np.exp(steps.mean(axis=1)).min(axis=(1, 2)) > 1.5


@claim(proportion, at_least=0.5, over=UNIT, decides="A3 A11 B9", needs="torch", expect=Verdict.REFUTED)
def unscaled_projections_barely_learn(seeds, progress, model, initial, d_k):
    """Unscaled, the gradients of W_Q and W_K of a small character model are smaller than scaled over the first hundred steps, in most runs."""
    steps = np.log(ratio(seeds, progress, model, initial, d_k)[:, :100])
    return np.exp(steps.mean(axis=(1, 2, 3))) < 1


DEAD = {64: (0.1, 0.3), 128: (0.25, 0.55)}


@claim(median, between=lambda d_k: DEAD[d_k], over=grid(model=SMALL_MODEL, initial="unit", d_k=[64, 128]), decides="A11", needs="torch",
       controls=grid(scale="sqrt"))
def rows_are_dead_meanwhile(seeds, progress, model, initial, d_k, scale="none"):
    """From unit variance and unscaled, a tenth to three tenths of the rows of a small character model at d_k = 64, and a quarter to .55 at 128, have 1 - Σp² below .001 after a hundred steps, in the median."""
    return seen("dead", seeds, progress, model, initial, d_k, scale)[:, 2].mean(axis=1)
