"""Several heads: which width the scale uses when heads share keys, and what sharing changes."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import head_scores, scores, split_heads
from mcverify.attention.vectors import pad
from mcverify.declare import near
from mcverify.statistic import mean, ratio, variance

HEADS, WIDTH = 8, 64
SHARED = grid(law=laws.normal, d_k=HEADS * WIDTH, groups=[1, 2, HEADS])


def keys_of(k, groups, kept=WIDTH):
    """The keys of so many groups of heads, each of 64 coordinates of which so many are not 0."""
    of_groups = split_heads(k[..., :groups * WIDTH], groups)
    of_groups = pad(of_groups[..., :kept], WIDTH)
    return np.swapaxes(of_groups, -3, -2).reshape(*k.shape[:-1], groups * WIDTH)


def at_most_of_one_head(tokens, width=WIDTH):
    """At least the variance of a block's mean square: a mean over heads varies no more than one head."""
    of_one = laws.score_moments(laws.normal, WIDTH)
    return of_one and of_one.of_block(tokens).of_squares / width**2


OF_HEADS = variance.with_variance(at_most_of_one_head)


@claim(OF_HEADS, equals=1, within=relative(0.02), over=SHARED, decides="A16 B24 B37",
       controls=grid(width=HEADS * WIDTH) + grid(kept=WIDTH // HEADS))
def shared_keys_keep_variance(q, k, groups, width=WIDTH, kept=WIDTH):
    """Multi-head, grouped-query and multi-query scores divided by the root of the head's width, 64 in all of them, have variance 1: keys of 8 of 64 coordinates, or √512 for 8 heads, would leave 1/8."""
    return head_scores(q, keys_of(k, groups, kept), HEADS, groups, scale=width**-0.5)


@claim(OF_HEADS, equals=1, within=relative(0.02), over=grid(law=laws.normal, d_k=HEADS * WIDTH, groups=[1, 2]),
       decides="B37", expect=Verdict.REFUTED)
def shared_keys_are_narrower(q, k, groups):
    """In multi-query and grouped-query attention keys are as many times narrower than queries as they have fewer heads, and scores have variance 1 all the same."""
    kept = WIDTH * groups // HEADS
    return head_scores(q, keys_of(k, groups, kept), HEADS, groups, scale=WIDTH**-0.5)


@claim(ratio.of_degree(4), equals=lambda groups: {1: 1 / (8 + 3), 8: 0}[groups],
       within=absolute(0.02), over=grid(law=laws.normal, d_k=64, groups=[1, 8], tokens=8),
       decides="B24", controls=grid(groups=8) + near.law(laws.independent(laws.normal, laws.rademacher)))
def shared_keys_make_heads_dependent(q, k, groups):
    """Heads that share keys are dependent though uncorrelated: squared scores have a correlation of 1/(d_k + 3), 0.09 for heads of 8."""
    s = head_scores(q, k[..., :groups * 8], heads=8, groups=groups, scale=8**-0.5)
    first, second = s[:, 0] ** 2 - 1, s[:, 1] ** 2 - 1
    return first * second, first**2


# --- whitening ---------------------------------------------------------------------------------


KEYS_OF_A_SEQUENCE = laws.independent(laws.normal, laws.memory(laws.normal, 0.5))


def neighbours(q, k, d_k):
    """Products of the scores of each query with the first two keys: of variance 1, so their correlation."""
    s = scores(q, k[:, :2], scale=1 / math.sqrt(d_k))
    return s[..., 0] * s[..., 1]


def spread_of_neighbours(law, d_k, tokens):
    """Given keys of correlation ρ queries are independent, and add |k|²|k'|² + (k·k')² each, over d_k²."""
    if law not in (laws.normal, KEYS_OF_A_SEQUENCE):
        return None
    rho = 0.0 if law == laws.normal else law.k.rho
    common = (1 + rho**2) / d_k
    return common + (1 + rho**2 + (1 + 3 * rho**2) / d_k) / tokens


OF_NEIGHBOURS = mean.with_variance(spread_of_neighbours)


@claim(OF_NEIGHBOURS, equals=0.5, within=absolute(0.02),
       over=grid(law=KEYS_OF_A_SEQUENCE, d_k=[8, 64], tokens=8), decides="B8",
       controls=near.law(laws.normal) + near.law(laws.shared_query(laws.normal)))
def correlated_keys_leave_correlated_scores(q, k, d_k):
    """Divided by √d_k, the scores of two keys that are correlated 0.5 are correlated 0.5 still."""
    return neighbours(q, k, d_k)


@claim(OF_NEIGHBOURS, equals=0, within=absolute(0.02),
       over=grid(law=KEYS_OF_A_SEQUENCE, d_k=[8, 64], tokens=8), decides="B8",
       expect=Verdict.REFUTED)
def scaling_whitens_scores(q, k, d_k):
    """Dividing by √d_k whitens the scores: it leaves them uncorrelated."""
    return neighbours(q, k, d_k)


@claim(OF_NEIGHBOURS, equals=0, within=absolute(0.02),
       over=grid(law=laws.normal, d_k=[8, 64], tokens=8), decides="B8",
       controls=near.law(KEYS_OF_A_SEQUENCE))
def independent_keys_have_white_scores(q, k, d_k):
    """The scores of independent keys are uncorrelated before any scaling, so that dividing by √d_k makes their covariance I."""
    return neighbours(q, k, d_k)
