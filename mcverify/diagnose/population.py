"""Tokens of queries and keys, checked and centred, in the order of their independent units."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mcverify.arrays import Array, Ints
from mcverify.laws.arrays import as_array
from mcverify.laws.law import Moments
from mcverify.laws.real_tokens import Measured, measured

LARGEST_ENTRY = 1e20


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens in the order of their units: the groups, or each token by itself.

    Attributes
    ----------
    law : the arrays as they were given; moments : theirs.
    q, k : (n_tokens, d_k), with mean 0; sizes : (units,) tokens of each.
    """

    law: Measured
    moments: Moments
    q: Array
    k: Array
    sizes: Ints

    @property
    def d_k(self) -> int:
        return self.law.d_k

    @property
    def grouped(self) -> bool:
        """Whether units are groups."""
        return self.law.groups is not None

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum(self.sizes) - self.sizes

    def totals(self, values: Array) -> Array:
        """Sums over each unit: (n_tokens, …) -> (units, …)."""
        return np.asarray(np.add.reduceat(values, self._starts)) if self.grouped else values

    def of_units(self, units: Ints) -> Ints:
        """The tokens of some units, one unit after the other."""
        if not self.grouped:
            return units
        return np.concatenate([np.arange(self._starts[u], self._starts[u] + self.sizes[u])
                               for u in units])


def heads_of(q: Any, k: Any, groups: Any = None) -> list[tuple[Any, Any, Any]]:
    """(q, k, groups) of each head, with q and k (n_tokens, d_k), which is one head as it is.

    Of (blocks, tokens, d_k), one head, each block is a group; of (batch, heads, tokens, d_k) each
    of the batch, and k may have fewer heads, each for as many heads of queries in a row. Raises
    ValueError for other shapes of more than two axes, or groups with them.

    >>> heads = heads_of(np.zeros((2, 12, 3, 8)), np.zeros((2, 12, 3, 8)))
    >>> len(heads), heads[0][0].shape, heads[0][2]
    (12, (6, 8), array([0, 0, 0, 1, 1, 1]))
    """
    q, k = as_array(q, "q"), as_array(k, "k")
    if max(q.ndim, k.ndim) < 3:
        return [(q, k, groups)]
    if q.ndim == k.ndim == 4 and k.shape[1] and q.shape[1] % k.shape[1] == 0:
        k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    if q.shape != k.shape or q.ndim > 4:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: both must be (n_tokens, d_k), "
                         "(blocks, tokens, d_k) or (batch, heads, tokens, d_k), of the same tokens "
                         "at the same width; pad the narrower one, and repeat shared keys")
    if groups is not None:
        raise ValueError(f"groups with q of shape {q.shape}: there each block is a group; pass "
                         "q and k as (n_tokens, d_k), or no groups")
    if q.ndim == 3:
        q, k = q[:, None], k[:, None]
    groups = np.repeat(np.arange(len(q)), q.shape[2])
    return [(*(x[:, head].reshape(-1, x.shape[-1]) for x in (q, k)), groups)
            for head in range(q.shape[1])]


def tokens_of(q: Any, k: Any, groups: Any = None) -> Tokens:
    """The tokens of q and k, (n_tokens, d_k), and perhaps groups, (n_tokens,). See laws.measured.

    Raises ValueError for arrays that cannot be diagnosed.
    """
    law = measured(q, k, groups)
    for name, x, centred in zip("qk", (law.q, law.k), law.centred, strict=True):
        _require_size(name, float(np.abs(x).max()), float(np.abs(centred).max()))
    order = np.concatenate(law.members)
    q, k = law.centred
    sizes = np.ones(len(law.q), np.int64) if law.groups is None else np.bincount(law.groups)
    return Tokens(law, law.moments(law.d_k), q[order], k[order], sizes)


def _require_size(name: str, largest: float, varying: float) -> None:
    if varying == 0:
        raise ValueError(f"{name} is the same for all tokens: there is no variance to diagnose; "
                         "check how it was saved")
    if largest > LARGEST_ENTRY or varying < 1 / LARGEST_ENTRY:
        raise ValueError(f"{name} has entries up to {largest:.3g} that differ from their mean by "
                         f"up to {varying:.3g}: twelfth powers of these are formed; scale to "
                         f"between {1 / LARGEST_ENTRY:g} and {LARGEST_ENTRY:g}")
