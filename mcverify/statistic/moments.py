"""Mean, variance, standard deviation and kurtosis of all values."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.bets_on_rows import interval_of_rows
from mcverify.statistic.betting import interval_of_mean
from mcverify.statistic.estimate import Estimate
from mcverify.statistic.known import check_range
from mcverify.statistic.merging import central, means
from mcverify.statistic.studentised import MIN_SPREAD, standard_error
from mcverify.statistic.values import block_means, flat


def mean_influence(table: Array) -> tuple[float, Array]:
    """The mean of the first block values, and each block's departure from it."""
    value = float(table[:, 0].mean())
    return value, table[:, 0] - value


def by_betting(
    table: Array, low: float, high: float, error_rate: float, size: int = 1
) -> Estimate:
    """The mean of block values in [low, high], with the betting interval."""
    check_range(table[:, 0], low, high, "the block values")
    width = high - low
    shares = np.clip((table[:, 0] - low) / width, 0.0, 1.0)
    below, above = (interval_of_mean(shares, error_rate) if size == 1 else
                    interval_of_rows(shares, table[:, 1] / width**2, size, error_rate))
    value, influence = mean_influence(table)
    return Estimate(value, standard_error(influence), low + width * below, high - width * above)


def _central(values: Any, order: int) -> Array:
    # Central moments within a block, merged later about the grand mean: raw E s² − (E s)² loses
    # every digit once the mean is 1e8 standard deviations away.
    # Where the mean is below 30 of them it loses three digits at most, and takes half the time.
    x = flat(values)
    mean = x @ np.ones(x.shape[1]) / x.shape[1]  # of short rows in half the time of x.mean
    if order == 2:
        squares = np.einsum("bi,bi->b", x, x) / x.shape[1]
        second = squares - mean * mean
        if np.all(second > 1e-3 * squares):
            return np.stack([mean, second], axis=1)
    x = x - mean[:, None]
    columns = [mean, np.einsum("bi,bi->b", x, x)]
    if order == 4:
        squares = x * x
        columns += [np.einsum("bi,bi->b", squares, x), np.einsum("bi,bi->b", squares, squares)]
    table = np.stack(columns, axis=1)
    table[:, 1:] /= x.shape[1]
    return table


_second_moments = partial(_central, order=2)
_fourth_moments = partial(_central, order=4)


def _variance_influence(table: Array) -> tuple[float, Array]:
    blocks = len(table)
    shift = table[:, 0] - table[:, 0].mean()
    # blocks/(blocks − 1) undoes the bias of the block means' own spread about their mean.
    squares = table[:, 1] + shift**2 * (blocks / max(blocks - 1, 1))
    value = float(squares.mean())
    return value, squares - value


def _about(table: Array, centre: float) -> tuple[Array, Array, Array, Array]:
    """The block means' shifts from it, and each block's second to fourth moment about it."""
    mean, c2, c3, c4 = table.T
    shift = mean - centre
    y2 = c2 + shift**2
    y3 = c3 + 3 * shift * c2 + shift**3
    y4 = c4 + 4 * shift * c3 + 6 * shift**2 * c2 + shift**4
    return shift, y2, y3, y4


def _kurtosis_influence(table: Array) -> tuple[float, Array]:
    shift, y2, y3, y4 = _about(table, float(table[:, 0].mean()))
    m2, m3, m4 = float(y2.mean()), float(y3.mean()), float(y4.mean())
    constant = m2 <= (MIN_SPREAD * np.abs(table[:, 0]).max()) ** 2  # but for rounding
    if constant or not 0 < m2 * m2 < math.inf:  # or in a unit without fourth powers
        return math.nan, np.zeros(len(table))
    influence = (y4 - m4 - 4 * m3 * shift) / m2**2 - 2 * m4 * (y2 - m2) / m2**3
    return m4 / m2**2 - 3, influence


def _kurtosis_parts(table: Array) -> Array:
    # x⁴ − 6x² looks neither wide nor skew until its rare large values arrive; x⁴ alone does.
    _, y2, _, y4 = _about(table, float(table[:, 0].mean()))
    return np.stack([y2, y4], axis=1)


def kurtosis_about(table: Array, known: tuple[float, float, float]) -> Array:
    """Excess kurtosis as a mean of one value a block, for a known mean, variance V and κ = E x⁴/V².

    x⁴ less what x² varies with it, 2κV(x² − V), whose mean is 0: whatever number κ is.
    """
    mean, variance, kurtosis = known
    _, y2, _, y4 = _about(table, mean)
    return np.asarray(y4 / variance**2 - 2 * kurtosis * (y2 / variance - 1) - 3)


mean = Statistic("mean", block_means, mean_influence, moments=3, ranged=by_betting,
                 about=lambda table, known: table[:, 0], knows=block_means, merge=means)
variance = Statistic(
    "variance", _second_moments, _variance_influence, moments=6,
    curvature=lambda table: float(table[:, 0].var()),
    about=lambda table, known: table[:, 1] + (table[:, 0] - known) ** 2, power=2,
    knows=_second_moments, merge=central,
)
std = replace(variance, name="std", back=lambda value: math.sqrt(max(value, 0.0)))
# Fourth powers show their skewness late: of four normal values a block, the samples that miss show
# 0.56 of it in 512 blocks and 0.68 in 1,024, and 1.56 and 1.17 times as many miss as may at 1e-2.
CAUTION_OF_FOURTHS = 128

kurtosis = Statistic(  # excess: 0 for the normal law
    "kurtosis", _fourth_moments, _kurtosis_influence, moments=12,
    parts=_kurtosis_parts, caution=CAUTION_OF_FOURTHS,
    about=kurtosis_about, power=4, knows=_fourth_moments, merge=central,
)
