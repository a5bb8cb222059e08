"""From queries and keys to scores: every pair, a token with itself, rows that share a query."""

from collections.abc import Callable, Hashable

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import Pairs, Scores, check_all_pairs, chunk_of

ROW_ENTRIES = 2**13  # softmax entries a block: enough rows to use the keys that were drawn
MIN_QUERIES = 32  # with thousands of keys a query costs little next to drawing the keys


def _cross(q: Array, k: Array, scale: float) -> Array:
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: both must end in (tokens, d_k) "
                         "with the same d_k; pad or project the narrower one")
    if q.shape[-1] == 1:  # to multiply takes no longer than to copy what others have multiplied
        return _times(np.asarray(np.einsum("...i,...j->...ij", q[..., 0], k[..., 0])), scale)
    return _times(_shared(q, k, "products", lambda: q @ np.swapaxes(k, -1, -2)), scale)


def _shared(q: Array, k: Array, name: Hashable, make: Callable[[], Array]) -> Array:
    """What ``make`` makes; of a chunk's own queries and keys, made once for all bodies, and then
    read-only."""
    chunk = chunk_of(q, k)
    return chunk.kept(name, make) if chunk and chunk.owns(q, k) else np.asarray(make())


def _times(s: Array, scale: float) -> Array:
    """A new array, unless nobody else holds s."""
    if not s.flags.writeable:
        return s * s.dtype.type(scale)
    if scale != 1.0:
        s *= s.dtype.type(scale)
    return s


def _noted(q: Array, k: Array, pairs: Pairs, scale: float, s: Array) -> Array:
    chunk = chunk_of(q, k)
    return s if chunk is None else chunk.note(q, k, Scores(pairs, scale), s)


def scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Every query with every key: (blocks, tokens, d_k) twice -> (blocks, tokens, tokens).

    >>> scores(np.array([[[1.0, 2.0]]]), np.array([[[3.0, 1.0]]]))
    array([[[5.]]])
    """
    check_all_pairs(q, k)
    return _noted(q, k, "all", scale, _cross(q, k, scale))


def matched_scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Each token's query with its own key: (blocks, tokens, d_k) twice -> (blocks, tokens).

    >>> matched_scores(np.array([[[1.0, 2.0], [1.0, 0.0]]]), np.array([[[3.0, 1.0], [7.0, 9.0]]]))
    array([[5., 7.]])
    """
    s = _times(np.asarray(np.einsum("...d,...d->...", q, k)), scale)
    return _noted(q, k, "matched", scale, s)


def other_scores(q: Array, k: Array, scale: float = 1.0) -> Array:
    """Each query with the keys of all other tokens -> (blocks, tokens, tokens − 1).

    >>> other_scores(np.array([[[1.0], [2.0]]]), np.array([[[3.0], [5.0]]]))
    array([[[5.],
            [6.]]])
    """
    s = _cross(q, k, scale)
    *lead, tokens, _ = s.shape
    # Cut after each diagonal entry, the matrix falls into runs of exactly the others.
    runs = s.reshape(*lead, tokens * tokens)[..., 1:].reshape(*lead, tokens - 1, tokens + 1)
    # Without its own key a query meets independent keys only, so that nothing is refused.
    return _noted(q, k, "other", scale, runs[..., :-1].reshape(*lead, tokens, tokens - 1))


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

    def make() -> Array:
        s = _cross(q if queries == q.shape[-2] else q[..., :queries, :], k, 1.0)
        return s.reshape(*s.shape[:-2], queries * (tokens // keys), keys)

    s = _times(_shared(q, k, keys, make), scale)
    chunk = chunk_of(q, k)
    return chunk.handed_rows(s, keys, scale) if chunk and chunk.owns(q, k) else s
