"""From independent draws to coordinates that depend on each other where no covariance shows it."""

import math
from dataclasses import dataclass, field

import numpy as np

from mcverify.laws.coordinates import Iid, rademacher
from mcverify.laws.dependence import _require, _require_iid
from mcverify.laws.law import Array, Moments


@dataclass(frozen=True)
class RandomSign:
    """k = q or k = −q, by one fair coin a token: uncorrelated with q, and all but known from it.

    q·k = ±‖q‖², so its variance is E‖q‖⁴ and not d_k. Scores with other tokens keep theirs.
    """

    base: Iid
    coupled: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _require_iid(self.base, "random_sign")

    @property
    def finite_moments(self) -> float:
        return self.base.finite_moments

    def __str__(self) -> str:
        return f"random_sign[{self.base}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q = self.base.sample(rng, (blocks, tokens, d_k))
        return q, rademacher.sample(rng, (blocks, tokens, 1)) * q

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        second = base.cov_q + np.outer(base.mean_q, base.mean_q)
        return Moments(base.mean_q, np.zeros(d_k), base.cov_q, second, np.zeros((d_k, d_k)))


@dataclass(frozen=True)
class SignProducts:
    """d_k coins made of m = ⌈log₂(d_k + 1)⌉ independent ones: coordinate i is the product of those
    whose bits are set in i + 1.

    Any two coordinates of a vector are independent, since different non-empty products are; three
    are not, as the third is the product of the first two whenever its bits say so. q and k are
    independent, so Var(q·k) = d_k holds. But at d_k = 2^m − 1 the vectors are the rows of a
    Hadamard matrix without its constant column: q·k is d_k with probability 1/(d_k + 1), else −1.
    """

    finite_moments: float = field(default=math.inf, init=False)
    coupled: bool = field(default=False, init=False)

    def __str__(self) -> str:
        return "sign_products"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        shape = (blocks, tokens, d_k.bit_length())
        return (subset_products(rademacher.sample(rng, shape), d_k),
                subset_products(rademacher.sample(rng, shape), d_k))

    def moments(self, d_k: int) -> Moments:
        return rademacher.moments(d_k)


def subset_products(signs: Array, d_k: int) -> Array:
    """Products of the signs over the subsets 1 to d_k, as bits: (…, m) -> (…, d_k).

    >>> subset_products(np.array([-1.0, -1.0]), 3)
    array([-1., -1.,  1.])
    """
    m = signs.shape[-1]
    member = np.arange(1, d_k + 1) >> np.arange(m)[:, None] & 1  # (m, d_k)
    negative = (signs < 0) @ member.astype(np.float64)  # how many of a subset are −1
    return np.asarray(1 - 2 * (negative % 2))


@dataclass(frozen=True)
class MultivariateT:
    """Student t vectors: any two coordinates have correlation ``rho`` and all share one scale.

    x = r·(√(1−ρ) z + √ρ c) with normal z and c and one r for the vector: the t copula with t
    marginals. r² = (df − 2)/χ²(df) gives variance 1; up to df = 2, where no variance exists,
    df/χ²(df). At ρ = 0 coordinates are uncorrelated but large together: ``common_scale``.
    """

    df: float
    rho: float
    coupled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _require(0 < self.df < math.inf, f"multivariate_t(df={self.df}): df must be positive and "
                                         "finite; use equicorrelated(normal, rho)")
        _require(0 <= self.rho <= 1, f"multivariate_t(rho={self.rho}): rho must be between 0 and 1")

    @property
    def finite_moments(self) -> float:
        return self.df

    def __str__(self) -> str:
        return f"multivariate_t-{self.df:.12g}-{self.rho:.12g}"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
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


random_sign = RandomSign
sign_products = SignProducts()
multivariate_t = MultivariateT
