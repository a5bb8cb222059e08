"""Heads against one head at a time, exactly: the coordinates are small whole numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify.attention import head_scores, scores, split_heads
from mcverify.attention.chunk import Chunk


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(float)


@st.composite
def shared_heads(draw):
    """(heads, groups, d, seed) with groups a divisor of heads."""
    groups, share = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return groups * share, groups, draw(st.integers(1, 5)), draw(st.integers(0, 2**32))


@given(shared_heads())
def test_each_head_has_the_scores_of_its_own_coordinates(case):
    heads, groups, d, seed = case
    q, k = whole(seed, 2, 5, heads * d), whole(seed + 1, 2, 3, groups * d)
    found = head_scores(q, k, heads, groups, scale=0.5)
    assert found.shape == (2, heads, 5, 3)
    for h in range(heads):
        g = h // (heads // groups)
        one = scores(q[..., h * d: (h + 1) * d], k[..., g * d: (g + 1) * d], scale=0.5)
        np.testing.assert_array_equal(found[:, h], one)


@given(shared_heads())
def test_shared_keys_are_multi_head_attention_with_repeated_keys(case):
    heads, groups, d, seed = case
    q, k = whole(seed, 2, 4, heads * d), whole(seed + 1, 2, 4, groups, d)
    repeated = np.repeat(k, heads // groups, axis=2).reshape(2, 4, heads * d)
    shared = head_scores(q, k.reshape(2, 4, groups * d), heads, groups)
    np.testing.assert_array_equal(shared, head_scores(q, repeated, heads))
    np.testing.assert_array_equal(shared.shape, (2, heads, 4, 4))


@given(shared_heads())
def test_the_scores_of_all_heads_add_up_to_those_of_the_whole_width(case):
    heads, _, d, seed = case
    q, k = whole(seed, 2, 4, heads * d), whole(seed + 1, 2, 4, heads * d)
    np.testing.assert_array_equal(head_scores(q, k, heads).sum(axis=1), scores(q, k))
    np.testing.assert_array_equal(head_scores(q, k, 1)[:, 0], scores(q, k))


def test_split_heads_cuts_the_coordinates_in_order():
    x = np.arange(2 * 3 * 8).reshape(2, 3, 8)
    found = split_heads(x, 4)
    assert np.shares_memory(found, x)
    for index in np.ndindex(2, 4, 3, 2):
        block, head, token, i = index
        assert found[index] == x[block, token, 2 * head + i]
    np.testing.assert_array_equal(split_heads(x, 1)[:, 0], x)


def test_the_type_is_kept_and_what_is_read_only_stays():
    q, k = (whole(i, 1, 4, 6).astype(np.float32) for i in (0, 1))
    for x in (q, k):
        x.setflags(write=False)
    found = head_scores(q, k, 3, scale=math.sqrt(0.5))
    assert found.dtype == np.float32
    found[:] = np.nan
    assert np.isfinite(head_scores(q, k, 3)).all()


def test_all_pairs_can_be_refused():
    q = whole(0, 1, 4, 6)
    chunk = Chunk(q, q, "fix tokens")
    with pytest.raises(ValueError, match="fix tokens"):
        head_scores(chunk.q, chunk.k, 3)


@pytest.mark.parametrize(("heads", "groups", "width_q", "width_k", "message"), [
    (4, 3, 8, 6, "multiple of groups"), (2, 4, 8, 8, "multiple of groups"),
    (0, None, 8, 8, "1 or more"), (4, 0, 8, 8, "1 or more"),
    (4, None, 8, 4, "4 groups"), (4, 1, 8, 8, "1 groups"), (4, 2, 8, 2, "2 groups"),
    (3, None, 8, 8, "multiple of heads")])
def test_heads_that_do_not_fit_are_refused(heads, groups, width_q, width_k, message):
    with pytest.raises(ValueError, match=message):
        head_scores(np.zeros((2, 3, width_q)), np.zeros((2, 3, width_k)), heads, groups)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="same blocks"):
        head_scores(np.zeros((2, 3, 8)), np.zeros((1, 3, 8)), 4)
    with pytest.raises(ValueError, match="axis of tokens"):
        split_heads(np.zeros(8), 4)
    for heads in (3, 0, -2):
        with pytest.raises(ValueError, match="multiple of heads"):
            split_heads(np.zeros((2, 3, 8)), heads)
