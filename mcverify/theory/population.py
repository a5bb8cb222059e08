"""The variance of a score over the tokens of a measured law, exact for its arrays."""

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.real_tokens import Measured


def score_variance(law: Measured) -> float:
    """Var(q·k) of a query of any token with the key of any other token of its group.

    Every token is a query with the same weight, and its keys are the other tokens of its group,
    each with the same weight: the pairs of different tokens that ``laws.measured`` draws with
    groups. Without groups all tokens are one.

    >>> from mcverify import laws
    >>> q, k = [[1.0], [-1.0], [2.0], [3.0]], [[1.0], [2.0], [1.0], [-2.0]]
    >>> score_variance(laws.measured(q, k, groups=[0, 0, 1, 1]))
    7.5
    """
    first, second = pair_sums(law).sum(axis=0) / len(law.q)
    return float(second - first**2)


def pair_sums(law: Measured) -> Array:
    """Sums of s and of s² over each group's pairs of different tokens, over its size less one.

    (groups, 2); s is the score less μ_q·μ_k, which changes no variance and saves digits.
    """
    (q, k), one = law.centred, np.ones((len(law.q), 1))
    mean_q, mean_k = law.q.mean(axis=0), law.k.mean(axis=0)
    # The score less μ_q·μ_k as one product of two vectors that hold what the means add.
    q, k = np.hstack([q, (q @ mean_k)[:, None], one]), np.hstack([k, one, (k @ mean_q)[:, None]])
    return np.array([_pair_sums(q[tokens], k[tokens]) for tokens in law.members])


def _pair_sums(q: Array, k: Array) -> tuple[float, float]:
    own = np.einsum("td,td->t", q, k)
    if len(q) <= q.shape[1]:
        s = q @ k.T
        first, second = float(s.sum()), float(np.sum(s * s))
    else:  # Σ (q_i·k_j)² over all pairs is the trace of a product of d_k × d_k matrices
        first, second = float(q.sum(0) @ k.sum(0)), float(np.sum((q.T @ q) * (k.T @ k)))
    others = len(q) - 1
    return (first - float(own.sum())) / others, (second - float(own @ own)) / others
