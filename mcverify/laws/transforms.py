"""Laws of vectors after a norm, a clip or a quantiser: bounded functions of one vector.

Each acts on q and on k; for one side alone take ``independent(layer_norm(a), b)``. Moments are
declared where symmetry or a closed form gives them exactly, and are nan elsewhere.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np

from mcverify.attention import vectors
from mcverify.laws.law import Law, LawBase, Moments, Pair, Rng, Which, require, require_law, side
from mcverify.laws.side import Array, Image, Side, Sizes

FAR = 1e3  # nothing is left of the known tails here, and squares do not overflow


@dataclass(frozen=True)
class Transformed(LawBase, ABC):
    """Every query and key of ``base`` after a function of one vector that is bounded.

    A transform gives the function, and what the vector then has as moments.
    """

    base: Law

    def __post_init__(self) -> None:
        require_law(self.base, self.kind)
        for name in [field.name for field in fields(self)[1:]]:
            value = getattr(self, name)
            require(math.isfinite(value), f"{self.kind}({name}={value}): {name} must be finite")
        self.function(np.ones(1))  # refuses what it does not take

    @property
    def finite_moments(self) -> float:
        return math.inf

    @property
    def key_is_query(self) -> bool:
        return getattr(self.base, "key_is_query", False)

    @abstractmethod
    def function(self, x: Array) -> Array:
        """The transform of vectors on the last axis; the same shape."""

    @abstractmethod
    def after(self, x: Side, d_k: int) -> Pair:
        """Mean (d_k,) and covariance (d_k, d_k) of a vector of which x is known, transformed."""

    def image(self, x: Side, d_k: int) -> Image | None:
        """The image of a vector of which x is known, transformed; None where it is not known."""
        return None

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return self.function(q), self.function(k)

    def moments(self, d_k: int) -> Moments:
        mean_q, cov_q = self.after(side(self.base, "q", d_k), d_k)
        mean_k, cov_k = self.after(side(self.base, "k", d_k), d_k)
        cross = cov_q if self.key_is_query else np.full((d_k, d_k), math.nan if self.coupled else 0)
        return Moments(mean_q, mean_k, cov_q, cov_k, cross)

    def side(self, which: Which, d_k: int) -> Side:
        return Side(image=self.image(side(self.base, which, d_k), d_k))


@dataclass(frozen=True)
class LayerNorm(Transformed):
    """Every q and k after ``vectors.layer_norm``: bounded by gain·√d_k in length.

    Coordinates that can be exchanged get mean 0 and equal covariances, so with epsilon 0 the
    covariance is gain²·P·(d_k I − 11')/(d_k − 1), P the probability that not all are equal: 1 for
    continuous laws, 1 − 2^(1 − d_k) for coins. A common shift or scale changes nothing.

    >>> from mcverify.laws import normal, shifted
    >>> str(layer_norm(shifted(normal, 0.5), gain=2))
    'layer_norm[shifted[normal-0.5]-gain:2]'
    >>> layer_norm(shifted(normal, 0.5)).moments(2).cov_q
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    gain: float = 1.0
    epsilon: float = 0.0

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.layer_norm(x, self.gain, epsilon=self.epsilon), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        if d_k == 1:
            return np.zeros(1), np.zeros((1, 1))  # one coordinate is its own mean
        if not x.exchangeable:
            return _diagonal(d_k, math.nan, math.nan, other=math.nan)
        variance = self.gain**2 * (1 - x.all_equal) if self.epsilon == 0 else math.nan
        return _diagonal(d_k, 0.0, variance, other=-variance / (d_k - 1))

    def image(self, x: Side, d_k: int) -> Image | None:
        """A direction that was uniform is so among vectors of mean 0, in d_k − 1 dimensions."""
        known = self.epsilon == 0 and d_k > 1 and _no_direction(x)
        if not known or x.image is None or np.ptp(x.image.mean) > 0:
            return None
        centring = np.eye(d_k) - 1 / d_k
        return _on_sphere(self.gain * math.sqrt(d_k / (d_k - 1)) * centring, d_k - 1)


@dataclass(frozen=True)
class RmsNorm(Transformed):
    """Every q and k after ``vectors.rms_norm``, of length gain·√d_k with epsilon 0.

    Coordinates whose signs can be flipped and which can be exchanged, such as independent ones
    symmetric about 0, become uncorrelated ones of mean 0 and variance gain²·P, P the probability
    of a vector that is not 0.

    >>> from mcverify.laws import laplace
    >>> rms_norm(laplace, gain=2).moments(2).cov_q.tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """

    gain: float = 1.0
    epsilon: float = 0.0

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.rms_norm(x, self.gain, self.epsilon), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        if not x.symmetric:
            return _diagonal(d_k, math.nan, math.nan, other=math.nan)
        known = x.exchangeable and self.epsilon == 0
        return _diagonal(d_k, 0.0, self.gain**2 * (1 - x.all_zero) if known else math.nan)

    def image(self, x: Side, d_k: int) -> Image | None:
        """Coins stay coins, and a direction that was uniform is all that is left."""
        root = np.full(d_k, self.gain)
        if self.epsilon != 0:
            return None
        if x.symmetric and x.atoms and len({abs(value) for value, _ in x.atoms} | {0.0}) == 2:
            return Image(root, np.zeros(d_k), third=0.0, fourth=1.0)
        centred = x.image is not None and not x.image.mean.any()
        return _on_sphere(root, d_k) if centred and _no_direction(x) else None


@dataclass(frozen=True)
class UnitNorm(Transformed):
    """Every q and k after ``vectors.unit_norm``: scores are cosines. As rms_norm, over √d_k.

    >>> from mcverify.laws import normal
    >>> unit_norm(normal).moments(2).cov_q.tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.unit_norm(x), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        mean, cov = RmsNorm(self.base).after(x, d_k)
        return mean, cov / d_k

    def image(self, x: Side, d_k: int) -> Image | None:
        image = RmsNorm(self.base).image(x, d_k)
        return image and image.mapped(np.full(d_k, d_k**-0.5))


@dataclass(frozen=True)
class Clipped(Transformed):
    """Every coordinate of q and k after ``vectors.clip``: at most ``bound`` in size.

    >>> from mcverify.laws import rademacher
    >>> str(clipped(rademacher, 0.5)), clipped(rademacher, 0.5).moments(1).cov_q.tolist()
    ('clipped[rademacher-0.5]', [[0.25]])
    """

    bound: float

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.clip(x, self.bound), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        return _one_by_one(self, x, d_k)

    def image(self, x: Side, d_k: int) -> Image | None:
        return _image_one_by_one(self, x, d_k)

    def power(self, sizes: Sizes, p: int) -> float:
        """E abs(x)^p of a coordinate, from the law of its size before."""
        bound = min(self.bound, FAR)
        inside, beyond = sizes(p, np.array(bound))
        return float(inside + bound**p * beyond)


@dataclass(frozen=True)
class Quantised(Transformed):
    """Every coordinate of q and k after ``vectors.quantise``: at most ``bound`` in size.

    >>> from mcverify.laws import rademacher
    >>> str(quantised(rademacher, 2, 3)), quantised(rademacher, 2, 3).moments(1).cov_q.tolist()
    ('quantised[rademacher-2-3]', [[0.0]])
    """

    bits: int
    bound: float

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.quantise(x, self.bits, self.bound), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        return _one_by_one(self, x, d_k)

    def image(self, x: Side, d_k: int) -> Image | None:
        return _image_one_by_one(self, x, d_k)

    def power(self, sizes: Sizes, p: int) -> float:
        """E abs(x)^p of a coordinate, from the law of its size before."""
        # Level j is passed with P(abs(x) > (j − 1/2)·step), and brings j^p − (j − 1)^p.
        j = np.arange(1, 2 ** (self.bits - 1))
        step = self.bound / len(j)
        _, beyond = sizes(p, np.minimum((j - 0.5) * step, FAR))
        return float(step * np.sum((j**p - (j - 1) ** p) * beyond) ** (1 / p)) ** p


def _even_moment(law: Clipped | Quantised, x: Side, p: int) -> float:
    """E f(x)^p of a coordinate, for the odd function f of the law; nan where it is not known."""
    if x.atoms is not None:
        values, shares = np.array(x.atoms).T
        return float(shares @ law.function(values) ** p)
    return math.nan if x.sizes is None else law.power(x.sizes, p)


def _one_by_one(law: Clipped | Quantised, x: Side, d_k: int) -> Pair:
    if not x.symmetric:
        return _diagonal(d_k, math.nan, math.nan, other=0.0 if x.independent else math.nan)
    return _diagonal(d_k, 0.0, _even_moment(law, x, 2))


def _image_one_by_one(law: Clipped | Quantised, x: Side, d_k: int) -> Image | None:
    variance = _even_moment(law, x, 2)
    if not (x.symmetric and x.independent and variance > 0):
        return None
    fourth = _even_moment(law, x, 4) / variance**2
    return Image(np.full(d_k, math.sqrt(variance)), np.zeros(d_k), third=0.0, fourth=fourth)


def _no_direction(x: Side) -> bool:
    """Whether the vector less its mean has a direction that is uniform on the sphere."""
    image = x.image
    return (image is not None and image.round and image.root.ndim == 1
            and bool(np.ptp(image.root) == 0 < abs(image.root[0])))


def _on_sphere(root: Array, dimensions: int) -> Image:
    # The fourth moments of a uniform direction u are those of normal z over E abs(z)^4, so √d·u
    # is as r·z with E r⁴ = d²/(d(d + 2)).
    return Image(root, np.zeros(len(root)), third=0.0, fourth=3.0,
                 scale_fourth=dimensions / (dimensions + 2), round=True)


def _diagonal(
    d_k: int, mean: float, variance: float, other: float = 0.0
) -> Pair:
    cov = np.full((d_k, d_k), other)
    np.fill_diagonal(cov, variance)
    return np.full(d_k, mean), cov


layer_norm = LayerNorm
rms_norm = RmsNorm
unit_norm = UnitNorm
clipped = Clipped
quantised = Quantised
