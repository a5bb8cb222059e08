"""How queries and keys are drawn: laws are values, and laws of laws compose.

>>> str(shifted(correlated(normal, 0.3), 0.5))
'shifted[correlated[normal-0.3]-0.5]'
"""

from mcverify.laws.coordinates import (
    STANDARD,
    exponential,
    iid,
    laplace,
    normal,
    rademacher,
    sparse,
    student_t,
    uniform,
)
from mcverify.laws.dependence import (
    common_scale,
    correlated,
    equicorrelated,
    identical,
    independent,
    shifted,
)
from mcverify.laws.law import Law, Moments

__all__ = [
    "STANDARD",
    "Law",
    "Moments",
    "common_scale",
    "correlated",
    "equicorrelated",
    "exponential",
    "identical",
    "iid",
    "independent",
    "laplace",
    "normal",
    "rademacher",
    "shifted",
    "sparse",
    "student_t",
    "uniform",
]
