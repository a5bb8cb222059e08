"""What is known of values besides the draws, and the rules for what may be stated of them."""

import math
from typing import NamedTuple

from mcverify.arrays import Array

ROUNDING = 1e-9  # of a stated range: so far beyond it a value is rounded, and no error


class Known(NamedTuple):
    """What a law knows of some values: their mean, and variances of what a block makes of them.

    ``of_means`` is the variance of a block's mean, ``of_squares`` that of its mean square about
    the known mean, or at least as much; None where it is not known. ``fourths`` are the variance
    and the standardised fourth moment of the values, and ``of_fourths`` is the variance of what a
    block makes of them in ``kurtosis``.
    """

    mean: float
    of_means: float | None
    of_squares: float | None
    of_fourths: float | None = None
    fourths: tuple[float, float] | None = None


def check_ends(low: float, high: float, name: str) -> None:
    """Raise ValueError unless a range has ends, and the low one first."""
    if not (low < high and high - low < math.inf):
        raise ValueError(f"{name}.within({low}, {high}): the range must be finite, and its low end "
                         "below its high one")


def check_variance(variance: float, name: str) -> None:
    """Raise ValueError unless a variance is one; an infinite one is for missing_moments."""
    if not variance >= 0:
        raise ValueError(f"{name}.with_variance({variance}): a variance is at least 0; give that "
                         "of a block's value, or None where it is not known")


def check_range(values: Array, low: float, high: float, name: str) -> None:
    """Raise ValueError for a value outside of the range that was stated."""
    slack = ROUNDING * (high - low)
    if values.size and not (low - slack <= values.min() and values.max() <= high + slack):
        raise ValueError(f"{name}: the body returned values from {values.min():g} to "
                         f"{values.max():g}; they must lie in [{low:g}, {high:g}], the range that "
                         "is stated; mend the one or the other")
