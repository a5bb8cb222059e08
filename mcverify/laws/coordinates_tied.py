"""Laws whose coordinates depend on each other within a vector, though q and k are independent."""

import math
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import Annotated

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import LawBase
from mcverify.laws.coordinates import Iid, normal, rademacher
from mcverify.laws.fourth_powers import Powers
from mcverify.laws.law import Moments, Pair, Rng, Which
from mcverify.laws.parameters import Base, Range, Share
from mcverify.laws.side import Image, Side


@dataclass(frozen=True)
class Equicorrelated(LawBase):
    """Any two coordinates of a vector have correlation ``rho``: x_i = √(1−ρ) z_i + √ρ c."""

    base: Iid
    rho: Share

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k + 1)  # the last column is the common part
        own, common = math.sqrt(1 - self.rho), math.sqrt(self.rho)
        return own * q[..., :-1] + common * q[..., -1:], own * k[..., :-1] + common * k[..., -1:]

    def moments(self, d_k: int) -> Moments:
        mean = np.full(d_k, self.base.mean * (math.sqrt(1 - self.rho) + math.sqrt(self.rho)))
        cov = self.base.variance * ((1 - self.rho) * np.eye(d_k) + self.rho)
        return Moments(mean, mean, cov, cov, np.zeros((d_k, d_k)))

    def side(self, which: Which, d_k: int) -> Side:
        """Coordinates are equal where their own parts are."""
        equal = 1.0 if self.rho == 1 else self.base.side(which, d_k).all_equal
        image = self.base.side(which, d_k + 1).mapped(_with_common_part(self.rho, d_k))
        return Side(exchangeable=True, all_equal=equal, image=image)


@dataclass(frozen=True)
class CommonScale(LawBase):
    """All coordinates of a vector share a random factor r, drawn anew for each q and each k.

    r² = (df − 2)/χ²(df), so E r² = 1: with a normal base each vector is multivariate Student t
    of unit variance. Coordinates are uncorrelated, yet dependent.
    """

    base: Annotated[Iid, Base(moments=1)]
    df: Annotated[float, Range(2, rule="above 2, else the scale has no second moment, and finite",
                               above=True, order=True)]

    @property
    def finite_moments(self) -> float:
        return min(self.df, self.base.finite_moments)

    @property
    def scale_fourth_moment(self) -> float:
        """E r⁴, by how much the common factor thickens the tails (inf up to df = 4)."""
        return _scale_fourth_moment(self.df)

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        r_q, r_k = np.sqrt((self.df - 2) / rng.chisquare(self.df, (2, blocks, tokens, 1)))
        return r_q * q, r_k * k

    def moments(self, d_k: int) -> Moments:
        return self.base.moments(d_k)

    def side(self, which: Which, d_k: int) -> Side:
        """A common factor ties coordinates, and leaves symmetries and which are equal."""
        base = self.base.side(which, d_k)
        return replace(base, independent=False, atoms=None, sizes=None,
                       image=_rescaled(base.image, self.scale_fourth_moment))

    def powers(self, which: Which) -> Powers | None:
        base = self.base.powers(which)
        if base is None or self.df <= 8:
            return None
        steps = [(self.df - 2) / (self.df - 2 * n) for n in range(1, 5)]
        return replace(base, scale=(1.0, *accumulate(steps, mul)))


@dataclass(frozen=True)
class MultivariateT(LawBase):
    """Student t vectors: any two coordinates have correlation ``rho`` and all share one scale.

    x = r·(√(1−ρ) z + √ρ c) with normal z and c and one r for the vector: the t copula with t
    marginals. r² = (df − 2)/χ²(df) gives variance 1; up to df = 2, where no variance exists,
    df/χ²(df). At ρ = 0 coordinates are uncorrelated but large together: ``common_scale``.
    """

    df: Annotated[float, Range(0, rule="positive and finite; use equicorrelated(normal, rho)",
                               above=True, order=True)]
    rho: Share

    @property
    def finite_moments(self) -> float:
        return self.df

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        shape = (2, blocks, tokens, 1)
        x = math.sqrt(1 - self.rho) * rng.standard_normal((*shape[:-1], d_k))
        x += math.sqrt(self.rho) * rng.standard_normal(shape)
        unit = self.df - 2 if self.df > 2 else self.df
        q, k = x * np.sqrt(unit / rng.chisquare(self.df, shape))
        return q, k

    def moments(self, d_k: int) -> Moments:
        mean = np.full(d_k, 0.0 if self.df > 1 else math.nan)
        if self.df <= 2:
            return Moments(mean, mean, *np.full((3, d_k, d_k), math.nan))
        cov = (1 - self.rho) * np.eye(d_k) + self.rho
        return Moments(mean, mean, cov, cov, np.zeros((d_k, d_k)))

    def side(self, which: Which, d_k: int) -> Side:
        common = _with_common_part(self.rho, d_k) if self.rho else np.ones(d_k)
        image = _rescaled(normal.side(which, d_k + bool(self.rho)).mapped(common),
                          _scale_fourth_moment(self.df))
        return Side(True, self.rho == 0, all_equal=float(self.rho == 1), all_zero=0.0, image=image)


@dataclass(frozen=True)
class SignProducts(LawBase):
    """d_k coins made of m = ⌈log₂(d_k + 1)⌉ independent ones: coordinate i is the product of those
    whose bits are set in i + 1.

    Any two coordinates of a vector are independent, since different non-empty products are; three
    are not, as the third is the product of the first two whenever its bits say so. q and k are
    independent, so Var(q·k) = d_k holds. But at d_k = 2^m − 1 the vectors are the rows of a
    Hadamard matrix without its constant column: q·k is d_k with probability 1/(d_k + 1), else −1.
    """

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        shape = (blocks, tokens, d_k.bit_length())
        return (subset_products(rademacher.sample(rng, shape), d_k),
                subset_products(rademacher.sample(rng, shape), d_k))

    def moments(self, d_k: int) -> Moments:
        return rademacher.moments(d_k)

    def side(self, which: Which, d_k: int) -> Side:
        return Side(longest=math.sqrt(d_k))


def subset_products(signs: Array, d_k: int) -> Array:
    """Products of the signs over the subsets 1 to d_k, as bits: (…, m) -> (…, d_k).

    >>> subset_products(np.array([-1.0, -1.0]), 3)
    array([-1., -1.,  1.])
    """
    m = signs.shape[-1]
    member = np.arange(1, d_k + 1) >> np.arange(m)[:, None] & 1  # (m, d_k)
    negative = (signs < 0) @ member.astype(np.float64)  # how many of a subset are −1
    return np.asarray(1 - 2 * (negative % 2))


def _with_common_part(rho: float, d_k: int) -> Array:
    """The root (d_k, d_k + 1) of coordinates that share their last part."""
    return np.hstack([math.sqrt(1 - rho) * np.eye(d_k), np.full((d_k, 1), math.sqrt(rho))])


def _scale_fourth_moment(df: float) -> float:
    """E r⁴ of r² = (df − 2)/χ²(df)."""
    return (df - 2) / (df - 4) if df > 4 else math.inf


def _rescaled(image: Image | None, scale_fourth: float) -> Image | None:
    if image is None or not math.isfinite(scale_fourth):
        return None
    # With E r³ unknown, so is the third moment, unless it is 0.
    return replace(image, scale_fourth=scale_fourth, third=0.0 if image.third == 0 else math.nan)


equicorrelated = Equicorrelated
common_scale = CommonScale
multivariate_t = MultivariateT
sign_products = SignProducts()
