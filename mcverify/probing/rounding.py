"""From the type of the weights to how far rounding may have moved their logarithms.

A weight is off by some unit roundoffs of the type it is returned in and some of the type it is
computed in; a logit by some of the latter, in proportion to its size. All are bounds, not standard
errors: nothing is assumed of how roundings fall.
"""

from dataclasses import dataclass

import numpy as np

from mcverify.probing.calls import Array

# The unit roundoff of each type, and the smallest number it has.
TYPES = {
    "float64": (2.0**-53, 2.0**-1074),
    "float32": (2.0**-24, 2.0**-149),
    "float16": (2.0**-11, 2.0**-24),
    "bfloat16": (2.0**-8, 2.0**-133),
}
SINGLE, HALF, BRAIN = (TYPES[name][0] for name in ("float32", "float16", "bfloat16"))

STORED = 3  # roundings of a weight in the type it is returned in: exp, division, average
COMPUTED = 8  # unit roundoffs of exp, sum and division in the type that computes: exp is 1 to 4
IN_HALF = 3  # the same in half precisions, whose exp is rounded once
LOGIT = 4  # roundings of a logit: the scale itself, scaled queries and keys, the product
BENT = 2  # more of them behind a cap: of tanh and its product
OWN = 2.0**-51  # relative error of the logarithms that are taken here, and of their difference
COARSEST = 0.05  # below so much of relative accuracy a weight is not used


FAR = 16.0  # from here on, logits that are rounded to a half precision show it beside its weights


@dataclass(frozen=True)
class Step:
    """A rounding of logits that may explain them: a unit roundoff, and how often it is met."""

    u: float
    roundings: float
    capped: bool


def steps(name: str, d_k: int, largest: float) -> list[Step]:
    """What logits up to the largest may be: straight or capped, in one precision or the next.

    Sums of d_k products are exact if the scale comes after them, which is tried first; else their
    partial sums are rounded as well, in single precision or better. Of outputs in half precision,
    logits may be in single or in that half precision; only the latter is assumed where both would
    look the same, and a cap only where a straight line in either fails.

    >>> [(step.u == HALF, step.capped) for step in steps("float16", 64, 8.0)]
    [(True, False), (True, True)]
    """
    u = TYPES[name][0]
    finer = [u for u in (TYPES["float64"][0], SINGLE) if u >= TYPES[name][0]] or (
        [SINGLE] if largest >= FAR else [])
    coarser = [u] if u > SINGLE else [HALF, BRAIN]
    met = [(u, LOGIT + sums) for u in finer for sums in (0.0, d_k / 2)]
    met += [(u, LOGIT + d_k / 2 * SINGLE / u) for u in coarser]
    if u > SINGLE:
        return [Step(*x, capped) for capped in (False, True) for x in met]
    return [Step(*x, capped) for x in met for capped in (False, True)]


def computed(u: float) -> float:
    """How far ln p may be off for what happened in the type with this unit roundoff."""
    return u * (COMPUTED if u <= SINGLE else IN_HALF)


def stored(p: Array, name: str) -> Array:
    """How far ln p may be off for what happened in the type of the outputs; inf for 0."""
    u, smallest = TYPES[name]
    with np.errstate(divide="ignore"):
        return np.asarray(STORED * u + smallest / np.where(p > 0, p, 0.0))
