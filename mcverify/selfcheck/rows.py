"""A row of the self-check: how often an interval missed, how often it may, and the judgement."""

import math
from dataclasses import asdict, dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, stdtrit

from mcverify.selfcheck.populations import Population
from mcverify.statistic import Estimate

Array = NDArray[np.float64]

SIGMAS = 3.0  # how sure a row must be: 1.3e-3 on a side, were it at its limit
FEW = 8  # weights that so few replications carry tell no error of their own
SLACK, THIRD, ALLOWED = 1.3, 0.3, 2.0  # of limit
STDERR = 0.05  # the share of the scatter by which a standard error may be off


@dataclass(frozen=True)
class Row:
    """One check of one statistic's interval on one population.

    Attributes
    ----------
    statistic, data, basis : what is judged, on which law of a block, and what it rests on.
    blocks : of a sample.
    check : what is measured.
    nominal, measured : what it should be, and is.
    low, high : between which the measured number lies for sure.
    least, most : between which measured/nominal may lie.
    given : the share of the samples that had an interval.
    samples, effective : replications, and how many of them the measured number hangs on.
    contaminated : whether the blocks are such as a calibrated interval is known to fail on.
    """

    statistic: str
    data: str
    basis: str
    blocks: int
    check: str
    nominal: float
    measured: float
    low: float
    high: float
    least: float
    most: float
    given: float
    samples: int
    effective: float
    contaminated: bool

    @property
    def verdict(self) -> str:
        """What is sure: ok, high, low; known to fail; waits, without an interval; or open."""
        least, most = self.least * self.nominal, self.most * self.nominal
        if not self.given:
            return "waits"
        if self.low > most:
            calibrated = self.basis == "calibrated"
            return "known to fail" if self.contaminated and calibrated else "high"
        if self.high < least:
            return "low"
        return "open" if self.high > most or self.low < least else "ok"

    def cells(self) -> dict[str, object]:
        """The row as COLUMNS have it."""
        return {**asdict(self), "ratio": self.measured / self.nominal, "verdict": self.verdict}


COLUMNS = [*(field.name for field in fields(Row)), "ratio", "verdict"]


def quantile_of_t(rate: float, blocks: int) -> float:
    """Student's t at an error rate."""
    return -float(stdtrit(blocks - 1, rate / 2))


def limit(basis: str, rate: float, blocks: int) -> float:
    """How many times its nominal rate an interval may miss: once, or what a calibrated one leaves.

    That one allows for the first two orders of the expansion of its own error, in t³/√blocks and
    t⁴/blocks, as far as a sample shows them. What is left is of order t⁵/blocks^1.5, with a factor
    made of the law's moments that may be up to THIRD; SLACK is for what is not in leading powers
    of t. It is never more than ALLOWED, which is what it comes to where verdicts are made.

    >>> limit("bound", 1e-3, 512), round(limit("calibrated", 1e-3, 512), 2)
    (1.0, 1.31)
    """
    if basis != "calibrated":
        return 1.0
    t = quantile_of_t(rate, blocks)
    return min(SLACK * math.exp(THIRD * t**5 / blocks**1.5), ALLOWED)


def missed(found: Estimate, truth: float) -> str:
    """On which side the estimate was when its interval missed the truth; "" if it did not."""
    return "low" if found.high < truth else "high" if truth < found.low else ""


def miss_rows(
    population: Population, blocks: int, rate: float, weights: dict[str, Array], given: float,
) -> list[Row]:
    """A row for each side, where a calibrated interval may spend half; for both where it is proved.

    ``weights`` are those of the replications that miss low and high, 0 of the others: all 1 where
    they are counted, so that Clopper and Pearson's bounds hold.
    """
    share = 0.5
    if population.basis != "calibrated":
        share, weights = 1.0, {"on either side": weights["low"] + weights["high"]}
    return [_row(population, blocks, f"miss {side} at {rate:.2g}", share * rate, of_side, given,
                 limit(population.basis, rate, blocks)) for side, of_side in weights.items()]


def _row(
    population: Population, blocks: int, check: str, nominal: float, weights: Array, given: float,
    most: float,
) -> Row:
    samples, total = len(weights), float(weights.sum())
    shares = weights / total if total else weights  # whose squares do not vanish
    effective = 1 / float(shares @ shares) if total else 0.0
    if set(weights.tolist()) <= {0.0, 1.0}:
        tail = float(ndtr(-SIGMAS))
        low = float(betaincinv(total, samples - total + 1, tail)) if total else 0.0
        high = float(betaincinv(total + 1, samples - total, 1 - tail)) if total < samples else 1.0
    else:
        surely = SIGMAS * float(weights.std()) / math.sqrt(samples)
        surely = surely if effective >= FEW else math.inf
        low, high = max(total / samples - surely, 0.0), total / samples + surely
    return Row(population.statistic.name, population.name, population.basis, blocks, check, nominal,
               total / samples, low, high, 0.0, most, given, samples, effective,
               population.contaminated)


def stderr_row(population: Population, blocks: int, found: list[Estimate]) -> Row:
    """The root mean square of the standard errors over the scatter of the estimates."""
    values, stderrs = (np.array([getattr(each, name) for each in found])
                       for name in ("value", "stderr"))
    squares, shifts = stderrs**2, (values - values.mean()) ** 2
    ratio = math.sqrt(squares.mean() / shifts.mean())
    # The logarithm's influence: both means come from the same replications.
    influence = squares / squares.mean() - shifts / shifts.mean()
    surely = SIGMAS * ratio * float(influence.std()) / 2 / math.sqrt(len(values))
    return Row(population.statistic.name, population.name, population.basis, blocks,
               "standard error over scatter", 1.0, ratio, ratio - surely, ratio + surely,
               1 - STDERR, 1 + STDERR, 1.0, len(found), len(found), population.contaminated)
