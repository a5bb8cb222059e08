"""From an attention function to its scale, and to all else that it does to its logits."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mcverify.arrays import Array
from mcverify.probing import findings
from mcverify.probing.calls import Attend, Caller, Sizes
from mcverify.probing.experiments import CannotProbe, equal_logits, gains, heads_read, read
from mcverify.probing.explain import Rule, left_of_a_line, rule_of
from mcverify.probing.formula import fits, fits_everywhere, named, value_of, whole
from mcverify.probing.readings import Readings
from mcverify.probing.result import Probe
from mcverify.probing.rounding import TYPES
from mcverify.probing.rows import bias_of, mask_of
from mcverify.probing.sums import remark_on_sums, remark_on_zeros

VAGUEST = 2.0  # ratio of the ends of an interval that still counts as a number


def probe(
    attend: Attend, d_k: int = 64, d_v: int = 64, heads: int = 1, kv_heads: int | None = None,
    tokens: int | None = None, d_model: int | None = None, padded: int | None = None,
    declared: str | float | None = None, seed: int = 0, *, keys: int | None = None,
    bias: ArrayLike | None = None, mscale: float | None = None, dtype: Any = None,
    axes: int = 4,
) -> Probe:
    """What attend(q, k, v) multiplies q·k by, from its outputs alone, and what else it does.

    It is called about eight times with q (batch, heads, tokens, d_k), k (batch, kv_heads, keys,
    d_k) and v (batch, kv_heads, keys, d_v), and must return (batch, heads, tokens, d_v): NumPy,
    PyTorch or JAX arrays, or whatever has `__array__` or DLPack.

    Parameters
    ----------
    tokens, keys : 16 if not given, and as many keys as tokens; a window shows if it is shorter.
    d_model, padded : widths that the scale may have been taken from; d_model is heads·d_k if there
        are several heads and nothing else is said.
    declared : what the scale should be: a number, or a formula such as "1/sqrt(d_k)*mscale^2" of
        d_k, d_v, d_model, heads, kv_heads, padded, mscale and n, the number of keys.
    bias : what attend adds to its logits, as (heads, tokens, keys) or what broadcasts to it;
        ``bias_scale`` then says by what it is multiplied.
    mscale : the factor of a context extension; formulas are tried with it and with its square.
    dtype : of NumPy, JAX or PyTorch, of what attend is handed: a tensor for a type of PyTorch,
        otherwise a NumPy array. NumPy's float64 if not given.
    axes : 2 if attend takes (tokens, width) arrays, of one head, and returns (tokens, d_v).

    Raises ValueError for sizes that do not fit, a softmax over one key, outputs of another shape,
    NaN, and a declared formula that is none.

    >>> from mcverify.attention import scores, softmax
    >>> probed = probe(lambda q, k, v: softmax(scores(q, k, 40**-0.5)) @ v, d_k=192,
    ...               declared="1/sqrt(d_k)")
    >>> probed.formula, probed.agrees, round(probed.scale, 6)
    ('1/sqrt(40)', False, 0.158114)
    """
    sizes = Sizes.given(d_k, d_v, heads, kv_heads, tokens, keys)
    names = _names(sizes, d_model, padded, mscale)
    said = None if declared is None else (str(declared), value_of(str(declared), names))
    expected = None if bias is None else _bias(bias, sizes)
    try:
        return _measured(Caller(attend, sizes, dtype, axes), names, said, expected, seed)
    except CannotProbe as error:
        return Probe(reason=str(error), declared=said)


def _names(sizes: Sizes, d_model: int | None, padded: int | None, mscale: float | None
           ) -> dict[str, float]:
    names = {"d_k": sizes.d_k, "d_v": sizes.d_v, "heads": sizes.heads, "kv_heads": sizes.kv_heads,
             "n": sizes.keys}
    if d_model is None and sizes.heads > 1:
        d_model = sizes.heads * sizes.d_k
    given = {"d_model": d_model, "padded": padded, "mscale": mscale}
    for name, value in given.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"probe({name}={value!r}): must be above 0; leave it out if attend "
                             "has none")
    return names | {name: value for name, value in given.items() if value is not None}


def _bias(bias: ArrayLike, sizes: Sizes) -> Array:
    wanted = (sizes.heads, sizes.tokens, sizes.keys)
    try:
        return np.broadcast_to(np.asarray(bias, dtype=np.float64), wanted)
    except ValueError:
        raise ValueError(f"bias has shape {np.shape(bias)}: must broadcast to (heads, tokens, "
                         f"keys) = {wanted}; pass tokens=, or cut it to those") from None


def _measured(caller: Caller, names: dict[str, float], said: tuple[str, float] | None,
              expected: Array | None, seed: int) -> Probe:
    rng = np.random.default_rng(seed)
    at_zero = equal_logits(caller)
    mask = mask_of(at_zero, expected)
    if np.all(mask.visible.sum(axis=-1) < 2):
        raise CannotProbe("no query sees more than one key: its weight is 1 whatever the scale")
    for only_norms, gain, key_gain in gains(caller, at_zero, mask.visible, rng):
        readings = read(caller, at_zero, mask.visible, gain, key_gain, rng)
        rule = rule_of(readings, only_norms)
        if rule:
            break
    roundoff = rule.roundoff if rule else TYPES[readings.precision][0]
    scale = (float(rule.low.max()), float(rule.high.min())) if rule else (math.nan, math.nan)
    bias = bias_of(at_zero, mask.visible, readings.precision, roundoff, expected, scale)
    key_head, value_head = heads_read(caller, at_zero, gain, key_gain, rng)
    remarks = remark_on_zeros(readings), remark_on_sums(readings, roundoff)
    also = (*findings.of_mask(mask, rule), *findings.of_bias(bias, rule, expected is not None),
            *findings.of_heads(key_head, value_head, caller.sizes), *filter(None, remarks))
    seen = Probe(
        causal=mask.causal, mask=mask.name, window=mask.window, key_head=key_head, declared=said,
        bias_scale=sum(bias.factor) / 2 if bias.factor else None, precision=readings.precision,
        slopes=None if bias.slopes is None else bias.slopes.mean(axis=1), findings=also,
        reason=_reason(readings, rule))
    return seen if rule is None or seen.reason else _with_scale(seen, rule, names)


def _reason(readings: Readings, rule: Rule | None) -> str:
    """Why there is no number; "" where there is one."""
    if rule is None:
        return (f"neither a straight line in q·k nor one with a cap explains the logits: the line "
                f"leaves {left_of_a_line(readings):.2g} of their squares over")
    ends = np.abs([rule.low, rule.high])
    vague = (rule.low * rule.high <= 0) | (ends.max(axis=0) > VAGUEST * ends.min(axis=0))
    if np.any(vague) and not rule.by_query:
        return (f"the logits spread too little for {readings.precision}: the scale is between "
                f"{rule.low.min():.3g} and {rule.high.max():.3g}; probe in a finer type")
    return ""


def _with_scale(seen: Probe, rule: Rule, names: dict[str, float]) -> Probe:
    low, high = _one_or_each(rule.low, rule.high)
    cap_low, cap_high = _one_or_each(*rule.cap)
    names = {name: value for name, value in names.items() if name != "n" or not rule.position}
    # Normalised vectors may have the length 1 or, after RMSNorm, √d_k.
    root = math.sqrt(names["d_k"])
    lengths = {"": [1.0], "q and k": [1.0, root**2]}.get(rule.normalised, [1.0, root])
    intervals, even = ([(float(np.max(a)) / x, float(np.min(b)) / x) for x in lengths]
                       for a, b in ((low, high), rule.even))  # even may be nan, which holds nothing
    formulas = named(even, names, seen.precision) or named(intervals, names, seen.precision)
    if not rule.position:
        formulas = formulas or (whole(even[-1], names, seen.precision)
                                or whole(intervals[-1], names, seen.precision))
    return replace(
        seen, low=low, high=high,
        scale=rule.scale if np.ndim(low) else float(np.clip(rule.scale.mean(), low, high)),
        formulas=tuple(formulas), formula=formulas[0] if len(formulas) == 1 else "",
        agrees=None if seen.declared is None else _agrees(rule, intervals, seen, names),
        cap=(cap_low + cap_high) / 2 if np.all(np.isfinite(cap_high)) else None,
        cap_low=cap_low, cap_high=cap_high, normalised=rule.normalised, position=rule.position,
        findings=(*findings.of_scale(rule, formulas, names, seen.precision),
                  *findings.of_formulas(rule, formulas, names, seen.precision), *seen.findings))


def _agrees(rule: Rule, intervals: list[tuple[float, float]], seen: Probe, names: dict[str, float]
            ) -> bool:
    declared, value = seen.declared or ("", math.nan)
    if not rule.position and not rule.by_query:
        return bool(fits(value, intervals, seen.precision))
    each = (x if rule.by_query else x[:, None] * rule.factor for x in (rule.low, rule.high))
    low, high = next(each).max(axis=0), next(each).min(axis=0)
    return fits_everywhere(declared, low, high, names)


def _one_or_each(low: Array, high: Array) -> tuple[Any, Any]:
    """The interval that suits all heads, as numbers, or those of each head, or of each query."""
    return (float(low.max()), float(high.min())) if low.max() <= high.min() else (low, high)
