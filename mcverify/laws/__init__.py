"""How queries and keys are drawn: laws are values, and laws of laws compose.

>>> str(shifted(correlated(normal, 0.3), 0.5))
'shifted[correlated[normal-0.3]-0.5]'
"""

from mcverify.laws import initialisation
from mcverify.laws.blocks import block_moments, fourth_moments
from mcverify.laws.coordinates import STANDARD, exponential, laplace, normal, rademacher, uniform
from mcverify.laws.coordinates_heavy import sparse, stable, student_t
from mcverify.laws.coordinates_scipy import iid
from mcverify.laws.coordinates_tied import (
    common_scale,
    equicorrelated,
    multivariate_t,
    sign_products,
)
from mcverify.laws.covariance import autoregressive, gaussian, low_rank, unequal
from mcverify.laws.independent_tokens import ScoreMoments, score_moments
from mcverify.laws.law import BlockMoments, FourthMoments, Law, Moments
from mcverify.laws.linear_image import linear
from mcverify.laws.norms import layer_norm, rms_norm, unit_norm
from mcverify.laws.projection import projected
from mcverify.laws.q_tied_to_k import correlated, identical, independent, random_sign
from mcverify.laws.real_tokens import measured, measured_file, minilm
from mcverify.laws.rotary_positions import rotary
from mcverify.laws.shift_scale import scaled, shifted
from mcverify.laws.tokens_tied import memory, shared_query, topic
from mcverify.laws.transforms import clipped, quantised

__all__ = [
    "STANDARD",
    "BlockMoments",
    "FourthMoments",
    "Law",
    "Moments",
    "ScoreMoments",
    "autoregressive",
    "block_moments",
    "clipped",
    "common_scale",
    "correlated",
    "equicorrelated",
    "exponential",
    "fourth_moments",
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
    "score_moments",
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
