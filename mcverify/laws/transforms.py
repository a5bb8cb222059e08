"""Laws of vectors after a norm, a clip or a quantiser: bounded functions of one vector.

Each acts on q and on k; for one side alone take ``independent(layer_norm(a), b)``. Moments are
declared where symmetry or a closed form gives them exactly, and are nan elsewhere.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from mcverify.arrays import Array
from mcverify.attention import vectors
from mcverify.laws.base import LawBase, known
from mcverify.laws.law import BlockMoments, Law, Moments, Pair, Rng, Values, Which
from mcverify.laws.normed_alike import Products, Sizes
from mcverify.laws.normed_axes import Axes
from mcverify.laws.parameters import Positive, Range
from mcverify.laws.side import Image, Side

LARGEST_BOUND = 1e3  # nothing is left of the known tails here, and squares do not overflow


@dataclass(frozen=True)
class Transformed(LawBase, ABC):
    """Every query and key of ``base`` after a function of one vector that is bounded.

    A transform gives the function, and what the vector then has as moments.
    """

    base: Law

    @property
    def finite_moments(self) -> float:
        return math.inf

    @property
    def key_is_query(self) -> bool:
        return known(self.base).key_is_query

    @abstractmethod
    def function(self, x: Array) -> Array:
        """The transform of vectors on the last axis; the same shape."""

    @abstractmethod
    def after(self, x: Side, d_k: int) -> Pair:
        """Mean (d_k,) and covariance (d_k, d_k) of a vector of which x is known, transformed."""

    def image(self, x: Side, d_k: int) -> Image | None:
        """The image of a vector of which x is known, transformed; None where it is not known."""
        return None

    def axes(self, x: Side, d_k: int) -> Axes | None:
        """The axes of a vector of which x is known, transformed; None where it has none."""
        return None

    def products(self, x: Side, d_k: int) -> Products | None:
        """E of products of four coordinates of x, transformed, over its length to the fourth."""
        return None

    def longest(self, d_k: int) -> float:
        """A bound on the length of a transformed vector; inf where none is known."""
        return math.inf

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return self.function(q), self.function(k)

    def moments(self, d_k: int) -> Moments:
        mean_q, cov_q = self.after(known(self.base).side("q", d_k), d_k)
        mean_k, cov_k = self.after(known(self.base).side("k", d_k), d_k)
        cross = cov_q if self.key_is_query else np.full((d_k, d_k), math.nan if self.coupled else 0)
        return Moments(mean_q, mean_k, cov_q, cov_k, cross)

    def block_moments(self, d_k: int, tokens: int, of: Values, width: int) -> BlockMoments | None:
        """Tokens of arrays stay tokens of arrays."""
        law = known(self.base).through(self.function)
        return None if law is None else law.block_moments(d_k, tokens, of, width)

    def side(self, which: Which, d_k: int) -> Side:
        x = known(self.base).side(which, d_k)
        image = self.image(x, d_k)
        return Side(image=image, longest=self.longest(d_k),
                    axes=None if image else self.axes(x, d_k),
                    products=None if image else self.products(x, d_k))


@dataclass(frozen=True)
class OneByOne(Transformed, ABC):
    """A transform of each coordinate by the same odd function, so that symmetry about 0 stays."""

    @abstractmethod
    def power(self, sizes: Sizes, p: int) -> float:
        """E abs(f(x))^p of a coordinate, from the law of abs(x)."""

    def after(self, x: Side, d_k: int) -> Pair:
        if x.symmetric:
            return alike(d_k, 0.0, self._even_moment(x, 2))
        return alike(d_k, math.nan, math.nan, covariance=0.0 if x.independent else math.nan)

    def image(self, x: Side, d_k: int) -> Image | None:
        variance = self._even_moment(x, 2)
        if not (x.symmetric and x.independent and variance > 0):
            return None
        fourth = self._even_moment(x, 4) / variance**2
        return Image(np.full(d_k, math.sqrt(variance)), np.zeros(d_k), third=0.0, fourth=fourth)

    def _even_moment(self, x: Side, p: int) -> float:
        if x.atoms is not None:
            values, shares = np.array(x.atoms).T
            return float(shares @ self.function(values) ** p)
        return math.nan if x.sizes is None else self.power(x.sizes, p)


@dataclass(frozen=True)
class Clipped(OneByOne):
    """Every coordinate of q and k after ``vectors.clip``: at most ``bound`` in size.

    >>> from mcverify.laws import rademacher
    >>> str(clipped(rademacher, 0.5)), clipped(rademacher, 0.5).moments(1).cov_q.tolist()
    ('clipped[rademacher-0.5]', [[0.25]])
    """

    bound: Positive

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.clip(x, self.bound), np.float64)

    def power(self, sizes: Sizes, p: int) -> float:
        bound = min(self.bound, LARGEST_BOUND)
        inside, beyond = sizes(p, np.array(bound))
        return float(inside + bound**p * beyond)


@dataclass(frozen=True)
class Quantised(OneByOne):
    """Every coordinate of q and k after ``vectors.quantise``: at most ``bound`` in size.

    >>> from mcverify.laws import rademacher
    >>> str(quantised(rademacher, 2, 3)), quantised(rademacher, 2, 3).moments(1).cov_q.tolist()
    ('quantised[rademacher-2-3]', [[0.0]])
    """

    bits: Annotated[int, Range(2, 16, "a whole number from 2 to 16", whole=True)]
    bound: Positive

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.quantise(x, self.bits, self.bound), np.float64)

    def power(self, sizes: Sizes, p: int) -> float:
        # Level j is passed with P(abs(x) > (j − 1/2)·step), and brings j^p − (j − 1)^p.
        j = np.arange(1, 2 ** (self.bits - 1))
        step = self.bound / len(j)
        _, beyond = sizes(p, np.minimum((j - 0.5) * step, LARGEST_BOUND))
        return float(step * np.sum((j**p - (j - 1) ** p) * beyond) ** (1 / p)) ** p


def alike(d_k: int, mean: float, variance: float, covariance: float = 0.0) -> Pair:
    """Mean and covariance matrix of coordinates that are all alike, as any two of them are.

    >>> alike(2, 0.0, 3.0, -1.0)[1].tolist()
    [[3.0, -1.0], [-1.0, 3.0]]
    """
    cov = np.full((d_k, d_k), covariance)
    np.fill_diagonal(cov, variance)
    return np.full(d_k, mean), cov


clipped = Clipped
quantised = Quantised
