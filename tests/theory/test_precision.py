"""Overflow against NumPy's own, closed forms, mpmath, draws; bfloat16 against exact arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcverify.attention import bfloat16, naive_softmax
from mcverify.theory.precision import (
    LARGEST,
    largest_exponent,
    product_overflow,
    row_overflow,
)

WIDTHS = st.integers(1, 2000)
KEYS = st.integers(1, 10**6)
LIMITS = st.floats(0.1, 690)  # where no chance is subnormal
SIDES = st.booleans()


def agree(found, expected, rel):
    """However small, where pytest.approx would be content below 1e-12."""
    assert abs(found - expected) <= rel * expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_exp_overflows_from_the_first_number_above_the_largest_exponent(dtype):
    largest = largest_exponent(dtype)
    assert LARGEST[dtype.__name__] == np.finfo(dtype).max
    near = dtype(largest)
    around = [near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf))]
    first = min(x for x in around if float(x) > largest)
    with np.errstate(over="ignore"):
        assert np.exp(first) == np.inf
    assert np.isfinite(np.exp(np.nextafter(first, dtype(0))))


def test_the_first_bfloat16_whose_exp_overflows():
    near = bfloat16(np.array([88.5, 89.0], dtype=np.float32))
    np.testing.assert_array_equal(near, [88.5, 89.0])  # neighbours, as numbers there are 0.5 apart
    assert near[0] < largest_exponent("bfloat16") < near[1]
    with np.errstate(over="ignore"):
        found = bfloat16(np.exp(near))
    assert np.isfinite(found[0])
    assert np.isinf(found[1])
    top = np.float32(LARGEST["bfloat16"])
    assert LARGEST["bfloat16"] == top
    assert top.view(np.uint32) == 0x7F7F0000  # the next has the bits of infinity
    assert bfloat16(top) == top < np.inf == bfloat16(np.float32(np.finfo(np.float32).max))


def test_types_that_are_refused():
    assert largest_exponent("float32") == largest_exponent(np.dtype("float32"))
    for bad in ("float8", np.int64):
        with pytest.raises(ValueError, match="float16, bfloat16, float32, float64"):
            largest_exponent(bad)


@pytest.mark.parametrize("limit", [1e-3, 1.0, 30.0, 700.0])
def test_one_key_and_few_coordinates(limit):
    """q·k of 2 coordinates is Laplace, of 4 the sum of two Laplace variables."""
    for d_k, tail in ((2, math.exp(-limit) / 2), (4, math.exp(-limit) * (2 + limit) / 4)):
        agree(row_overflow(d_k, 1, limit), tail, rel=1e-11)
        agree(row_overflow(d_k, 1, 3 * limit, 3.0), tail, rel=1e-11)
        agree(row_overflow(d_k, 1, limit, two_sided=True), 2 * tail, rel=1e-11)


def by_mpmath(d_k, keys, limit, two_sided):
    """In r, over its density 2(r²/2)^(d_k/2) e^(−r²/2)/(Γ(d_k/2) r), with 20 digits."""
    with mpmath.workdps(20):
        half = mpmath.mpf(d_k) / 2
        sides = 2 if two_sided else 1

        def integrand(r):
            if r == 0:
                return mpmath.mpf(0)
            density = 2 * mpmath.exp(half * mpmath.log(r * r / 2) - r * r / 2) / r
            tail = mpmath.erfc(limit / r / mpmath.sqrt(2)) / 2
            return density * -mpmath.expm1(keys * mpmath.log1p(-sides * tail))

        middle = mpmath.sqrt(d_k + limit)  # near both the bulk and where rare events come from
        ends = [middle * x for x in (0, 0.5, 0.85, 1, 1.15, 1.5, 2.5, 6)]
        return float(mpmath.quad(integrand, ends, maxdegree=4) / mpmath.gamma(half))


@pytest.mark.parametrize(("d_k", "keys", "limit", "two_sided"), [
    (1, 1000, 40, False), (3, 2, 5, True), (64, 4096, 30, True), (512, 10**9, 709.78, False),
    (1000, 1, 1265, False)])
def test_rows_by_mpmath(d_k, keys, limit, two_sided):
    expected = by_mpmath(d_k, keys, limit, two_sided)
    agree(row_overflow(d_k, keys, limit, two_sided=two_sided), expected, rel=1e-9)


@given(KEYS, st.floats(0.1, 6) | st.floats(36, 37.7))
def test_wide_rows_are_independent_scores(keys, limit):
    """At 1e12 coordinates r/√d_k has a spread of 7e-7, which counts as its square times x⁴."""
    x = mpmath.mpf(limit)
    tail = mpmath.erfc(x / mpmath.sqrt(2)) / 2
    expected = float(-mpmath.expm1(keys * mpmath.log1p(-tail)))
    found = row_overflow(10**12, keys, limit, 1e-6)
    agree(found, expected, rel=1e-9 + 1e-12 * limit**4)


def test_a_row_of_scores_that_hardly_exceed_on_their_own():
    """Where one score's chance is below the smallest float64, that of 10^9 of them is not."""
    with mpmath.workdps(30):
        expected = float(10**9 * mpmath.erfc(mpmath.mpf(38.6) / mpmath.sqrt(2)) / 2)
    found = row_overflow(10**12, 10**9, 38.6, 1e-6)
    assert found > 0
    agree(found, expected, rel=1e-5)


@given(WIDTHS, KEYS, LIMITS, SIDES)
def test_bounds_and_order_of_row_overflow(d_k, keys, limit, two_sided):
    p = row_overflow(d_k, keys, limit, two_sided=two_sided)
    one = row_overflow(d_k, 1, limit, two_sided=two_sided)
    assert 0 <= p <= 1
    near = 1 + 1e-10
    assert one <= p * near
    assert p <= keys * one * near  # the union bound
    assert p <= row_overflow(d_k + 1, keys, limit, two_sided=two_sided) * near
    assert p <= row_overflow(d_k, keys + 1, limit, two_sided=two_sided) * near
    assert p <= row_overflow(d_k, keys, limit * 0.99, two_sided=two_sided) * near
    assert p <= row_overflow(d_k, keys, limit, two_sided=True) * near
    scaled = row_overflow(d_k, keys, 8 * limit, 8.0, two_sided)
    agree(scaled, p, rel=1e-10)


def normal_rows(seed, rows, keys, d_k):
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((rows, 1, d_k)), rng.standard_normal((rows, keys, d_k))
    return (q @ np.swapaxes(k, 1, 2))[:, 0]


def share_is(found, p):
    """Of independent rows, within 6 standard errors."""
    error = math.sqrt(p * (1 - p) / len(found))
    assert error < 0.08 * p  # so that half of it or double would show
    return abs(found.mean() - p) < 6 * error


@pytest.mark.parametrize(("d_k", "keys", "limit"), [(1, 16, 3.0), (8, 8, 7.0), (64, 4, 16.0)])
def test_rows_of_draws(d_k, keys, limit):
    s = normal_rows(3, 20_000, keys, d_k)
    assert share_is((s > limit).any(axis=1), row_overflow(d_k, keys, limit))
    assert share_is((np.abs(s) > limit).any(axis=1), row_overflow(d_k, keys, limit, two_sided=True))


def test_rows_in_which_a_naive_softmax_overflows():
    """In float16 a term overflows from 11.09 on; the sum may at ln(keys) below."""
    keys = 8
    p = naive_softmax(normal_rows(4, 20_000, keys, 16).astype(np.float16))
    term, limit = np.isnan(p).any(axis=1), largest_exponent("float16")
    assert share_is(term, row_overflow(16, keys, limit))
    summed = term | (p == 0).all(axis=1)
    assert summed.sum() > term.sum()
    assert summed.mean() < row_overflow(16, keys, limit - math.log(keys))


def test_products_of_large_coordinates():
    """std 64 at d_k = 64: q·k has standard deviation 32768, and 4096 if q is scaled first."""
    s = 64**2 * normal_rows(5, 8000, 2, 64)
    p = product_overflow(64, 2, std=64.0)
    assert share_is((np.abs(s) > 65504).any(axis=1), p)
    assert p == row_overflow(64, 2, 65504 / 64**2, two_sided=True)
    scaled = product_overflow(64, 2, std=64.0, scale=1 / 8)
    agree(scaled, row_overflow(64, 2, 65504 / 512, two_sided=True), rel=1e-9)
    assert 0 < scaled < 1e-30
    agree(product_overflow(64, 1, std=64.0, scale=1 / 8), scaled / 2, rel=1e-9)


def test_products_of_unit_coordinates_are_what_is_asked_for_by_default():
    assert product_overflow(64, limit=20.0) == row_overflow(64, 1, 20.0, two_sided=True)
    assert product_overflow(64, 3, limit=20.0) == row_overflow(64, 3, 20.0, two_sided=True)
    assert product_overflow(10**8) == row_overflow(10**8, 1, 65504.0, two_sided=True) > 1e-11


@given(WIDTHS, LIMITS)
def test_scores_of_no_chance_are_zero_and_not_an_error(d_k, limit):
    assert row_overflow(d_k, 10**6, limit, scale=1e-300) == 0
    assert row_overflow(d_k, 10**6, 900 * math.sqrt(d_k) + limit) == 0


def test_arguments_that_are_refused():
    assert row_overflow(10**12, 1, 1e6) > 0
    for bad in [(0, 1, 1.0), (10**12 + 1, 1, 1.0), (1, 0, 1.0), (math.nan, 1, 1.0)]:
        with pytest.raises(ValueError, match="width of a head"):
            row_overflow(*bad)
    for bad in [(1, 1, 0.0), (1, 1, -1.0), (1, 1, math.inf), (1, 1, 1.0, 0.0), (1, 1, math.nan)]:
        with pytest.raises(ValueError, match="positive and finite"):
            row_overflow(*bad)
    with pytest.raises(ValueError, match=r"limit = 2.0 and scale = 0.0: both must be"):
        row_overflow(1, 1, 2.0, 0.0)


def test_every_bfloat16_and_what_lies_between():
    """All 2^16 of them, with float32 numbers up to the next: the nearest, by exact float64."""
    high = np.arange(2**16, dtype=np.uint32) << 16
    between = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], dtype=np.uint32)
    x = (high[:, None] + between).view(np.float32)
    number = np.isfinite(high.view(np.float32))
    x, high = x[number].astype(np.float64), high[number]
    following = (high + np.uint32(1 << 16)).view(np.float32).astype(np.float64)
    following = np.where(np.isinf(following), np.copysign(2.0**128, following), following)[:, None]
    here = high.view(np.float32).astype(np.float64)[:, None]
    down, up = np.abs(x - here), np.abs(following - x)
    even = (high >> 16)[:, None] % 2 == 0
    expected = np.where((down < up) | ((down == up) & even), here, following)
    found = bfloat16(x.astype(np.float32)).astype(np.float64)
    finite = np.abs(expected) < 2.0**128
    np.testing.assert_array_equal(found[finite], expected[finite])
    assert np.isinf(found[~finite]).all()
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))


@given(st.floats(2.0**-126, 2.0**127, width=32), st.sampled_from([1, -1]))
def test_bfloat16_has_eight_bits(x, sign):
    significand, exponent = math.frexp(x)
    expected = sign * math.ldexp(round(significand * 256), exponent - 8)  # round: ties to even
    assert bfloat16(np.float32(sign * x)) == expected


def test_bfloat16_of_ties_infinities_and_nan():
    x = np.array([64.25, 64.75, 65.25, -64.25, 127.75, 0.0, -0.0, np.inf, -np.inf], np.float32)
    expected = [64.0, 65.0, 65.0, -64.0, 128.0, 0.0, -0.0, np.inf, -np.inf]
    found = bfloat16(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    nans = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001], np.uint32).view(np.float32)
    assert np.isnan(bfloat16(nans)).all()
    assert np.isnan(bfloat16(nans[2]))
    np.testing.assert_array_equal(bfloat16(x[::-2]), found[::-2])
    for bad in (np.zeros(2), np.zeros(2, np.float16), [1.0]):
        with pytest.raises(ValueError, match="rounds only once"):
            bfloat16(bad)


@given(st.integers(0, 2**32 - 1))
def test_rounding_twice_changes_nothing(bits):
    x = np.array([bits], np.uint32).view(np.float32)
    assume(not np.isnan(x[0]))
    once = bfloat16(x)
    np.testing.assert_array_equal(bfloat16(once), once)
