"""A row of the self-check: how often an interval missed, how often it may, and the judgement."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr

from mcverify.arrays import Array
from mcverify.selfcheck.populations import Population
from mcverify.statistic import Basis, Estimate
from mcverify.statistic.studentised import quantile_of_t

COUNTED, WEIGHED = "counted", "weighed"
SIGMAS = 3.0  # how sure a row must be: 1.3e-3 on a side, were it at its limit
FEW = 8  # weights that so few replications carry tell no error of their own
SLACK, THIRD, ALLOWED = 1.3, 0.3, 2.0  # of limit
STDERR = 0.05  # the share of the scatter by which a standard error may be off


@dataclass(frozen=True)
class Row:
    """One check of one statistic's interval on one population.

    Attributes
    ----------
    statistic, basis, data : what is judged, what it rests on, and the law of its blocks.
    contaminated : whether the blocks are such as a calibrated interval is known to fail on.
    blocks : of a sample; the most where it grows from look to look.
    check, method : what is measured, and whether it is counted or weighed.
    nominal, measured : what it should be, and is.
    low, high : between which the measured number lies for sure.
    least, most : between which measured/nominal may lie.
    given : the share of the samples that had an interval.
    samples, effective : replications, and how many of them the measured number hangs on.
    """

    statistic: str
    basis: str
    data: str
    contaminated: bool
    blocks: int
    check: str
    method: str
    nominal: float
    measured: float
    low: float
    high: float
    least: float
    most: float
    given: float
    samples: int
    effective: float

    @property
    def verdict(self) -> str:
        """What is sure: ok, high, low; known to fail; waits, without an interval; or open."""
        least, most = self.least * self.nominal, self.most * self.nominal
        if not (self.given or self.measured):
            return "waits"
        if self.low > most:
            known = self.contaminated and self.basis == Basis.CALIBRATED
            return "known to fail" if known else "high"
        if self.high < least:
            return "low"
        return "open" if self.high > most or self.low < least else "ok"

    def cells(self) -> dict[str, Any]:
        """The row of the table."""
        return {**asdict(self), "ratio": self.measured / self.nominal, "verdict": self.verdict}


def limit(basis: Basis, rate: float, blocks: int) -> float:
    """How many times its nominal rate an interval may miss: once, or what a calibrated one leaves.

    That one allows for the first two orders of the expansion of its own error, in t³/√blocks and
    t⁴/blocks, as far as a sample shows them. What is left is of order t⁵/blocks^1.5, with a factor
    made of the law's moments that may be up to THIRD; SLACK is for what is not in leading powers
    of t. It is never more than ALLOWED, which is what it comes to where verdicts are made.

    >>> limit(Basis.BOUND, 1e-3, 512), round(limit(Basis.CALIBRATED, 1e-3, 512), 2)
    (1.0, 1.31)
    """
    if basis is not Basis.CALIBRATED:
        return 1.0
    t = quantile_of_t(blocks, rate)
    return min(SLACK * math.exp(THIRD * t**5 / blocks**1.5), ALLOWED)


def missed(estimate: Estimate, truth: float) -> str:
    """On which side the estimate was when its interval missed the truth; "" if it did not."""
    return "low" if estimate.high < truth else "high" if truth < estimate.low else ""


def miss_row(
    population: Population, blocks: int, rate: float, where: str, weights: Array,
    estimates: list[Estimate], method: str,
) -> Row:
    """The row of misses on a side, of which a calibrated interval may spend half the rate on each.

    ``weights`` are those of the replications that miss, 1 if they are counted, and 0 of the others.
    """
    samples, total = len(weights), float(weights.sum())
    shares = weights / total if total else weights  # whose squares do not vanish
    effective = 1 / float(shares @ shares) if total else 0.0
    if method == COUNTED:  # Clopper and Pearson's bounds
        tail = float(ndtr(-SIGMAS))
        low = float(betaincinv(total, samples - total + 1, tail)) if total else 0.0
        high = float(betaincinv(total + 1, samples - total, 1 - tail)) if total < samples else 1.0
    else:
        error = float(weights.std()) / math.sqrt(samples) if effective >= FEW else math.inf
        low, high = (max(total / samples + side * SIGMAS * error, 0.0) for side in (-1, 1))
    basis = population.statistic.rests_on
    share = 0.5 if basis is Basis.CALIBRATED else 1.0
    given = float(np.mean([not each.reason for each in estimates]))
    return Row(*_about(population), blocks, f"miss {where} at {rate:.2g}", method, share * rate,
               total / samples, low, high, 0.0, limit(basis, rate, blocks), given, samples,
               effective)


def stderr_rows(population: Population, blocks: int, estimates: list[Estimate]) -> list[Row]:
    """A row, of the standard errors' root mean square over the estimates' scatter, if they vary."""
    values, stderrs = (np.array([getattr(each, name) for each in estimates])
                       for name in ("value", "stderr"))
    squares, shifts = stderrs**2, (values - values.mean()) ** 2
    if not shifts.mean() > 0:
        return []
    ratio = math.sqrt(squares.mean() / shifts.mean())
    # The logarithm's influence: both means come from the same replications.
    influence = squares / squares.mean() - shifts / shifts.mean()
    error = ratio * float(influence.std()) / 2 / math.sqrt(len(values))
    return [Row(*_about(population), blocks, "standard error over scatter", COUNTED, 1.0, ratio,
                ratio - SIGMAS * error, ratio + SIGMAS * error, 1 - STDERR, 1 + STDERR, 1.0,
                len(estimates), len(estimates))]


def _about(population: Population) -> tuple[str, str, str, bool]:
    return (population.statistic.name, population.statistic.rests_on, population.name,
            population.contaminated)
