"""From a distribution of one coordinate to a law whose coordinates are all independent."""

import hashlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcverify.laws.law import Array, Moments

Sample = Callable[[np.random.Generator, tuple[int, ...]], Array]


@dataclass(frozen=True)
class Iid:
    """Every coordinate of every query and key is an independent draw of one distribution.

    Attributes
    ----------
    name : the readable name; equal names mean equal laws.
    sample : ``sample(rng, shape)`` draws an array of coordinates.
    mean, variance : of a coordinate (nan, inf where they do not exist).
    fourth_moment : the standardised fourth moment κ = E((x − mean)/std)⁴; the normal law has 3.
    finite_moments : the order below which absolute moments exist.
    symmetric : known to be symmetric about its mean (about 0, where it has no mean).
    """

    name: str
    sample: Sample = field(compare=False, repr=False)
    fourth_moment: float = field(compare=False)
    mean: float = field(default=0.0, compare=False)  # by its name: nan is not equal to itself
    variance: float = field(default=1.0, compare=False)
    finite_moments: float = math.inf
    symmetric: bool = False
    coupled: bool = field(default=False, init=False)

    def __str__(self) -> str:
        return self.name

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        """Fresh (q, k), each (blocks, tokens, d_k), all coordinates independent."""
        shape = (blocks, tokens, d_k)
        return self.sample(rng, shape), self.sample(rng, shape)

    def moments(self, d_k: int) -> Moments:
        """Mean and variance along every coordinate; nothing is correlated with anything."""
        mean = np.full(d_k, self.mean)
        cov = np.diag(np.full(d_k, self.variance))
        return Moments(mean, mean, cov, cov, np.zeros((d_k, d_k)))


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    # One random bit a sign: an order of magnitude faster than drawing integers.
    count = math.prod(shape)
    bits = np.unpackbits(np.frombuffer(rng.bytes((count + 7) // 8), np.uint8), count=count)
    return (2.0 * bits.astype(np.float64) - 1.0).reshape(shape)


def _laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    # A signed exponential takes a third of the time of Generator.laplace, which needs a logarithm.
    x = rng.standard_exponential(shape)
    x *= math.sqrt(0.5) * _signs(rng, shape)
    return x


normal = Iid("normal", lambda rng, shape: rng.standard_normal(shape), 3.0, symmetric=True)
rademacher = Iid("rademacher", _signs, 1.0, symmetric=True)
uniform = Iid("uniform", lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), shape), 1.8,
              symmetric=True)
laplace = Iid("laplace", _laplace, 6.0, symmetric=True)
exponential = Iid("exponential", lambda rng, shape: rng.standard_exponential(shape) - 1.0, 9.0)

STANDARD = (normal, rademacher, uniform, laplace)


def student_t(df: float) -> Iid:
    """Student's t, scaled to variance 1 where it has a variance (df > 2), raw otherwise.

    Absolute moments exist below order ``df``. Raises ValueError unless 0.05 ≤ df < inf.

    >>> str(student_t(5)), student_t(5).fourth_moment, student_t(5).finite_moments
    ('student_t-5', 9.0, 5.0)
    """
    if not 0.05 <= df < math.inf:
        raise ValueError(f"student_t(df={df}): df must be at least 0.05, below which draws "
                         "overflow, and finite; use laws.normal for the limit")
    scale = math.sqrt((df - 2) / df) if df > 2 else 1.0
    return Iid(
        f"student_t-{df:.12g}",
        lambda rng, shape: scale * rng.standard_t(df, shape),
        fourth_moment=3 + 6 / (df - 4) if df > 4 else math.inf,
        mean=0.0 if df > 1 else math.nan,
        variance=1.0 if df > 2 else math.inf,
        finite_moments=float(df),
        symmetric=True,
    )


def sparse(share: float) -> Iid:
    """Zero, but for a ``share`` of the coordinates that are N(0, 1/share): variance 1.

    Raises ValueError unless 0 < share <= 1.

    >>> str(sparse(0.1)), round(sparse(0.1).fourth_moment, 12)
    ('sparse-0.1', 30.0)
    """
    if not 0 < share <= 1:
        raise ValueError(f"sparse(share={share}): the share of coordinates that are not 0 must be "
                         "above 0 and at most 1; use e.g. sparse(0.1)")
    scale = 1 / math.sqrt(share)

    def sample(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.where(rng.random(shape) < share, scale * rng.standard_normal(shape), 0.0)

    return Iid(f"sparse-{share:.12g}", sample, fourth_moment=3 / share, symmetric=True)


def iid(distribution: Any, raw: bool = False) -> Iid:
    """The law of a frozen ``scipy.stats`` distribution, standardised unless ``raw=True``.

    Mean, variance and fourth moment are taken from it; the order of its finite moments is read
    off its tails. Raises TypeError for anything else, ValueError when it cannot be standardised.

    >>> from scipy import stats
    >>> law = iid(stats.gamma(4))
    >>> str(law), law.mean, law.variance, law.fourth_moment
    ('iid[gamma-4]', 0.0, 1.0, 4.5)
    """
    if not (hasattr(distribution, "dist") and hasattr(distribution, "rvs")):
        raise TypeError(f"iid({distribution!r}): takes a frozen scipy.stats distribution; "
                        "freeze it by calling it, e.g. scipy.stats.gamma(4)")
    mean, variance, _, excess = (float(value) for value in distribution.stats(moments="mvsk"))
    if raw:
        shift, scale = 0.0, 1.0
    elif math.isfinite(mean) and 0 < variance < math.inf:
        shift, scale = mean, math.sqrt(variance)
    else:
        raise ValueError(f"iid({_frozen_name(distribution)}): mean {mean:.12g} and variance "
                         f"{variance:.12g} cannot be standardised; use raw=True")

    def sample(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        drawn = np.asarray(distribution.rvs(size=shape, random_state=rng), dtype=np.float64)
        return (drawn - shift) / scale

    return Iid(
        f"{'raw' if raw else 'iid'}[{_frozen_name(distribution)}]",
        sample,
        fourth_moment=excess + 3,
        mean=mean if raw else 0.0,
        variance=variance if raw else 1.0,
        finite_moments=tail_index(distribution),
    )


def _frozen_name(distribution: Any) -> str:
    args = [f"{value:.12g}" for value in distribution.args]
    named = [f"{name}:{value:.12g}" for name, value in sorted(distribution.kwds.items())]
    told = []
    if type(distribution.dist).__name__ in ("rv_sample", "rv_histogram"):
        # Made from a table, it has no parameters to be told apart by: its quantiles do it.
        quantiles = np.asarray(distribution.ppf((np.arange(512) + 0.5) / 512), dtype=np.float64)
        told = [hashlib.blake2b(quantiles.tobytes(), digest_size=4).hexdigest()]
    return "-".join([distribution.dist.name, *args, *named, *told])


def tail_index(distribution: Any) -> float:
    """The a of the heavier tail P(abs(x) > u) ~ u^−a, inf for tails lighter than any power.

    Moments exist below order a. For a continuous law it is read off the quantiles at 1e-50 and
    1e-100 (Student t gives its df), so a law that only looks heavy there, such as a wide
    lognormal, gets a finite order: too few moments declared is the safe side. Where quantiles
    give out or stand still, and for discrete laws, the moments themselves are asked.

    >>> from scipy import stats
    >>> [round(tail_index(law), 6) for law in (stats.t(3), stats.cauchy(), stats.norm())]
    [3.0, 1.0, inf]
    """
    if not hasattr(distribution.dist, "pdf"):
        return _moments_by_value(distribution)
    near, far = 1e-50, 1e-100
    left, right = distribution.support()
    index = math.inf
    for end, quantile in ((left, distribution.ppf), (right, distribution.isf)):
        if math.isfinite(end):
            continue  # no tail on this side
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of quantiles that give out
            inner, outer = abs(float(quantile(near))), abs(float(quantile(far)))
        if math.inf > outer > inner > 0:
            index = min(index, math.log(near / far) / math.log(outer / inner))
        else:
            index = min(index, _moments_by_value(distribution))
    return index if index < 30 else math.inf  # an exponential tail reads as 115/ln 2 = 166


def _moments_by_value(distribution: Any) -> float:
    with np.errstate(all="ignore"):
        return next((float(order) for order in range(1, 25)
                     if not math.isfinite(float(distribution.moment(order)))), math.inf)
