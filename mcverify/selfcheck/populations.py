"""Populations whose truth is known exactly: a block is one of some thousand, all equally likely.

A table of blocks, drawn once, is itself the law: samples draw its rows with replacement, and what
a statistic makes of every row, each as often, is the truth. That serves any statistic, a user's own
as well, and contaminated blocks, of which a sample may see none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify import laws
from mcverify.attention import scores
from mcverify.judge.measure import Reference, measure, resolve
from mcverify.judge.world import generator, world_of
from mcverify.statistic import (
    Statistic,
    kurtosis,
    mean,
    median,
    proportion,
    quantile,
    ratio,
    slope,
    std,
    variance,
)

Array = NDArray[np.float64]
Body = Callable[[Array], Any]

BLOCKS = 2**14  # of a table
OFTEN = 64  # times each row for the truth, so that no correction for a sample's own mean is left
MEAN = 3.0  # of what must be positive, in its standard deviations


@dataclass(frozen=True, eq=False)  # by identity: it holds an array
class Population:
    """A law of blocks on which the interval of a statistic is judged.

    Attributes
    ----------
    name : of the law.
    statistic : whose interval is judged.
    table : (blocks, ...): the rows that blocks are drawn from, all equally likely.
    contaminated : whether the truth hangs on blocks so rare that a sample may hold none.
    """

    name: str
    statistic: Statistic
    table: Array
    contaminated: bool = False

    @cached_property
    def truth(self) -> float:
        """What the statistic is of the law itself, on its own scale."""
        value, _ = self.statistic.influence(np.concatenate([self.table] * OFTEN))
        return value if self.statistic.back is None else self.statistic.back(value)

    @cached_property
    def basis(self) -> str:
        """What the interval rests on."""
        found = self.statistic.estimate(self.table, 0.5)
        default = {"proportion": "bound"}.get(self.statistic.name, "calibrated")
        return str(getattr(found, "basis", default))


def of_values(
    statistic: Statistic, name: str, shape: tuple[int, ...], body: Body = lambda x: x,
) -> Population:
    """Blocks of independent values of the law of that name, (blocks, *shape), through a body."""
    rng = generator(0, f"table of {name}", *shape)
    share, at = CONTAMINATED.get(name, (0.0, 0.0))
    values = LAWS.get(name, LAWS["normal"])(rng, (BLOCKS, *shape))
    values[:round(share * BLOCKS)] = at
    return Population(name, statistic, statistic.reduce(body(values)), share > 0)


def of_scores(statistic: Statistic, name: str, d_k: int) -> Population:
    """Blocks of all scores of 31 tokens, which share queries and keys."""
    rng = generator(0, f"table of {name}", d_k)
    return Population(name, statistic, statistic.reduce(
        scores(*laws.normal.draw(rng, BLOCKS, 31, d_k))))


def of_case(reference: Reference, seed: int) -> Population:
    """The blocks of a case, as a run with that seed measures them.

    Raises ValueError for a case whose law or body breaks.
    """
    case, parts = resolve(reference), []
    for first, blocks in world_of(case).chunks(0, BLOCKS):
        [part] = measure([reference], seed, first, blocks)
        if isinstance(part, str):
            raise ValueError(f"{case}: {part}")
        parts.append(part)
    return Population(str(case), case.claim.statistic, np.concatenate(parts))


LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(size=shape),
    "exponential": lambda rng, shape: rng.standard_exponential(shape) - 1,
    "student_t-9": lambda rng, shape: rng.standard_t(9, shape),
    "rademacher": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "40 % ones": lambda rng, shape: np.asarray(rng.random(shape) < 0.4, dtype=float),
    # −E in a third of the cases, 2E in the others: so heavy for its skewness that the second order
    # of the interval's expansion decides.
    "skew laplace": lambda rng, shape: rng.standard_exponential(shape) * np.where(
        rng.random(shape) < 1 / 3, -1, 2),
}
CONTAMINATED = {  # a share of the blocks, and where it lies, in standard deviations of the others
    "0.1 % at 90": (0.001, 90.0), "0.2 % at 60": (0.002, 60.0), "0.5 % at 40": (0.005, 40.0),
    "1 % at 40": (0.01, 40.0), "1 % at 14": (0.01, 14.0), "2 % at 14": (0.02, 14.0),
}


def _two_means(x: Array) -> Any:
    return x[:, :1] + MEAN, x[:, 1:] + MEAN


def _growing_mean(x: Array) -> Any:  # nearly without error at 1
    return [(1, MEAN + x[:, :1] / 10), (4, 4 * (MEAN + x[:, 1:]))]


def _growing_variance(x: Array) -> Any:
    return [(2, x[..., :2].sum(axis=-1)), (4, x.sum(axis=-1))]


def _populations() -> Iterator[tuple[Statistic, str, Callable[..., Population], Any]]:
    for name in ("normal", "laplace", "exponential", "student_t-9", "skew laplace", "rademacher"):
        yield mean, name, of_values, ((1,),)
    for name in ("normal", "laplace", "exponential"):
        yield variance, name, of_values, ((16,),)
    yield variance, "40 % ones", of_values, ((1,),)
    yield variance, "scores", of_scores, (2,)
    yield std, "laplace", of_values, ((16,),)
    yield kurtosis, "normal", of_values, ((256,),)
    yield kurtosis, "scores", of_scores, (8,)
    for name in ("normal", "exponential", "skew laplace", "rademacher"):
        yield ratio, name, of_values, ((2,), _two_means)
    for name in ("normal", "exponential"):
        yield slope(mean), name, of_values, ((2,), _growing_mean)
    for name in ("normal", "laplace", "rademacher"):
        yield slope(variance), name, of_values, ((16, 4), _growing_variance)
    for name in ("normal", "exponential", "rademacher", *CONTAMINATED):
        yield proportion, name, of_values, ((1,), lambda x: x >= 1)
    for statistic in (median, quantile(0.9)):
        for name in ("normal", *CONTAMINATED):
            yield statistic, name, of_values, ((1,),)
        yield statistic, "exponential", of_values, ((4,),)
    for name in CONTAMINATED:
        yield mean, name, of_values, ((1,),)
    yield variance, "1 % at 40", of_values, ((16,),)


POPULATIONS: dict[tuple[str, str], Callable[[], Population]] = {
    (statistic.name, name): partial(builder, statistic, name, *arguments)
    for statistic, name, builder, arguments in _populations()}
