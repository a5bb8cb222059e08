"""Laws whose coordinates are all independent draws of one distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import scipy

from mcverify.arrays import Array
from mcverify.laws.base import LawBase
from mcverify.laws.fourth_powers import Powers
from mcverify.laws.law import Law, Moments, Pair, Rng, Which
from mcverify.laws.normed_alike import Sizes
from mcverify.laws.side import Image, Side

Sample = Callable[[Rng, tuple[int, ...]], Array]


@dataclass(frozen=True)
class Iid(LawBase):
    """Every coordinate of every query and key is an independent draw of one distribution.

    Attributes
    ----------
    name : the readable name; it must tell the law apart, as the random stream descends from it.
    sample : ``sample(rng, shape)`` draws an array of coordinates. Laws are equal if name and
        sampler are.
    mean, variance : of a coordinate (nan, inf where they do not exist).
    fourth_moment : the standardised fourth moment κ = E((x − mean)/std)⁴; the normal law has 3.
    finite_moments : the order below which absolute moments exist.
    symmetric : known to be symmetric about its mean (about 0, where it has no mean).
    skewness : the standardised third moment; nan where it is not known, unless symmetric.
    atoms : values that have a probability of their own, with it; () where none has, None where
        it is not known.
    sizes : as in ``Side``.
    higher : the standardised moments of the orders 5 to 8, where they are known.
    round : vectors of any d_k have a direction that is uniform on the sphere: the normal law.
    """

    name: str
    sample: Sample = field(repr=False)
    fourth_moment: float = field(compare=False)
    mean: float = field(default=0.0, compare=False)  # by its name: nan is not equal to itself
    variance: float = field(default=1.0, compare=False)
    finite_moments: float = math.inf
    symmetric: bool = False
    skewness: float = field(default=math.nan, compare=False)
    atoms: tuple[tuple[float, float], ...] | None = field(default=None, compare=False)
    sizes: Sizes | None = field(default=None, compare=False, repr=False)
    higher: tuple[float, ...] | None = field(default=None, compare=False)
    round: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def central_moments(self) -> tuple[float, ...] | None:
        """E (x − mean)^n of a coordinate, for n = 0 to 8; None where they are not all known.

        >>> rademacher.central_moments
        (1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
        """
        third = 0.0 if self.symmetric else self.skewness
        if self.higher is None or not math.isfinite(third):
            return None
        standard = (1.0, 0.0, 1.0, third, self.fourth_moment, *self.higher)
        return tuple(moment * self.variance ** (n / 2) for n, moment in enumerate(standard))

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        """Fresh (q, k), each (blocks, tokens, d_k), all coordinates independent."""
        shape = (blocks, tokens, d_k)
        return self.sample(rng, shape), self.sample(rng, shape)

    def moments(self, d_k: int) -> Moments:
        """Mean and variance along every coordinate; nothing is correlated with anything."""
        mean = np.full(d_k, self.mean)
        cov = np.diag(np.full(d_k, self.variance))
        return Moments(mean, mean, cov, cov, np.zeros((d_k, d_k)))

    def side(self, which: Which, d_k: int) -> Side:
        """All orders alike, and all signs if coordinates are symmetric about 0."""
        symmetric = self.symmetric and not abs(self.mean) > 0  # nan: no mean
        known = Side(True, symmetric, True, sizes=self.sizes, image=self._image(d_k))
        if self.atoms is None:
            return known
        equal = sum(share**d_k for _, share in self.atoms)
        zero = dict(self.atoms).get(0.0, 0.0) ** d_k
        discrete = math.isclose(sum(share for _, share in self.atoms), 1)
        return replace(known, all_equal=equal, all_zero=zero,
                       atoms=self.atoms if discrete else None)

    def powers(self, which: Which) -> Powers | None:
        moments = self.central_moments
        return Powers(moments) if moments and self.mean == 0 else None

    def normal_tokens(self, tokens: int) -> tuple[Array, Array, Array] | None:
        if not (self.round and self.mean == 0):
            return None
        own = self.variance * np.eye(tokens)
        return own, own, 0 * own

    def _image(self, d_k: int) -> Image | None:
        if not (self.variance > 0 and math.isfinite(self.fourth_moment)):
            return None
        third = 0.0 if self.symmetric else self.skewness
        return Image(np.full(d_k, math.sqrt(self.variance)), np.full(d_k, self.mean), third,
                     self.fourth_moment, round=self.round)


def _normal(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape)  # which a generator may have a method of its own for


def _uniform(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)


def _exponential(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.standard_exponential(shape) - 1.0


# Every byte's eight random bits as signs.
SIGNS = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1.0


def _signs(rng: Rng, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    drawn = np.frombuffer(rng.bytes((count + 7) // 8), np.uint8)
    return np.take(SIGNS, drawn, axis=0).reshape(-1)[:count].reshape(shape)


def _laplace(rng: Rng, shape: tuple[int, ...]) -> Array:
    # A signed exponential takes a third of the time of Generator.laplace, which needs a logarithm.
    x, signs = rng.standard_exponential(shape), _signs(rng, shape)
    signs *= math.sqrt(0.5)
    x *= signs
    return x


def _normal_sizes(p: int, b: Array) -> Pair:
    inside = math.prod(range(p - 1, 0, -2)) * scipy.special.gammainc((p + 1) / 2, b**2 / 2)
    return inside, scipy.special.erfc(b / math.sqrt(2))


def _laplace_sizes(p: int, b: Array) -> Pair:
    inside = math.factorial(p) / 2 ** (p / 2) * scipy.special.gammainc(p + 1, math.sqrt(2) * b)
    return inside, np.exp(-math.sqrt(2) * b)


def _uniform_sizes(p: int, b: Array) -> Pair:
    share = np.minimum(b / math.sqrt(3), 1.0)
    return 3 ** (p / 2) / (p + 1) * share ** (p + 1), 1 - share


normal = Iid("normal", _normal, 3.0, symmetric=True, atoms=(), sizes=_normal_sizes,
             higher=(0.0, 15.0, 0.0, 105.0), round=True)
rademacher = Iid("rademacher", _signs, 1.0, symmetric=True, atoms=((-1.0, 0.5), (1.0, 0.5)),
                 higher=(0.0, 1.0, 0.0, 1.0))
uniform = Iid("uniform", _uniform, 1.8, symmetric=True, atoms=(), sizes=_uniform_sizes,
              higher=(0.0, 27 / 7, 0.0, 9.0))
laplace = Iid("laplace", _laplace, 6.0, symmetric=True, atoms=(), sizes=_laplace_sizes,
              higher=(0.0, 90.0, 0.0, 2520.0))
exponential = Iid("exponential", _exponential, 9.0, skewness=2.0, atoms=(),
                  higher=(44.0, 265.0, 1854.0, 14833.0))

STANDARD = (normal, rademacher, uniform, laplace)


def draw_side(law: Law, which: Which, rng: Rng, blocks: int, tokens: int, d_k: int) -> Array:
    """Fresh queries, or keys, (blocks, tokens, d_k); of an iid law nothing else is drawn."""
    if isinstance(law, Iid):
        return law.sample(rng, (blocks, tokens, d_k))
    return law.draw(rng, blocks, tokens, d_k)[which == "k"]
