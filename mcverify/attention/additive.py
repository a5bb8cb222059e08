"""From queries and keys to additive scores, which a small network makes of each pair."""


import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import check_all_pairs


def additive_scores(q: Array, k: Array, w_q: Array, w_k: Array, v: Array) -> Array:
    """v·tanh(W_q q + W_k k) of every query with every key -> (blocks, tokens, tokens).

    q and k are (blocks, tokens, d_k), w_q and w_k (d_k, width), v (width,); weights may have a
    first axis of blocks, so that each block has its own. The hidden layer of all pairs is held at
    once: blocks·tokens²·width numbers, width times as many as there are scores. Raises ValueError
    for shapes that do not fit, and where pairs of all tokens are refused.
    Source: Bahdanau et al. 2015, appendix A.1.2, without biases.

    >>> w = np.array([[1.0]])
    >>> q, k = np.array([[[0.5], [1.0]]]), np.array([[[-0.5], [-1.0]]])
    >>> additive_scores(q, k, w, w, np.array([2.0])) == 2 * np.tanh([[[0, -0.5], [0.5, 0]]])
    array([[[ True,  True],
            [ True,  True]]])
    """
    check_all_pairs(q, k)
    _check(q, k, w_q, w_k, v)
    hidden: Array = (q @ w_q)[..., :, None, :] + (k @ w_k)[..., None, :, :]
    np.tanh(hidden, out=hidden)
    s: Array = (hidden @ v[..., None, :, None])[..., 0] if v.ndim > 1 else hidden @ v
    return s


def _check(q: Array, k: Array, w_q: Array, w_k: Array, v: Array) -> None:
    if q.ndim < 2 or k.ndim < 2 or q.shape[:-2] != k.shape[:-2]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: both must be (blocks, tokens, "
                         "d_k) with the same blocks; repeat the one that blocks share")
    for name, x, w in (("q", q, w_q), ("k", k, w_k)):
        if w.shape[:-2] not in ((), q.shape[:-2]) or w.shape[-2:-1] != x.shape[-1:]:
            raise ValueError(f"w_{name} has shape {w.shape} and {name} {x.shape}: must be (d_k, "
                             "width) or (blocks, d_k, width); transpose it if it is (width, d_k)")
    widths = {w.shape[-1:] for w in (w_q, w_k, v)}
    if len(widths) > 1 or v.shape[:-1] not in ((), q.shape[:-2]):
        raise ValueError(f"w_q has shape {w_q.shape}, w_k {w_k.shape} and v {v.shape}: all must "
                         "end in the same width, and v be (width,) or (blocks, width)")
