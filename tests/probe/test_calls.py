"""What attend may be handed and give back, and what its numbers were rounded to."""

import math

import numpy as np
import pytest
from probe.attentions import ROUND, attention

from mcverify import probe
from mcverify.attention import softmax
from mcverify.probing.calls import Caller, Sizes, as_float64, precision


class Interface:
    """An array that offers one way to its numbers, and nothing else."""

    def __init__(self, x, *ways):
        self.shape = x.shape
        for way in ways:
            setattr(self, way, getattr(x, way))


class WithArray(Interface):
    def __array__(self, dtype=None, copy=None):
        return self.x

    def __init__(self, x):
        self.x = x
        super().__init__(x)


class WithDlpack(Interface):
    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __init__(self, x):
        self.x = x
        super().__init__(x)


@pytest.mark.parametrize("kind", [WithArray, WithDlpack])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_whatever_gives_its_numbers_is_read(kind, dtype):
    found = probe(lambda q, k, v: kind(attention()(q, k, v).astype(dtype)))
    assert found.formula == "1/sqrt(d_k)"
    assert found.precision == dtype.__name__


def test_bfloat16_of_another_package_is_handed_over_and_read():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    types = set()

    def attend(q, k, v):
        types.add(q.dtype.name)
        return attention()(*(x.astype(float) for x in (q, k, v))).astype(ml_dtypes.bfloat16)

    assert probe(attend, dtype=ml_dtypes.bfloat16).precision == "bfloat16"
    assert types == {"bfloat16"}


@pytest.mark.parametrize("dtype", [np.float32, "float16", np.dtype(float)])
def test_the_type_that_is_asked_for_is_handed_over(dtype):
    types = set()

    def attend(q, k, v):
        types.update(x.dtype for x in (q, k, v))
        return attention()(q, k, v)

    assert probe(attend, dtype=dtype).formula == "1/sqrt(d_k)"
    assert types == {np.dtype(dtype)}


@pytest.mark.parametrize("name", ROUND)
def test_precision_is_that_of_the_numbers_not_of_their_type(name):
    x = ROUND[name](np.random.default_rng(0).random(100))
    assert precision(x) == name


def test_weights_are_read_piece_by_piece_where_values_are_narrow():
    q = np.random.default_rng(0).standard_normal((2, 3, 5, 4))
    k = np.random.default_rng(1).standard_normal((2, 1, 7, 4))
    expected, spare = (Caller(attention(0.5), Sizes(4, d_v, 3, 1, 5, 7)).weights(q, k)
                       for d_v in (7, 8))
    assert spare[1].shape == (2, 3, 5, 1)
    for d_v in (1, 2, 3, 7, 20):
        p, _ = Caller(attention(0.5), Sizes(4, d_v, 3, 1, 5, 7)).weights(q, k)
        np.testing.assert_allclose(p, expected[0], rtol=1e-12)
        np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-12)


def test_what_numpy_cannot_read_is_a_value_error():
    class Elsewhere(WithDlpack):
        def __dlpack__(self, **options):
            raise BufferError("it is on another device")

    with pytest.raises(ValueError, match="it is on another device: must have __array__"):
        probe(lambda q, k, v: Elsewhere(attention()(q, k, v)))


def test_float64_stays_as_it_is():
    x = np.arange(3.0)
    assert as_float64(x) is x


@pytest.mark.parametrize("scale", [1 / math.sqrt(48), 1 / 48])
def test_a_function_of_tokens_and_width_alone_is_probed(scale):
    def attend(q, k, v):
        assert q.ndim == k.ndim == v.ndim == 2
        s = np.where(np.tri(len(q), len(k), dtype=bool), scale * q @ k.T, -np.inf)
        return softmax(s) @ v

    found = probe(attend, d_k=48, axes=2, declared="1/sqrt(d_k)")
    assert found.low <= scale <= found.high
    assert found.causal
    assert found.agrees == (scale == 1 / math.sqrt(48))
    with pytest.raises(ValueError, match=r"probe\(axes=2, heads=4\)"):
        probe(attend, d_k=48, heads=4, axes=2)
    with pytest.raises(ValueError, match=r"must return \(tokens, d_v\)"):
        probe(lambda q, k, v: v[None], d_k=48, axes=2)
    with pytest.raises(ValueError, match="axes=3"):
        probe(attend, axes=3)
