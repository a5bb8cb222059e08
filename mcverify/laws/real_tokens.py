"""Laws that draw the tokens of real queries and keys again."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array, Ints
from mcverify.laws.arrays import File, checked, read_arrays
from mcverify.laws.base import LawBase
from mcverify.laws.law import BlockMoments, Moments, Pair, Rng, Values
from mcverify.laws.sampled_tokens import of_pairs, of_tokens


@dataclass(frozen=True)
class Measured(LawBase):
    """Tokens drawn from a finite population, each with its own query and key.

    With groups a block is one group, chosen in proportion to its size, and the tokens are
    different ones of that group in random order: what attention sees of a longer sentence. So a
    token of a block is any token of the arrays with the same probability, which makes the declared
    moments theirs, and a pair is a query of any token with the key of any other token of its
    group. Without groups all tokens are drawn independently, so pairs, too, are independent.

    Attributes
    ----------
    name, digest : the readable name, and a hash of the numbers and groups; equal ones mean equal
        laws.
    q, k : (n_tokens, d_k), read-only; groups : (n_tokens,) counted from 0, or None.
    """

    name: str
    digest: str
    q: Array = field(compare=False, repr=False)
    k: Array = field(compare=False, repr=False)
    groups: Ints | None = field(default=None, compare=False, repr=False)
    coupled = True

    def __str__(self) -> str:
        grouped = "" if self.groups is None else f"-{len(self.members)}groups"
        return f"measured[{self.name}{grouped}-{self.digest[:8]}]"

    @property
    def d_k(self) -> int:
        """The width of the arrays, the only one that the law has."""
        return int(self.q.shape[1])

    @property
    def tokens_independent(self) -> bool:
        return self.groups is None

    @cached_property
    def members(self) -> list[Ints]:
        """The tokens of each group; without groups all tokens are one."""
        if self.groups is None:
            return [np.arange(len(self.q))]
        order = np.argsort(self.groups, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.groups))[:-1])

    @cached_property
    def centred(self) -> Pair:
        """q and k less their means; a constant coordinate is 0 and not what rounding leaves."""
        first, second = (np.where((x == x[0]).all(axis=0), 0.0, x - x.mean(axis=0))
                         for x in (self.q, self.k))
        return first, second

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        """Fresh (q, k), each (blocks, tokens, d_k).

        Raises ValueError for a width that is not the arrays', and for more tokens than the
        smallest group has.
        """
        self._require_width(d_k)
        if self.groups is None:
            drawn = rng.integers(len(self.q), size=(blocks, tokens))
            return self.q[drawn], self.k[drawn]
        least = min(map(len, self.members))
        if tokens > least:
            raise ValueError(f"the law {self} draws different tokens of one group, and the "
                             f"smallest group has {least}, not {tokens}; fix tokens={least} or "
                             "less in the grid, or leave small groups out")
        # A token chosen evenly is of a group chosen in proportion to its size.
        chosen = self.groups[rng.integers(len(self.q), size=blocks)]
        drawn = np.empty((blocks, tokens), dtype=np.int64)
        for block, group in enumerate(chosen):
            drawn[block] = rng.choice(self.members[group], tokens, replace=False)
        return self.q[drawn], self.k[drawn]

    def moments(self, d_k: int) -> Moments:
        """Those of the arrays as a whole population: sums over n_tokens, not n_tokens − 1."""
        self._require_width(d_k)
        (q, k), tokens = self.centred, len(self.q)
        return Moments(self.q.mean(axis=0), self.k.mean(axis=0),
                       q.T @ q / tokens, k.T @ k / tokens, q.T @ k / tokens)

    def block_moments(self, d_k: int, tokens: int, of: Values, width: int) -> BlockMoments | None:
        """Exact for a group chosen in proportion to its size, and different tokens of it."""
        least = 2 if of == "other" else 1
        if of not in ("other", "matched") or not least <= tokens <= min(map(len, self.members)):
            return None
        values = [self.q[i, :width] @ self.k[i, :width].T for i in self.members]
        draws, shares = of_pairs, np.array([len(i) for i in self.members]) / len(self.q)
        if of == "matched":
            draws, values = of_tokens, [s.diagonal() for s in values]
        mean = float(shares @ [draws(s, tokens).mean for s in values])
        means = [draws(s - mean, tokens) for s in values]
        squares = [draws((s - mean) ** 2, tokens) for s in values]
        variance = float(shares @ [each.mean for each in squares])
        return BlockMoments(mean, variance, float(shares @ [each.square for each in means]),
                            float(shares @ [each.square for each in squares]) - variance**2)

    def through(self, function: Callable[[Array], Array]) -> "Measured":
        return replace(self, q=function(self.q), k=function(self.k))

    def _require_width(self, d_k: int) -> None:
        if d_k != self.d_k:
            raise ValueError(f"the law {self} has the width {self.d_k} of its arrays, not {d_k}; "
                             f"use d_k={self.d_k} in the grid")


def measured(
    q: Any, k: Any, groups: Any = None, name: str = "arrays", broken: bool = False
) -> Measured:
    """The law of tokens drawn again from arrays q and k, (n_tokens, d_k).

    ``groups``, (n_tokens,) whole numbers such as the sentence of each token, keeps tokens that
    belong together in one block. ``broken=True`` forgets them, so that tokens are independent and
    every moment of a token stays: what differs then is due to the dependence between tokens. To
    part a token's query from its own key as well, use ``laws.independent(law, law)``.
    Raises ValueError for arrays that cannot be queries and keys (see ``laws.arrays.checked``).

    >>> law = measured([[1.0], [2.0], [3.0], [5.0]], [[1.0], [0.0], [0.0], [2.0]], [0, 0, 1, 1])
    >>> law.moments(1).mean_q, len(law.draw(np.random.default_rng(0), 7, 2, 1)[0])
    (array([2.75]), 7)
    """
    if not (isinstance(name, str) and name):
        raise ValueError(f"measured(name={name!r}): the name must be a text that is not empty; "
                         'use e.g. "layer0-head3"')
    q, k, groups = checked(q, k, groups)
    if broken:
        groups = None
    digest = hashlib.blake2b(repr(q.shape).encode(), digest_size=16)
    for array in (q, k) if groups is None else (q, k, groups):
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        array.setflags(write=False)
    return Measured(name, digest.hexdigest(), q, k, groups)


def measured_file(
    *paths: File, q: str | None = None, k: str | None = None, groups: str | None = None,
    name: str | None = None, broken: bool = False,
) -> Measured:
    """The same from an .npz archive, in which q, k and groups name the arrays (default: q and k).

    Or from .npy files of q, k and perhaps the groups, in this order. The law's name is the first
    file's unless ``name`` is given. Nothing is unpickled. Raises ValueError.
    """
    names = None
    if (q, k, groups) != (None, None, None):
        names = [q or "q", k or "k", *([groups] if groups else [])]
    arrays = read_arrays(paths, names)
    return measured(*arrays, name=name or Path(paths[0]).stem, broken=broken)


@lru_cache(maxsize=1)
def _minilm() -> dict[str, NDArray[Any]]:
    with as_file(files("mcverify") / "data" / "minilm_qk.npz") as path, np.load(path) as archive:
        return dict(archive)


def minilm(head: str, broken: bool = False) -> Measured:
    """The law of a sentence encoder's head over 592 tokens of 21 sentences, the groups; d_k = 32.

    ``head`` is "trained_l0h0", "trained_l5h3", "trained_l0h2", or one of the same tokens with
    weights redrawn, "init_unit_l0h0", "init_unit_l5h3", "init_bert_l0h0". Source and licences:
    mcverify/data/README.md. Raises ValueError for another head.

    >>> law = minilm("trained_l0h0")
    >>> str(law), str(minilm("trained_l0h0", broken=True))
    ('measured[minilm-trained_l0h0-21groups-faf2fad4]', 'measured[minilm-trained_l0h0-bafa642a]')
    """
    arrays = _minilm()
    heads = [name[:-2] for name in arrays if name.endswith("_q")]
    if head not in heads:
        raise ValueError(f"minilm({head!r}): there is no such head; use one of {', '.join(heads)}")
    q, k = arrays[f"{head}_q"], arrays[f"{head}_k"]
    return measured(q, k, arrays["sentence"], f"minilm-{head}", broken)
