"""Check, on the first look, that blocks are independent replicates, as every interval needs."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtr, fdtrc

Array = NDArray[np.float64]

PIECES = 8  # at least, drawn apart from each other, for their spread to tell something
FALSE_ALARM = 1e-12  # of one comparison of pieces
COLUMNS = 4  # of block values that are compared
BESIDE = 4  # blocks that are measured again in other company
HEAD = 2**13  # numbers of a chunk that its digest looks at
SAMPLE = 64  # numbers of a block by which it is told from others


def digest_of(q: Array, k: Array) -> bytes:
    """By which chunks are told apart: no two of a world may be equal."""
    digest = hashlib.blake2b(digest_size=16)
    for x in (q, k):
        digest.update(x.reshape(-1)[:HEAD].tobytes())
    return digest.digest()


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
    if np.any(fdtrc(*freedom, ratio) < rate):
        return "more"
    return "less" if np.any(fdtr(*freedom, ratio) < rate) else ""


def repeated(q: Array, k: Array) -> bool:
    """Whether two blocks of continuous draws are the same; discrete ones may be, by chance."""
    blocks, tokens, d_k = q.shape
    if tokens * d_k < 2:
        return False
    step = max(1, tokens * d_k // SAMPLE)
    sample = np.hstack([x.reshape(blocks, -1)[:, ::step] for x in (q, k)])
    _, first, count = np.unique(sample, axis=0, return_index=True, return_counts=True)
    again = first[count > 1]
    continuous = [len(np.unique(q[block])) == tokens * d_k for block in again]
    return any(continuous)


def check_pieces(who: str, tables: Sequence[Array]) -> None:
    """Raise ValueError if block values tell which piece, drawn apart, a block is of."""
    if how := spread_of_pieces(tables):
        raise ValueError(f"{who} makes blocks that depend on each other: pieces drawn apart vary "
                         f"{how} than their blocks do; draw anew for every block, with shapes that "
                         "begin with the number of blocks, and standardise nothing over blocks")


def check_beside(table: Array, measured: Callable[[NDArray[np.intp]], Array]) -> None:
    """Raise ValueError unless a block has the same values whatever blocks stand beside it.

    ``measured`` gives the block values of chosen blocks in a given order, here of a few in another
    order, the first of them twice.
    """
    blocks = len(table)
    chosen = np.append(np.unique(np.linspace(blocks - 1, 0, BESIDE).astype(np.intp))[::-1], 0)
    again, before = measured(chosen), table[chosen]
    # But for the last bits, in which sums may differ with where an array begins in memory.
    slack = 1e-9 * float(np.abs(before).max())
    if again.shape != before.shape or not np.allclose(again, before, rtol=1e-7, atol=slack):
        raise ValueError("the body gives a block other values when other blocks stand beside it, "
                         "so blocks are no independent replicates; standardise, sort and draw "
                         "within a block, and draw from rng alone")


def check_law(q: Array, k: Array, draw: Callable[[int, int], tuple[Array, Array]]) -> None:
    """Raise ValueError if blocks of a law are drawn twice, or in dependence on each other.

    ``draw`` draws a piece, by its number, of so many blocks.
    """
    if repeated(q, k):
        raise ValueError("the law draws a block twice in one chunk; draw every block anew from the "
                         "rng that draw() is given")
    if len(q) < 16 * PIECES:  # the chunks themselves are pieces enough
        return
    drawn = [draw(piece, len(q) // (4 * PIECES)) for piece in range(PIECES)]
    check_pieces("the law", [np.stack([x.mean(axis=(1, 2)) for x in (q, k, q * q, q * k)], axis=1)
                             for q, k in drawn])
