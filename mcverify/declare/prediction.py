"""From what a claim says a number is to the claimed interval."""

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from mcverify.declare.fault import ClaimError

KINDS = ("equals", "at_least", "at_most", "between")


@dataclass(frozen=True)
class Margin:
    """How far from the prediction a number may be and still count as predicted."""

    size: float
    relative: bool

    def __str__(self) -> str:
        return f"{100 * self.size:g} %" if self.relative else f"{self.size:g}"

    def scaled(self, factor: float) -> "Margin":
        """The margin that is so many times as wide."""
        return Margin(self.size * factor, self.relative)

    def of(self, value: float) -> float:
        """The margin in the units of ``value``; ClaimError for a relative one at 0."""
        if self.relative and value == 0:
            raise ClaimError(f"within=relative({self.size:g}) at a prediction of 0 allows nothing; "
                             "use within=absolute(…)")
        return self.size * abs(value) if self.relative else self.size


def relative(size: float) -> Margin:
    """A margin in proportion to the prediction: ``relative(0.02)`` is 2 %.

    >>> relative(0.02).of(64)
    1.28
    """
    return Margin(size, relative=True)


def absolute(size: float) -> Margin:
    """A margin in the prediction's own units.

    >>> absolute(0.05).of(0)
    0.05
    """
    return Margin(size, relative=False)


@dataclass(frozen=True)
class Printed:
    """A number as printed: right to half a unit of its last digit."""

    digits: str
    value: float
    margin: float

    def __str__(self) -> str:
        return self.digits


def printed(digits: str) -> Printed:
    """The interval that a printed number stands for. ClaimError unless ``digits`` is a number.

    >>> printed("1.1e-7")
    Printed(digits='1.1e-7', value=1.1e-07, margin=5e-09)
    """
    try:
        number = Decimal(digits)
        unit = Decimal(1).scaleb(int(number.as_tuple().exponent))
    except (InvalidOperation, TypeError, ValueError):
        raise ClaimError(f"printed({digits!r}): takes a number as text, with the digits that were "
                         'printed; use e.g. printed("0.88")') from None
    return Printed(digits, float(number), float(unit / 2))


def claimed_interval(kind: str, prediction: Any, within: Margin | None) -> tuple[float, float]:
    """The interval claimed by one of the four kinds of prediction, widened by its margin.

    >>> claimed_interval("equals", 64, relative(0.02)), claimed_interval("at_most", 1, None)
    ((62.72, 65.28), (-inf, 1.0))
    """
    if isinstance(prediction, Printed):
        low, high = prediction.value - prediction.margin, prediction.value + prediction.margin
    elif kind == "between":
        low, high = (float(edge) for edge in prediction)
    else:
        low = high = float(prediction)
    if within is not None:
        low, high = low - within.of(low), high + within.of(high)
    if kind == "at_least":
        high = math.inf
    elif kind == "at_most":
        low = -math.inf
    if not low <= high or (math.isinf(low) and math.isinf(high)):
        raise ClaimError(f"{kind}={prediction}: claims from {low:g} to {high:g}, which nothing can "
                         "confirm or refute; give it a finite edge, the low one first")
    return low, high
