"""Scores of vectors whose lengths a norm has made equal: what is left of unequal directions."""

import math

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.normed_axes import ROUNDING, of_unit_length
from mcverify.theory.moments import effective_rank


def shares(variances: Array) -> Array:
    """E y_i²/‖y‖² for independent normal y_i of these variances: (n,) -> (n,), which sum to 1.

    >>> shares(np.array([1.0, 1.0, 0.0])), shares(np.array([4.0, 1.0])).round(6)
    (array([0.5, 0.5, 0. ]), array([0.666667, 0.333333]))
    """
    return of_unit_length(variances)[0]


def normed_score_variance(cov: Array, centred: bool) -> float:
    """Var(q·k)/d_k for normal q and k of mean 0 and this covariance after a norm of length √d_k.

    ``centred`` for LayerNorm, which takes off each vector's mean first; else RMSNorm. It is d_k
    over the effective rank of the shares that the eigendirections have of the unit length: a norm
    of length leaves unequal directions as they are, but for the weight of long vectors.

    >>> round(normed_score_variance(np.eye(64), centred=True), 6), round(64 / 63, 6)
    (1.015873, 1.015873)
    >>> round(normed_score_variance(np.diag([1.0, 1.0, 0.0, 0.0]), centred=False), 6)
    2.0
    """
    d_k = len(cov)
    if centred:
        centring = np.eye(d_k) - 1 / d_k
        cov = centring @ cov @ centring
    variances = np.linalg.eigvalsh(cov)
    of_length = shares(variances[variances > ROUNDING * variances.max()])
    return d_k / effective_rank(np.diag(of_length))


def kept_magnitude(d_k: int) -> float:
    """Corr(q·k, cos(q, k)) for normal q and k: (E‖q‖)²/d_k, since lengths tell nothing of angles.

    >>> round(kept_magnitude(1), 4), round(kept_magnitude(64), 4)
    (0.6366, 0.9922)
    """
    mean_length = math.sqrt(2) * math.exp(math.lgamma((d_k + 1) / 2) - math.lgamma(d_k / 2))
    return mean_length**2 / d_k
