"""Softmax in blocks against softmax, with tolerances that follow from the rounding of the type."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcverify.attention import naive_softmax, online_average, online_softmax, softmax

TYPES = st.sampled_from([np.float16, np.float32, np.float64])
# Ties, both zeros, far apart and masked: what a running maximum may stumble on.
entries = st.one_of(st.floats(-1e4, 1e4, width=16), st.floats(-3, 3, width=16),
                    st.sampled_from([0.0, -0.0, 1e4, -1e4, 1.0, -np.inf, -np.inf]))
rows = st.tuples(st.integers(1, 3), st.integers(1, 40)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=entries))
EXP = 6  # an exp of NumPy errs by less than 3 units in the last place, 6 unit roundoffs


def tolerance(dtype, keys, blocks):
    """A bound on the relative error between two computed sums of exp(s − max), and so of weights.

    A term passes at most blocks + 1 exponentials and products. The roundings of its exponent add
    up to at most u(max − s), whose mean under the weights is at most their entropy, so ln keys.
    Adding costs at most u a term and block. Both weights then have an exp and a division.
    """
    u = np.finfo(dtype).eps / 2
    online = (EXP + 1) * (blocks + 1) + math.log(keys) + keys + blocks
    plain = EXP + math.log(keys) + keys
    return u * (online + plain + 2 * EXP + 2)


def number_of_blocks(s, block):
    return -(-s.shape[-1] // block)


@given(rows, TYPES, st.data())
def test_online_softmax_is_softmax_in_any_blocks_and_order(s, dtype, data):
    s = s.astype(dtype)
    block = data.draw(st.integers(1, s.shape[-1] + 2))
    blocks = number_of_blocks(s, block)
    order = data.draw(st.none() | st.permutations(range(blocks)))
    before = s.copy()
    p = online_softmax(s, block, order)
    assert p.dtype == dtype
    np.testing.assert_array_equal(s, before)
    np.testing.assert_allclose(p, softmax(s), rtol=tolerance(dtype, s.shape[-1], blocks),
                               atol=np.finfo(dtype).smallest_subnormal)


def test_blocks_are_read_in_the_order_given():
    """Read backwards is to read the reversed row: the same roundings, and others than forwards."""
    s = np.random.default_rng(1).standard_normal((20, 200)).astype(np.float32)
    backwards = online_softmax(s, 1, range(199, -1, -1))
    np.testing.assert_array_equal(backwards[:, ::-1], online_softmax(s[:, ::-1], 1))
    assert (backwards != online_softmax(s, 1)).any()


def cut(s, v, sizes):
    """Chunks of the given sizes, the last taking what is left."""
    ends = np.minimum(np.cumsum([*sizes, s.shape[-1]]), s.shape[-1])
    starts = [0, *ends[:-1]]
    return [(s[..., a:b], v[..., a:b, :]) for a, b in zip(starts, ends, strict=True) if a < b]


@given(rows, TYPES, st.booleans(), st.lists(st.integers(1, 9)), st.integers(0, 2**32))
def test_online_average_is_softmax_times_values(s, dtype, shared, sizes, seed):
    s, keys = s.astype(dtype), s.shape[-1]
    lead = () if shared else s.shape[:1]
    v = np.random.default_rng(seed).uniform(-1, 1, (*lead, keys, 2)).astype(dtype)
    chunks = cut(s, v, sizes)
    found = online_average(iter(chunks))
    assert found.dtype == dtype
    exact = np.einsum("rk,...kd->rd" if shared else "rk,rkd->rd", softmax(s.astype(np.float64)),
                      v.astype(np.float64))
    # Numerator and denominator each err by less than the tolerance times the largest value, 1.
    np.testing.assert_allclose(found, exact, rtol=0, atol=2 * tolerance(dtype, keys, len(chunks)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [(), (0,), (3,), (1, 2), (0, 3), (0, 1, 2, 3)])
def test_blocks_that_are_masked_throughout_change_nothing(dtype, masked):
    s = np.arange(16, dtype=dtype).reshape(4, 4)
    s[list(masked)] = -np.inf
    s = s.reshape(16)
    v = np.eye(16, dtype=dtype)
    expected = softmax(s)
    assert expected.sum() == pytest.approx(1.0 if len(masked) < 4 else 0.0)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        close = {"rtol": tolerance(dtype, 16, 4), "atol": 0}
        np.testing.assert_allclose(online_softmax(s, 4, order), expected, **close)
        chunks = [(s[4 * i: 4 * i + 4], v[4 * i: 4 * i + 4]) for i in order]
        np.testing.assert_allclose(online_average(chunks), expected, **close)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 3, 5])
def test_nan_and_infinity_spread_over_their_row_as_in_softmax(bad, place):
    s = np.array([np.arange(6.0), np.arange(6.0)])
    s[0, place] = bad
    with np.errstate(invalid="ignore"):
        expected = softmax(s)
        for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
            np.testing.assert_allclose(online_softmax(s, 2, order), expected, rtol=1e-14)
        found = online_average(cut(s, np.eye(6), [2, 1]))
    assert np.isnan(expected[0]).all()
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_largest_scores_of_a_type_do_not_overflow():
    for dtype in (np.float32, np.float64):
        s = np.array([0, 1, 1, 0], dtype=dtype) * np.finfo(dtype).max
        for block in (1, 2, 3):
            np.testing.assert_array_equal(online_softmax(s, block), [0, 0.5, 0.5, 0])


def test_online_average_keeps_no_row():
    keys, size = 200_000, 500
    chunks = ((np.zeros(size), np.full((size, 4), i)) for i in range(keys // size))
    tracemalloc.start()
    found = online_average(chunks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, (keys // size - 1) / 2, rtol=1e-12)
    assert peak < 8 * keys / 10


def test_values_may_have_any_leading_axes():
    rng = np.random.default_rng(0)
    s, v = rng.standard_normal((2, 3, 5, 8)), rng.standard_normal((2, 3, 8, 4))
    np.testing.assert_allclose(online_average(cut(s, v, [3, 1])), softmax(s) @ v, rtol=1e-12)
    v = rng.standard_normal((2, 3, 5, 8, 4))
    expected = np.einsum("bhqk,bhqkd->bhqd", softmax(s), v)
    np.testing.assert_allclose(online_average(cut(s, v, [3, 1])), expected, rtol=1e-12)


@given(rows.map(lambda s: np.clip(s, -80, 80)))
def test_naive_softmax_is_softmax_while_nothing_overflows(s):
    # That of softmax rounds the exponent s − max of a weight, by at most u times its size.
    u = np.finfo(np.float64).eps / 2
    np.testing.assert_allclose(naive_softmax(s), softmax(s),
                               rtol=tolerance(np.float64, s.shape[-1], 1) + 160 * u)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_naive_softmax_gives_out_where_exp_does(dtype):
    limit = dtype(math.log(np.finfo(dtype).max))
    below, above = limit - 8 * np.spacing(limit), limit + 8 * np.spacing(limit)
    rows = naive_softmax(np.array([[below, 0], [above, 0], [below, below]], dtype=dtype))
    assert rows.dtype == dtype
    np.testing.assert_allclose(rows[0], [1, 0], atol=1e-4)
    assert np.isnan(rows[1, 0])
    assert rows[1, 1] == 0
    np.testing.assert_array_equal(rows[2], [0, 0])  # only the sum overflows
    assert np.isnan(naive_softmax(np.full(3, dtype(-np.inf)))).all()
    assert np.isnan(naive_softmax(np.full(3, -2 * limit - 40))).all()
    np.testing.assert_array_equal(softmax(np.array([above, above], dtype=dtype)), [0.5, 0.5])


@pytest.mark.parametrize("function", [softmax, naive_softmax, lambda s: online_softmax(s, 1),
                                      lambda s: online_average([(s, np.zeros((0, 2)))])])
@pytest.mark.parametrize("empty", [1.0, [], np.zeros((3, 0))])
def test_scores_without_a_key_are_refused(function, empty):
    with pytest.raises(ValueError, match="one key or more"):
        function(empty)


@pytest.mark.parametrize(("block", "order", "message"), [
    (0, None, "1 key or more"), (-3, None, "1 key or more"), (2, [0, 1], "0 to 2 once"),
    (2, [0, 1, 1], "0 to 2 once"), (2, [1, 2, 3], "0 to 2 once"), (9, [], "0 to 0 once")])
def test_blocks_and_orders_that_are_refused(block, order, message):
    with pytest.raises(ValueError, match=message):
        online_softmax(np.zeros(5), block, order)


def test_chunks_that_are_refused():
    with pytest.raises(ValueError, match="no chunks"):
        online_average([])
    for s, v in [((4,), (3, 2)), ((4,), (4,)), ((2, 4), (3, 4, 2)), ((2, 4), (2, 2)), ((4,), ())]:
        with pytest.raises(ValueError, match="values must be"):
            online_average([(np.zeros(s), np.zeros(v))])
    first = np.zeros((2, 4)), np.zeros((4, 3))
    for s, v in [((1, 4), (4, 3)), ((2, 4), (4, 1)), ((4,), (4, 3))]:
        with pytest.raises(ValueError, match="only the number of keys may change"):
            online_average([first, (np.zeros(s), np.zeros(v))])
