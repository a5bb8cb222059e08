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
LOGIT = 3  # roundings of a logit: the scale itself, scaled queries or keys, the product
BENT = 5  # the same behind a cap, whose tanh and product come on top
COARSEST = 0.05  # below so much of relative accuracy a weight is not used


def levels(name: str) -> list[float]:
    """The unit roundoffs that logits may have been computed with, the finest first.

    Outputs in half precision come from logits in single precision or in that half precision.

    >>> levels("bfloat16") == [SINGLE, BRAIN]
    True
    """
    finest = TYPES["float64"][0] if name == "float64" else SINGLE
    return [finest, *(u for u in (SINGLE, HALF, BRAIN) if u >= TYPES[name][0] and u > finest)]


def stored(p: Array, name: str) -> Array:
    """How far ln p may be off for what happened in the type of the outputs; inf for 0."""
    u, smallest = TYPES[name]
    with np.errstate(divide="ignore"):
        return np.asarray(STORED * u + smallest / np.where(p > 0, p, 0.0))
