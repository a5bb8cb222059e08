"""Laws whose queries and keys are independent of each other, or tied token by token."""

import math
from dataclasses import dataclass, replace

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import LawBase, known
from mcverify.laws.coordinates import Iid, draw_side, normal, rademacher
from mcverify.laws.fourth_powers import Powers
from mcverify.laws.law import Law, Moments, Pair, Rng, Which
from mcverify.laws.parameters import Correlation
from mcverify.laws.score_contraction import sum_of_alike
from mcverify.laws.side import Side, Views


@dataclass(frozen=True)
class Independent(LawBase):
    """The queries of one law with the keys of another, independent of each other."""

    q: Law
    k: Law

    @property
    def finite_moments(self) -> float:
        return min(self.q.finite_moments, self.k.finite_moments)

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q = draw_side(self.q, "q", rng, blocks, tokens, d_k)
        return q, draw_side(self.k, "k", rng, blocks, tokens, d_k)

    def moments(self, d_k: int) -> Moments:
        q, k = self.q.moments(d_k), self.k.moments(d_k)
        return Moments(q.mean_q, k.mean_k, q.cov_q, k.cov_k, np.zeros((d_k, d_k)))

    @property
    def tokens_independent(self) -> bool:
        return known(self.q).tokens_independent and known(self.k).tokens_independent

    def side(self, which: Which, d_k: int) -> Side:
        return known(getattr(self, which)).side(which, d_k)

    def powers(self, which: Which) -> Powers | None:
        return known(getattr(self, which)).powers(which)

    def normal_tokens(self, tokens: int) -> tuple[Array, Array, Array] | None:
        q, k = known(self.q).normal_tokens(tokens), known(self.k).normal_tokens(tokens)
        return q and k and (q[0], k[1], 0 * q[0])


@dataclass(frozen=True)
class Correlated(LawBase):
    """A token's key follows its own query, coordinate by coordinate: k = ρq + √(1−ρ²) z."""

    base: Iid
    rho: Correlation
    coupled = True

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, z = self.base.draw(rng, blocks, tokens, d_k)
        return q, self.rho * q + math.sqrt(1 - self.rho**2) * z

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        mean_k = base.mean_q * (self.rho + math.sqrt(1 - self.rho**2))
        return Moments(base.mean_q, mean_k, base.cov_q, base.cov_k, self.rho * base.cov_q)

    def side(self, which: Which, d_k: int) -> Side:
        """Keys mix two draws of the base, which leaves only the normal law as it is."""
        base = self.base.side(which, d_k)
        if which == "q" or self.base == normal:
            return base
        views = self.joint(d_k)
        return base.mixed(views and views[1])

    def joint(self, d_k: int) -> Views | None:
        eye, own = np.eye(d_k), math.sqrt(1 - self.rho**2)
        return self.base.side("q", 2 * d_k).views(np.hstack([eye, 0 * eye]),
                                                  np.hstack([self.rho * eye, own * eye]))

    def coordinate_products(self) -> tuple[float, ...] | None:
        """Of q(ρq + √(1−ρ²) z), by the binomial theorem."""
        m, own = self.base.central_moments, math.sqrt(1 - self.rho**2)
        if m is None or self.base.mean != 0:
            return None
        return tuple(sum(math.comb(n, j) * self.rho**j * own ** (n - j) * m[n + j] * m[n - j]
                         for j in range(n + 1)) for n in range(1, 5))


@dataclass(frozen=True)
class Identical(LawBase):
    """Every token's key is its own query: k = q."""

    base: Iid
    coupled = True
    key_is_query = True

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q = self.base.sample(rng, (blocks, tokens, d_k))
        return q, q

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        return Moments(base.mean_q, base.mean_q, base.cov_q, base.cov_q, base.cov_q)

    def side(self, which: Which, d_k: int) -> Side:
        return self.base.side(which, d_k)

    def joint(self, d_k: int) -> Views | None:
        return self.base.side("q", d_k).views(np.ones(d_k), np.ones(d_k))

    def coordinate_products(self) -> tuple[float, ...] | None:
        return Correlated(self.base, 1.0).coordinate_products()


@dataclass(frozen=True)
class RandomSign(LawBase):
    """k = q or k = −q, by one fair coin a token: uncorrelated with q, and all but known from it.

    q·k = ±‖q‖², so its variance is E‖q‖⁴ and not d_k. Scores with other tokens keep theirs.
    """

    base: Iid
    coupled = True

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q = self.base.sample(rng, (blocks, tokens, d_k))
        return q, rademacher.sample(rng, (blocks, tokens, 1)) * q

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        second = base.cov_q + np.outer(base.mean_q, base.mean_q)
        return Moments(base.mean_q, np.zeros(d_k), base.cov_q, second, np.zeros((d_k, d_k)))

    def side(self, which: Which, d_k: int) -> Side:
        """Of a symmetric base the keys are as the queries; of others a sign ties coordinates."""
        base = self.base.side(which, d_k)
        if which == "q" or base.symmetric:
            return base
        return replace(base, independent=False, atoms=None, sizes=None, image=None)

    def matched_moments(self, d_k: int, width: int) -> tuple[float, float, float] | None:
        """Of ±‖q‖²: those of ‖q‖² about 0."""
        if (products := Identical(self.base).coordinate_products()) is None:
            return None
        length, spread, third, fourth = sum_of_alike(products, width)
        fourth += 4 * length * third + 6 * length**2 * spread + length**4
        return 0.0, spread + length**2, fourth


independent = Independent
correlated = Correlated
identical = Identical
random_sign = RandomSign
