"""Laws of one coordinate from frozen ``scipy.stats`` distributions."""

import hashlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.coordinates import Iid
from mcverify.laws.law import Rng, require

# Where the distribution functions of unknown classes are compared: to ±1.6e6, in steps of 6 %.
GRID = np.sinh(np.linspace(-15, 15, 513))


@dataclass(frozen=True)
class Draws:
    """Draws of a frozen distribution, less ``shift`` and over ``scale``; equal by ``identity``."""

    distribution: Any = field(compare=False, repr=False)
    identity: str
    shift: float = 0.0
    scale: float = 1.0

    def __call__(self, rng: Rng, shape: tuple[int, ...]) -> Array:
        drawn = np.asarray(self.distribution.rvs(size=shape, random_state=rng), dtype=np.float64)
        return (drawn - self.shift) / self.scale


def iid(distribution: Any, raw: bool = False) -> Iid:
    """The law of a frozen ``scipy.stats`` distribution, standardised unless ``raw=True``.

    Moments up to the fourth are taken from it; the order of its finite moments is read off its
    tails. The name holds the parameters, and a digest of whatever else is drawn from: a table, or
    a class that is not SciPy's. Raises TypeError for anything else, ValueError when it cannot be
    standardised or has arrays for parameters.

    >>> from scipy import stats
    >>> law = iid(stats.gamma(4))
    >>> str(law), law.mean, law.variance, law.fourth_moment
    ('standardised[gamma-4]', 0.0, 1.0, 4.5)
    >>> str(iid(stats.norm(1, scale=1.5), raw=True))
    'raw[norm-1-scale:1.5]'
    """
    if not (hasattr(distribution, "dist") and hasattr(distribution, "rvs")):
        raise TypeError(f"iid({distribution!r}): takes a frozen scipy.stats distribution; "
                        "freeze it by calling it, e.g. scipy.stats.gamma(4)")
    name = _name(distribution)
    identity = f"{name} {_digest(*_code_of(type(distribution.dist)))}"
    mean, variance, skewness, excess = map(float, distribution.stats(moments="mvsk"))
    if raw:
        return Iid(f"raw[{name}]", Draws(distribution, identity), excess + 3, mean, variance,
                   tail_index(distribution), skewness=skewness)
    require(math.isfinite(mean) and 0 < variance < math.inf,
            f"iid({name}): mean {mean:.12g} and variance {variance:.12g} cannot be standardised; "
            "use raw=True")
    return Iid(f"standardised[{name}]", Draws(distribution, identity, mean, math.sqrt(variance)),
               excess + 3, finite_moments=tail_index(distribution), skewness=skewness)


def _name(distribution: Any) -> str:
    """What tells the distribution apart, and is the same in every process and on every machine."""
    dist, given = distribution.dist, [*distribution.args, *distribution.kwds.values()]
    require(all(np.ndim(value) == 0 for value in given),
            f"iid: {dist.name} has arrays for parameters; give a number for each")
    parts = [*map(_number, distribution.args),
             *(f"{name}:{_number(value)}" for name, value in sorted(distribution.kwds.items()))]
    if not _is_scipys_own(dist):
        with np.errstate(all="ignore"):
            cdf = np.asarray(distribution.cdf(GRID), dtype=np.float64)
        # Of a calculation the last digits differ from machine to machine; of what is given, none.
        told = [type(dist).__qualname__, *_data(vars(dist)), *(f"{value:.9f}" for value in cdf)]
        parts.append(_digest(*told))
    return "-".join([dist.name, *parts])


def _number(value: Any) -> str:
    """A parameter in 12 digits, or in as many as tell it apart."""
    short = f"{value:.12g}"
    return short if float(short) == value else repr(float(value))


def _is_scipys_own(dist: Any) -> bool:
    """Whether its name and parameters say it all, as of ``scipy.stats.gamma`` itself."""
    twin: Any = getattr(import_module("scipy.stats"), dist.name, None)
    return type(twin) is type(dist) and (twin.a, twin.b) == (dist.a, dist.b)


def _data(value: Any) -> Iterator[str]:
    """The numbers, texts and arrays in a value, without what is neither."""
    if isinstance(value, dict):
        for name in sorted(value):
            yield from (f"{name}={part}" for part in _data(value[name]))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _data(part)
    elif isinstance(value, str | bool | int | float | np.generic | np.ndarray):
        yield repr(np.asarray(value).tolist())


def _code_of(cls: type) -> Iterator[str]:
    """The code of the methods that a class and its parents add to SciPy's, with its constants."""
    for each in cls.__mro__:
        if each.__module__.partition(".")[0] == "scipy":
            return
        for name, value in sorted(vars(each).items()):
            if isinstance(value, FunctionType):
                cells = [cell.cell_contents for cell in value.__closure__ or ()]
                yield from (name, *_instructions(value.__code__), *_data(cells),
                            *_data(value.__defaults__))


def _instructions(code: CodeType) -> Iterator[str]:
    yield from (code.co_code.hex(), *code.co_names)
    for constant in code.co_consts:
        yield from _instructions(constant) if isinstance(constant, CodeType) else _data(constant)


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


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
