"""Laws whose queries and keys are those of another law, shifted or scaled."""

from dataclasses import dataclass, replace

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import LawBase, known
from mcverify.laws.law import Law, Moments, Pair, Rng, Which
from mcverify.laws.parameters import Positive, Real
from mcverify.laws.side import Side, Views


@dataclass(frozen=True)
class Shifted(LawBase):
    """``mean`` added to every coordinate of q and of k."""

    base: Law
    mean: Real

    @property
    def key_is_query(self) -> bool:
        return known(self.base).key_is_query

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return q + self.mean, k + self.mean

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        return replace(base, mean_q=base.mean_q + self.mean, mean_k=base.mean_k + self.mean)

    def side(self, which: Which, d_k: int) -> Side:
        """Coordinates that are equal stay so; symmetry about 0 is lost."""
        base = known(self.base).side(which, d_k)
        image = base.image and replace(base.image, mean=base.image.mean + self.mean)
        return replace(base.mixed(image), symmetric=False, all_equal=base.all_equal)

    def joint(self, d_k: int) -> Views | None:
        base = known(self.base).joint(d_k)
        if base is None:
            return None
        q, k = (replace(image, mean=image.mean + self.mean) for image in base)
        return q, k


@dataclass(frozen=True)
class Scaled(LawBase):
    """The queries of a law times ``std_q``, its keys times ``std_k``: variances that are not 1."""

    base: Law
    std_q: Positive
    std_k: Positive

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return self.std_q * q, self.std_k * k

    def moments(self, d_k: int) -> Moments:
        base, a, b = self.base.moments(d_k), self.std_q, self.std_k
        return Moments(a * base.mean_q, b * base.mean_k, a * a * base.cov_q, b * b * base.cov_k,
                       a * b * base.cross)

    def side(self, which: Which, d_k: int) -> Side:
        """A positive factor changes neither symmetries nor which coordinates are equal."""
        base, std = known(self.base).side(which, d_k), getattr(self, f"std_{which}")
        atoms, sizes = base.atoms, base.sizes

        def larger(p: int, b: Array) -> Pair:
            assert sizes is not None
            inside, beyond = sizes(p, b / std)
            return std**p * inside, beyond

        return replace(base, atoms=atoms and tuple((std * value, p) for value, p in atoms),
                       sizes=sizes and larger, image=base.mapped(np.full(d_k, std)),
                       longest=std * base.longest, axes=None)

    def joint(self, d_k: int) -> Views | None:
        base, stds = known(self.base).joint(d_k), np.full((2, d_k), [[self.std_q], [self.std_k]])
        return base and (base[0].mapped(stds[0]), base[1].mapped(stds[1]))


shifted = Shifted
scaled = Scaled
