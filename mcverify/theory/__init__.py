"""What mathematics predicts. Nothing here draws, and nothing that draws imports it."""

from mcverify.theory import enumeration, softmax
from mcverify.theory.moments import (
    coin_sum_mean_size,
    correlated_variance,
    dot_kurtosis,
    dot_mean,
    dot_variance,
    matched_mean,
    scaled_vector_kurtosis,
)

__all__ = [
    "coin_sum_mean_size",
    "correlated_variance",
    "dot_kurtosis",
    "dot_mean",
    "dot_variance",
    "enumeration",
    "matched_mean",
    "scaled_vector_kurtosis",
    "softmax",
]
