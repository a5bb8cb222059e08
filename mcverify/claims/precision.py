"""Finite precision: where exp and q·k overflow, and what subtracting the maximum prevents and what not."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import (
    bfloat16,
    entropy,
    naive_softmax,
    online_softmax,
    scores,
    softmax,
)
from mcverify.claims.ranges import ENTROPY
from mcverify.declare import near
from mcverify.statistic import exact, proportion
from mcverify.theory import precision

TYPES = ["float16", "float32", "float64"]
KEYS = 128


# --- where exp overflows -----------------------------------------------------------------------


@claim(exact, equals=lambda dtype: printed({"float16": "11.09", "float32": "88.72", "float64": "709.78"}[dtype]),
       over=grid(dtype=TYPES), decides="B31 B10")
def largest_finite_exponent(dtype):
    """exp overflows above 11.09 in float16, 88.72 in float32 and 709.78 in float64: bisected on the machine."""
    kind = np.dtype(dtype).type
    low, high = 0.0, 1000.0
    with np.errstate(over="ignore"):
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if np.isfinite(np.exp(kind(middle))) else (low, middle)
    return low


def few_scores(q, k, dtype, keys=None):
    """16 rows a block over so many keys (default: all), in double precision and then rounded."""
    return scores(q[:, :16], k[:, :keys]).astype(dtype)


@claim(
    proportion,
    equals=lambda dtype, d_k, keys: precision.row_overflow(d_k, keys, precision.largest_exponent(dtype)),
    within=relative(0.2),
    over=grid(law=laws.normal, d_k=[8, 16], keys=KEYS, dtype="float16")
    + grid(law=laws.normal, d_k=[1024], keys=32, dtype="float32"),
    decides="B10 B31",
)
def naive_softmax_overflows(q, k, dtype, keys):
    """Without subtracting the maximum, unscaled rows of 128 keys become NaN in float16 from small widths on, in float32 9 % of rows of 32 keys at d_k = 1024."""
    return np.isnan(naive_softmax(few_scores(q, k, dtype, keys))).any(axis=-1)


@claim(
    proportion,
    at_least=0.99,
    over=grid(law=[laws.normal, laws.scaled(laws.normal, 30.0, 1.0)], d_k=512, tokens=16,
              dtype=["float16", "float32"]),
    decides="B10",
    controls=near.query_scale(1e4),
)
def softmax_stays_finite(q, k, dtype):
    """With the maximum subtracted, unscaled rows at d_k = 512 do not become NaN, in float32 or float16."""
    return np.isfinite(softmax(few_scores(q, k, dtype))).all(axis=-1)


@claim(proportion, at_least=0.05, over=grid(law=laws.normal, d_k=512, keys=KEYS, dtype="float32"),
       decides="B10", expect=Verdict.REFUTED)
def unscaled_attention_becomes_nan(q, k, dtype, keys):
    """Unscaled at d_k = 512, a forward pass with a softmax that subtracts the maximum gives NaN for one row in twenty or more."""
    return np.isnan(softmax(few_scores(q, k, dtype, keys))).any(axis=-1)


@claim(exact, equals=lambda dtype: printed({"float16": "20", "float32": "1213", "float64": "77535"}[dtype]),
       over=grid(dtype=TYPES), decides="B31 B10")
def width_at_which_rows_overflow(dtype):
    """A row of 128 unscaled scores overflows as often as not from d_k = 20 on in float16, 1213 in float32, 77535 in float64."""
    return precision.width_of_overflow(KEYS, precision.largest_exponent(dtype), 0.5)


@claim(exact, at_most=1e-12, over=grid(d_k=[64, 128, 512, 4096]), decides="B31 B6",
       controls=grid(scaled=False, d_k=512))
def scaled_scores_never_overflow(d_k, scaled=True):
    """Divided by √d_k, a row of 128 normal scores overflows float32's exp with a probability below 1e-12 at any width."""
    scale = d_k**-0.5 if scaled else 1.0
    return precision.row_overflow(d_k, KEYS, precision.largest_exponent("float32"), scale)


# --- where q·k itself overflows, and rounding --------------------------------------------------


@claim(exact, equals=lambda first: printed({True: "1.9e-32", False: "0.0464"}[first]),
       over=grid(first=[False, True]), decides="B31")
def product_overflows_float16(first):
    """Trained outliers of size 64 overflow float16 in q·k for 4.6 % of pairs at d_k = 64, and never if q is scaled before the product."""
    return precision.product_overflow(64, std=64.0, scale=1 / 8 if first else 1.0)


@claim(
    proportion,
    equals=lambda: precision.product_overflow(64, std=64.0, limit=65520.0),
    within=relative(0.1),
    over=grid(law=laws.scaled(laws.normal, 64.0, 64.0), d_k=64),
    decides="B31",
)
def drawn_products_overflow_float16(q, k):
    """That share of drawn products, rounded to float16, is infinite."""
    with np.errstate(over="ignore"):
        return np.isinf(scores(q, k).astype(np.float16))


@claim(exact, equals=lambda s: printed({8.0: "0.03", 64.0: "0.25", 88.0: "0.25"}[s]),
       over=grid(s=[8.0, 64.0, 88.0]), decides="B31")
def bfloat16_rounds_scores(s):
    """bfloat16 keeps the range of float32 and 8 bits: a score of 8 is off by up to 0.03, one of 64 or 88 by up to 0.25, which is 28 % of its weight."""
    x = (s + np.arange(0.0, 1.0, 2**-12)).astype(np.float32)
    return np.abs(bfloat16(x) - x).max()


# --- the online softmax ------------------------------------------------------------------------

ORDERS = [(0, 1, 2, 3), (3, 1, 2, 0)]


@claim(proportion, at_least=0.99, over=grid(law=[laws.normal, laws.scaled(laws.normal, 100.0, 1.0)],
                                           d_k=64, tokens=32, order=ORDERS),
       decides="B15", controls=grid(scale=0.99))
def online_softmax_is_exact(q, k, order, scale=1.0):
    """The online softmax, in blocks of 8 keys in any order, gives the same weights as softmax to 1e-12."""
    s = scores(q[:, :4], k)
    return abs(online_softmax(scale * s, 8, order) - softmax(s)) <= 1e-12


TRAINED = 128


@claim(
    ENTROPY,
    equals=lambda keys: theory.softmax.entropy(TRAINED, 1.0, 64),
    within=relative(0.1),
    over=grid(law=laws.normal, d_k=64, keys=8 * TRAINED),
    decides="B15",
    expect=Verdict.REFUTED,
)
def online_softmax_cures_long_contexts(q, k, keys, d_k):
    """At 8 times the training length the online softmax keeps the entropy of 128 keys."""
    return entropy(online_softmax(scores(q[:, :16], k, scale=d_k**-0.5), 128))


@claim(
    ENTROPY,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, d_k),
    within=relative(0.01),
    over=grid(law=laws.normal, d_k=64, keys=8 * TRAINED),
    decides="B15",
)
def online_softmax_disperses_like_softmax(q, k, keys, d_k):
    """At 8 times the training length the online softmax has the entropy that softmax has: it changes no probability."""
    return entropy(online_softmax(scores(q[:, :16], k, scale=d_k**-0.5), 128))


@claim(exact, equals=0, within=absolute(1e-15), over=grid(block=[1, 3, 8]), decides="B15")
def masked_rows_are_zeros(block):
    """A fully masked row attends to nothing: its weights are zeros, whether read at once or in blocks."""
    s = np.full(8, -math.inf)
    return np.abs(softmax(s)).max() + np.abs(online_softmax(s, block)).max()
