"""A bias that softmax ignores and bfloat16 does not: it costs the scores their digits."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, relative
from mcverify.attention import bfloat16, softmax
from mcverify.claims.ranges import WEIGHT
from mcverify.theory import precision

ROWS = grid(law=laws.normal, d_k=1, keys=128, bias=[100.0, 200.0])


def spacing(bias):
    """How far apart bfloat16 numbers are near the bias: 8 bits from the leading one on."""
    return 2.0 ** (math.floor(math.log2(bias)) - 7)


def distance(q, keys, bias, rounded=bfloat16):
    """Total variation between rows' weights and those of the same scores, biased and rounded."""
    s = q.reshape(len(q), -1, keys)  # independent N(0, 1) scores
    biased = rounded((s + bias).astype(np.float32)).astype(np.float64)
    return 0.5 * np.abs(softmax(biased) - softmax(s)).sum(axis=-1)


@claim(WEIGHT, equals=lambda bias: precision.rounding_distance(spacing(bias)), within=relative(0.06),
       over=ROWS, decides="C22 C4", controls=grid(bias=50.0))
def key_bias_costs_digits(q, keys, bias):
    """Where a bias of the keys adds 200 to every score of a row, rounding the scores to bfloat16 moves 0.123 of the weight, about an eighth of the spacing of numbers there; 0.062 at 100."""
    return distance(q, keys, bias)


@claim(WEIGHT, at_most=0.02, over=ROWS, decides="C22", expect=Verdict.REFUTED)
def key_bias_is_harmless_in_bfloat16(q, keys, bias):
    """In bfloat16, too, a bias of the keys moves no more than 2 % of the weight."""
    return distance(q, keys, bias)


@claim(WEIGHT, at_most=0.01, over=ROWS, decides="C22 C4", controls=grid(bias=4e6))
def key_bias_is_harmless_in_float32(q, keys, bias):
    """In float32 such a bias moves less than 1 % of the weight."""
    return distance(q, keys, bias, rounded=lambda x: x)
