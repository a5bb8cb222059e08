"""How queries and keys are drawn: laws are values, and laws of laws compose.

>>> str(shifted(correlated(normal, 0.3), 0.5))
'shifted[correlated[normal-0.3]-0.5]'
"""

from mcverify.laws import initialisation
from mcverify.laws.affine import linear, scaled
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
from mcverify.laws.covariance import autoregressive, gaussian, low_rank, unequal
from mcverify.laws.dependence import (
    common_scale,
    correlated,
    equicorrelated,
    identical,
    independent,
    shifted,
)
from mcverify.laws.heavy import stable
from mcverify.laws.law import Law, Moments
from mcverify.laws.measured import measured, measured_file, minilm
from mcverify.laws.projected import projected
from mcverify.laws.tokens import memory, shared_query, topic
from mcverify.laws.transforms import (
    clipped,
    layer_norm,
    quantised,
    rms_norm,
    rotary,
    unit_norm,
)
from mcverify.laws.uncorrelated import multivariate_t, random_sign, sign_products

__all__ = [
    "STANDARD",
    "Law",
    "Moments",
    "autoregressive",
    "clipped",
    "common_scale",
    "correlated",
    "equicorrelated",
    "exponential",
    "gaussian",
    "identical",
    "iid",
    "independent",
    "initialisation",
    "laplace",
    "layer_norm",
    "linear",
    "low_rank",
    "measured",
    "measured_file",
    "memory",
    "minilm",
    "multivariate_t",
    "normal",
    "projected",
    "quantised",
    "rademacher",
    "random_sign",
    "rms_norm",
    "rotary",
    "scaled",
    "shared_query",
    "shifted",
    "sign_products",
    "sparse",
    "stable",
    "student_t",
    "topic",
    "unequal",
    "uniform",
    "unit_norm",
]
