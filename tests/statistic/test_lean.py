"""What a curved statistic says of its studentised error is its second order, by moved weights."""

import math

import numpy as np
import pytest

from mcverify.statistic import difference_of, mean, ratio, ratio_of, slope, std, variance

# Values whose means, or means of squares, a change of the blocks' weights moves linearly: where
# squares are meant, block means are 0.
LEANING = {
    ratio: lambda x: (x[:, :1] + 5, x[:, 1:] + 3),
    slope(mean): lambda x: [(1, x[:, :1] + 2), (4, x[:, 1:] ** 2)],
    slope(variance): lambda x: [(1, x[:, :1] * [1, -1]), (4, x[:, 1:] ** 2 * [1, -1])],
    slope(std): lambda x: [(1, x[:, :1] * [1, -1]), (4, x[:, 1:] ** 2 * [1, -1])],
    ratio_of(mean, mean): lambda x: (x[:, :1] + 5, x[:, 1:] + 3),
    ratio_of(variance, variance): lambda x: (x[:, :1] * [1, -1], x[:, 1:] ** 2 * [1, -1]),
    ratio_of(std, std): lambda x: (x[:, :1] * [1, -1], x[:, 1:] ** 2 * [1, -1]),
    difference_of(std, mean): lambda x: (x[:, :1] * [1, -1], x[:, 1:] ** 2),
}


@pytest.mark.parametrize("statistic", LEANING, ids=lambda s: s.name)
def test_lean_is_the_second_order_of_the_studentised_error(statistic):
    """Blocks that count a little more where the influence is large move the estimate by a known
    error, and the spread with it: the studentised error is z + lean·z², z that of a mean."""
    x = np.random.default_rng(6).gamma(4.0, size=(16, 2))
    table = statistic.reduce(LEANING[statistic](x))
    value, influence = statistic.influence(np.repeat(table, 10_000, axis=0))
    y = influence[::10_000]
    for sign in (1, -1):
        counts = np.rint(1e4 * (1 + sign * 0.02 * y / y.std())).astype(int)
        moved, spread = statistic.influence(np.repeat(table, counts, axis=0))
        weights = counts / counts.sum()
        mean_of_y = weights @ y
        z = mean_of_y / math.sqrt(weights @ y**2 - mean_of_y**2)
        found = (moved - value) / spread.std()
        lean = statistic.lean(table)
        assert lean > 1e-3
        assert abs(found - z) / z**2 == pytest.approx(lean, rel=0.1)
