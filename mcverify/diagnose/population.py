"""From tokens to exact numbers of them as a whole population: moments and the score's variance."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.laws.arrays import Labels, checked
from mcverify.laws.law import Array

Indices = NDArray[np.int64]

LARGEST = 1e20


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens in the order of their units: the groups, or each token by itself.

    Attributes
    ----------
    q, k : (n_tokens, d_k), with mean 0; mean_q, mean_k : what was taken off.
    sizes : (units,) tokens of each; grouped : whether units are groups.
    """

    q: Array
    k: Array
    mean_q: Array
    mean_k: Array
    sizes: Indices
    grouped: bool

    @property
    def d_k(self) -> int:
        return int(self.q.shape[1])

    @cached_property
    def starts(self) -> Indices:
        """Where each unit begins."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def cov_q(self) -> Array:
        return np.asarray(self.q.T @ self.q / len(self.q))

    @cached_property
    def cov_k(self) -> Array:
        return np.asarray(self.k.T @ self.k / len(self.k))

    @cached_property
    def cross(self) -> Array:
        return np.asarray(self.q.T @ self.k / len(self.q))

    def totals(self, values: Array) -> Array:
        """Sums over each unit: (n_tokens, …) -> (units, …)."""
        return np.asarray(np.add.reduceat(values, self.starts)) if self.grouped else values

    def sequences(self, values: Array) -> list[Array]:
        """(n_tokens, …) cut into the groups; without groups all tokens are one sequence."""
        return np.split(values, self.starts[1:]) if self.grouped else [values]

    def of_units(self, units: Indices) -> Indices:
        """The tokens of some units, one unit after the other."""
        if not self.grouped:
            return units
        return np.concatenate([np.arange(self.starts[u], self.starts[u] + self.sizes[u])
                               for u in units])

    @cached_property
    def pairs(self) -> Array:
        """Sums of s and of s² over each group's pairs of different tokens, over size − 1.

        (groups, 2); s is the score less μ_q·μ_k, which changes no variance and saves digits.
        Without groups all tokens are one.
        """
        one = np.ones((len(self.q), 1))
        q = np.hstack([self.q, (self.q @ self.mean_k)[:, None], one])
        k = np.hstack([self.k, one, (self.k @ self.mean_q)[:, None]])
        return np.array([_pair_sums(a, b) for a, b in
                         zip(self.sequences(q), self.sequences(k), strict=True)])


def _pair_sums(q: Array, k: Array) -> tuple[float, float]:
    own = np.einsum("td,td->t", q, k)
    if len(q) <= q.shape[1]:
        s = q @ k.T
        first, second = float(s.sum()), float(np.sum(s * s))
    else:  # Σ (q_i·k_j)² over all pairs is the trace of a product of d_k × d_k matrices
        first, second = float(q.sum(0) @ k.sum(0)), float(np.sum((q.T @ q) * (k.T @ k)))
    others = len(q) - 1
    return (first - float(own.sum())) / others, (second - float(own @ own)) / others


def tokens_of(q: Any, k: Any, groups: Any = None) -> Tokens:
    """Checked (see laws.arrays.checked), centred, and ordered by group."""
    q, k, labels = checked(q, k, groups)
    if labels is not None:
        order = np.argsort(labels, kind="stable")
        q, k = q[order], k[order]
    mean_q, mean_k = q.mean(axis=0), k.mean(axis=0)
    return Tokens(_centred(q, mean_q, "q"), _centred(k, mean_k, "k"), mean_q, mean_k,
                  _sizes(labels, len(q)), labels is not None)


def _centred(x: Array, mean: Array, name: str) -> Array:
    constant = (x == x[0]).all(axis=0)
    if constant.all():
        raise ValueError(f"{name} is the same for all tokens: there is no variance to diagnose; "
                         "check how it was saved")
    found = np.where(constant, 0.0, x - mean)  # what rounding leaves of a constant is no variance
    if np.abs(x).max() > LARGEST or np.abs(found).max() < 1 / LARGEST:
        raise ValueError(f"{name} has entries up to {np.abs(x).max():.3g} that differ from their "
                         f"mean by up to {np.abs(found).max():.3g}: twelfth powers of these are "
                         f"formed; scale to between {1 / LARGEST:g} and {LARGEST:g}")
    return found


def _sizes(labels: Labels | None, tokens: int) -> Indices:
    return np.ones(tokens, dtype=np.int64) if labels is None else np.bincount(labels)


def variance_of_pairs(tokens: Tokens) -> float:
    """The variance of q·k of a query of any token and the key of any other token of its group."""
    first, second = tokens.pairs.sum(axis=0) / len(tokens.q)
    return float(second - first**2)


def score_variance(q: Any, k: Any, groups: Any = None) -> float:
    """Var(q·k) over pairs of different tokens of one group, exact for these arrays.

    q and k are (n_tokens, d_k), groups (n_tokens,) or None for one group. Every token is a query
    with the same weight, and its keys are the other tokens of its group, each with the same weight:
    the pairs that ``laws.measured`` draws.

    >>> score_variance([[1.0], [-1.0], [2.0], [3.0]], [[1.0], [2.0], [1.0], [-2.0]], [0, 0, 1, 1])
    7.5
    """
    return variance_of_pairs(tokens_of(q, k, groups))


def predicted_variances(q: Any, k: Any) -> dict[str, float]:
    """What Var(q·k) of independent tokens is by formulas that each know more of the moments.

    textbook d_k; variances tr Σ_q tr Σ_k/d_k; correlations tr(Σ_q Σ_k); means, the full formula,
    tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k. Moments are those of the arrays, (n_tokens, d_k).

    >>> predicted_variances([[1.0, 0.0], [3.0, 0.0]], [[1.0, 1.0], [-1.0, 1.0]])
    {'textbook': 2.0, 'variances': 0.5, 'correlations': 1.0, 'means': 5.0}
    """
    return formulas(tokens_of(q, k))


def formulas(tokens: Tokens) -> dict[str, float]:
    """See predicted_variances."""
    cov_q, cov_k, mean_q, mean_k = tokens.cov_q, tokens.cov_k, tokens.mean_q, tokens.mean_k
    both = float(np.sum(cov_q * cov_k))
    return {
        "textbook": float(tokens.d_k),
        "variances": float(np.trace(cov_q) * np.trace(cov_k)) / tokens.d_k,
        "correlations": both,
        "means": both + float(mean_q @ cov_k @ mean_q + mean_k @ cov_q @ mean_k),
    }
