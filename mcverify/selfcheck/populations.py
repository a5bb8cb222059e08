"""Populations whose truth is known exactly: a block is one of many, all equally likely.

A table of blocks, drawn once, is itself the law: samples draw its rows with replacement, and what
a statistic makes of every row, each as often, is the truth. That serves any statistic, a user's own
as well, and contaminated blocks, of which a sample may see none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mcverify import laws
from mcverify import statistic as stat
from mcverify.arrays import Array
from mcverify.attention import scores
from mcverify.judge.reference import Reference, resolve
from mcverify.judge.sample import sample
from mcverify.judge.world import generator
from mcverify.statistic import Basis, Estimate, Known, Statistic
from mcverify.statistic.estimate import no_interval
from mcverify.statistic.moments import kurtosis_about
from mcverify.statistic.values import parts_of

Key = tuple[str, str, str]  # statistic, basis, law

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
    table : (blocks, ...): the block values that samples are drawn from, all equally likely.
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

    def estimate(self, sample: Array, error_rate: float) -> Estimate:
        """What the statistic says of a sample; where it breaks, no interval, as in a run."""
        try:
            return self.statistic.estimate(sample, error_rate)
        except ValueError as error:
            return no_interval(math.nan, math.nan, str(error))


def of_values(
    statistic: Statistic, basis: Basis, name: str, shape: tuple[int, ...], body: str = "values",
) -> Population:
    """Blocks of values of the law of that name, (blocks, *shape), as one of BODIES has them.

    For an interval that rests on a bound, or on moments, those of the table are made known.
    """
    share, at = CONTAMINATED.get(name, (0.0, 0.0))
    values = LAWS.get(name, LAWS["normal"])(generator(0, f"table of {name}", *shape),
                                            (BLOCKS, *shape))
    values[:round(share * BLOCKS)] = at
    values = BODIES[body](values)
    table = statistic.reduce(values)
    if basis is Basis.BOUND and statistic.rests_on is not basis:
        ends = [(part.min(), part.max()) for part in parts_of(values)]
        statistic = statistic.within(min(low for low, _ in ends), max(high for _, high in ends))
    if basis is Basis.MOMENTS:
        columns = np.moveaxis(table[..., 1:], 1, 0) if statistic.tell else [table]
        known = tuple(_known(column) for column in columns)
        statistic = statistic.informed(known if statistic.tell else known[0])
    return Population(name, statistic, table, share > 0)


def _known(table: Array) -> Known:
    """What is known of values whose block values, means and central moments, are these."""
    mean = float(table[:, 0].mean())
    squares = table[:, 1] + (table[:, 0] - mean) ** 2 if table.shape[1] > 1 else table[:, 0]
    known = Known(mean, float(table[:, 0].var()), float(squares.var()))
    if table.shape[1] < 4:
        return known
    variance = float(squares.mean())
    fourth = stat.kurtosis.influence(np.concatenate([table] * OFTEN))[0] + 3
    values = kurtosis_about(table, (mean, variance, fourth))
    return known._replace(of_fourths=float(values.var()), fourths=(variance, fourth))


def of_case(reference: Reference, seed: int) -> Population:
    """The blocks of a case, as a run measures them; ValueError for a law or body that breaks."""
    case = resolve(reference)
    try:
        return Population(str(case), *sample(case, BLOCKS, seed))
    except ValueError as error:
        raise ValueError(f"{case}: {error}") from None


LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
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
    # All scores of some tokens, which share queries and keys.
    "scores, d_k 2": lambda rng, shape: scores(*laws.normal.draw(rng, shape[0], shape[1], 2)),
    "scores, d_k 8": lambda rng, shape: scores(*laws.normal.draw(rng, shape[0], shape[1], 8)),
}
CONTAMINATED = {  # a share of the blocks, and where it lies, in standard deviations of the others
    "0.1 % at 90": (0.001, 90.0), "0.2 % at 60": (0.002, 60.0), "0.5 % at 40": (0.005, 40.0),
    "1 % at 40": (0.01, 40.0), "1 % at 14": (0.01, 14.0), "2 % at 14": (0.02, 14.0),
}
BODIES: dict[str, Callable[[Array], Any]] = {
    "values": lambda x: x,
    "beyond three": lambda x: x >= 3,
    "two means": lambda x: (x[:, :1] + MEAN, x[:, 1:] + MEAN),
    "two events": lambda x: (x[:, :1] >= 3, x[:, 1:] >= 2),
    "overlapping": lambda x: (x[:, :12], x[:, 4:]),
    "two sizes": lambda x: (np.abs(x[:, :1]), np.abs(x[:, 1:]) + 1),
    # A mean that is nearly without error at 1; sums of two and of four values.
    "rising mean": lambda x: [(1, MEAN + x[:, :1] / 10), (4, 4 * (MEAN + x[:, 1:]))],
    "rising sums": lambda x: [(2, x[..., :2].sum(axis=-1)), (4, x.sum(axis=-1))],
}
SMOOTH = ("normal", "laplace", "exponential", "student_t-9", "skew laplace", "rademacher")
JUDGED: list[tuple[Any, ...]] = [  # statistic, basis, laws, shape of a block, body
    (stat.mean, Basis.CALIBRATED, (*SMOOTH, *CONTAMINATED), (1,)),
    (stat.variance, Basis.CALIBRATED, ("normal", "laplace", "exponential", "1 % at 40"), (16,)),
    (stat.variance, Basis.CALIBRATED, ("40 % ones",), (1,)),
    (stat.variance, Basis.CALIBRATED, ("scores, d_k 2",), (31,)),
    (stat.std, Basis.CALIBRATED, ("laplace",), (16,)),
    (stat.kurtosis, Basis.CALIBRATED, ("normal", "scores, d_k 8"), (16,)),
    (stat.kurtosis, Basis.CALIBRATED, ("normal, four",), (4,)),
    (stat.ratio, Basis.CALIBRATED, SMOOTH, (2,), "two means"),
    (stat.slope(stat.mean), Basis.CALIBRATED, ("normal", "exponential"), (2,), "rising mean"),
    (stat.slope(stat.variance), Basis.CALIBRATED, ("normal", "rademacher"), (16, 4), "rising sums"),
    (stat.ratio_of(stat.variance, stat.variance), Basis.CALIBRATED, ("laplace",), (16,),
     "overlapping"),
    (stat.ratio_of(stat.std, stat.std), Basis.CALIBRATED, ("exponential",), (16,), "overlapping"),
    (stat.difference_of(stat.variance, stat.mean), Basis.CALIBRATED, ("exponential",), (16,),
     "overlapping"),
    (stat.mean, Basis.BOUND, ("normal", "rademacher", *CONTAMINATED), (1,)),
    (stat.proportion, Basis.BOUND, ("exponential", *CONTAMINATED), (1,), "beyond three"),
    (stat.ratio, Basis.BOUND, ("normal", "0.1 % at 90", "1 % at 40"), (2,), "two sizes"),
    (stat.difference_of(stat.proportion, stat.proportion), Basis.BOUND,
     ("exponential", "1 % at 40"), (2,), "two events"),
    (stat.slope(stat.mean), Basis.BOUND, ("rademacher",), (2,), "rising mean"),
    (stat.mean, Basis.MOMENTS, ("normal", "laplace", *CONTAMINATED), (1,)),
    (stat.variance, Basis.MOMENTS, ("normal", "0.1 % at 90", "1 % at 40"), (16,)),
    (stat.kurtosis, Basis.MOMENTS, ("normal", "1 % at 14"), (16,)),
    (stat.slope(stat.variance), Basis.MOMENTS, ("normal", "rademacher"), (16, 4), "rising sums"),
    (stat.median, Basis.ORDER, ("normal", *CONTAMINATED), (1,)),
    (stat.ratio_of(stat.median, stat.median), Basis.ORDER, ("exponential",), (2,), "two sizes"),
    (stat.quantile(0.9), Basis.ORDER, ("exponential",), (4,)),
]
POPULATIONS: dict[Key, Callable[[], Population]] = {
    (statistic.name, str(basis), name): partial(of_values, statistic, basis, name, shape, *body)
    for statistic, basis, names, shape, *body in JUDGED for name in names}
