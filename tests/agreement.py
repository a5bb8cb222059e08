"""Whether draws agree with what is known exactly, at a stated rate of false alarms."""

import numpy as np
from scipy import stats

from mcverify.statistic import mean

RATE = 1e-9  # of false alarms, for each number that is compared
ROUNDING = 1e-9  # of values that do not vary, and of the exact number


def assert_mean(blocks, truth):
    """The mean over the first axis, which counts independent blocks, is the truth, entry by entry.

    Each entry's interval, which misses at RATE, must hold it; where blocks do not vary, they must
    be it.
    """
    blocks = np.asarray(blocks, dtype=np.float64)
    truth = np.broadcast_to(truth, blocks.shape[1:]).ravel()
    for value, column in zip(truth, blocks.reshape(len(blocks), -1).T, strict=True):
        found = mean.estimate(column[:, None], RATE)
        margin = ROUNDING * max(1.0, abs(value))
        if np.ptp(column) <= margin:
            assert abs(column - value).max() <= margin, f"{found} is not {value}"
        else:
            assert np.isfinite(found.low), f"{found} of {len(blocks)} blocks"
            assert found.low - margin <= value <= found.high + margin, f"{found} is not {value}"


def assert_drawn_from(x, distribution):
    """The independent numbers x are draws of the distribution (or of the other numbers given)."""
    given = distribution.cdf if hasattr(distribution, "cdf") else np.ravel(distribution)
    assert stats.kstest(np.ravel(x), given).pvalue > RATE
