"""From queries and keys to what attention makes of them: scores, weights, their spread and slope.

Shapes: q and k are (blocks, tokens, d_k); p stands for softmax weights, whose last axis sums to 1.
Every function is pure, and works in the floating type that it is given.
"""

from mcverify.attention.jacobian import JACOBIAN_NORMS, jacobian_norm, query_gradient
from mcverify.attention.pairs import (
    matched_scores,
    other_scores,
    refuse_all_pairs,
    rows,
    scores,
)
from mcverify.attention.spread import entropy, max_weight, sum_squares
from mcverify.attention.weights import softmax

__all__ = [
    "JACOBIAN_NORMS",
    "entropy",
    "jacobian_norm",
    "matched_scores",
    "max_weight",
    "other_scores",
    "query_gradient",
    "refuse_all_pairs",
    "rows",
    "scores",
    "softmax",
    "sum_squares",
]
