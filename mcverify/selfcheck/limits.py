"""How much more often than asked for an interval may miss: the factors of a row.

The interval allows for the first two orders of the expansion of its own error, in t³/√blocks and
t⁴/blocks, as far as a sample shows them (see statistic.interval). What is left may be of order
t⁵/blocks^1.5, with a factor made of the law's skewness, kurtosis and fifth moment: 0.03 times that
factor at 1e-3 and 512 blocks, 1.4 times at the first look and the rate of a look. The factor may be
up to THIRD.
"""

import math

from scipy.special import stdtrit

from mcverify.statistic.studentised import first_order
from mcverify.verdict import CASE_ERROR_RATE, LOOKS

LOOK_RATE = CASE_ERROR_RATE / LOOKS  # 8.3e-12: where the suite's verdicts are made
SLACK = 1.3  # for what is not in the expansion's leading powers of t, and so that draws can tell
EVEN = 1.15  # the same in the tails of the pivot
THIRD = 0.3
ALLOWED = 2.0  # never more: what the factor comes to at the first look and the rate of a look


def quantile_of_t(rate: float, blocks: int) -> float:
    """Student's t that the interval uses at an error rate."""
    return -float(stdtrit(blocks - 1, rate / 2))


def most(rate: float, blocks: int, step: float = 0.0) -> float:
    """How many times its nominal rate an interval may miss on one side.

    ``step`` is for values on a lattice, whose sums move by that many standard errors: half a step
    more, as the tail beyond t falls as exp(−t·z).

    >>> round(most(1e-3, 512), 2), round(most(LOOK_RATE, 2048), 2)
    (1.31, 1.37)
    """
    t = quantile_of_t(rate, blocks)
    return min(SLACK * math.exp(THIRD * t**5 / blocks**1.5 + t * step / 2), ALLOWED)


def uneven(
    level: float, blocks: int, skewness: float, step: float = 0.0, lean: float = 0.0,
) -> float:
    """By what factor P(z > its quantile at ``level``) may differ from the level, in either tail.

    EVEN times the exponential of the first-order term (skewness·(2t² + 1)/6 + lean·t²)φ(t)/√blocks
    over the level, which the interval's δ pays for, and of half a lattice step.

    >>> uneven(0.05, 512, 0.0)
    1.15
    """
    t = -float(stdtrit(blocks - 1, level))
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    first = (first_order(skewness, t) + lean * t * t) / math.sqrt(blocks)
    return EVEN * math.exp(density * (first + step / 2) / level)
