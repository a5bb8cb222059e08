"""From a law to one whose coordinates, or whose queries and keys, depend on each other."""

import math
from dataclasses import dataclass, field

import numpy as np

from mcverify.laws.coordinates import Iid
from mcverify.laws.law import Array, Law, Moments


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _require_law(law: Law, name: str) -> None:
    _require(isinstance(law, Law), f"{name}: the base {law!r} is not a law; use laws.normal, or "
                                   "another value of mcverify.laws")


def _require_iid(law: Law, name: str) -> None:
    _require_law(law, name)
    _require(isinstance(law, Iid), f"{name}: the base law {law} must have independent coordinates; "
                                   "use laws.normal, or another law of one coordinate")


@dataclass(frozen=True)
class Shifted:
    """``mean`` added to every coordinate of q and of k."""

    base: Law
    mean: float

    def __post_init__(self) -> None:
        _require_law(self.base, "shifted")
        _require(math.isfinite(self.mean), f"shifted(mean={self.mean}): mean must be finite")

    @property
    def coupled(self) -> bool:
        return self.base.coupled

    @property
    def finite_moments(self) -> float:
        return self.base.finite_moments

    def __str__(self) -> str:
        return f"shifted[{self.base}-{self.mean:.12g}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return q + self.mean, k + self.mean

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        return Moments(base.mean_q + self.mean, base.mean_k + self.mean,
                       base.cov_q, base.cov_k, base.cross)


@dataclass(frozen=True)
class Independent:
    """The queries of one law with the keys of another, independent of each other."""

    q: Law
    k: Law
    coupled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _require_law(self.q, "independent")
        _require_law(self.k, "independent")

    @property
    def finite_moments(self) -> float:
        return min(self.q.finite_moments, self.k.finite_moments)

    def __str__(self) -> str:
        return f"independent[{self.q}-{self.k}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        shape = (blocks, tokens, d_k)
        # Only one side of each law is wanted; independent coordinates can be drawn for it alone.
        q = self.q.sample(rng, shape) if isinstance(self.q, Iid) else self.q.draw(rng, *shape)[0]
        k = self.k.sample(rng, shape) if isinstance(self.k, Iid) else self.k.draw(rng, *shape)[1]
        return q, k

    def moments(self, d_k: int) -> Moments:
        q, k = self.q.moments(d_k), self.k.moments(d_k)
        return Moments(q.mean_q, k.mean_k, q.cov_q, k.cov_k, np.zeros((d_k, d_k)))


@dataclass(frozen=True)
class Equicorrelated:
    """Any two coordinates of a vector have correlation ``rho``: x_i = √(1−ρ) z_i + √ρ c."""

    base: Iid
    rho: float
    coupled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _require_iid(self.base, "equicorrelated")
        _require(0 <= self.rho <= 1, f"equicorrelated(rho={self.rho}): rho must be between 0 and 1")

    @property
    def finite_moments(self) -> float:
        return self.base.finite_moments

    def __str__(self) -> str:
        return f"equicorrelated[{self.base}-{self.rho:.12g}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q, k = self.base.draw(rng, blocks, tokens, d_k + 1)  # the last column is the common part
        own, common = math.sqrt(1 - self.rho), math.sqrt(self.rho)
        return own * q[..., :-1] + common * q[..., -1:], own * k[..., :-1] + common * k[..., -1:]

    def moments(self, d_k: int) -> Moments:
        mean = np.full(d_k, self.base.mean * (math.sqrt(1 - self.rho) + math.sqrt(self.rho)))
        cov = self.base.variance * ((1 - self.rho) * np.eye(d_k) + self.rho)
        return Moments(mean, mean, cov, cov, np.zeros((d_k, d_k)))


@dataclass(frozen=True)
class Correlated:
    """A token's key follows its own query, coordinate by coordinate: k = ρq + √(1−ρ²) z."""

    base: Iid
    rho: float
    coupled: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _require_iid(self.base, "correlated")
        _require(-1 <= self.rho <= 1, f"correlated(rho={self.rho}): rho must be between -1 and 1")

    @property
    def finite_moments(self) -> float:
        return self.base.finite_moments

    def __str__(self) -> str:
        return f"correlated[{self.base}-{self.rho:.12g}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q, z = self.base.draw(rng, blocks, tokens, d_k)
        return q, self.rho * q + math.sqrt(1 - self.rho**2) * z

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        mean_k = base.mean_q * (self.rho + math.sqrt(1 - self.rho**2))
        return Moments(base.mean_q, mean_k, base.cov_q, base.cov_k, self.rho * base.cov_q)


@dataclass(frozen=True)
class Identical:
    """Every token's key is its own query: k = q."""

    base: Iid
    coupled: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _require_iid(self.base, "identical")

    @property
    def finite_moments(self) -> float:
        return self.base.finite_moments

    def __str__(self) -> str:
        return f"identical[{self.base}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q = self.base.sample(rng, (blocks, tokens, d_k))
        return q, q

    def moments(self, d_k: int) -> Moments:
        base = self.base.moments(d_k)
        return Moments(base.mean_q, base.mean_q, base.cov_q, base.cov_q, base.cov_q)


@dataclass(frozen=True)
class CommonScale:
    """All coordinates of a vector share a random factor r, drawn anew for each q and each k.

    r² = (df − 2)/χ²(df), so E r² = 1: with a normal base each vector is multivariate Student t
    of unit variance. Coordinates are uncorrelated, yet dependent.
    """

    base: Iid
    df: float
    coupled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _require_iid(self.base, "common_scale")
        _require(self.base.mean == 0, f"common_scale: the base law {self.base} must have mean 0; "
                                      "shift afterwards: shifted(common_scale(…), mean)")
        _require(self.df > 2, f"common_scale(df={self.df}): df must be above 2, else the scale "
                              "has no second moment")

    @property
    def finite_moments(self) -> float:
        return min(self.df, self.base.finite_moments)

    @property
    def scale_fourth_moment(self) -> float:
        """E r⁴, by how much the common factor thickens the tails (inf up to df = 4)."""
        return (self.df - 2) / (self.df - 4) if self.df > 4 else math.inf

    def __str__(self) -> str:
        return f"common_scale[{self.base}-{self.df:.12g}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        r_q, r_k = np.sqrt((self.df - 2) / rng.chisquare(self.df, (2, blocks, tokens, 1)))
        return r_q * q, r_k * k

    def moments(self, d_k: int) -> Moments:
        return self.base.moments(d_k)


shifted = Shifted
independent = Independent
equicorrelated = Equicorrelated
correlated = Correlated
identical = Identical
common_scale = CommonScale
