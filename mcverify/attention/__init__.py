"""From queries and keys to what attention makes of them: scores, weights, their spread and slope.

Shapes: q and k are (blocks, tokens, d_k); p stands for softmax weights, whose last axis sums to 1.
Every function is pure, and works in the floating type that it is given.
"""

from mcverify.attention.additive import additive_scores
from mcverify.attention.averages import cosines, outputs
from mcverify.attention.heads import head_scores, split_heads
from mcverify.attention.jacobian import (
    JACOBIAN_NORMS,
    jacobian_norm,
    query_gradient,
    score_gradient,
)
from mcverify.attention.positions import alibi_bias, alibi_slopes, causal_rows
from mcverify.attention.products import (
    matched_scores,
    other_scores,
    rows,
    scores,
)
from mcverify.attention.rounding import bfloat16
from mcverify.attention.spread import entropy, max_weight, sum_squares, top_share, variance_under
from mcverify.attention.variants import (
    differential_weights,
    scalable_softmax,
    sigmoid_weights,
    soft_cap,
)
from mcverify.attention.weights import (
    log_partition,
    naive_softmax,
    online_average,
    online_softmax,
    softmax,
    softmax_entropy,
)

__all__ = [
    "JACOBIAN_NORMS",
    "additive_scores",
    "alibi_bias",
    "alibi_slopes",
    "bfloat16",
    "causal_rows",
    "cosines",
    "differential_weights",
    "entropy",
    "head_scores",
    "jacobian_norm",
    "log_partition",
    "matched_scores",
    "max_weight",
    "naive_softmax",
    "online_average",
    "online_softmax",
    "other_scores",
    "outputs",
    "query_gradient",
    "rows",
    "scalable_softmax",
    "score_gradient",
    "scores",
    "sigmoid_weights",
    "soft_cap",
    "softmax",
    "softmax_entropy",
    "split_heads",
    "sum_squares",
    "top_share",
    "variance_under",
]
