"""From the type of the weights to how far rounding may have moved their logarithms.

A weight is off by some unit roundoffs of the type it is returned in and some of the type it is
computed in; a logit by some of the latter, in proportion to its size. All are bounds, not standard
errors: nothing is assumed of how roundings fall.
"""

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
LOGIT = 3  # roundings of a logit: the scale itself, scaled queries or keys, the product
BENT = 5  # the same behind a cap, whose tanh and product come on top
OWN = 2.0**-51  # relative error of the logarithms that are taken here, and of their difference
COARSEST = 0.05  # below so much of relative accuracy a weight is not used


FAR = 16.0  # from here on, logits that are rounded to a half precision show it beside its weights


def levels(name: str, largest: float) -> list[float]:
    """The unit roundoffs that logits up to the largest may have been computed with, finest first.

    Outputs in half precision come from logits in single precision or in that half precision; only
    the latter is assumed where they would look the same.

    >>> levels("bfloat16", 64.0) == [SINGLE, BRAIN], levels("float16", 8.0) == [HALF]
    (True, True)
    """
    coarser = [u for u in (SINGLE, HALF, BRAIN) if u >= TYPES[name][0]]
    if name == "float64":
        return [TYPES[name][0], *coarser]
    return coarser if name == "float32" else ([SINGLE] if largest >= FAR else []) + coarser[:1]


def computed(u: float) -> float:
    """How far ln p may be off for what happened in the type with this unit roundoff."""
    return u * (COMPUTED if u <= SINGLE else IN_HALF)


def stored(p: Array, name: str) -> Array:
    """How far ln p may be off for what happened in the type of the outputs; inf for 0."""
    u, smallest = TYPES[name]
    with np.errstate(divide="ignore"):
        return np.asarray(STORED * u + smallest / np.where(p > 0, p, 0.0))
