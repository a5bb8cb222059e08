"""From two attention functions to where they differ most, and whether rounding allows it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.probing.calls import Attend, Caller, Sizes, precision
from mcverify.probing.rounding import COMPUTED, LOGIT, SINGLE, STORED, TYPES

BATCH = 4


@dataclass(frozen=True)
class Agreement:
    """Two implementations on the same draws; true where they agree.

    Attributes
    ----------
    agrees : whether no output differs by more than rounding allows, in any type.
    difference, allowed : of the output that differs most in proportion to what is allowed.
    head, position, dtype : where that is: the head, the token of the query, the type handed over.
    precision : the coarser type that the two outputs are rounded to.
    """

    agrees: bool
    difference: float
    allowed: float
    head: int
    position: int
    dtype: str
    precision: str

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        verb = "agree" if self.agrees else "do NOT agree"
        return (f"they {verb}: largest difference {self.difference:.3g} where rounding to "
                f"{self.precision} allows {self.allowed:.3g}\n"
                f"at head {self.head}, position {self.position}, handed {self.dtype}")


def agree(
    a: Attend, b: Attend, d_k: int = 64, d_v: int = 64, heads: int = 1,
    kv_heads: int | None = None, tokens: int | None = None, seed: int = 0, *,
    dtypes: Sequence[Any] = (np.float64, np.float32, np.float16),
) -> Agreement:
    """Whether a(q, k, v) and b(q, k, v) are the same attention, as far as their type allows.

    Both get the same standard normal draws, (4, heads, tokens, width), in each of the types; of
    PyTorch as tensors. Allowed is, to first order, twice what roundings of logits, weights and
    outputs may do in the coarser type that the two return: each output has its own bound, made of
    its weights, which are read off a. Raises ValueError for outputs of another shape.

    >>> from mcverify.attention import naive_softmax, scores, softmax
    >>> def one(q, k, v): return softmax(scores(q, k, 0.125)) @ v
    >>> def other(q, k, v): return naive_softmax(scores(q / 8, k)) @ v
    >>> bool(agree(one, other)), bool(agree(one, lambda q, k, v: other(q, k * 1.01, v)))
    (True, False)
    """
    sizes = Sizes.given(d_k, d_v, heads, kv_heads, tokens)
    compared = [_compared(a, b, sizes, dtype, seed) for dtype in dtypes]
    return max(compared, key=lambda x: x.difference / x.allowed if x.allowed else math.inf)


def _compared(a: Attend, b: Attend, sizes: Sizes, dtype: Any, seed: int) -> Agreement:
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((BATCH, sizes.heads, sizes.tokens, sizes.d_k))
    k, v = (rng.standard_normal((BATCH, sizes.kv_heads, sizes.keys, width))
            for width in (sizes.d_k, sizes.d_v))
    one, other = (Caller(attend, sizes, dtype) for attend in (a, b))
    outs = one(q, k, v), other(q, k, v)
    coarser = max((precision(out) for out in outs), key=lambda name: TYPES[name][0])
    allowed = _allowed(one.weights(q, k)[0], outs[0], q, k, v, coarser)
    difference = np.abs(outs[0] - outs[1])
    difference[np.isnan(outs[0]) & np.isnan(outs[1])] = 0
    difference = np.nan_to_num(difference, nan=math.inf)
    where = np.unravel_index(np.argmax(difference / allowed), difference.shape)
    return Agreement(bool(np.all(difference <= allowed)), float(difference[where]),
                     float(allowed[where]), int(where[1]), int(where[2]),
                     str(getattr(dtype, "__name__", dtype)), coarser)


def _allowed(p: Array, out: Array, q: Array, k: Array, v: Array, name: str) -> Array:
    """What roundings may do to each output of two functions, to first order.

    Whichever heads of keys and values are read: of all, the largest product and value count. Half
    of a logit's roundings are of itself, half of what is multiplied and summed.
    """
    u, smallest = TYPES[name]
    with np.errstate(divide="ignore"):
        logs = np.where(p > 0, np.log(p), np.nan)
    fall = np.nan_to_num(np.nanmax(logs, axis=-1, keepdims=True) - logs)
    x, parts = (a[:, :, None] @ np.swapaxes(b, -1, -2)[:, None]
                for a, b in ((q, k), (np.abs(q), np.abs(k))))  # (batch, heads, kv_heads, …)
    slope = np.nanstd(logs, axis=-1).mean() / np.std(x, axis=-1).mean()
    # A sum of d_k products is rounded in single precision at least, a logit in that of the outputs.
    logit = slope * (LOGIT / 2 * u * (np.abs(x) + parts)
                     + 2 * math.sqrt(q.shape[-1]) * min(u, SINGLE) * parts).max(axis=2)
    weights, largest = p * (logit + u * (COMPUTED + fall)), np.abs(v).max(axis=1, keepdims=True)
    moved = weights @ largest + np.abs(out) * weights.sum(axis=-1, keepdims=True)
    return np.asarray(2 * (moved + STORED * u * (p @ largest) + smallest))
