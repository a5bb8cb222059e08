"""From queries and keys to scores: every pair, a token with itself, rows that share a query."""

from collections.abc import Callable

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import (
    Chunk,
    Pairs,
    Part,
    Scores,
    check_all_pairs,
    chunk_of,
    made_once,
)

# Softmax entries of a block: with 2^14, or 2^15, cases take a tenth fewer blocks to their verdicts,
# and a quarter more time.
ROW_ENTRIES = 2**13
MIN_QUERIES = 32  # with thousands of keys a query costs little next to drawing the keys


def _products(q: Array, k: Array) -> Array:
    """Those of all pairs; of a chunk's own queries and keys, made once for all bodies."""
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: both must end in (tokens, d_k) "
                         "with the same d_k; pad or project the narrower one")
    own, x, y = _own(q, k), np.asarray(q), np.asarray(k)
    if own is None:
        return matrix_products(x, y)
    chunk, part = own
    return np.asarray(chunk.kept(part, lambda: matrix_products(x, y)))


def matrix_products(x: Array, y: Array) -> Array:
    """Σ xy of each pair of rows: (..., rows, d) and (..., others, d) -> (..., rows, others)."""
    if x.shape[-1] == y.shape[-1] == 1:
        return np.asarray(np.einsum("...i,...j->...ij", x[..., 0], y[..., 0]))
    return np.asarray(x @ np.swapaxes(y, -1, -2))


def _own(q: Array, k: Array) -> tuple[Chunk, Part] | None:
    """The chunk that they are of, and which part of it they are; None if they are of none."""
    chunk = chunk_of(q, k)
    part = None if chunk is None else chunk.part(q, k)
    return None if chunk is None or part is None else (chunk, part)


def _kept(q: Array, k: Array, pairs: Pairs, scale: float, make: Callable[[], Array]) -> Array:
    """Scores that ``make`` makes, scaled; of a chunk's own queries and keys, made once."""
    own = _own(q, k)
    if own is None:
        return _times(make(), scale)
    chunk, part = own
    return chunk.kept(chunk.named(Scores(pairs, scale), part), lambda: _times(make(), scale))


def _times(s: Array, scale: float) -> Array:
    return s if scale == 1.0 else s * s.dtype.type(scale)


def scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Every query with every key: (blocks, tokens, d_k) twice -> (blocks, tokens, tokens).

    >>> scores(np.array([[[1.0, 2.0]]]), np.array([[[3.0, 1.0]]]))
    array([[[5.]]])
    """
    check_all_pairs(q, k)
    return _kept(q, k, "all", scale, lambda: _products(q, k))


def matched_scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Each token's query with its own key: (blocks, tokens, d_k) twice -> (blocks, tokens).

    >>> matched_scores(np.array([[[1.0, 2.0], [1.0, 0.0]]]), np.array([[[3.0, 1.0], [7.0, 9.0]]]))
    array([[5., 7.]])
    """
    x, y = np.asarray(q), np.asarray(k)
    return _kept(q, k, "matched", scale, lambda: np.asarray(np.einsum("...d,...d->...", x, y)))


def other_scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Each query with the keys of all other tokens -> (blocks, tokens, tokens − 1).

    >>> other_scores(np.array([[[1.0], [2.0]]]), np.array([[[3.0], [5.0]]]))
    array([[[5.],
            [6.]]])
    """
    def make() -> Array:
        s = _products(q, k)
        *lead, tokens, _ = s.shape
        # Cut after each diagonal entry, the matrix falls into runs of exactly the others.
        runs = s.reshape(*lead, tokens * tokens)[..., 1:].reshape(*lead, tokens - 1, tokens + 1)
        return runs[..., :-1].reshape(*lead, tokens, tokens - 1)

    # Without its own key a query meets independent keys only, so that nothing is refused.
    return _kept(q, k, "other", scale, make)


def row_queries(tokens: int) -> int:
    """How many queries of a block ``rows`` uses: few where there are many keys.

    >>> row_queries(40), row_queries(4096)
    (40, 32)
    """
    return min(tokens, max(MIN_QUERIES, ROW_ENTRIES // tokens))


def rows(q: Array, k: Array, keys: int, scale: float = 1.0) -> Array:
    """Rows of ``keys`` scores that share a query: q and k as above -> (blocks, rows, keys).

    Few keys: the block's keys are cut into tokens/keys groups and each query meets each group.
    Many keys: only the first queries are used, about 2^13 scores a block; there may be fewer
    queries than keys. Raises ValueError unless the tokens of k are a multiple of keys.

    >>> rows(np.array([[[1.0], [2.0]]]), np.array([[[3.0], [5.0]]]), keys=2)
    array([[[ 3.,  5.],
            [ 6., 10.]]])
    """
    tokens = k.shape[-2]
    if not 1 <= keys <= tokens or tokens % keys:
        raise ValueError(f"rows(keys={keys}) with {tokens} tokens: the number of tokens must be a "
                         "multiple of keys; name `keys` in the grid and the runner sees to it")
    check_all_pairs(q, k)
    queries = min(row_queries(tokens), q.shape[-2])

    s = scores(q if queries == q.shape[-2] else q[..., :queries, :], k, scale)
    shape = (*s.shape[:-2], queries * (tokens // keys), keys)
    return made_once(("rows", keys), s, lambda: np.asarray(s).reshape(shape))
