"""Finite precision: where exp and q·k overflow, and what subtracting the maximum prevents and what not."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, printed, relative, theory
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

KEYS = 128


# --- where exp overflows -----------------------------------------------------------------------


@claim(exact, equals=lambda dtype: printed({"float16": "11.09", "float32": "88.72", "float64": "709.78"}[dtype]),
       over=grid(dtype=["float16", "float32", "float64"]), decides="B31 B10", controls=grid(dtype="float32"))
def largest_finite_exponent(dtype):
    """exp overflows above 11.09 in float16, 88.72 in float32 and 709.78 in float64: bisected on the machine."""
    kind = np.dtype(dtype).type
    low, high = 0.0, 1000.0
    with np.errstate(over="ignore"):
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if np.isfinite(np.exp(kind(middle))) else (low, middle)
    return low


def overflows(s, dtype):
    """Whether naive softmax in a type gives a row a NaN; only rows near the limit of exp are tried."""
    close = s.max(axis=-1) > 0.9 * precision.largest_exponent(dtype)
    found = np.zeros(close.shape, bool)
    found[close] = np.isnan(naive_softmax(s[close].astype(dtype))).any(axis=-1)
    return found


@claim(
    proportion,
    equals=lambda dtype, d_k, keys: precision.row_overflow(d_k, keys, precision.largest_exponent(dtype)),
    within=relative(0.1),
    over=grid(law=laws.normal, d_k=[8, 20], keys=KEYS, dtype="float16")
    + grid(law=laws.normal, d_k=1213, keys=KEYS, dtype="float32"),
    decides="B10 B31",
    controls=near.query_scale(0.9),
)
def naive_softmax_overflows(q, k, dtype, keys):
    """Without subtracting the maximum, a row of 128 unscaled scores becomes NaN as often as not at d_k = 20 in float16 and at 1213 in float32."""
    return overflows(scores(q[:, :32], k[:, :keys]), dtype)


@claim(proportion, at_least=0.8, over=grid(law=laws.normal, d_k=512, heads=4, keys=KEYS, tokens=4 * KEYS),
       decides="B10", controls=grid(scale=512**-0.5))
def naive_forward_pass_becomes_nan(q, k, heads, keys, scale=1.0):
    """Unscaled at d_k = 512, the forward pass of 4 heads over 128 tokens has a NaN with a probability above 0.8 in float32, if softmax does not subtract the maximum."""
    shape = (len(q), heads, keys, -1)
    return overflows(scores(q.reshape(shape), k.reshape(shape), scale), "float32").any(axis=(1, 2))


# --- where q·k itself overflows, and rounding --------------------------------------------------


def share_of_products(first):
    share = precision.product_overflow(64, std=64.0, limit=65520.0)
    return (0.0, 0.01) if first else (0.9 * share, 1.1 * share)


@claim(proportion, between=share_of_products, decides="B31", controls=grid(first=True),
       over=grid(law=laws.normal, d_k=64, first=[False, True]))
def product_overflows_float16(q, k, d_k, first):
    """If all coordinates are N(0, 64²), q·k overflows float16 for 4.6 % of pairs at d_k = 64, and for under 1 % if q is scaled before the product."""
    with np.errstate(over="ignore"):
        return np.isinf(scores(q, k, 64**2 * (d_k**-0.5 if first else 1.0)).astype(np.float16))


@claim(exact, equals=lambda s: 2.0 ** (math.floor(math.log2(s)) - 8), within=relative(1e-3),
       over=grid(s=[8.0, 64.0, 88.0]), decides="B31", controls=grid(s=16.0))
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
    """The online softmax, in blocks of 8 keys in two orders, gives the same weights as softmax to 1e-12, also to scores of standard deviation 800."""
    s = scores(q[:, :4], k)
    return abs(online_softmax(scale * s, 8, order) - softmax(s)) <= 1e-12


@claim(proportion, at_least=0.99, over=grid(law=laws.scaled(laws.normal, 100.0, 1.0), d_k=64, tokens=32),
       decides="B15", controls=grid(naive=True))
def online_softmax_takes_the_range(q, k, naive=False):
    """In float32 the online softmax of scores of standard deviation 800 gives the weights of double precision to 1e-4, where a naive exponential overflows."""
    rounded = scores(q[:, :16], k).astype(np.float32)
    found = naive_softmax(rounded) if naive else online_softmax(rounded, 8)
    return (abs(found - softmax(rounded.astype(np.float64))) <= 1e-4).all(axis=-1)


@claim(
    ENTROPY,
    equals=lambda: theory.softmax.entropy(KEYS, 1.0, 64),
    within=relative(0.1),
    over=grid(law=laws.normal, d_k=64, keys=8 * KEYS),
    decides="B15",
    expect=Verdict.REFUTED,
)
def online_softmax_cures_long_contexts(q, k, keys, d_k):
    """At 8 times the training length of 128 keys the online softmax keeps the entropy of 128 keys."""
    return entropy(online_softmax(scores(q[:, :16], k, scale=d_k**-0.5), 128))
