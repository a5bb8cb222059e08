"""From tokens to exact numbers of them as a whole population: moments and the score's variance."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify import theory
from mcverify.laws.arrays import Labels
from mcverify.laws.law import Array
from mcverify.laws.measured import Measured, measured

Indices = NDArray[np.int64]

LARGEST = 1e20


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens in the order of their units: the groups, or each token by itself.

    Attributes
    ----------
    law : what they are of.
    q, k : (n_tokens, d_k), with mean 0; mean_q, mean_k : what was taken off.
    sizes : (units,) tokens of each; grouped : whether units are groups.
    """

    law: Measured
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
        """See theory.population.pair_sums."""
        return theory.population.pair_sums(self.law)


def tokens_of(q: Any, k: Any, groups: Any = None) -> Tokens:
    """Checked (see laws.arrays.checked), centred, and ordered by group."""
    law = measured(q, k, groups)
    order = np.concatenate(law.members)
    q, k = law.centred
    for name, x, centred in (("q", law.q, q), ("k", law.k, k)):
        _require_size(name, float(np.abs(x).max()), float(np.abs(centred).max()))
    return Tokens(law, q[order], k[order], law.q.mean(axis=0), law.k.mean(axis=0),
                  _sizes(law.groups, len(q)), law.groups is not None)


def _require_size(name: str, largest: float, varying: float) -> None:
    if varying == 0:
        raise ValueError(f"{name} is the same for all tokens: there is no variance to diagnose; "
                         "check how it was saved")
    if largest > LARGEST or varying < 1 / LARGEST:
        raise ValueError(f"{name} has entries up to {largest:.3g} that differ from their mean by "
                         f"up to {varying:.3g}: twelfth powers of these are formed; scale to "
                         f"between {1 / LARGEST:g} and {LARGEST:g}")


def _sizes(labels: Labels | None, tokens: int) -> Indices:
    return np.ones(tokens, dtype=np.int64) if labels is None else np.bincount(labels)
