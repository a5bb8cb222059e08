"""Expectations in a test of one's own: what passes, and the report of what does not."""

import numpy as np
import pytest
from probe.attentions import alibi, attention

from mcverify import assert_attention
from mcverify.attention import alibi_slopes


def mine(q, k, v):
    return attention(576**-0.5, causal=True, cap=50.0)(q, k, v)


def test_all_that_is_expected_and_there_passes():
    found = assert_attention(
        mine, scale="1/sqrt(d_k)", causal=True, mask="causal", window=None, cap=50.0, slopes=None,
        bias_scale=None, key_head=[0, 0], normalised="", position="", formula="1/sqrt(d_k)",
        findings=(), d_k=576, heads=2, kv_heads=1)
    assert found.agrees
    assert_attention(mine, scale=1 / 24)
    slopes = alibi_slopes(8)
    assert_attention(attention(bias=alibi(slopes, 16)), slopes=slopes, bias_scale=1, heads=8)


@pytest.mark.parametrize(("expected", "told"), [
    ({"scale": "1/sqrt(d_k)"}, "scale 1/sqrt(d_k) = 0.125"),
    ({"scale": 0.04}, "scale 0.04"),
    ({"causal": False}, "causal False"),
    ({"cap": None}, "cap None"),
    ({"cap": 30.0}, "cap 30"),
    ({"slopes": [0.5]}, "slopes 0.5"),
    ({"key_head": [1, 0]}, "key_head 1 0"),
    ({"mask": "none"}, "mask none"),
    ({"formula": "1/sqrt(576)", "scale": 1.0}, "scale 1.0"),
    ({"findings": ("x",)}, "findings ('x',)"),
])
def test_what_is_not_there_is_told_in_four_lines(expected, told):
    with pytest.raises(AssertionError) as caught:
        assert_attention(mine, **expected, heads=2)
    lines = str(caught.value).splitlines()
    assert [line.split()[0] for line in lines] == ["attention:", "expected:", "measured:", "rerun:"]
    assert lines[0] == "attention: mine with heads=2"
    assert lines[1] == f"expected:  {told}"
    if "scale" in expected:
        assert "scale 0.0416666" in lines[2]
        assert lines[3].endswith(f"probe(mine, heads=2, declared={expected['scale']!r})")


def test_a_scale_that_cannot_be_read_is_a_failure():
    with pytest.raises(AssertionError, match=r"measured:  scale none: two calls .* dropout"):
        assert_attention(attention(dropout=0.2), scale="1/sqrt(d_k)")


def test_findings_stand_in_the_report():
    bias = np.tri(16)
    with pytest.raises(AssertionError, match="the bias is multiplied by the scale as well\n"):
        assert_attention(attention(bias=bias, scale_bias=True), bias_scale=1, bias=bias)


def test_an_expectation_is_needed():
    with pytest.raises(ValueError, match="pass scale= or one of causal"):
        assert_attention(mine, heads=2)
