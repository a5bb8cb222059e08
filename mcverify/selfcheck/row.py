"""From counts, weights and exact rates to rows: measured against nominal, and whether it may be."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

Array = NDArray[np.float64]

COLUMNS = ["statistic", "data", "blocks", "check", "nominal", "measured", "mc_error", "ratio",
           "least", "most", "method", "samples", "effective", "verdict", "note"]
SIGMAS = 3.0  # how sure a row must be: 1.3e-3 on a side, were it at its limit
FEW = 8  # fewer effective samples tell no error of their own


@dataclass(frozen=True)
class Row:
    """One check of one statistic's interval on one kind of data.

    Attributes
    ----------
    statistic, data : what is judged, on which law of a block.
    blocks : of the sample; the largest where it grows from look to look.
    check : what is counted.
    nominal, measured, mc_error : what it should be, is, and is known to (a standard error).
    low, high : between which the measured number lies for sure.
    least, most : between which measured/nominal may lie.
    method : exact, counted or weighed.
    samples, effective : replications, and how many of them the measured number hangs on: those
        that miss, or (Σw)²/Σw² of their weights; 0 for what is exact.
    """

    statistic: str
    data: str
    blocks: int
    check: str
    nominal: float
    measured: float
    mc_error: float
    low: float
    high: float
    least: float
    most: float
    method: str
    samples: int = 0
    effective: float = 0.0
    note: str = ""

    @property
    def ratio(self) -> float:
        """Measured over nominal."""
        return self.measured / self.nominal

    @property
    def verdict(self) -> str:
        """high or low if it is so for sure, ok if it is surely not, open if the draws are too few.

        >>> Row("mean", "normal", 512, "", 0.1, 0.4, 0, 0.4, 0.4, 0, 2.6, "exact").verdict
        'high'
        """
        if math.isnan(self.nominal):
            return "noted"
        least, most = self.least * self.nominal, self.most * self.nominal
        if self.low > most:
            return "high"
        if self.high < least:
            return "low"
        return "open" if self.high > most or self.low < least else "ok"

    def cells(self) -> dict[str, Any]:
        """The row as COLUMNS have it."""
        return {column: getattr(self, column) for column in COLUMNS}


def exact(at: dict[str, Any], nominal: float, measured: float, most: float) -> Row:
    """A row for a rate known to rounding; ``at`` has statistic, data, blocks and check."""
    slight = 1e-9 * measured
    return Row(**at, nominal=nominal, measured=measured, mc_error=0.0, low=measured - slight,
               high=measured + slight, least=0.0, most=most, method="exact")


def counted(
    at: dict[str, Any], nominal: float, count: int, samples: int, most: float, least: float = 0.0,
) -> Row:
    """A row for a rate found by counting, with Clopper and Pearson's bounds."""
    tail = float(ndtr(-SIGMAS))
    low = float(betaincinv(count, samples - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, samples - count, 1 - tail)) if count < samples else 1.0
    share = count / samples
    return Row(**at, nominal=nominal, measured=share, low=low, high=high, least=least, most=most,
               mc_error=math.sqrt(share * (1 - share) / samples), method="counted",
               samples=samples, effective=float(count))


def weighed(at: dict[str, Any], nominal: float, weights: Array, most: float) -> Row:
    """A row for a rate found by importance sampling: the mean of weights, 0 where nothing missed.

    Fewer than FEW effective samples leave it open.
    """
    samples, total = len(weights), float(weights.sum())
    measured, error = total / samples, float(weights.std()) / math.sqrt(samples)
    effective = total**2 / float(weights @ weights) if total else 0.0
    surely = SIGMAS * error if effective >= FEW else math.inf
    return Row(**at, nominal=nominal, measured=measured, mc_error=error,
               low=max(measured - surely, 0.0), high=measured + surely,
               least=0.0, most=most, method="weighed", samples=samples, effective=effective,
               note="" if total else "no tilted replication missed")


def scatter(at: dict[str, Any], values: Array, stderrs: Array, off: float) -> Row:
    """A row for the root mean square of standard errors over the scatter of the estimates."""
    squares, shifts = stderrs**2, (values - values.mean()) ** 2
    ratio = math.sqrt(squares.mean() / shifts.mean())
    # The logarithm's influence: both means come from the same replications.
    influence = squares / squares.mean() - shifts / shifts.mean()
    error = ratio * float(influence.std()) / 2 / math.sqrt(len(values))
    return Row(**at, nominal=1.0, measured=ratio, mc_error=error,
               low=ratio - SIGMAS * error, high=ratio + SIGMAS * error, least=1 - off,
               most=1 + off, method="counted", samples=len(values), effective=float(len(values)))


def noted(at: dict[str, Any], count: int, samples: int, note: str) -> Row:
    """A row that cannot fail: a share worth knowing."""
    row = counted(at, math.nan, count, samples, math.inf)
    return Row(**{**vars(row), "note": note})
