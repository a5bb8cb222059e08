"""A quantile of which only what still matters is kept: the same interval, and far fewer numbers."""

import numpy as np
import pytest

from mcverify.statistic import median, quantile
from mcverify.statistic.narrowed import Narrowed
from mcverify.verdict import looks

RATE = 1e-10


def of_a_block(rng, blocks):
    """Values that depend on each other within a block."""
    return rng.standard_normal((blocks, 1)) + rng.standard_normal((blocks, 4))


@pytest.mark.parametrize(("statistic", "draw"), [
    (median, of_a_block), (quantile(0.9), of_a_block),
    (median, lambda rng, blocks: rng.integers(0, 7, (blocks, 3)).astype(float)),
    (quantile(0.2), lambda rng, blocks: rng.standard_cauchy((blocks, 1))),
], ids=["median", "quantile", "ties", "cauchy"])
def test_the_interval_is_what_all_looks_at_all_values_leave(statistic, draw):
    rng, whole, narrowed = np.random.default_rng(4), np.empty((0, 1)), None
    least, most = -np.inf, np.inf
    for start, stop in looks(2**14):
        fresh = draw(rng, stop - start)
        whole = np.concatenate([whole, fresh]) if start else fresh
        of_all = statistic.estimate(whole, RATE)
        least, most = max(least, of_all.low), min(most, of_all.high)
        if narrowed is not None:
            for part in np.array_split(fresh, 3):
                narrowed.add(part)
            found = statistic.estimate(narrowed, RATE)
            assert (found.low, found.high) == (least, most)
            assert least <= found.value <= most
            if least <= of_all.value <= most:
                assert found.value == of_all.value
            assert len(narrowed) == len(whole)
            assert found.stderr == pytest.approx(of_all.stderr, rel=0.3) or (
                np.isnan(of_all.stderr) or of_all.stderr == 0)
            narrowed.narrow(found.low, found.high)
        elif np.isfinite(of_all.high - of_all.low):
            narrowed = Narrowed(whole, of_all.low, of_all.high)
    assert narrowed is not None


def test_what_is_kept_grows_with_the_root_of_the_blocks():
    rng, sizes = np.random.default_rng(5), []
    narrowed = Narrowed(rng.standard_normal((2**12, 4)), -0.2, 0.2)
    for stop in (2**14, 2**16, 2**18):
        narrowed.add(rng.standard_normal((stop - len(narrowed), 4)))
        found = median.estimate(narrowed, RATE)
        narrowed.narrow(found.low, found.high)
        sizes.append(narrowed.size)
    assert 1.5 * sizes[0] < sizes[1] < 3 * sizes[0]
    assert 1.5 * sizes[1] < sizes[2] < 3 * sizes[1]
    assert sizes[2] < 2**18 * 4 / 20
