"""From what was measured to sentences about what an attention does, faults above all."""

import math
import re
from collections.abc import Iterator

import numpy as np

from mcverify.arrays import Ints
from mcverify.probing.calls import Sizes
from mcverify.probing.explain import Rule
from mcverify.probing.formula import named, telling_sizes
from mcverify.probing.result import some
from mcverify.probing.rounding import HALF, SINGLE
from mcverify.probing.rows import Bias, Mask

RARE = 0.1  # of all numbers, that are so near to some 1/sqrt(N)


def of_scale(rule: Rule, formulas: list[str], names: dict[str, float], precision: str
             ) -> Iterator[str]:
    """What is odd about the scale, and what it depends on."""
    if rule.normalised:
        verb = "are" if " " in rule.normalised else "is"
        yield f"{rule.normalised} {verb} normalised: the scale is a gain of vectors of length 1"
    if rule.position:
        yield f"the scale depends on the position: times {rule.position} at query n = 1, 2, …"
        yield from _about_length(rule, names)
    if rule.by_query:
        yield (f"the scale differs from query to query, {np.nanmin(rule.scale):.6g} to "
               f"{np.nanmax(rule.scale):.6g}, and not as the logarithm of the position")
    if rule.roundoff > SINGLE and precision != "float16":
        half = "float16" if rule.roundoff == HALF else "bfloat16"
        yield f"the interval allows for logits that are rounded to {half}"
    if not rule.by_query and rule.low.max() > rule.high.min():
        yield "heads have different scales: " + ", ".join(
            " or ".join(named([(float(low), float(high))], names, precision))
            or f"{(low + high) / 2:.4g}" for low, high in zip(rule.low, rule.high, strict=True))
    if np.all(rule.high < 0):
        yield "the scale is negative: the least similar key gets the largest weight"
    root = math.sqrt(names["d_k"])
    if not formulas and not rule.normalised and np.all((rule.low <= root) & (root <= rule.high)):
        yield "the scale is sqrt(d_k): multiplied where it should be divided"


def of_formulas(rule: Rule, formulas: list[str], names: dict[str, float], precision: str
                ) -> Iterator[str]:
    """What several formulas are told apart by, and what one that is a number may be."""
    if len(formulas) > 1:
        sizes = telling_sizes(formulas, names)
        how = (": of vectors of length 1 or, after RMSNorm, √d_k" if rule.normalised else
               f"; probe with {sizes} to tell" if sizes else
               "; probe in a finer type to tell" if precision != "float64" else "")
        yield f"{some(formulas, ' and ')} cannot be told apart here{how}"
        return
    for number in map(int, re.findall(r"1/sqrt\((\d+)\)", "".join(formulas))):
        times, rest = divmod(number, int(names["d_k"]))
        if rest == 0 and 1 < times < 9:
            yield f"{number} is {times}·d_k"
        known, even = np.max(rule.high - rule.low), np.max(rule.even[1] - rule.even[0])
        width = float(np.fmin(known, even) / np.min(np.abs(rule.scale)))
        if 2 * number * width > RARE:
            yield (f"1/sqrt({number}) may be chance: some 1/sqrt(N) is this near to "
                   f"{min(2 * number * width, 1):.0%} of all numbers; probe in a finer type")


def _about_length(rule: Rule, names: dict[str, float]) -> Iterator[str]:
    """The length whose logarithm divides that of the position, if it is a whole number."""
    root = math.sqrt(names["d_k"])
    if rule.position == "log(n)" and rule.low.max() > 0.05 / root:
        first, last = (math.exp(1 / (x * root)) for x in (rule.high.min(), rule.low.max()))
        if last - first < 0.5 and math.floor(last) >= first:
            yield f"it is log(n)/log({math.floor(last)}) times 1/sqrt(d_k)"


def of_mask(mask: Mask, rule: Rule | None) -> Iterator[str]:
    """A mask that hides too little, and why, or that has no name."""
    if mask.leak is not None:
        capped = rule is not None and np.all(
            (0.99 * rule.cap[0] < -mask.leak) & (-mask.leak < 1.01 * rule.cap[1]))
        where = "the cap comes after the mask" if capped else "the mask value is too small"
        yield f"masked keys keep a weight, their logit is {mask.leak:.4g}: {where}"
    if mask.band:
        before, after = ("all" if number is None else number for number in mask.band)
        yield f"each query sees {before} keys before it and {after} after it"


def of_bias(bias: Bias, rule: Rule | None, given: bool) -> Iterator[str]:
    """What is added to the logits, and whether it is scaled as well."""
    if bias.slopes is not None:
        yield "a logit falls with each token of distance (ALiBi): see slopes"
        if np.any(bias.slopes[:, 1] < 0):
            heads = np.flatnonzero(bias.slopes[:, 1] < 0)
            yield f"the slope of head {' '.join(map(str, heads))} has the wrong sign: far keys gain"
    elif bias.largest:
        yield (f"logits of equal products differ by up to {bias.largest:.4g} in a row: by a bias"
               + ("" if bias.factor else ", which is no multiple of the one that was passed"
                  if given else ", whose factor is told if it is passed as bias="))
    if bias.factor and rule and not bias.factor[0] <= 1 <= bias.factor[1]:
        low, high = bias.factor
        scaled = np.all((rule.low <= high) & (low <= rule.high))
        yield "the bias is multiplied by the scale as well" if scaled else (
            f"the bias is multiplied by {(low + high) / 2:.6g}")


def of_heads(key_head: Ints, value_head: Ints, sizes: Sizes) -> Iterator[str]:
    """Heads of queries that read the wrong heads of keys, or of values."""
    block = np.arange(sizes.heads) // (sizes.heads // sizes.kv_heads)
    tiled = np.arange(sizes.heads) % sizes.kv_heads
    if np.any(key_head < 0):
        yield "some heads of queries read no single head of keys"
    elif not np.array_equal(key_head, block):
        is_tiled = np.array_equal(key_head, tiled)
        how = f"tiled, h mod {sizes.kv_heads}" if is_tiled else " ".join(map(str, key_head))
        share = sizes.heads // sizes.kv_heads
        yield f"key heads are {how}, where head h of queries usually reads head h // {share}"
    if np.all(key_head >= 0) and not np.array_equal(key_head, value_head):
        yield f"values are read from other heads than keys: {' '.join(map(str, value_head))}"
