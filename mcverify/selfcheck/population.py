"""From the law of a block to a population: blocks in cells of known chance, whose truth is known.

A block is drawn by drawing its cell, then the block within the cell by the law itself. So when
cells are drawn with other chances, the ratio of the chances is the block's exact weight, whatever
the law. A block is one value, or two, of a law with a known quantile function, or a row of a table
that is itself the law.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.selfcheck.limits import quantile_of_t
from mcverify.selfcheck.sight import Seen, sight, straight
from mcverify.statistic import Statistic, std, variance

Array = NDArray[np.float64]
Cells = NDArray[np.intp]
Pivot = Callable[[Array], float]

CELLS = 1024  # of a block of one value
SIDE = 64  # of the grid of cells of a block of two


@dataclass(frozen=True, eq=False)  # by identity: it holds arrays
class Population:
    """Blocks of a known law, and what of each cell a tilt of the chances may look at.

    Attributes
    ----------
    name : of the law.
    statistic : whose interval is judged.
    truth : what it estimates, on the scale where the estimate is a mean.
    features : (few, cells): of each cell's midpoint; the first is the influence.
    seen : chances of the cells -> (error, influence, parts, lean) of the statistic under those.
    draw : (rng, cells) -> the table of such blocks.
    chances : of the cells; None if they are equally likely.
    step : by how many standard deviations of a block value a sum of them moves, on a lattice.
    z : table -> the studentised error, where it is not (estimate − truth)/stderr.
    corrected : whether the interval pays for skewness, so that a tilt must, too.
    """

    name: str
    statistic: Statistic
    truth: float
    features: Array
    seen: Seen
    draw: Callable[[np.random.Generator, Cells], Array]
    chances: Array | None = None
    step: float = 0.0
    z: Pivot | None = None
    corrected: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def own_truth(self) -> float:
        """The truth on the statistic's own scale."""
        return self.truth if self.statistic.back is None else self.statistic.back(self.truth)

    @cached_property
    def base(self) -> Array:
        """The chances of the cells."""
        cells = self.features.shape[1]
        return np.full(cells, 1 / cells) if self.chances is None else self.chances

    def sample(self, rng: np.random.Generator, blocks: int) -> Array:
        """The table of so many independent blocks of the law itself."""
        if self.chances is None:
            return self.draw(rng, rng.integers(self.features.shape[1], size=blocks))
        return self.draw(rng, rng.choice(len(self.base), blocks, p=self.base))

    def pivot(self, table: Array) -> float:
        """The studentised error of the estimate, above 0 where it is too high."""
        if self.z is not None:
            return self.z(table)
        value, influence = self.statistic.influence(table)
        blocks = len(influence)
        stderr = math.sqrt(float(np.dot(influence, influence)) / (blocks - 1) / blocks)
        return (value - self.truth) / stderr if stderr else math.nan

    def inside(self, rate: float, blocks: int) -> float:
        """Below this abs(pivot) the interval cannot miss, so that it need not be worked out.

        The studentised interval is t standard errors wide at least; that of a quantile follows
        Chernoff's bound where it is no t interval, which is wider than 2. Of others nothing is
        known.
        """
        if self.z is not None:
            return min(quantile_of_t(rate, blocks), 2.0)
        return quantile_of_t(rate, blocks) if self.statistic.interval is None else 0.0

    def given(self, rate: float, blocks: int) -> bool:
        """Whether so many blocks are enough for an interval, if they are not too skew."""
        t = quantile_of_t(rate, blocks)
        return not self.corrected or blocks >= self.statistic.caution * t * t

    @cached_property
    def skewness(self) -> float:
        """The largest of what the interval looks at, by cells."""
        _, y, parts, _ = self.seen(self.base)
        columns = [y, *parts] if self.statistic.parts else [y]
        return float(max(abs(self.base @ c**3) / (self.base @ c**2) ** 1.5 for c in columns))

    @cached_property
    def lean(self) -> float:
        """What the interval pays for a curved statistic, by cells."""
        return self.seen(self.base)[3]


def of_values(
    name: str, statistic: Statistic, truth: float, quantiles: Callable[[Array], Array],
    body: Callable[[Array], Any] = lambda x: x, width: int = 1,
) -> Population:
    """Blocks of ``width`` independent values of the law with these quantiles; at most 2.

    ``body`` turns values, (blocks, width), into what the statistic reduces.
    """
    side = CELLS if width == 1 else SIDE
    corners = np.indices((side,) * width).reshape(width, -1).T

    def table(u: Array) -> Array:
        return statistic.reduce(body(quantiles(u)))

    def draw(rng: np.random.Generator, cells: Cells) -> Array:
        return table((corners[cells] + rng.random((len(cells), width))) / side)

    return Population(name, statistic, truth, *sight(statistic, table((corners + 0.5) / side)),
                      draw)


def resampled(name: str, statistic: Statistic, values: Any) -> Population:
    """Blocks resampled from those of ``values``: that table is the law, exactly."""
    table = statistic.reduce(values)
    truth = statistic.influence(table)[0]
    if statistic in (variance, std):  # of the law itself: without the correction of a sample's bias
        truth = float(table[:, 1].mean() + table[:, 0].var())
    return Population(name, statistic, truth, *sight(statistic, table),
                      lambda rng, cells: table[cells])


def of_shares(level: float, tokens: int, statistic: Statistic) -> Population:
    """Blocks of ``tokens`` uniform values for a quantile; a cell is how many are below it.

    The interval of a quantile sees the order of the values alone, so that any other continuous
    law gives the same misses.
    """
    below = np.arange(tokens + 1)
    chances = np.array([math.comb(tokens, j) * level**j * (1 - level) ** (tokens - j)
                        for j in below])

    def draw(rng: np.random.Generator, cells: Cells) -> Array:
        u = rng.random((len(cells), tokens))
        return np.where(np.arange(tokens) < cells[:, None], level * u, level + (1 - level) * u)

    def z(table: Array) -> float:
        share = (table <= level).mean(axis=1)
        error, spread = level - float(share.mean()), float(share.std(ddof=1))
        return error / spread * math.sqrt(len(share)) if spread else math.copysign(math.inf, error)

    return Population(f"any continuous law, {tokens} a block", statistic, level,
                      *straight(level - below / tokens, chances), draw, chances,
                      1 / math.sqrt(tokens * level * (1 - level)), z)
