"""From the weights of products of 0 to the mask, the bias, and what a row's weights sum to."""

from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array, Bools
from mcverify.attention import alibi_slopes
from mcverify.probing.calls import precision
from mcverify.probing.fit import Logits
from mcverify.probing.rounding import LOGIT, OWN, TYPES, computed, stored


@dataclass(frozen=True)
class Mask:
    """Which keys a query can see.

    Attributes
    ----------
    visible : (heads, tokens, keys); name : "none", "causal", "sliding window", "other".
    causal : whether no query sees a key after it; window : how many keys back it sees, itself
        counted, or None. leak : the logit of keys that a mask should hide and does not, or None.
    band : of another mask, how many keys before it, and after it, each query sees; None for all.
    """

    visible: Bools
    name: str
    causal: bool
    window: int | None
    leak: float | None = None
    band: tuple[int | None, int | None] | None = None


def mask_of(p: Array, bias: Array | None) -> Mask:
    """The mask of weights (heads, tokens, keys): exact zeros, or one low logit in their place.

    A bias that is told may look like such a logit, so with one only zeros count.
    """
    seen, name = p > 0, precision(p)
    plain = _shape(seen)
    if plain.causal or bias is not None or not seen.any():
        return plain
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(p)
        fall = np.max(y, axis=-1, keepdims=True) - y
    unsure = 2 * stored(p, name) + 4 * computed(TYPES[name][0])
    near = seen & (fall <= unsure)
    shape, hidden = _shape(near), seen & ~near
    if shape.name in ("none", "other") or not hidden.any():
        return plain
    fall, unsure = fall[hidden], unsure[hidden]
    low, high = (fall - unsure).max(), (fall + unsure).min()
    if low > high:
        return plain
    return Mask(near, shape.name, False, shape.window, -float(low + high) / 2)


def _shape(seen: Bools) -> Mask:
    _, tokens, keys = seen.shape
    ahead = np.arange(keys) - np.arange(tokens)[:, None]
    if seen.all():
        return Mask(seen, "none", False, None)
    band = None
    for offset in {0, keys - tokens}:  # queries are the first tokens, or the last
        after = ahead - offset
        first, last = (int(end(after[seen.any(axis=0)])) for end in (np.min, np.max))
        if np.any(seen != ((first <= after) & (after <= last))):
            continue
        whole = first == after.min()
        if last == 0:
            return Mask(seen, "causal" if whole else "sliding window", True,
                        None if whole else 1 - first)
        if first == -last:
            return Mask(seen, "sliding window", False, 1 - first)
        band = None if whole else -first, None if last == after.max() else last
    causal = not seen[:, ahead > max(0, keys - tokens)].any()
    return Mask(seen, "other", causal, None, band=band)


@dataclass(frozen=True)
class Bias:
    """What is added to the logits.

    Attributes
    ----------
    factor : the interval (low, high) of what the bias is multiplied by, where it is known.
    slopes : (heads, 2) intervals of how much a logit falls with each token of distance, or None.
    largest : the largest difference that the bias makes within a row, 0 without bias.
    """

    factor: tuple[float, float] | None
    slopes: Array | None
    largest: float


def bias_of(p: Array, visible: Bools, name: str, roundoff: float, expected: Array | None,
            scale: tuple[float, float]) -> Bias:
    """The bias that weights (heads, tokens, keys) of equal logits show.

    With the expected one, if it is known, and the interval of the scale, which may be its factor.
    """
    first = np.argmax(np.where(visible, p, 0), axis=-1, keepdims=True)

    def at_first(x: Array) -> Array:
        return np.take_along_axis(x, first, axis=-1)

    def less_first(x: Array) -> Array:
        return np.where(visible, x - at_first(x), 0.0).reshape(len(p), -1)

    value, unsure = less_first(np.log(np.where(visible, p, 1))), stored(p, name)
    size = np.abs(value).reshape(p.shape)
    u = max(TYPES[name][0], roundoff)
    wide = unsure + at_first(unsure) + 2 * computed(u) + (2 * LOGIT * u + OWN) * (
        size + np.max(size, axis=-1, keepdims=True))
    logits = Logits(value, np.where(visible, wide, np.inf).reshape(len(p), -1))
    largest = float(-value.min())
    uniform = bool(np.all(np.abs(logits.value) <= logits.wide))
    factor = None
    if expected is not None:
        low, high = logits.linear(less_first(np.where(visible, expected, 0)))
        factor = (float(low.max()), float(high.min()))
        factor = factor if -np.inf < factor[0] <= factor[1] else None
    if uniform and factor is None:
        return Bias(None, None, 0.0)
    ahead = np.arange(p.shape[2]) - np.arange(p.shape[1])[:, None]
    for distance in (np.abs(ahead), -ahead):
        low, high = logits.linear(less_first(np.broadcast_to(-distance.astype(float), p.shape)))
        if np.all(low <= high) and not uniform:
            slopes = np.stack([low, high], axis=1)
            return Bias(factor or _times(slopes, scale), slopes, largest)
    return Bias(factor, None, largest)


def _times(slopes: Array, scale: tuple[float, float]) -> tuple[float, float] | None:
    """What the slopes of Press et al. are multiplied by, the same for all heads, or None.

    Of one head any slope is a multiple of theirs, so only 1 and the scale count.
    """
    usual = alibi_slopes(len(slopes))
    low, high = (slopes[:, 0] / usual).max(), (slopes[:, 1] / usual).min()
    known = len(slopes) > 1 or low <= 1 <= high or (low <= scale[1] and scale[0] <= high)
    return (float(low), float(high)) if known and low <= high else None
