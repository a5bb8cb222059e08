"""From a seed to queries and keys whose products are exact, of many sizes and on all coordinates.

Coordinates go in quads with signs (+, +, −, −), in an order that each batch shuffles. A query is
one number on some of the quads, a key (w₁, w₂, −w₁, −w₂) on all. So queries and keys have mean 0,
which a LayerNorm leaves alone; a key with w₂ = −w₁ meets every query at exactly 0 without being 0
itself, which a normalisation needs; and the numbers have so few bits that q·k is exact in bfloat16.
Where d_k is below 4, pairs or single coordinates stand for quads.
"""

from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array
from mcverify.probing.calls import Sizes

SIGNS = np.array([1.0, 1.0, -1.0, -1.0])
KEY_SIZE = 2.0**8  # of the keys, so that the epsilon of a normalisation of keys is out of sight
TOP = 4.0  # what w₁ + w₂ stays below


@dataclass(frozen=True)
class Design:
    """Experiments of one head: q (batch, tokens, d_k), k (batch, keys, d_k), both exact.

    The largest |q·k| is just below KEY_SIZE when queries are not amplified.
    """

    q: Array
    k: Array

    @property
    def products(self) -> Array:
        """q·k of every query with every key, exact: (batch, tokens, keys)."""
        return np.asarray(self.q @ np.swapaxes(self.k, -1, -2))

    @property
    def lengths(self) -> tuple[Array, Array]:
        """|q| (batch, tokens, 1) and |k| (batch, 1, keys)."""
        q, k = np.linalg.norm(self.q, axis=-1), np.linalg.norm(self.k, axis=-1)
        return q[..., None], k[..., None, :]


def varied(rng: np.random.Generator, sizes: Sizes, batch: int) -> Design:
    """Queries on shuffled parts of the coordinates, of either sign; keys of many sizes."""
    shape = (batch, sizes.keys)
    t = rng.integers(128, 256, shape) / 128
    t[rng.random(shape) < 1 / 3] = 1.0  # which make products that are powers of two
    t *= 2.0 ** -rng.integers(0, 4, shape)
    second = rng.choice([1.0, 0.0, -0.5], shape)
    second[rng.random(shape) < 1 / 3] = -1.0
    amplitude = rng.choice([-1.0, 1.0], (batch, sizes.tokens)) * 2.0 ** -rng.integers(
        0, 3, (batch, sizes.tokens))
    return _built(rng, sizes, amplitude, t, second * t, parts=True)


def plain(rng: np.random.Generator, sizes: Sizes, batch: int) -> Design:
    """Queries on all coordinates; keys meet them at 16 sizes by turns, far apart whatever is seen.

    Sixteenths in the order of their reversed binary digits: keys at any even distance differ, too.
    """
    shape = (batch, sizes.keys)
    turns = np.arange(sizes.keys)
    levels = sum((turns >> digit & 1) * 2.0 ** -(digit + 1) for digit in range(4))
    return _built(rng, sizes, np.ones((batch, sizes.tokens)), np.full(shape, 0.5),
                  np.broadcast_to(levels - 0.5, shape), parts=False)


def flat(sizes: Sizes) -> Design:
    """One batch in which all keys are the same, and meet every query at 0."""
    one = np.ones((1, sizes.keys))
    return _built(np.random.default_rng(0), sizes, np.ones((1, sizes.tokens)), one, -one,
                  parts=False)


def _built(rng: np.random.Generator, sizes: Sizes, amplitude: Array, w1: Array, w2: Array,
           parts: bool) -> Design:
    width = 1 << min(2, sizes.d_k.bit_length() - 1)  # 4, or 2 or 1 where d_k is below
    number = sizes.d_k // width
    largest = number.bit_length() - 1
    batch = len(amplitude)
    orders = np.array([rng.permutation(sizes.d_k)[: number * width] for _ in range(batch)])
    # A power of two of quads, so that their number costs no bit of the product.
    counts = 1 << (rng.integers(0, largest + 1, amplitude.shape) if parts
                   else np.full(amplitude.shape, largest))
    ranks = rng.permuted(np.broadcast_to(np.arange(number), (*amplitude.shape, number)), axis=-1)
    entries = amplitude / (counts * max(width // 2, 1) * TOP)
    chosen = np.where(ranks < counts[..., None], entries[..., None], 0.0)
    if width == 1:
        w1 = w1 + w2  # one coordinate cannot be at right angles to another
    q = np.repeat(chosen, width, axis=-1) * np.tile(SIGNS[:width], number)
    pair = np.stack([w1, w2, -w1, -w2], axis=-1)[..., :width]
    k = np.tile(pair, number) * KEY_SIZE
    placed = [np.zeros((*x.shape[:-1], sizes.d_k)) for x in (q, k)]
    for whole, part in zip(placed, (q, k), strict=True):
        np.put_along_axis(whole, orders[:, None], part, axis=-1)
    return Design(*placed)
