"""Check, on the first look, that blocks are independent replicates, as every interval needs."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from mcverify.arrays import Array

PIECES = 8  # drawn apart from each other, so that their spread tells something
PIECE = 64  # blocks of one
FALSE_ALARM = 1e-12  # of one comparison of pieces
COLUMNS = 4  # of block values that are compared
BESIDE = 4  # blocks that are measured again in other company
CALLS = 96  # that draw a block each, to see whether a law has few blocks to give
HEAD = 2**8  # numbers of q, and of k, that a chunk's digest looks at
TELLING = 16  # of them must not be the commonest
SAMPLE = 64  # numbers of a block by which it is told from others


def digest_of(q: Array, k: Array) -> bytes:
    """By which chunks are told apart: no two of a world may be equal.

    Empty for numbers that are nearly all the same, as of a sparse law: they may be so by chance.

    >>> digest_of(np.zeros((512, 1, 1)), np.zeros((512, 1, 1)))
    b''
    """
    head = np.concatenate([x.reshape(-1)[:HEAD] for x in (q, k)])
    middle = np.partition(head, len(head) // 2)[len(head) // 2]
    if np.count_nonzero(head != middle) < TELLING:
        return b""
    return hashlib.blake2b(head.tobytes(), digest_size=16).digest()


def spread_of_pieces(tables: Sequence[Array]) -> str:
    """How block values of pieces drawn apart depend on the piece; "" if they do not.

    Tables are (blocks, any number), equally long; their first columns are compared. Analysis of
    variance, column by column: shared draws of a piece make pieces differ more than their blocks
    do, values that are standardised over a piece less.

    >>> rng = np.random.default_rng(0)
    >>> spread_of_pieces([rng.standard_normal((64, 1)) for _ in range(8)])
    ''
    >>> spread_of_pieces([rng.standard_normal((64, 1)) + shared for shared in range(8)])
    'more'
    """
    x = np.stack([table.reshape(len(table), -1)[:, :COLUMNS] for table in tables])
    pieces, blocks, _ = x.shape
    means = x.mean(axis=1)
    within = ((x - means[:, None]) ** 2).sum(axis=(0, 1)) / (pieces * (blocks - 1))
    between = blocks * means.var(axis=0, ddof=1)
    told = within > 1e-24 * (x**2).mean(axis=(0, 1))  # of a constant, but for rounding
    ratio = between[told] / within[told]
    freedom, rate = (pieces - 1, pieces * (blocks - 1)), FALSE_ALARM / max(1, len(ratio))
    if np.any(scipy.special.fdtrc(*freedom, ratio) < rate):
        return "more"
    return "less" if np.any(scipy.special.fdtr(*freedom, ratio) < rate) else ""


def repeats(q: Array, k: Array) -> int:
    """By how many blocks a chunk is repeated in itself; 0 if it is not.

    Of discrete laws blocks may be equal by chance. Independent ones are so at every distance
    equally often, so that a distance at which many more are equal tells of draws used again.

    >>> q = np.random.default_rng(0).standard_normal((64, 2, 3))
    >>> repeats(q, q), repeats(np.tile(q, (2, 1, 1)), np.tile(q, (2, 1, 1)))
    (0, 64)
    """
    equal = _equal_pairs(q, k)
    blocks = len(equal) + 1
    if not equal.any():
        return 0
    pairs = np.arange(blocks - 1, 0, -1)  # at distances 1, 2, …
    chance = scipy.special.bdtrc(equal - 1, pairs, equal.sum() / pairs.sum())
    suspect = (equal > 0) & (chance < FALSE_ALARM / blocks)
    return int(np.argmax(suspect)) + 1 if suspect.any() else 0


def _equal_pairs(q: Array, k: Array) -> NDArray[np.intp]:
    """How many pairs of blocks are equal, at each distance from 1 on."""
    blocks, tokens, d_k = q.shape
    step = max(1, tokens * d_k // SAMPLE)
    sample = np.hstack([x.reshape(blocks, -1)[:, ::step] for x in (q, k)])
    labels = np.unique(sample, axis=0, return_inverse=True)[1].reshape(-1)
    if labels.max() == blocks - 1:  # all differ
        return np.zeros(blocks - 1, np.intp)
    first, second = np.nonzero(np.triu(labels[:, None] == labels, 1))
    return np.bincount(second - first, minlength=blocks)[1:]


def check_pieces(who: str, tables: Sequence[Array]) -> None:
    """Raise ValueError if block values tell which piece, drawn apart, a block is of."""
    if how := spread_of_pieces(tables):
        raise ValueError(f"{who} makes blocks that depend on each other: pieces drawn apart vary "
                         f"{how} than their blocks do; draw anew for every block, with shapes that "
                         "begin with the number of blocks, and standardise nothing over blocks")


def check_beside(
    table: Array, measured: Callable[[NDArray[np.intp]], Array], count: int = BESIDE
) -> None:
    """Raise ValueError unless a block has the same values whatever blocks stand beside it.

    ``measured`` gives the block values of chosen blocks in a given order, here of a few in another
    order, the first of them twice: ``count`` and one.
    """
    blocks = len(table)
    chosen = np.append(np.unique(np.linspace(blocks - 1, 0, count).astype(np.intp))[::-1], 0)
    again, before = measured(chosen), table[chosen]
    # But for the last bits, in which sums may differ with where an array begins in memory.
    slack = 1e-9 * float(np.abs(before).max())
    if again.shape != before.shape or not np.allclose(again, before, rtol=1e-7, atol=slack):
        raise ValueError("the body gives a block other values when other blocks stand beside it, "
                         "so blocks are no independent replicates; standardise, sort and draw "
                         "within a block, and draw from rng alone")


def check_repeats(q: Array, k: Array) -> None:
    """Raise ValueError if blocks of a chunk are drawn twice."""
    if distance := repeats(q, k):
        raise ValueError(f"the law draws blocks twice, {distance} after each other; draw every "
                         "block anew from the rng that draw() is given")


def check_law(draw: Callable[[int], tuple[Array, Array]]) -> None:
    """Raise ValueError if a law draws blocks again in other calls, or in dependence on each other.

    ``draw`` makes a call of its own, each time it is asked, that draws so many blocks of a few
    tokens.
    """
    apart = [draw(1) for _ in range(CALLS)]
    often = int(_equal_pairs(*map(np.concatenate, zip(*apart, strict=True))).sum())
    together = int(_equal_pairs(*draw(CALLS)).sum())
    # By chance either kind of pair is as likely to be equal, so that they are so half and half.
    if often and scipy.special.bdtrc(often - 1, often + together, 0.5) < FALSE_ALARM:
        raise ValueError("the law draws the same blocks again in other calls, as from a small "
                         "pool; let draw() use nothing but the rng that it is given")
    pieces = [draw(PIECE) for _ in range(PIECES)]
    check_pieces("the law", [np.stack([x.mean(axis=(1, 2)) for x in (q, k, q * q, q * k)], axis=1)
                             for q, k in pieces])
