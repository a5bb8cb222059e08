"""Functions of one vector: naive formulas in wider types, invariances, and the edges of floats."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mcverify.attention import vectors
from mcverify.attention.vectors import clip, layer_norm, pad, quantise, rms_norm, rotate, unit_norm

WIDE = np.longdouble
NORMS = [layer_norm, rms_norm, unit_norm]
EVERY = [*NORMS, lambda x: clip(x, 1.0), lambda x: quantise(x, 4, 2.0), lambda x: rotate(x, 3),
         lambda x: pad(x, 6)]
ARRAYS = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9),
                    elements=st.floats(-100, 100).map(lambda x: round(x, 3)))
SEEDS = st.integers(0, 2**32)


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def naive(norm, x, epsilon=0.0):
    x = x.astype(WIDE)
    if norm is layer_norm:
        x = x - x.mean(axis=-1, keepdims=True)
    square = (x**2).sum(axis=-1, keepdims=True)
    square = square if norm is unit_norm else square / x.shape[-1] + WIDE(epsilon)
    return np.divide(x, np.sqrt(square), out=np.zeros_like(x), where=square > 0)


# --- norms -----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(ARRAYS, st.sampled_from([0.0, 1e-5, 1.0]))
def test_norms_are_the_naive_formulas_in_a_wider_type(x, epsilon):
    spread = np.ptp(x, axis=-1, keepdims=True)
    if ((0 < spread) | (epsilon > 0)).all():
        expected = naive(layer_norm, x, epsilon)
        np.testing.assert_allclose(layer_norm(x, epsilon=epsilon), expected, atol=1e-13)
    np.testing.assert_allclose(rms_norm(x, epsilon=epsilon), naive(rms_norm, x, epsilon), 1e-14)
    np.testing.assert_allclose(unit_norm(x), naive(unit_norm, x), rtol=1e-14)


def test_norms_by_hand():
    np.testing.assert_array_equal(layer_norm([5.0, 1.0]), [1.0, -1.0])
    np.testing.assert_allclose(layer_norm([2.0, 0.0, 4.0]), np.array([0, -1, 1]) * math.sqrt(1.5))
    np.testing.assert_allclose(rms_norm([3.0, 4.0]), np.array([3, 4]) / math.sqrt(12.5))
    np.testing.assert_allclose(unit_norm([3.0, 4.0]), [0.6, 0.8])
    np.testing.assert_allclose(layer_norm([5.0, 1.0], epsilon=12.0), [0.5, -0.5])
    np.testing.assert_allclose(rms_norm([3.0, 4.0], epsilon=12.5), [0.6, 0.8])
    np.testing.assert_allclose(layer_norm([5.0, 1.0], gain=[2.0, 3.0], bias=[1.0, -1.0]), [3, -4])
    np.testing.assert_allclose(rms_norm([3.0, 3.0], gain=[2.0, -1.0]), [2, -1])


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e8 + 0.1, 1e-320, 1e308, -7.0])
@pytest.mark.parametrize("d_k", [1, 3, 7, 100, 1023])
def test_equal_coordinates_become_the_bias_and_zero_vectors_stay_zero(value, d_k):
    x = np.full(d_k, value)
    np.testing.assert_array_equal(layer_norm(x), np.zeros(d_k))
    if value < 1e10:
        np.testing.assert_array_equal(layer_norm(x.astype(np.float32)), np.zeros(d_k))
    np.testing.assert_array_equal(layer_norm(x, bias=0.25, epsilon=1e-5), np.full(d_k, 0.25))
    for norm in (rms_norm, unit_norm):
        np.testing.assert_array_equal(norm(np.zeros(d_k)), np.zeros(d_k))


def test_many_equal_coordinates_in_single_precision():
    # Summed row after row, as in an array laid out by columns, they leave a rounding.
    x = np.asarray(np.full((8, 40_001), 0.1, np.float32), order="F")
    assert not layer_norm(x).any()


@pytest.mark.parametrize(("kind", "offset", "error"), [
    (np.float64, 1e8, 1e-14), (np.float64, 1e15, 1e-14), (np.float32, 1e4, 1e-5)])
def test_layer_norm_far_from_zero(kind, offset, error):
    x = (normals(1, 50, 64) + offset).astype(kind)
    np.testing.assert_allclose(layer_norm(x), naive(layer_norm, x).astype(float), atol=error)


def test_layer_norm_far_from_zero_against_mpmath():
    x = [1e12 + 1, 1e12 + 2, 1e12 + 2.5, 1e12 - 7]
    with mpmath.workdps(60):
        mean = mpmath.fsum(map(mpmath.mpf, x)) / 4
        root = mpmath.sqrt(mpmath.fsum((mpmath.mpf(v) - mean) ** 2 for v in x) / 4)
        expected = [float((mpmath.mpf(v) - mean) / root) for v in x]
    np.testing.assert_allclose(layer_norm(x), expected, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("kind", "size", "error"), [
    (np.float64, 1e307, 1e-14), (np.float64, 1e-300, 1e-14), (np.float32, 1e38, 1e-6),
    (np.float32, 1e-36, 1e-6), (np.float16, 2e4, 2e-3), (np.float16, 1e-4, 2e-3)])
def test_norms_where_squares_leave_the_floating_range(norm, kind, size, error):
    x = (size * np.clip(normals(2, 20, 16), -3, 3)).astype(kind)
    expected = naive(norm, x).astype(np.float64)
    np.testing.assert_allclose(norm(x).astype(np.float64), expected, atol=error * expected.max())


def test_sums_of_the_largest_numbers_do_not_overflow():
    top = np.finfo(np.float64).max
    x = np.array([top, -top, -top, -top])
    np.testing.assert_allclose(layer_norm(x), np.array([3, -1, -1, -1]) / math.sqrt(3))
    np.testing.assert_allclose(rms_norm(x), np.sign(x))
    np.testing.assert_allclose(unit_norm(x), np.sign(x) / 2)


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_epsilon_far_above_or_below_the_squares(norm):
    x = np.array([1e-200, -1e-200])
    np.testing.assert_allclose(norm(x, epsilon=1e-6), [1e-197, -1e-197])
    np.testing.assert_allclose(norm(1e300 * x, epsilon=1e-300), [1.0, -1.0])


@given(SEEDS, st.integers(2, 12), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_what_norms_forget(seed, d_k, shift, scale):
    x = normals(seed, 3, d_k)
    rounding = 1e-15 * (1 + abs(shift) / scale) / x.std(axis=-1).min()
    np.testing.assert_allclose(layer_norm(scale * x + shift), layer_norm(x), atol=20 * rounding)
    np.testing.assert_allclose(rms_norm(scale * x), rms_norm(x), rtol=1e-14)
    np.testing.assert_allclose(unit_norm(scale * x), unit_norm(x), rtol=1e-14)
    np.testing.assert_allclose(layer_norm(-x), -layer_norm(x), rtol=1e-13, atol=1e-14)


@given(SEEDS, st.integers(2, 40))
def test_what_norms_fix(seed, d_k):
    x = normals(seed, 3, d_k) + 2
    y = layer_norm(x)
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-13)
    np.testing.assert_allclose((y**2).mean(axis=-1), 1)
    np.testing.assert_allclose((rms_norm(x) ** 2).mean(axis=-1), 1)
    np.testing.assert_allclose((unit_norm(x) ** 2).sum(axis=-1), 1)


# --- clip and quantise -------------------------------------------------------------------------


@settings(max_examples=25)
@given(ARRAYS, st.floats(0.01, 200))
def test_clip_keeps_what_is_within_the_bound(x, bound):
    y = clip(x, bound)
    np.testing.assert_array_equal(y, np.sign(x) * np.minimum(abs(x), bound))
    assert np.array_equal(clip(x, math.inf), x)


@settings(max_examples=25)
@given(ARRAYS, st.integers(2, 12), st.floats(0.01, 200))
def test_quantise_takes_the_nearest_of_its_levels(x, bits, bound):
    n = 2 ** (bits - 1) - 1
    levels = np.arange(-n, n + 1) / n * bound
    y = quantise(x, bits, bound)
    assert np.isin(y, levels).all()
    nearest = abs(x[..., None] - levels).min(axis=-1)
    np.testing.assert_allclose(abs(x - y), nearest, rtol=1e-9, atol=1e-12 * bound)
    np.testing.assert_array_equal(quantise(-x, bits, bound), -y)
    np.testing.assert_array_equal(quantise(y, bits, bound), y)


def test_quantise_by_hand():
    assert sorted(set(quantise(np.linspace(-2, 2, 999), 2, 0.5))) == [-0.5, 0.0, 0.5]
    assert len(set(quantise(np.linspace(-2, 2, 9999), 8, 1.27))) == 255
    # Half-way between levels the even one is taken: steps of 1.
    np.testing.assert_array_equal(quantise([0.5, 1.5, 2.5, -0.5], 4, 7.0), [0, 2, 2, 0])


# --- rotate ------------------------------------------------------------------------------------


def as_complex(x, pairing):
    half = x.shape[-1] // 2
    return (x[..., :half] + 1j * x[..., half:] if pairing == "halves"
            else x[..., ::2] + 1j * x[..., 1::2])


@given(SEEDS, st.integers(1, 6), st.sampled_from(vectors.PAIRINGS), st.floats(2, 1e6),
       st.integers(-5000, 5000), st.integers(-5000, 5000))
def test_rotate_is_multiplication_by_complex_numbers(seed, pairs, pairing, theta, m, n):
    x, k = normals(seed, 2, 3, 2 * pairs)
    angle = m * theta ** (-2 * np.arange(pairs) / (2 * pairs))
    y = rotate(x, m, theta, pairing)
    expected = as_complex(x, pairing) * np.exp(1j * angle)
    np.testing.assert_allclose(as_complex(y, pairing), expected, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1))
    score = (y * rotate(k, n, theta, pairing)).sum(axis=-1)
    relative = (rotate(x, m - n, theta, pairing) * k).sum(axis=-1)
    np.testing.assert_allclose(score, relative, atol=1e-10)
    np.testing.assert_array_equal(rotate(x, 0, theta, pairing), x)


@given(SEEDS, st.integers(1, 6), st.integers(-5000, 5000))
def test_the_pairings_are_one_up_to_the_order_of_coordinates(seed, pairs, m):
    x = normals(seed, 4, 2 * pairs)
    order = np.arange(2 * pairs).reshape(2, pairs).T.ravel()  # 0, d/2, 1, d/2 + 1, …
    np.testing.assert_array_equal(rotate(x[:, order], m, pairing="neighbours"),
                                  rotate(x, m, pairing="halves")[:, order])


def test_rotate_by_hand():
    x = [1.0, 2.0, 3.0, 4.0]
    one, slow = 1.0, 0.01
    turned = [math.cos(one) - 3 * math.sin(one), 2 * math.cos(slow) - 4 * math.sin(slow),
              math.sin(one) + 3 * math.cos(one), 2 * math.sin(slow) + 4 * math.cos(slow)]
    np.testing.assert_allclose(rotate(x, 1), turned)
    np.testing.assert_allclose(rotate([1.0, 3.0, 2.0, 4.0], 1, pairing="neighbours"),
                               np.array(turned)[[0, 2, 1, 3]])


def test_positions_broadcast_against_the_leading_axes():
    x = normals(3, 2, 5, 4)
    y = rotate(x, np.arange(5))
    for position in range(5):
        np.testing.assert_array_equal(y[:, position], rotate(x[:, position], position))
    assert rotate(x[0, 0], np.arange(7)).shape == (7, 4)
    assert rotate(x, [[1], [2]]).shape == (2, 5, 4)


def test_single_precision_at_far_positions():
    x = normals(4, 3, 8)
    found = rotate(x.astype(np.float32), 10**6 + 1)
    np.testing.assert_allclose(found, rotate(x, 10**6 + 1), atol=1e-6)


# --- all ---------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(ARRAYS, st.integers(0, 5))
def test_pad_adds_zeros_and_changes_no_product(x, more):
    width = x.shape[-1] + more
    y = pad(x, width)
    assert y.shape == (*x.shape[:-1], width)
    np.testing.assert_array_equal(y[..., :x.shape[-1]], x)
    assert not y[..., x.shape[-1]:].any()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_the_floating_type_stays_and_arguments_are_left_alone(kind):
    x = normals(5, 3, 4).astype(kind)
    before = x.copy()
    for function in EVERY:
        y = function(x)
        assert y.dtype == kind
        # What owns its numbers is recognised by attention, which multiplies it once.
        assert y.base is None
        double = function(x.astype(np.float64))
        np.testing.assert_allclose(y.astype(np.float64), double, atol=4 * float(np.finfo(kind).eps))
        np.testing.assert_array_equal(x, before)
    assert layer_norm(x, gain=np.ones(4), bias=np.ones(4)).dtype == kind


def test_half_precision_is_rounded_once():
    x = normals(6, 40, 12).astype(np.float16)
    for function in EVERY[:-1]:
        single = function(x.astype(np.float32))
        np.testing.assert_array_equal(function(x), single.astype(np.float16))


def test_whole_numbers_become_float64_and_nan_stays_nan():
    for function in EVERY:
        assert function([1, 2, 3, 5]).dtype == np.float64
        assert np.isnan(function(np.array([1.0, np.nan, 2.0, 3.0]))).any()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: layer_norm([1.0], epsilon=-1e-5), "at least 0"),
    (lambda: rms_norm([1.0], epsilon=math.nan), "at least 0"),
    (lambda: clip([1.0], 0.0), "above 0"),
    (lambda: clip([1.0], math.nan), "above 0"),
    (lambda: quantise([1.0], 1, 1.0), "from 2 to 16"),
    (lambda: quantise([1.0], 2.5, 1.0), "whole number"),
    (lambda: quantise([1.0], 4, math.inf), "positive and finite"),
    (lambda: rotate([1.0, 2.0, 3.0], 1), "pad to 4"),
    (lambda: rotate([1.0, 2.0], 1, pairing="both"), "one of"),
    (lambda: rotate([1.0, 2.0], 1, theta=0.0), "theta"),
    (lambda: rotate([1.0, 2.0], math.inf), "finite"),
    (lambda: pad([1.0, 2.0], 1), "2 coordinates already"),
])
def test_impossible_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
