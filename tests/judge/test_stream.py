"""Normal numbers that are made many at a time."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from mcverify.judge.stream import FEW, PART, Stream


def stream(seed=0):
    return Stream(np.random.SFC64(seed))


def test_numbers_and_their_pairs_have_the_law_of_independent_normal_ones():
    x = stream().standard_normal(2 * 10**6)
    assert kstest(x, norm.cdf).pvalue > 1e-6
    first, second = x[:10**6], x[10**6:]  # coordinates of the same points
    assert kstest(first**2 + second**2, chi2(2).cdf).pvalue > 1e-6
    assert kstest(np.arctan2(second, first), lambda a: (a + np.pi) / (2 * np.pi)).pvalue > 1e-6
    for n in range(1, 7):
        assert abs((x**n).mean() - norm.moment(n)) < 7 * (norm.moment(2 * n) / len(x)) ** 0.5


def test_tails_are_those_of_the_normal_law():
    x = np.abs(stream(1).standard_normal(2**22))
    for edge in (3, 4, 5):
        expected = 2 * norm.sf(edge) * len(x)
        assert abs(np.sum(x > edge) - expected) < 7 * expected**0.5


@pytest.mark.parametrize("size", [None, 3, FEW - 1, FEW, FEW + 1, (3, PART), (2, 1, 7001), (0, 5)])
def test_shapes_are_those_of_numpy(size):
    assert np.shape(stream().standard_normal(size)) == np.shape(
        np.random.default_rng(0).standard_normal(size))
    assert np.isfinite(stream().standard_normal(size)).all()


def test_other_types_and_arrays_to_fill_are_left_to_numpy():
    usual = np.random.Generator(np.random.SFC64(3))
    single = stream(3).standard_normal(2 * FEW, dtype=np.float32)
    np.testing.assert_array_equal(single, usual.standard_normal(2 * FEW, dtype=np.float32))
    filled = np.empty(2 * FEW)
    assert stream().standard_normal(out=filled) is filled


def test_a_zero_of_the_uniform_law_is_no_infinity():
    class Zeros(Stream):
        def random(self, size=None, dtype=np.float64, out=None):
            x = np.zeros(size) if out is None else out
            x[...] = 0
            return x

    assert np.isfinite(Zeros(np.random.SFC64(0)).standard_normal(FEW)).all()
