"""Whether draws agree with what is known exactly, at a stated rate of false alarms."""

import numpy as np
from scipy import stats

from mcverify.statistic import mean, proportion

RATE = 1e-9  # of false alarms, for each number that is compared
ROUNDING = 1e-9  # of values that do not vary, and of the exact number
MOST = 2**18  # blocks
GROUPS = 512  # of blocks, into which those of shares are put: an interval of many takes long


def assert_mean(values, truth):
    """The mean over the first axis, which counts independent blocks, is the truth, entry by entry.

    Each entry's interval, which misses at RATE, must hold it; where blocks do not vary, they must
    be it. ``values`` may be a function of the number of blocks: it is asked for four times as many
    until there are enough for an interval of every entry.
    """
    blocks = 2**10
    while not _compared(values(blocks) if callable(values) else values, truth):
        blocks *= 4
        assert callable(values), "too few blocks for an interval"
        assert blocks <= MOST, f"no interval from {MOST} blocks"


def _compared(values, truth):
    """Whether there is an interval for each entry; raises AssertionError if one is elsewhere."""
    values = np.asarray(values, dtype=np.float64)
    truth = np.broadcast_to(truth, values.shape[1:]).ravel()
    for value, column in zip(truth, values.reshape(len(values), -1).T, strict=True):
        margin = ROUNDING * max(1.0, abs(value))
        if np.ptp(column) <= margin:
            assert abs(column - value).max() <= margin, f"{column[0]} is not {value}"
            continue
        found = mean.estimate(column[:, None], RATE)
        if not np.isfinite(found.low):
            return False
        assert found.low - margin <= value <= found.high + margin, f"{found} is not {value}"
    return True


def assert_share(values, share):
    """As ``assert_mean`` for values in [0, 1], of which any number of blocks has an interval."""
    values = np.asarray(values, dtype=np.float64)
    groups = values[:len(values) // GROUPS * GROUPS].reshape(GROUPS, -1, *values.shape[1:])
    values = groups.mean(axis=1)
    shares = np.broadcast_to(share, values.shape[1:]).ravel()
    for truth, column in zip(shares, values.reshape(len(values), -1).T, strict=True):
        found = proportion.estimate(column[:, None], RATE)
        assert found.low - ROUNDING <= truth <= found.high + ROUNDING, f"{found} is not {truth}"


def assert_drawn_from(x, distribution):
    """The independent numbers x are draws of the distribution (or of the other numbers given)."""
    given = distribution.cdf if hasattr(distribution, "cdf") else np.ravel(distribution)
    assert stats.kstest(np.ravel(x), given).pvalue > RATE
