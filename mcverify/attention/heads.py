"""From queries and keys of all heads side by side to the scores of each head."""


import numpy as np

from mcverify.arrays import Array
from mcverify.attention.products import scores


def split_heads(x: Array, heads: int) -> Array:
    """A view, a head at a time: (blocks, tokens, heads·d) -> (blocks, heads, tokens, d).

    Head h holds coordinates h·d to (h + 1)·d − 1. Raises ValueError unless heads divides the width.

    >>> split_heads(np.array([[[1, 2, 3, 4], [5, 6, 7, 8]]]), heads=2)
    array([[[[1, 2],
             [5, 6]],
    <BLANKLINE>
            [[3, 4],
             [7, 8]]]])
    """
    if x.ndim < 2:
        raise ValueError(f"split_heads of shape {x.shape}: must end in (tokens, heads·d); add the "
                         "axis of tokens")
    if heads < 1 or x.shape[-1] % heads:
        raise ValueError(f"split_heads(heads={heads}) of width {x.shape[-1]}: the width must be a "
                         "multiple of heads, 1 or more; choose heads that divide it")
    return np.swapaxes(x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads), -3, -2)


def head_scores(
    q: Array, k: Array, heads: int, groups: int | None = None, scale: float = 1.0
) -> Array:
    """Each head's scores: q (blocks, tokens, heads·d) -> (blocks, heads, tokens, tokens).

    k is (blocks, tokens, groups·d): a head of keys serves heads/groups heads of queries, head h
    uses group h // (heads/groups). groups = heads, the default, is multi-head attention, groups =
    1 multi-query, and what lies between is grouped-query. Raises ValueError unless groups divides
    heads and the widths agree, and where ``scores`` does.
    Source: Shazeer 2019 (multi-query), Ainslie et al. 2023 (grouped-query).

    >>> head_scores(np.array([[[1.0, 2.0]]]), np.array([[[3.0]]]), heads=2, groups=1)
    array([[[[3.]],
    <BLANKLINE>
            [[6.]]]])
    """
    groups = heads if groups is None else groups
    if heads < 1 or groups < 1 or heads % groups:
        raise ValueError(f"head_scores(heads={heads}, groups={groups}): heads must be a multiple "
                         "of groups, both 1 or more; use groups=1 for keys that all heads share")
    if q.shape[:-2] != k.shape[:-2] or q.shape[-1] * groups != k.shape[-1] * heads:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: with {heads} heads and {groups} "
                         f"groups, the same blocks and widths {heads}·d and {groups}·d are needed; "
                         "a head of keys is as wide as a head of queries")
    of_heads, of_groups = split_heads(q, heads), split_heads(k, groups)
    *lead, _, tokens, d = of_heads.shape
    grouped = of_heads.reshape(*lead, groups, heads // groups, tokens, d)
    s = scores(grouped, of_groups[..., None, :, :], scale)
    return s.reshape(*lead, heads, *s.shape[-2:])
