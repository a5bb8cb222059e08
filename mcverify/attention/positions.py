"""From positions to scores of a sequence: a query sees what came before it, and near keys best."""

import math

import numpy as np
from numpy.typing import ArrayLike

from mcverify.arrays import Array
from mcverify.attention.products import scores


def causal_rows(
    q: Array, k: Array, scale: float = 1.0, positions: ArrayLike | None = None
) -> Array:
    """Rows of growing length: (blocks, tokens, d_k) twice -> (blocks, tokens, tokens).

    Query i meets keys 0 to i; the scores of later keys are −inf, which softmax masks. Of all
    queries, or of those at some ``positions`` of each block, (blocks, rows) -> (blocks, rows,
    tokens).

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[3.0], [5.0]]])
    >>> causal_rows(q, k)
    array([[[  3., -inf],
            [  6.,  10.]]])
    >>> causal_rows(q, k, positions=[[1]])
    array([[[ 6., 10.]]])
    """
    if positions is None:
        place = np.arange(q.shape[-2])
    else:
        place = np.asarray(positions)
        q = np.take_along_axis(q, place[..., None], axis=-2)
    s = scores(q, k, scale)
    return np.where(np.arange(s.shape[-1]) <= place[..., None], s, s.dtype.type(-np.inf))


def alibi_bias(
    tokens: int, slope: float, queries: int | None = None
) -> Array:
    """What is added to the scores of a sequence: −slope·(i − j) for query i and key j <= i.

    (queries, tokens), of the last queries, or of all; −inf for later keys. Raises ValueError for a
    negative slope. Source: Press et al. 2022 (ALiBi), section 3.

    >>> alibi_bias(3, slope=0.5)
    array([[ 0. , -inf, -inf],
           [-0.5,  0. , -inf],
           [-1. , -0.5,  0. ]])
    """
    if not 0 <= slope < math.inf:
        raise ValueError(f"alibi_bias(slope={slope}): the slope must be finite and not negative; "
                         "pass a head's own, as alibi_slopes gives them")
    place = np.arange(tokens)
    distance = place[tokens - (tokens if queries is None else queries):, None] - place
    return np.where(distance >= 0, -slope * np.maximum(distance, 0) + 0.0, -np.inf)


def alibi_slopes(heads: int) -> Array:
    """The slopes of so many heads, 2^(−8h/heads) for h = 1 to heads: (heads,).

    Of heads that are no power of two, the first so many as the power below it has, then every other
    one of twice as many. Source: Press et al. 2022 (ALiBi), section 3, and the code with it.

    >>> [alibi_slopes(heads).tolist() for heads in (2, 3)]
    [[0.0625, 0.00390625], [0.0625, 0.00390625, 0.25]]
    """
    power = 1 << heads.bit_length() - 1
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-4 * np.arange(1, 2 * power, 2) / power)
    return np.concatenate([slopes, between])[:heads]
