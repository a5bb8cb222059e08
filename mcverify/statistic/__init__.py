"""From the values of a claim's body to a few numbers a block, and from those to an interval."""

from mcverify.statistic.base import (
    Statistic,
    exact,
    kurtosis,
    mean,
    median,
    proportion,
    quantile,
    ratio,
    slope,
    std,
    variance,
)
from mcverify.statistic.interval import Estimate

__all__ = [
    "Estimate",
    "Statistic",
    "exact",
    "kurtosis",
    "mean",
    "median",
    "proportion",
    "quantile",
    "ratio",
    "slope",
    "std",
    "variance",
]
