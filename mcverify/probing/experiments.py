"""From an attention function to the weights of the experiments that tell what it does."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mcverify.arrays import Array, Bools, Ints
from mcverify.probing.calls import Caller, precision
from mcverify.probing.design import KEY_SIZE, Design, flat, plain, varied
from mcverify.probing.readings import Readings
from mcverify.probing.rounding import COMPUTED, STORED, TYPES

BATCH = 8  # experiments of the kind that scales are read from
GAINS = 4.0 ** np.arange(-12, 9)  # of queries, to find the one that spreads the logits
REACH = {"float16": 16.0}  # how far logits may spread: float16 has no smaller weights
WIDEST = 64.0  # in all other types
SPREAD = 0.5  # a spread of logits that every type resolves, and few caps bend
SMALL = 1e-30  # in place of a weight of 0
LEAP = 8.0  # ratio of spreads that queries four times as long do not make
BEYOND = 8.0  # how far logits before a cap may spread, in units of the cap
STILL = 1.02  # ratio of spreads that are the same


class CannotProbe(Exception):
    """There is no number, for the reason that the message gives."""


def equal_logits(caller: Caller) -> Array:
    """The weights (heads, tokens, keys) of logits that q·k does not tell apart.

    Raises CannotProbe where outputs are no averages of values, or two calls differ.
    """
    sizes = caller.sizes
    design = flat(sizes)
    q, k = design.q[:, None].repeat(sizes.heads, axis=1), design.k[:, None]
    p, spare = caller.weights(q, k)
    again, _ = caller.weights(q.repeat(BATCH, axis=0), k.repeat(BATCH, axis=0))
    if not np.all(np.isfinite(p)):
        raise ValueError("attend returned NaN or infinities where all logits are equal: outputs "
                         "must be finite; let every query see a key, and keep epsilon in norms")
    tolerance = COMPUTED**2 * TYPES[precision(np.concatenate([p, again]))][0]
    if not np.allclose(p, again, rtol=tolerance, atol=0):
        gone = np.mean((again == 0)[np.broadcast_to((again > 0).any(axis=0), again.shape)])
        raise CannotProbe("two calls on the same arrays differ" + (
            f": {gone:.2g} of the weights are 0 in some of them only, as where dropout is left on; "
            "switch it off" if gone > 0 else " by more than rounding"))
    nothing = caller(q, k, np.zeros((1, 1, sizes.keys, sizes.d_v)))
    added = max(float(np.abs(x).max(initial=0)) for x in (nothing, spare))
    if added > 0:
        raise CannotProbe(f"outputs are no averages of the values: of values of 0 they make "
                          f"{added:.3g}; leave out projections, their bias, and residuals")
    if not p.any():
        raise CannotProbe("all weights of equal logits are 0: they come from no softmax")
    if p.min() < 0:
        raise CannotProbe(f"outputs are no averages of the values: one has the weight "
                          f"{p.min():.3g}, below 0")
    weights: Array = p[0]
    return weights


def gains(caller: Caller, at_zero: Array, visible: Bools, rng: np.random.Generator
          ) -> Iterator[tuple[bool, Array, float]]:
    """Whether only norms are in question, and what amplifies the queries of each head, and keys.

    If the spread of the logits no longer grows with the queries, they may be normalised, which
    long queries show best, or be capped, which shorter ones do. If no queries are short enough,
    they may be normalised, and the keys have to be shorter.
    """
    sizes = caller.sizes
    of_heads = _spreads(caller, at_zero, visible, rng, of_keys=False)
    if not all(of.whole[0] for of in of_heads):
        of_heads = _spreads(caller, at_zero, visible, rng, of_keys=True)
        if not all(of.whole[0] for of in of_heads):
            raise CannotProbe("all weights are 0 or 1 however short queries and keys are")
        yield False, np.ones(sizes.heads), min(_gains(of)[2] for of in of_heads)
        return
    queries = [_gains(of) for of in of_heads]
    if all(stays for stays, _, _ in queries):
        yield True, np.array([longest for _, longest, _ in queries]), 1.0
    yield False, np.array([fitting for _, _, fitting in queries]), 1.0


class Spread(NamedTuple):
    """Of one head, at each gain: the spread of logits; what no weight is lost of; and finite.

    ``span`` is the range of q·k behind it at the gain 1, ``reach`` how far logits may spread.
    """

    spread: Array
    whole: Bools
    finite: Bools
    span: float
    reach: float


def _spreads(caller: Caller, at_zero: Array, visible: Bools, rng: np.random.Generator, of_keys: bool
             ) -> list[Spread]:
    heads = caller.sizes.heads
    one, times = plain(rng, caller.sizes, len(GAINS)), GAINS[:, None, None]
    design = Design(one.q, one.k * times) if of_keys else Design(one.q * times, one.k)
    p, _ = caller.weights(design.q[:, None].repeat(heads, axis=1), design.k[:, None])
    finite = np.all(np.isfinite(p), axis=(2, 3), keepdims=True)
    p = np.where(finite, p, 0)
    name = precision(p)
    spread = _ranges(_changes(p, at_zero, visible), visible)
    spread[spread <= 4 * STORED * TYPES[name][0]] = 0  # by rounding
    whole = finite[..., 0, 0] & ~np.any((p == 0) & visible, axis=(2, 3))
    span = _ranges(one.products[0], visible)
    return [Spread(spread[:, h], whole[:, h], finite[:, h, 0, 0], span[h], REACH.get(name, WIDEST))
            for h in range(heads)]


def _changes(p: Array, at_zero: Array, visible: Bools) -> Array:
    """Logits, but for what is the same in a row and for the bias."""
    return np.asarray(np.log(np.maximum(p, SMALL)) - np.log(np.where(visible, at_zero, 1)))


def _ranges(x: Array, visible: Bools) -> Array:
    """The widest range in a row of what is visible: (…, heads, tokens, keys) -> (…, heads)."""
    top = np.max(np.where(visible, x, -np.inf), axis=-1)
    low = np.min(np.where(visible, x, np.inf), axis=-1)
    return np.asarray(np.max(np.where(np.any(visible, axis=-1), top - low, 0), axis=-1))


def _gains(of: Spread) -> tuple[bool, float, float]:
    """Whether the spread stays the same, the longest queries, and those that spread to reach."""
    whole = of.whole
    last = len(whole) - 1 if whole.all() else int(np.argmin(whole)) - 1
    spread = of.spread[: last + 1]
    if spread.max() == 0 and (whole.all() or not of.finite[last + 1]):
        raise CannotProbe(
            "the weights of a query do not depend on q·k, or by less than their rounding, however "
            "long it is; after a softmax over queries, or with q and k exchanged, they would not")
    if spread.max() == 0:
        return True, float(GAINS[-3]), float(GAINS[last])
    enough = int(np.argmax(spread >= SPREAD)) if spread.max() >= SPREAD else int(spread.argmax())
    # Short queries may be 0 in half precision; those that are not have the length 1 at once.
    leaps = enough > 0 and spread[enough] > LEAP * spread[enough - 1]
    stays = leaps or (len(spread) > 3 and spread[-4:].max() < STILL * spread[-4:].min())
    slope = spread[enough] / (GAINS[enough] * of.span)
    reach = min(of.reach, BEYOND * spread.max())
    fitting = 2.0 ** np.floor(np.log2(reach / (slope * KEY_SIZE)))
    longest = GAINS[min(enough + 4, len(whole) - 1) if leaps else max(last - 1, 0)]
    return stays, float(longest), float(min(fitting, GAINS[last]))


def read(caller: Caller, at_zero: Array, visible: Bools, gain: Array, key_gain: float,
         rng: np.random.Generator) -> Readings:
    """The experiments that scales are read from."""
    design = varied(rng, caller.sizes, BATCH)
    design = Design(design.q, design.k * key_gain)
    for times in (1.0, 0.25):  # exp overflows early where the largest logit is not subtracted
        p, _ = caller.weights(design.q[:, None] * gain[:, None, None] * times, design.k[:, None])
        if np.all(np.isfinite(p)):
            return Readings(p, at_zero, visible, design, gain * times, precision(p))
    raise ValueError("attend returned NaN or infinities for finite logits: outputs must be finite; "
                     "subtract the largest logit of a row before exp")


def heads_read(caller: Caller, at_zero: Array, gain: Array, key_gain: float,
               rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Which head of keys, and which of values, each head of queries reads: (heads,) twice.

    Each head of keys, or values, has its number, from 1, written in the experiments: one for each
    binary digit, in which only the heads that have it get keys that differ, or values that are
    not 0. −1 stands for a head that reads several.
    """
    sizes = caller.sizes
    numbers = 1 + np.arange(sizes.kv_heads)
    digits = numbers >> np.arange(sizes.kv_heads.bit_length())[:, None] & 1  # (digits, kv_heads)
    marked = np.vstack([np.ones_like(numbers), digits])[..., None, None] == 1
    one, same = plain(rng, sizes, 1), flat(sizes)
    q = np.broadcast_to(one.q[:, None] * gain[:, None, None],
                        (len(marked), sizes.heads, sizes.tokens, sizes.d_k))
    p, _ = caller.weights(q, np.where(marked, one.k[:, None], same.k[:, None]) * key_gain)
    quiet_q, quiet_k = (x[:, None].repeat(len(marked), axis=0) for x in (same.q, same.k))
    values = np.where(marked, 1.0, 0.0) * np.ones((sizes.keys, sizes.d_v))
    out = caller(quiet_q.repeat(sizes.heads, axis=1), quiet_k, values)
    visible = at_zero > 0
    spread = _ranges(_changes(p, at_zero, visible), visible)
    return _numbers(spread), _numbers(out.mean(axis=(2, 3)))


def _numbers(answers: Array) -> Ints:
    """From answers (1 + digits, heads) to each experiment, the first of which tells 1, to heads."""
    share = answers[1:] / np.where(answers[0] > 0, answers[0], 1)
    digits = (share > 0.5).astype(np.int64)
    number = np.sum(digits << np.arange(len(digits))[:, None], axis=0) - 1
    return np.where(np.all(np.abs(share - digits) < 0.25, axis=0), number, -1)
