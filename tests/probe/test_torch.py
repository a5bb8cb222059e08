"""PyTorch's own attentions as witnesses, each also broken on purpose: every fault has its name."""

import math

import numpy as np
import pytest

from mcverify import agree, assert_attention, probe
from mcverify.attention import alibi_slopes

torch = pytest.importorskip("torch")
sdpa = torch.nn.functional.scaled_dot_product_attention

TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
BACK_ENDS = (torch.nn.attention.SDPBackend.MATH, torch.nn.attention.SDPBackend.FLASH_ATTENTION)


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", TYPES, ids=name_of)
@pytest.mark.parametrize("back_end", BACK_ENDS, ids=lambda x: x.name)
@pytest.mark.parametrize("causal", [False, True])
def test_scaled_dot_product_attention(dtype, back_end, causal):
    def attend(q, k, v):
        with torch.nn.attention.sdpa_kernel(back_end):
            return sdpa(q, k, v, is_causal=causal)

    found = assert_attention(attend, scale="1/sqrt(d_k)", causal=causal, cap=None, findings=(),
                             key_head=[0, 1, 2, 3], d_k=40, d_v=40, heads=4, dtype=dtype)
    assert found.precision == name_of(dtype)
    assert found.formula == "1/sqrt(d_k)"
    assert found.low <= 40**-0.5 <= found.high


@pytest.mark.parametrize("dtype", TYPES, ids=name_of)
def test_an_explicit_scale(dtype):
    def attend(q, k, v):
        return sdpa(q, k, v, scale=40**-0.5)

    found = probe(attend, d_k=192, declared="1/sqrt(d_k)", dtype=dtype)
    assert found.formula == "1/sqrt(40)"
    assert found.agrees is False


@pytest.mark.parametrize("tiled", [False, True])
def test_grouped_queries(tiled):
    def attend(q, k, v):
        if not tiled:
            return sdpa(q, k, v, enable_gqa=True)
        return sdpa(q, k.repeat(1, 4, 1, 1), v.repeat(1, 4, 1, 1))  # not repeat_interleave

    found = probe(attend, heads=8, kv_heads=2, dtype=torch.float32)
    assert found.key_head.tolist() == ([0, 1] * 4 if tiled else [0] * 4 + [1] * 4)
    assert found.findings == (("key heads are tiled, h mod 2, where head h of queries usually "
                               "reads head h // 4",) if tiled else ())


@pytest.mark.parametrize("scaled", [False, True])
def test_a_bias_and_one_that_is_scaled_too(scaled):
    distance = torch.arange(16).sub(torch.arange(16)[:, None]).abs()
    bias = -torch.tensor(alibi_slopes(8))[:, None, None] * distance

    def attend(q, k, v):
        if not scaled:
            return sdpa(q, k, v, attn_mask=bias.to(q.dtype))
        return torch.softmax((q @ k.mT + bias) / math.sqrt(64), dim=-1) @ v

    found = probe(attend, heads=8, declared="1/sqrt(d_k)", dtype=torch.float64)
    assert found.agrees
    assert found.bias_scale == pytest.approx(0.125 if scaled else 1.0)
    np.testing.assert_allclose(found.slopes, alibi_slopes(8) * found.bias_scale, rtol=1e-12)
    assert ("the bias is multiplied by the scale as well" in found.findings) == scaled


@pytest.mark.parametrize("before", [True, False])
def test_a_cap_before_and_after_the_mask(before):
    hidden = torch.ones(16, 16, dtype=torch.bool).triu(1)

    def attend(q, k, v):
        s = q @ k.mT / 8
        if before:
            s = (20 * torch.tanh(s / 20)).masked_fill(hidden, -torch.inf)
        else:
            s = 20 * torch.tanh(s.masked_fill(hidden, -torch.inf) / 20)
        return torch.softmax(s, dim=-1) @ v

    found = probe(attend, declared="1/sqrt(d_k)", dtype=torch.float32)
    assert found.agrees
    assert found.cap == pytest.approx(20, rel=1e-5)
    assert found.causal is before
    assert found.findings == (() if before else (
        "masked keys keep a weight, their logit is -20: the cap comes after the mask",))


def test_a_boolean_mask_that_is_added():
    mask = torch.ones(16, 16, dtype=torch.bool).tril()
    found = probe(lambda q, k, v: sdpa(q, k, v, attn_mask=mask.to(q.dtype)), dtype=torch.float32)
    assert found.causal is False
    assert found.findings == (
        "masked keys keep a weight, their logit is -1: the mask value is too small",)


def test_dropout_that_is_left_on():
    found = probe(lambda q, k, v: sdpa(q, k, v, dropout_p=0.2), dtype=torch.float32)
    assert "as where dropout is left on" in found.reason


def test_a_query_that_sees_no_key():
    mask = torch.ones(16, 16, dtype=torch.bool).triu(1)
    found = probe(lambda q, k, v: sdpa(q, k, v, attn_mask=mask), dtype=torch.float32,
                  declared="1/sqrt(d_k)")
    assert found.mask == "other"
    assert found.causal is False
    assert found.agrees


def multihead(heads, d_k, factor=1.0, bias=None, train=False, split=None):
    """nn.MultiheadAttention whose projections are the identity, queries times a factor."""
    width = heads * d_k
    module = torch.nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True).train(train)
    eye = torch.eye(width)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([factor * eye, eye, eye]))
        module.out_proj.weight.copy_(eye)
    split = split or (lambda x: x.transpose(1, 2).flatten(2))

    def attend(q, k, v):
        batch = len(q)
        mask = None if bias is None else bias.repeat(batch, 1, 1)
        out = module(split(q), split(k), split(v), need_weights=False, attn_mask=mask)[0]
        return out.unflatten(2, (heads, d_k)).transpose(1, 2)

    return attend


SIZES = {"d_k": 16, "d_v": 16, "heads": 4, "dtype": torch.float32}


def test_multihead_attention():
    causal = torch.nn.Transformer.generate_square_subsequent_mask(16).expand(4, 16, 16)
    for bias in (None, causal):
        assert_attention(multihead(4, 16, bias=bias), scale="1/sqrt(d_k)", cap=None, findings=(),
                         causal=bias is not None, key_head=[0, 1, 2, 3], **SIZES)


def test_multihead_attention_with_faults():
    found = probe(multihead(4, 16, factor=0.5), declared="1/sqrt(d_k)", **SIZES)
    assert found.formula == "1/sqrt(d_model)"  # as a factor of √(d_k/d_model) makes it
    assert found.agrees is False
    bias = torch.randn(4, 16, 16, generator=torch.Generator().manual_seed(0))
    for times, told in ((1, "by a bias"), (0.25, "the bias is multiplied by the scale as")):
        found = probe(multihead(4, 16, bias=times * bias), bias=bias, **SIZES)
        assert found.bias_scale == pytest.approx(times, rel=1e-5)
        assert told in " ".join(found.findings)
    assert "dropout" in probe(multihead(4, 16, train=True), **SIZES).reason
    # Heads that are cut out as columns of a matrix in which they stand as rows.
    mixed = multihead(4, 16, split=lambda x: x.permute(0, 2, 3, 1).flatten(2))
    assert probe(mixed, **SIZES).reason != ""


def test_the_back_ends_agree_and_a_changed_one_does_not():
    def math_only(q, k, v):
        with torch.nn.attention.sdpa_kernel(BACK_ENDS[0]):
            return sdpa(q, k, v)

    def flash(q, k, v):
        with torch.nn.attention.sdpa_kernel(BACK_ENDS[1]):
            return sdpa(q, k, v)

    found = agree(math_only, flash, heads=4, dtypes=TYPES)
    assert found
    worse = agree(math_only, lambda q, k, v: flash(q, k * 1.1, v), heads=4, dtypes=TYPES)
    assert not worse
    assert worse.dtype == "torch.float64"


def test_a_numpy_caller_gets_tensors_back_whatever_their_type():
    def attend(q, k, v):
        q, k, v = (torch.from_numpy(x).to(torch.bfloat16).requires_grad_() for x in (q, k, v))
        return sdpa(q, k, v)

    assert probe(attend, declared="1/sqrt(d_k)").agrees
