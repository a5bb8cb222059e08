"""Two implementations: equal but for rounding, or different, and where."""

import numpy as np
import pytest
from probe.attentions import alibi, attention

from mcverify import agree

SLOPES = np.array([0.25, 0.0625])


@pytest.mark.parametrize(("one", "other"), [
    ({}, {"where": "q"}),
    ({}, {"where": "both"}),
    ({"out": "float32"}, {}),
    ({"out": "float16"}, {"out": "float16", "compute": "float32"}),
    ({"out": "bfloat16"}, {"out": "bfloat16", "where": "q"}),
    ({"out": "bfloat16", "causal": True}, {"causal": True}),
    ({"cap": 30.0, "out": "float32"}, {"cap": 30.0}),
    ({"bias": alibi(SLOPES, 16), "out": "float16"}, {"bias": alibi(SLOPES, 16)}),
])
@pytest.mark.parametrize("seed", range(3))
def test_rounding_alone_is_allowed(one, other, seed):
    for a, b in ((one, other), (other, one)):
        found = agree(attention(**a), attention(**b), heads=2, seed=seed, dtypes=(np.float64,))
        assert found
        assert found.difference <= found.allowed


def other_head(q, k, v):
    out = attention()(q, k, v).copy()
    out[:, 1, 5] = attention(0.13)(q, k, v)[:, 1, 5]
    return out


@pytest.mark.parametrize("b", [
    attention(0.126), attention(causal=True), attention(cap=50.0), attention(values=0.999),
    attention(sink=0.0), other_head, lambda q, k, v: attention()(q, k, v) * np.nan,
])
def test_what_rounding_does_not_allow_is_told(b):
    found = agree(attention(), b, heads=2)
    assert not found
    assert found.difference > found.allowed
    assert str(found).startswith("they do NOT agree: largest difference ")


def test_the_place_of_the_largest_difference():
    found = agree(attention(), other_head, heads=2, dtypes=(np.float32,))
    assert (found.head, found.position, found.dtype) == (1, 5, "float32")
    assert str(found).endswith("at head 1, position 5, handed float32")


def test_the_type_in_which_two_differ():
    """One computes in the type that it is handed, and loses it; the other always in float64."""
    def careless(q, k, v):
        if q.dtype == np.float16:
            return attention(0.15)(q, k, v).astype(np.float16)
        return attention()(q, k, v).astype(q.dtype)

    found = agree(attention(), careless)
    assert not found
    assert found.dtype == "float16"
    assert agree(attention(), careless, dtypes=(np.float64, np.float32))


def test_the_allowance_is_no_blank_cheque():
    """In float64 a relative change of the scale of 1e-12 is told, in float32 one of 1e-4."""
    for dtype, change in ((np.float64, 1e-12), (np.float32, 1e-4)):
        name = dtype.__name__
        assert not agree(attention(out=name), attention(0.125 * (1 + change), out=name),
                         dtypes=(dtype,))


def test_heads_of_keys_that_are_shared():
    tiled = {"key_head": [0, 1, 0, 1], "value_head": [0, 1, 0, 1]}
    assert agree(attention(), attention(where="q"), heads=4, kv_heads=2)
    assert not agree(attention(), attention(**tiled), heads=4, kv_heads=2)
    assert agree(attention(**tiled), attention(where="q", **tiled), heads=4, kv_heads=2)


def test_other_shapes_are_a_value_error():
    with pytest.raises(ValueError, match="must return an array"):
        agree(attention(), lambda q, k, v: attention()(q, k, v)[..., :3])
