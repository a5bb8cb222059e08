"""Laws whose tokens depend on each other within a block.

A law declares the moments of one token. What the tokens of a block share shows in no such moment:
it changes how a block's scores vary together, and for ``topic`` the score of every pair.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import LawBase, known
from mcverify.laws.coordinates import Iid, normal
from mcverify.laws.independent_tokens import score_moments
from mcverify.laws.law import BlockMoments, Law, Moments, Pair, Rng, Values, Which
from mcverify.laws.parameters import Base, Correlation, Share
from mcverify.laws.side import Side, Views

Centred = Annotated[Iid, Base(moments=2)]


@dataclass(frozen=True)
class Memory(LawBase):
    """Each token follows the one before it: x_t = ρx_{t−1} + √(1−ρ²) z_t, for q and for k alone.

    Every coordinate has the mean and variance of ``base`` at every token, and correlation ρ^lag
    with itself ``lag`` tokens later; with a normal base its whole law is the same at every token.
    q and k are independent, so a pair at any lag has the variance that ``theory.dot_variance``
    gives; scores of one block are correlated, so the block's mean score varies more.
    """

    base: Centred
    rho: Correlation
    tokens_independent = False

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return remember(q, self.rho), remember(k, self.rho)

    def moments(self, d_k: int) -> Moments:
        return self.base.moments(d_k)

    def side(self, which: Which, d_k: int) -> Side:
        """A token mixes draws of the base, which leaves only the normal law as it is."""
        base = self.base.side(which, d_k)
        return base if self.base == normal else base.mixed()

    def normal_tokens(self, tokens: int) -> tuple[Array, Array, Array] | None:
        """Correlation ρ^lag."""
        if self.base != normal:
            return None
        at = np.arange(tokens)
        own = self.rho ** np.abs(at[:, None] - at)
        return own, own, 0 * own


def remember(z: Array, rho: float) -> Array:
    """x_0 = z_0 and x_t = ρx_{t−1} + √(1−ρ²) z_t along the tokens: (…, tokens, d_k) to the same.

    >>> remember(np.array([[1.0], [0.0], [5.0]]), 0.6)
    array([[1.  ],
           [0.6 ],
           [4.36]])
    """
    x = math.sqrt(1 - rho**2) * z
    x[..., 0, :] = z[..., 0, :]
    for t in range(1, z.shape[-2]):
        x[..., t, :] += rho * x[..., t - 1, :]
    return x


@dataclass(frozen=True)
class Topic(LawBase):
    """All tokens of a block share a vector: q_t = √(1−s) z_t + √s c, k_t = √(1−s) z'_t + √s c.

    c is one vector a block, s the ``strength``. A query is tied to the key of every token alike,
    its own or another's: all pairs have mean s·d_k and the same law, whatever the number of
    tokens. ``theory.dot_mean`` and ``dot_variance`` take different tokens for independent and do
    not hold; ``theory.topic_mean``, ``topic_variance`` and ``matched_variance`` do.
    """

    base: Centred
    strength: Share
    coupled = True
    tokens_independent = False

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        common = math.sqrt(self.strength) * self.base.sample(rng, (blocks, 1, d_k))
        own = math.sqrt(1 - self.strength)
        return own * q + common, own * k + common

    def joint(self, d_k: int) -> Views | None:
        """q and k of any two tokens as images of the same (z, z', c)."""
        own, common = (math.sqrt(s) * np.eye(d_k) for s in (1 - self.strength, self.strength))
        return self.base.side("q", 3 * d_k).views(np.hstack([own, 0 * own, common]),
                                                  np.hstack([0 * own, own, common]))

    def normal_tokens(self, tokens: int) -> tuple[Array, Array, Array] | None:
        """What tokens share, and their own."""
        if self.base != normal:
            return None
        common = np.full((tokens, tokens), self.strength)
        own = common + (1 - self.strength) * np.eye(tokens)
        return own, own, common

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        return replace(base, cross=self.strength * base.cov_q)

    def side(self, which: Which, d_k: int) -> Side:
        """As for ``memory``."""
        base = self.base.side(which, d_k)
        if self.base == normal:
            return base
        views = self.joint(d_k)
        return base.mixed(views and views[0])


@dataclass(frozen=True)
class SharedQuery(LawBase):
    """One query for all tokens of a block; keys as ever.

    Each score has the law it has under ``base``, but the tokens² scores of a block are only
    tokens different ones, and given the query they are all of its length.
    """

    base: Annotated[Law, Base(coupled=False)]
    tokens_independent = False

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, _ = self.base.draw(rng, blocks, 1, d_k)
        _, k = self.base.draw(rng, blocks, tokens, d_k)
        return np.repeat(q, tokens, axis=1), k

    def moments(self, d_k: int) -> Moments:
        return self.base.moments(d_k)

    def side(self, which: Which, d_k: int) -> Side:
        return known(self.base).side(which, d_k)

    def block_moments(self, d_k: int, tokens: int, of: Values, width: int) -> BlockMoments | None:
        """Whichever pairs they are of, scores are one of each token, of the same query."""
        base = score_moments(self.base, d_k, width)
        if base is None or of == "q" or of == "k":
            return None
        square = base.variance**2
        own, shared = base.fourth - square, base.shared_query - square
        return BlockMoments(
            base.mean, base.variance, (base.variance + (tokens - 1) * base.query_share) / tokens,
            (own + (tokens - 1) * shared) / tokens)


memory = Memory
topic = Topic
shared_query = SharedQuery
