"""Scales that are known exactly, faults that were put in on purpose, and what cannot be probed."""

import math

import numpy as np
import pytest
from probe.attentions import alibi, attention

from mcverify import probe
from mcverify.attention import alibi_slopes, softmax

TYPES = ("float64", "float32", "float16", "bfloat16")
RNG = np.random.default_rng(3)
BIAS = RNG.standard_normal((2, 16, 16))

# What a formula says at d_k = 48, heads = 6, d_model = 288, padded = 64, mscale = 1.2.
FORMULAS = {
    "1/sqrt(d_k)": 48**-0.5, "1/d_k": 1 / 48, "1": 1.0, "1/sqrt(d_model)": 288**-0.5,
    "1/sqrt(heads)": 6**-0.5, "1/sqrt(padded)": 1 / 8, "d_k^(-1/4)": 48**-0.25,
    "1/sqrt(40)": 40**-0.5, "1/sqrt(576)": 1 / 24, "1/sqrt(d_k)*mscale": 1.2 * 48**-0.5,
    "1/sqrt(d_k)*mscale^2": 1.44 * 48**-0.5, "1/d_k*mscale^2": 0.03, "1*mscale": 1.2,
    "log(n)/sqrt(d_k)": math.log(16) * 48**-0.5,
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_each_formula_is_found_by_its_name(formula):
    found = probe(attention(FORMULAS[formula]), d_k=48, heads=6, padded=64, mscale=1.2,
                  declared=formula)
    assert found.formula == formula
    assert found.formulas == (formula,)
    assert found.agrees is True
    assert found.scale == pytest.approx(FORMULAS[formula], rel=1e-14)
    assert found.low <= FORMULAS[formula] <= found.high
    assert found.reason == ""


@pytest.mark.parametrize("out", TYPES)
@pytest.mark.parametrize("d_k", [1, 2, 5, 64, 192])
def test_the_scale_in_every_type_and_width(out, d_k):
    found = probe(attention(0.3, out=out, compute="float32" if out != "float64" else out), d_k=d_k)
    width = {"float64": 2e-14, "float32": 2e-6, "float16": 2e-2, "bfloat16": 8e-3}[out]
    assert found.precision == out
    assert found.low <= 0.3 <= found.high
    assert (found.high - found.low) / 0.3 < width


def test_the_declared_scale_is_compared_with_the_measured_one():
    found = probe(attention(40**-0.5), d_k=192, declared="1/sqrt(d_k)")
    assert found.agrees is False
    assert found.formula == "1/sqrt(40)"
    assert "declared  1/sqrt(d_k) = 0.0721688: does NOT agree" in str(found)
    assert probe(attention(0.25), declared=0.25).agrees is True
    assert probe(attention(0.25)).agrees is None


def test_a_scale_that_its_type_holds_only_roughly_is_still_that_scale():
    found = probe(attention(192**-0.5, out="bfloat16", compute="float32", store="bfloat16"),
                  d_k=192, declared="1/sqrt(d_k)")
    assert not found.low <= 192**-0.5 <= found.high  # it is 0.072265625 that the function holds
    assert found.low <= 0.072265625 <= found.high
    assert found.formula == "1/sqrt(d_k)"
    assert found.agrees


@pytest.mark.parametrize("where", ["product", "q", "both"])
def test_where_the_scale_is_applied_makes_no_difference(where):
    found = probe(attention(64**-0.5, where=where, out="float32"))
    assert found.formula == "1/sqrt(d_k)"
    assert found.high - found.low < 1e-6


@pytest.mark.parametrize(("options", "name", "causal", "window"), [
    ({}, "none", False, None),
    ({"causal": True}, "causal", True, None),
    ({"causal": True, "window": 4}, "sliding window", True, 4),
    ({"causal": True, "window": 15}, "sliding window", True, 15),
    ({"causal": True, "window": 16}, "causal", True, None),
    ({"window": 3}, "sliding window", False, 3),
])
def test_masks_have_names(options, name, causal, window):
    found = probe(attention(**options), declared="1/sqrt(d_k)")
    assert (found.mask, found.causal, found.window) == (name, causal, window)
    assert found.agrees
    assert found.findings == ()


def masked(seen, less=0.0):
    """Attention that sees what is told of the distance of a key, without its small weights."""
    def attend(q, k, v):
        ahead = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None]
        p = softmax(np.where(seen(ahead), q @ np.swapaxes(k, -1, -2) / 8, -np.inf))
        return np.where(p < less, 0, p) @ v
    return attend


@pytest.mark.parametrize(("seen", "told"), [
    (lambda ahead: ahead <= 1, "each query sees all keys before it and 1 after it"),
    (lambda ahead: ahead >= 0, "each query sees 0 keys before it and all after it"),
    (lambda ahead: (ahead >= -4) & (ahead <= 2), "each query sees 4 keys before it and 2 after it"),
])
def test_a_mask_that_is_shifted_is_told(seen, told):
    found = probe(masked(seen), declared="1/sqrt(d_k)")
    assert (found.mask, found.causal) == ("other", False)
    assert found.findings == (told,)
    assert found.agrees


@pytest.mark.parametrize("stride", [2, 3, 4, 8])
def test_keys_at_a_distance_are_probed(stride):
    found = probe(masked(lambda ahead: (ahead <= 0) & (ahead % stride == 0)))
    assert found.formula == "1/sqrt(d_k)"


def test_small_weights_that_are_left_out_are_told():
    found = probe(masked(lambda ahead: ahead < 99, less=0.01))
    assert " of the weights that no mask hides are 0: small ones are left out" in found.findings[0]


def test_distances_instead_of_products_are_refused():
    def attend(q, k, v):
        squares = np.sum((q[..., :, None, :] - k[..., None, :, :]) ** 2, axis=-1)
        return softmax(-squares / 8) @ v

    assert probe(attend).reason.startswith("neither a straight line")


def test_a_mask_that_only_makes_weights_small_is_not_causal():
    found = probe(attention(causal=True, hide=-12.0), declared="1/sqrt(d_k)")
    assert found.causal is False
    assert found.mask == "causal"
    assert found.findings == (
        "masked keys keep a weight, their logit is -12: the mask value is too small",)
    assert found.agrees


@pytest.mark.parametrize("out", ["float64", "float32", "bfloat16"])
def test_a_cap_after_the_mask_leaks_weight(out):
    found = probe(attention(causal=True, cap=20.0, cap_first=False, out=out, compute="float32"))
    assert found.causal is False
    assert any("the cap comes after the mask" in finding for finding in found.findings)
    assert found.cap_low <= 20 <= found.cap_high
    assert found.formula == "1/sqrt(d_k)"


@pytest.mark.parametrize("out", TYPES)
@pytest.mark.parametrize("cap", [2.0, 5.0, 30.0, 50.0])
def test_a_cap_is_fitted_together_with_the_scale(out, cap):
    found = probe(attention(64**-0.5, cap=cap, out=out, causal=True), declared="1/sqrt(d_k)")
    assert found.cap_low <= cap <= found.cap_high
    if (out, cap) != ("float16", 50.0):  # where a line of smaller scale is as near
        assert found.cap == pytest.approx(cap, rel=0.2)
    assert found.agrees
    assert found.formula == "1/sqrt(d_k)"


def test_without_a_cap_it_says_which_one_would_show():
    found = probe(attention())
    assert found.cap is None
    assert found.cap_low > 1e6
    assert found.cap_high == math.inf
    for out in ("float64", "float32", "bfloat16"):
        seen = probe(attention(out=out, compute="float32")).cap_low
        for cap in (0.5 * seen, 2 * seen):
            assert probe(attention(out=out, compute="float32", cap=cap)).cap_low <= cap
    assert probe(attention(out="float32", cap=0.5 * probe(attention(out="float32")).cap_low)).cap


def test_a_bias_and_its_own_factor():
    for scaled, factor in ((False, 1.0), (True, 0.125)):
        found = probe(attention(bias=BIAS, scale_bias=scaled), heads=2, bias=BIAS)
        assert found.bias_scale == pytest.approx(factor, rel=1e-12)
        assert found.formula == "1/sqrt(d_k)"
        assert ("the bias is multiplied by the scale as well" in found.findings) == scaled
        assert found.slopes is None
    assert probe(attention(bias=BIAS), heads=2).bias_scale is None
    assert probe(attention(), heads=2).bias_scale is None


def test_the_slopes_of_alibi_with_their_sign_and_factor():
    slopes = alibi_slopes(8)
    for causal in (False, True):
        found = probe(attention(bias=alibi(slopes, 16), causal=causal), heads=8)
        np.testing.assert_allclose(found.slopes, slopes, rtol=1e-12)
        assert found.bias_scale == pytest.approx(1, rel=1e-12)
    found = probe(attention(bias=alibi(slopes, 16), scale_bias=True), heads=8)
    np.testing.assert_allclose(found.slopes, slopes / 8, rtol=1e-12)
    assert found.bias_scale == pytest.approx(0.125, rel=1e-12)
    assert "the bias is multiplied by the scale as well" in found.findings
    for slope, scaled, factor in ((0.5, False, None), (2**-8, False, 1.0), (2**-8, True, 0.125)):
        found = probe(attention(bias=alibi([slope], 16), scale_bias=scaled))
        assert found.slopes == pytest.approx([slope * (0.125 if scaled else 1)])
        assert found.bias_scale == (None if factor is None else pytest.approx(factor))
    turned = slopes * [1, 1, -1, 1, 1, 1, 1, 1]
    found = probe(attention(bias=alibi(turned, 16)), heads=8)
    np.testing.assert_allclose(found.slopes, turned, rtol=1e-12)
    assert "the slope of head 2 has the wrong sign: far keys gain" in found.findings
    assert found.formula == "1/sqrt(d_k)"


@pytest.mark.parametrize(("norms", "gain", "scale", "formulas"), [
    ("qk", 64**-0.5, 8.0, ("1/sqrt(d_k)",)),
    ("QK", 10.0, 10.0, ()),
    ("QK", 1.0, 1.0, ("1", "1/d_k")),
    ("qk", 1.0, 64.0, ("1",)),
    ("q", 64**-0.5, 1.0, ("1/sqrt(d_k)", "1")),
    ("k", 64**-0.5, 1.0, ("1/sqrt(d_k)", "1")),
])
def test_normalised_queries_and_keys(norms, gain, scale, formulas):
    found = probe(attention(gain, normalise=norms))
    assert found.normalised == {"qk": "q and k"}.get(norms.lower(), norms.lower())
    assert found.scale == pytest.approx(scale, rel=1e-12)
    assert set(found.formulas) == set(formulas)


def test_a_small_gain_of_normalised_vectors_in_bfloat16():
    found = probe(attention(0.3, normalise="QK", out="bfloat16", compute="float32"))
    assert found.normalised == "q and k"
    assert found.low <= 0.3 <= found.high
    assert found.high / found.low < 2


@pytest.mark.parametrize(("reads", "told"), [
    ([0, 0, 0, 0, 1, 1, 1, 1], ""),
    ([0, 1, 0, 1, 0, 1, 0, 1], "key heads are tiled, h mod 2"),
    ([1, 1, 1, 1, 0, 0, 0, 0], "key heads are 1 1 1 1 0 0 0 0"),
])
def test_which_key_head_each_query_head_reads(reads, told):
    found = probe(attention(key_head=reads, value_head=reads), heads=8, kv_heads=2)
    assert found.key_head.tolist() == reads
    assert "".join(found.findings).startswith(told)
    assert bool(found.findings) == bool(told)
    assert found.formula == "1/sqrt(d_k)"


def test_values_from_other_heads_than_keys_and_a_mixture_of_heads():
    block = [0, 0, 1, 1]
    found = probe(attention(value_head=[0, 1, 0, 1]), heads=4, kv_heads=2)
    assert found.key_head.tolist() == block
    assert found.findings == ("values are read from other heads than keys: 0 1 0 1",)

    def mixed(q, k, v):
        return attention()(q, np.repeat(k.mean(axis=1, keepdims=True), 2, axis=1), v)

    assert probe(mixed, heads=4, kv_heads=2).key_head.tolist() == [-1, -1, -1, -1]


@pytest.mark.parametrize(("factor", "name"), [
    (np.log, "log(n)"),
    (lambda n: np.log(n + 1), "log(n + 1)"),
    (lambda n: np.maximum(1, np.log(n) / np.log(8)), "max(1, log(n)/log(8))"),
])
def test_scales_that_grow_with_the_position(factor, name):
    found = probe(attention(64**-0.5, by_position=factor, causal=True))
    assert found.position == name
    assert found.formula == "1/sqrt(d_k)"


def test_a_declared_scale_may_grow_with_the_position():
    attend = attention(64**-0.5 / math.log(512), by_position=np.log, causal=True)
    assert probe(attend, declared="log(n)/log(512)/sqrt(d_k)").agrees
    assert not probe(attend, declared="log(n)/sqrt(d_k)").agrees
    assert not probe(attend, declared="1/sqrt(d_k)").agrees
    found = probe(attend)
    assert "it is log(n)/log(512) times 1/sqrt(d_k)" in " ".join(found.findings)


@pytest.mark.parametrize(("out", "factor", "formula"), [
    ("float64", np.sqrt, "sqrt(n)/sqrt(d_k)"), ("bfloat16", np.sqrt, "sqrt(n)/sqrt(d_k)"),
    ("float32", lambda n: 1 + np.log(n) / 10, "(1 + log(n)/10)/sqrt(d_k)"),
    ("float16", lambda n: 1 + np.log(n) / 10, "(1 + log(n)/10)/sqrt(d_k)"),
    ("float64", lambda n: np.log(n) ** 0.5, "log(n)^0.5/8"),
    ("float32", lambda n: 1 / n, "1/n/8"), ("bfloat16", lambda n: 1 / n, "1/n/8")])
def test_any_other_scale_by_position_is_told_query_by_query(out, factor, formula):
    compute = out if out == "float64" else "float32"
    attend = attention([0.125, 0.125], by_position=factor, causal=True, out=out, compute=compute)
    found = probe(attend, heads=2, declared=formula)
    scales = 0.125 * factor(np.arange(1.0, 17))
    assert found.scale.shape == found.low.shape == found.high.shape == (2, 16)
    assert np.isnan(found.scale[:, 0]).all()  # a query of one key shows no scale
    assert np.all((found.low <= scales)[:, 1:] & (scales <= found.high)[:, 1:])
    assert found.agrees
    assert found.formulas == ()
    assert "the scale differs from query to query, " in " ".join(found.findings)
    assert "(queries differ)" in str(found)
    assert probe(attend, heads=2, declared="1/sqrt(d_k)").agrees is False


def test_a_scale_that_hardly_depends_on_the_position_is_not_taken_for_coarse_logits():
    found = probe(attention(by_position=lambda n: 1 + n / 2**16), declared="1/sqrt(d_k)")
    assert found.scale.shape == (1, 16)
    assert found.agrees is False


@pytest.mark.parametrize(("options", "told"), [
    ({"sink": 0.0}, "rows of weights sum to less than 1: softmax with 1 in the denominator"),
    ({"sink": 1.5}, "rows of weights sum to less than 1: a sink of logit 1.5 in the denominator"),
    ({"values": 0.5}, "each row of weights sums to 0.5: values or outputs are scaled"),
    ({"mask_after": True, "causal": True},
     "rows of weights sum to the share of keys they see: the mask comes after the softmax"),
])
@pytest.mark.parametrize("out", ["float64", "bfloat16"])
def test_what_rows_of_weights_sum_to(options, told, out):
    found = probe(attention(64**-0.5, out=out, compute=None if out == "float64" else "float32",
                            **options), declared="1/sqrt(d_k)")
    assert found.findings == (told,)
    assert found.agrees


def test_heads_that_differ():
    found = probe(attention([48**-0.5, 1 / 48]), heads=2, d_k=48, declared="1/sqrt(d_k)")
    np.testing.assert_allclose(found.scale, [48**-0.5, 1 / 48])
    assert found.low.shape == found.high.shape == (2,)
    assert found.formulas == ()
    assert found.formula == ""
    assert found.agrees is False
    assert "heads have different scales: 1/sqrt(d_k), 1/d_k" in found.findings


@pytest.mark.parametrize(("options", "sizes", "told"), [
    ({"dropout": 0.1}, {}, "two calls on the same arrays differ: "),
    ({"noise": 1e-3}, {}, "two calls on the same arrays differ by more than rounding"),
    ({"window": 1}, {}, "no query sees more than one key"),
    ({"dropout": 1e-3}, {}, "two calls on the same arrays differ: "),
    ({"scale": 0.0}, {}, "the weights of a query do not depend on q·k"),
    ({"scale": 1e-9, "out": "float16"}, {}, "the weights of a query do not depend on q·k"),
    ({"scale": 1e15}, {}, "all weights are 0 or 1"),
    ({"added": 1000.0, "out": "bfloat16"}, {}, "neither a straight line in q·k nor one with a cap"),
    ({"bend": lambda x: x * np.tanh(x / 5)}, {}, "neither a straight line"),
    ({"bend": lambda x: np.sign(x) * np.sqrt(np.abs(x))}, {}, "neither a straight line"),
    ({"scale": 0.07, "normalise": "QK", "out": "bfloat16"}, {}, "the logits spread too little"),
])
def test_it_refuses_rather_than_guesses(options, sizes, told):
    found = probe(attention(**options), declared="1/sqrt(d_k)", **sizes)
    assert found.reason.startswith(told)
    assert math.isnan(found.scale)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.formula == ""
    assert found.formulas == ()
    assert found.agrees is None


def test_outputs_that_are_no_averages_of_values_are_refused():
    attend = attention()
    added = probe(lambda q, k, v: attend(q, k, v) + 0.25)
    assert added.reason.startswith("outputs are no averages of the values: of values of 0 they")
    less = probe(lambda q, k, v: attend(q, k, v) - 1.5 * attend(q, k, v[..., ::-1, :]))
    assert "has the weight" in less.reason
    coordinates = probe(lambda q, k, v: attend(q[..., :40], k[..., :40], v))
    assert coordinates.reason.startswith("neither a straight line")


def test_formulas_that_coincide_are_all_told_with_sizes_that_tell():
    found = probe(attention(), d_model=64)
    assert found.formula == ""
    assert found.formulas == ("1/sqrt(d_k)", "1/sqrt(d_model)")
    assert found.reason == ""
    assert found.findings == ("1/sqrt(d_k) and 1/sqrt(d_model) cannot be told apart here; probe "
                              "with d_k=64, heads=3, d_model=192 to tell",)
    told = probe(attention(192**-0.5), heads=3, d_model=192)
    assert told.formula == "1/sqrt(d_model)"
    assert probe(attention(1.0), d_k=1).formulas == ("1/sqrt(d_k)", "1/d_k", "1", "d_k^(-1/4)")


def test_what_a_whole_number_may_be():
    found = probe(attention(192**-0.5))
    assert found.formula == "1/sqrt(192)"
    assert found.findings == ("192 is 3·d_k",)


def test_a_whole_number_that_may_be_chance_is_told_so():
    coarse = {"out": "bfloat16", "compute": "bfloat16"}
    found = probe(attention(0.3, **coarse))
    assert found.formula == "1/sqrt(11)"
    assert "1/sqrt(11) may be chance: " in found.findings[-1]
    many = probe(attention(512**-0.5, **coarse), d_k=192)
    assert "1/sqrt(512)" in many.formulas
    assert f" ({len(many.formulas)} formulas)" in str(many)
    for tiny in (1e-4, 1e-12):
        assert probe(attention(tiny)).formulas == ()  # N would be 10^8, or 10^24


@pytest.mark.parametrize("out", TYPES)
def test_a_negative_scale_with_a_cap(out):
    found = probe(attention(-0.125, cap=20.0, out=out), declared="-1/sqrt(d_k)")
    assert found.agrees
    assert found.cap_low <= 20 <= found.cap_high


def test_an_inverted_and_a_negative_scale():
    assert probe(attention(8.0)).findings == (
        "the scale is sqrt(d_k): multiplied where it should be divided",)
    found = probe(attention(-0.125))
    assert found.scale == -0.125
    assert found.findings[0].startswith("the scale is negative")


@pytest.mark.parametrize(("sizes", "match"), [
    ({"tokens": 1}, "probe with 1 key: .* pass tokens=2 or more"),
    ({"d_k": 0}, r"probe\(d_k=0\): must be a whole number"),
    ({"heads": 3, "kv_heads": 2}, "heads must be a multiple of kv_heads"),
    ({"d_model": -4}, r"probe\(d_model=-4\): must be above 0"),
    ({"declared": "1/sqrt(d_q)"}, "scale '1/sqrt\\(d_q\\)': must be a number, or a formula"),
    ({"declared": "1/sqrt(padded)"}, "padded= and mscale= give those names their numbers"),
    ({"bias": np.zeros((3, 16, 16))}, "must broadcast to"),
])
def test_what_cannot_be_probed_is_a_value_error(sizes, match):
    with pytest.raises(ValueError, match=match):
        probe(attention(), **sizes)


@pytest.mark.parametrize(("attend", "match"), [
    (lambda q, k, v: attention()(q, k, v)[0], "must return an array"),
    (lambda q, k, v: (attention()(q, k, v), None), "attend returned tuple"),
    (lambda q, k, v: attention()(q, k, v) * np.nan, "attend returned NaN"),
])
def test_outputs_that_cannot_be_read_are_a_value_error(attend, match):
    with pytest.raises(ValueError, match=match):
        probe(attend)


def test_an_error_of_the_function_says_what_it_was_called_with():
    with pytest.raises(KeyError) as caught:
        probe(lambda q, k, v: {}["x"], heads=2)
    assert "q (1, 2, 16, 64)" in caught.value.__notes__[0]


def test_a_naive_softmax_that_overflows_is_probed_nearer_to_0():
    def attend(q, k, v):
        s = (q @ np.swapaxes(k, -1, -2)).astype(np.float16) * np.float16(0.125)
        e = np.exp(s)
        return (e / e.sum(axis=-1, keepdims=True, dtype=np.float16)).astype(np.float64) @ v

    assert probe(attend).formula == "1/sqrt(d_k)"


def test_keys_may_outnumber_queries():
    def attend(q, k, v):
        s = 0.125 * q @ np.swapaxes(k, -1, -2)
        ahead = np.arange(s.shape[-1]) - np.arange(s.shape[-2])[:, None]
        return softmax(np.where(ahead > s.shape[-1] - s.shape[-2], -np.inf, s)) @ v

    for tokens in (1, 4):
        found = probe(attend, tokens=tokens, keys=12, d_v=5)
        assert found.formula == "1/sqrt(d_k)"
        assert found.causal is (tokens == 4)


def test_the_same_seed_draws_the_same_and_the_caller_keeps_nothing():
    drawn = []

    def attend(q, k, v):
        drawn.append((q.copy(), k.copy()))
        out = attention()(q, k, v)
        q[:], k[:], v[:] = 0, 0, 0  # what a function does to its own arrays does no harm
        return out

    first = probe(attend, seed=5)
    calls = len(drawn)
    assert probe(attend, seed=5).low == first.low
    for one, other in zip(drawn[:calls], drawn[calls:], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert first.formula == "1/sqrt(d_k)"


def test_the_report_reads_well():
    text = str(probe(attention(48**-0.5, causal=True, cap=50.0), d_k=48, declared="1/sqrt(d_k)"))
    lines = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert lines["scale"].startswith("0.144337567297")
    assert lines["scale"].endswith(", 1/sqrt(d_k)")
    assert lines["declared"] == "1/sqrt(d_k) = 0.144338: agrees"
    assert lines["mask"] == "causal"
    assert lines["cap"].startswith("50 ± ")
    html = probe(attention(bend=np.abs))._repr_html_()
    assert html.startswith("<table>")
    assert "none: neither" in html


def test_it_calls_a_few_times_with_few_arrays():
    """So 8 heads take less than 0.1 s; the time itself depends on the machine."""
    sizes = []

    def attend(q, k, v):
        sizes.append(q.size)
        return attention(out="float32")(q, k, v)

    assert probe(attend, heads=8).formula == "1/sqrt(d_k)"
    assert len(sizes) <= 8
    assert sum(sizes) <= 50 * 8 * 16 * 64  # experiments of 8 heads, 16 tokens and d_k = 64
