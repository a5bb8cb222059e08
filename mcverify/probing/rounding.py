"""From the type of the weights to how far rounding may have moved their logarithms.

A weight is off by some unit roundoffs of the type it is returned in and some of the type it is
computed in; a logit by some of the latter, in proportion to its size. All are bounds, not standard
errors: nothing is assumed of how roundings fall.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array
from mcverify.attention import bfloat16

# The unit roundoff of each type, and the smallest number it has.
TYPES = {
    "float64": (2.0**-53, 2.0**-1074),
    "float32": (2.0**-24, 2.0**-149),
    "float16": (2.0**-11, 2.0**-24),
    "bfloat16": (2.0**-8, 2.0**-133),
}
HALVES: dict[str, Callable[[Array], Array]] = {  # what a half precision holds of numbers
    "bfloat16": lambda x: bfloat16(x.astype(np.float32)).astype(np.float64),
    "float16": lambda x: x.astype(np.float16).astype(np.float64)}
SINGLE, HALF, BRAIN = (TYPES[name][0] for name in ("float32", "float16", "bfloat16"))

STORED = 3  # roundings of a weight in the type it is returned in: exp, division, average
COMPUTED = 8  # unit roundoffs of exp, sum and division in the type that computes: exp is 1 to 4
IN_HALF = 3  # the same in half precisions, whose exp is rounded once
LOGIT = 4  # roundings of a logit: the scale itself, scaled queries and keys, the product
BENT = 2  # more of them behind a cap: of tanh and its product
OWN = 2.0**-51  # relative error of the logarithms that are taken here, and of their difference
COARSEST = 0.05  # below so much of relative accuracy a weight is not used
SHOWN_FROM = 16.0  # logits as large, rounded to a half precision, show it beside their weights
SHOWN_A_WEIGHT = 2.0  # the same for each weight that is rounded once or twice
USUAL = 0.5  # root mean square of a rounding, in unit roundoffs: 0.41 on average, 0.58 at most
ENOUGH = 200  # logits of each head that show whether roundings are as few as can be


@dataclass(frozen=True)
class Step:
    """Roundings that may explain logits.

    Attributes
    ----------
    u, roundings : the unit roundoff of the type that logits are rounded in, and how often.
    stored, computed : how often weights are rounded in the type of the outputs, and how many of
        the former unit roundoffs they are off.
    capped : whether the logits are tried with a cap.
    """

    u: float
    roundings: float
    stored: int
    computed: int
    capped: bool


def steps(name: str, d_k: int, largest: float, many: int, weights: int) -> list[Step]:
    """What ``many`` logits of so many weights each may be: straight or capped, in which precision.

    Sums of d_k products are exact if the scale comes after them, which is tried first; else their
    partial sums are rounded as well, in single precision or better. Of outputs in half precision,
    logits may be in single or in that half precision; the former is assumed only where the latter
    would have shown. There, what rounds as little as can be is tried first, since many logits that
    were rounded more often would not all be so near a line.

    >>> [(step.u == HALF, step.capped) for step in steps("float16", 64, 7.0, 100, 2)]
    [(True, False), (True, True)]
    >>> [(step.u == HALF, step.stored) for step in steps("float16", 64, 7.0, 1000, 2)[::2]]
    [(False, 1), (False, 2), (True, 3)]
    """
    u = TYPES[name][0]
    if u <= SINGLE:
        fine = [(v, LOGIT + sums, STORED, COMPUTED) for v in (TYPES["float64"][0], SINGLE) if v >= u
                for sums in (0.0, d_k / 2)]
        halves = [(v, LOGIT + d_k / 2 * SINGLE / v, STORED, IN_HALF) for v in (HALF, BRAIN)]
        return [Step(*of, capped) for of in fine + halves for capped in (False, True)]
    few = (1, 2) if many >= ENOUGH and largest >= SHOWN_A_WEIGHT * weights else ()
    met = [(SINGLE, LOGIT + d_k / 2, stored, COMPUTED)
           for stored in (*few, *[STORED] * (largest >= SHOWN_FROM))]
    met += [(u, LOGIT + d_k / 2 * SINGLE / u, STORED, IN_HALF)]
    return [Step(*of, capped) for of in met for capped in (False, True)]


def computed(u: float) -> float:
    """How far ln p may be off for what happened in the type with this unit roundoff."""
    return u * (COMPUTED if u <= SINGLE else IN_HALF)


def stored(p: Array, name: str, roundings: float = STORED) -> Array:
    """How far ln p may be off for what happened in the type of the outputs; inf for 0."""
    u, smallest = TYPES[name]
    with np.errstate(divide="ignore"):
        return np.asarray(roundings * u + smallest / np.where(p > 0, p, 0.0))
