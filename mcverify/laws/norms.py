"""Laws of vectors after a norm that fixes their length: layer norm, RMS norm, unit norm."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, TypeGuard

import numpy as np

from mcverify.arrays import Array
from mcverify.attention import vectors
from mcverify.laws.law import Pair
from mcverify.laws.normed_alike import Products, normed_products
from mcverify.laws.normed_axes import Axes, normed
from mcverify.laws.parameters import NotNegative, Real
from mcverify.laws.side import Image, Side
from mcverify.laws.transforms import Transformed, alike


@dataclass(frozen=True)
class Normed(Transformed, ABC):
    """Every q and k over a length of its own, times one that is the same for all."""

    gain: Real = 1.0
    epsilon: NotNegative = 0.0

    centred: ClassVar[bool] = False  # whether the coordinates' mean is taken off first

    @abstractmethod
    def directed(self, image: Image, d_k: int) -> Image | None:
        """What of a vector with this image only the direction is kept of, if it has mean 0."""

    def square(self, d_k: int) -> float:
        """The mean square of the coordinates of a normed vector, but for epsilon."""
        return self.gain**2

    def longest(self, d_k: int) -> float:
        return math.sqrt(d_k * self.square(d_k))

    def axes(self, x: Side, d_k: int) -> Axes | None:
        image = None if self.epsilon or x.image is None else self.directed(x.image, d_k)
        if image is None or not (image.round and image.root.any()):
            return None
        root = np.diag(image.root) if image.root.ndim == 1 else image.root
        return normed(root, self.longest(d_k))

    def products(self, x: Side, d_k: int) -> Products | None:
        alike = x.symmetric and x.independent and d_k > 1 and not self.epsilon
        return normed_products(x.sizes, d_k, self.centred) if alike and x.sizes else None


@dataclass(frozen=True)
class LayerNorm(Normed):
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

    centred = True

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.layer_norm(x, self.gain, epsilon=self.epsilon), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        if d_k == 1:
            return np.zeros(1), np.zeros((1, 1))  # one coordinate is its own mean
        if not x.exchangeable:
            return _along(self.axes(x, d_k), d_k)
        variance = self.gain**2 * (1 - x.all_equal) if self.epsilon == 0 else math.nan
        return alike(d_k, 0.0, variance, covariance=-variance / (d_k - 1))

    def directed(self, image: Image, d_k: int) -> Image | None:
        return None if np.ptp(image.mean) > 0 else image.mapped(np.eye(d_k) - 1 / d_k)

    def image(self, x: Side, d_k: int) -> Image | None:
        """A direction that was uniform is so among vectors of mean 0, in d_k − 1 dimensions."""
        if self.epsilon or d_k == 1 or not _is_round(x.image) or np.ptp(x.image.mean) > 0:
            return None
        centring = np.eye(d_k) - 1 / d_k
        return _on_sphere(self.gain * math.sqrt(d_k / (d_k - 1)) * centring, d_k - 1)


@dataclass(frozen=True)
class RmsNorm(Normed):
    """Every q and k after ``vectors.rms_norm``, of length gain·√d_k with epsilon 0.

    Coordinates whose signs can be flipped and which can be exchanged, such as independent ones
    symmetric about 0, become uncorrelated ones of mean 0 and variance gain²·P, P the probability
    of a vector that is not 0.

    >>> from mcverify.laws import laplace
    >>> rms_norm(laplace, gain=2).moments(2).cov_q.tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.rms_norm(x, self.gain, self.epsilon), np.float64)

    def after(self, x: Side, d_k: int) -> Pair:
        if not (x.symmetric and x.exchangeable):
            return _along(self.axes(x, d_k), d_k, 0.0 if x.symmetric else math.nan)
        known = self.epsilon == 0
        return alike(d_k, 0.0, self.square(d_k) * (1 - x.all_zero) if known else math.nan)

    def directed(self, image: Image, d_k: int) -> Image | None:
        return None if image.mean.any() else image

    def image(self, x: Side, d_k: int) -> Image | None:
        """Coins stay coins, and a direction that was uniform is all that is left."""
        root = np.full(d_k, math.sqrt(self.square(d_k)))
        if self.epsilon:
            return None
        sizes = {abs(value) for value, _ in x.atoms or ()}
        if x.symmetric and len(sizes) == 1 and 0.0 not in sizes:
            return Image(root, np.zeros(d_k), third=0.0, fourth=1.0)
        return _on_sphere(root, d_k) if _is_round(x.image) and not x.image.mean.any() else None


@dataclass(frozen=True)
class UnitNorm(RmsNorm):
    """Every q and k after ``vectors.unit_norm``: scores are cosines. As rms_norm, over √d_k.

    >>> from mcverify.laws import normal
    >>> unit_norm(normal).moments(2).cov_q.tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    gain: Real = field(default=1.0, init=False)
    epsilon: NotNegative = field(default=0.0, init=False)

    def function(self, x: Array) -> Array:
        return np.asarray(vectors.unit_norm(x), np.float64)

    def square(self, d_k: int) -> float:
        return 1 / d_k


def _is_round(image: Image | None) -> TypeGuard[Image]:
    """Whether a vector less its mean has a direction that is uniform on the sphere."""
    return (image is not None and image.round and image.root.ndim == 1
            and bool(np.ptp(image.root) == 0 < abs(image.root[0])))


def _along(axes: Axes | None, d_k: int, covariance: float = math.nan) -> Pair:
    """Mean and covariance by the axes; without them, any two coordinates have this covariance."""
    if axes is None:
        return alike(d_k, 0.0 if covariance == 0 else math.nan, math.nan, covariance=covariance)
    return np.zeros(d_k), axes.cov


def _on_sphere(root: Array, dimensions: int) -> Image:
    # The fourth moments of a uniform direction u are those of normal z over E abs(z)^4, so √d·u
    # is as r·z with E r⁴ = d²/(d(d + 2)).
    return Image(root, np.zeros(len(root)), third=0.0, fourth=3.0,
                 scale_fourth=dimensions / (dimensions + 2), round=True)


layer_norm = LayerNorm
rms_norm = RmsNorm
unit_norm = UnitNorm
