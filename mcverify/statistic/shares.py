"""Shares of values, and numbers without error."""

from dataclasses import replace
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.statistic.moments import mean, mean_influence
from mcverify.statistic.values import block_means, flat


def _proportion_reduce(values: Any) -> Array:
    x = flat(values)
    if x.size and not (0 <= x.min() and x.max() <= 1):
        raise ValueError(f"proportion: the body returned values from {x.min():g} to {x.max():g}; "
                         "they must lie in [0, 1]; use the statistic mean")
    return block_means(x)


# Of events (0 or 1) and of shares of them: bounded, so that its interval holds for every law.
proportion = replace(mean.within(0.0, 1.0), name="proportion", reduce=_proportion_reduce)


def _exact_reduce(values: Any) -> Array:
    x = np.asarray(values, dtype=np.float64)
    if x.size != 1:
        raise ValueError(f"exact: the body returned shape {x.shape}; a hand calculation is one "
                         "number")
    return x.reshape(1, 1)


def _exact_interval(table: Array, error_rate: float) -> Estimate:
    value = float(table[0, 0])
    return Estimate(value, 0.0, value, value)


exact = Statistic("exact", _exact_reduce, mean_influence, moments=0, interval=_exact_interval,
                  basis=Basis.EXACT, draws=False)
