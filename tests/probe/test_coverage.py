"""The interval holds the scale, whatever the arithmetic: over random functions, types and sizes."""

import numpy as np
import pytest
from probe.attentions import ROUND, alibi, attention

from mcverify import probe
from mcverify.attention import alibi_slopes

OUT_AND_COMPUTE = [("float64", "float64"), ("float32", "float32"), ("float16", "float16"),
                   ("bfloat16", "bfloat16"), ("float16", "float32"), ("bfloat16", "float32"),
                   ("float32", "bfloat16")]
KINDS = ("plain", "causal", "window", "cap", "norm", "alibi", "sink", "log n")
# Half the interval in proportion to the scale, at most, where nothing else widens it.
WIDTH = {("float64", "float64"): 1e-14, ("float32", "float32"): 1e-6,
         ("float16", "float16"): 7e-3, ("bfloat16", "bfloat16"): 0.03,
         ("float16", "float32"): 1e-3, ("bfloat16", "float32"): 1e-3,
         ("float32", "bfloat16"): 0.03}


def trial(seed):
    """A random attention function: the values that its scale may be held as, and its probe."""
    rng = np.random.default_rng([17, seed])
    out, compute = OUT_AND_COMPUTE[seed % len(OUT_AND_COMPUTE)]
    kind, where = rng.choice(KINDS), str(rng.choice(["product", "q", "both"]))
    store = str(rng.choice([compute, "float64"]))
    d_k, heads = int(rng.choice([5, 16, 40, 64, 80, 128, 192])), int(rng.choice([1, 2, 4]))
    scale = float(np.exp(rng.uniform(np.log(1e-3), np.log(10))))
    cap = float(np.exp(rng.uniform(np.log(4), np.log(80))))
    if kind == "norm":
        scale = float(rng.uniform(1, 16))
    options = {
        "plain": {}, "causal": {"causal": True}, "sink": {"sink": 0.0},
        "window": {"causal": True, "window": int(rng.integers(2, 10))},
        "cap": {"cap": cap, "causal": True}, "norm": {"normalise": "QK"},
        "alibi": {"bias": alibi(alibi_slopes(heads), 16), "causal": True},
        "log n": {"by_position": np.log, "causal": True},
    }[kind]
    attend = attention(scale, out=out, compute=compute, store=store, where=where, **options)
    found = probe(attend, d_k=d_k, heads=heads, seed=seed)
    held = ROUND[store](np.sqrt(scale)) ** 2 if where == "both" else ROUND[store](scale)
    return found, kind, cap, (scale, float(held)), WIDTH[out, compute]


def assert_held(found, scales, cap, seed):
    """Both intervals hold: that of the scale, and that of the cap, which may go unnoticed."""
    assert found.reason == "", seed
    assert found.cap_low <= cap <= found.cap_high, seed
    assert any(found.low <= scale <= found.high for scale in scales), seed


def check(seed):
    """Intervals hold, are narrow where they can be, and what else the function does is told."""
    found, kind, cap, scales, width = trial(seed)
    assert_held(found, scales, cap if kind == "cap" else np.inf, seed)
    assert (found.normalised, found.position) == (
        "q and k" if kind == "norm" else "", "log(n)" if kind == "log n" else ""), seed
    if kind not in ("cap", "norm", "alibi", "window"):  # a window of two leaves few pairs to read
        assert (found.high - found.low) / 2 < width * found.scale, seed


@pytest.mark.parametrize("first", range(0, 21, 7))
def test_no_interval_misses_its_scale(first):
    for seed in range(first, first + 7):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(21, 21 + 40 * 50, 50))
def test_no_interval_misses_its_scale_in_two_thousand_more_trials(first):
    for seed in range(first, first + 50):
        check(seed)


def hybrid(seed):
    """One that rounds here but not there, as autocasts and fused kernels do: the same, its cap."""
    rng = np.random.default_rng([5, seed])
    out = str(rng.choice(["float16", "bfloat16"]))
    compute, exps, weights = (str(rng.choice([out, "float32"])) for _ in range(3))
    scale, heads = float(np.exp(rng.uniform(np.log(1e-3), np.log(10)))), int(rng.choice([1, 2]))
    cap = float(np.exp(rng.uniform(np.log(4), np.log(80)))) if rng.random() < 0.25 else None
    bias = alibi(alibi_slopes(heads), 16) if cap is None and rng.random() < 0.25 else None
    where, sink = str(rng.choice(["product", "q", "both"])), rng.choice([None, 0.0])
    attend = attention(
        scale, out=out, compute=compute, exps=exps, weights=weights, store="float64", where=where,
        cap=cap, bias=bias, sink=sink, causal=bool(rng.random() < 0.5),
        values=float(rng.choice([1, 0.9])), window=rng.choice([None, 2, 3, 6]))
    found = probe(attend, d_k=int(rng.choice([5, 16, 64, 192])), heads=heads, seed=seed)
    held = ROUND[compute](scale), ROUND[compute](np.sqrt(scale)) ** 2
    return found, np.inf if cap is None else cap, (scale, *map(float, held))


def check_hybrid(seed):
    found, cap, scales = hybrid(seed)
    assert np.ndim(found.low) == 0, seed
    assert_held(found, scales, cap, seed)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_no_interval_misses_where_types_are_mixed(first):
    for seed in range(first, first + 10):
        check_hybrid(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 20 + 40 * 50, 50))
def test_no_interval_misses_in_two_thousand_mixed_trials(first):
    for seed in range(first, first + 50):
        check_hybrid(seed)


def test_the_check_has_teeth():
    found, *_, scales, _ = trial(0)
    assert not found.low <= scales[0] * (1 + 1e-12) <= found.high
