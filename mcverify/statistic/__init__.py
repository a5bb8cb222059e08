"""From the values of a claim's body to block values, and from those to an interval."""

from mcverify.statistic.base import Statistic
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.statistic.known import Known
from mcverify.statistic.moments import kurtosis, mean, std, variance
from mcverify.statistic.pairs import difference_of, ratio_of
from mcverify.statistic.quantiles import median, quantile
from mcverify.statistic.ratios import ratio
from mcverify.statistic.shares import exact, proportion
from mcverify.statistic.slopes import slope

__all__ = [
    "Basis",
    "Estimate",
    "Known",
    "Statistic",
    "difference_of",
    "exact",
    "kurtosis",
    "mean",
    "median",
    "proportion",
    "quantile",
    "ratio",
    "ratio_of",
    "slope",
    "std",
    "variance",
]
