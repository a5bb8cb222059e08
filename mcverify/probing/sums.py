"""From the sums of rows of weights to what else is in the softmax, or scales its outputs."""

import numpy as np

from mcverify.probing.explain import Readings
from mcverify.probing.rounding import STORED, TYPES, computed


def remark_on_sums(readings: Readings, roundoff: float) -> str:
    """What the rows of weights sum to, and why; "" where they sum to 1."""
    p, still = readings.p, readings.flat
    u, smallest = TYPES[readings.precision]
    unsure = STORED * u + computed(max(u, roundoff)) + p.shape[-1] * smallest
    rows = np.any(readings.visible, axis=-1)
    total, quiet = p.sum(axis=-1), still.sum(axis=-1)
    if np.all(np.abs(total - 1)[:, rows] <= unsure):
        return ""
    middle = (total[:, rows].max() + total[:, rows].min()) / 2
    if np.all(np.abs(total[:, rows] - middle) <= unsure * middle):
        digits = int(np.clip(-np.log10(unsure), 2, 6))
        return (f"each row of weights sums to {middle:.{digits}g}: the values or outputs are "
                "scaled by it")
    sink = _sink(readings, unsure)
    if sink is not None:
        what = ("softmax with 1 in the denominator" if sink == 0 else
                f"a sink of logit {sink:.4g} in the denominator")
        return f"rows of weights sum to less than 1: {what}"
    seen = readings.visible.sum(axis=-1)
    if np.all(np.abs(quiet * p.shape[-1] - seen) <= unsure * seen):
        return "rows of weights sum to the share of keys they see: the mask comes after the softmax"
    return (f"rows of weights sum to {total[:, rows].min():.4g} to {total[:, rows].max():.4g}, "
            "not 1")


def _sink(readings: Readings, unsure: float) -> float | None:
    """The logit of one more key without value, if what rows lack of 1 is its weight."""
    p, still = readings.p, readings.flat
    zero = (readings.design.products[:, None] == 0) & readings.visible
    lack, quiet = 1 - p.sum(axis=-1, keepdims=True), 1 - still.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(zero, p / still, 0)
        off = np.abs(lack - times * quiet) > 4 * unsure * (1 + times)
        if np.any(off & zero):
            return None
        ratio = np.where(readings.visible, quiet / still, np.inf).min(axis=-1)
    wide = 4 * unsure * (1 + 1 / quiet[..., 0])
    ratio, wide = (x[np.any(readings.visible, axis=-1)] for x in (ratio, wide))
    if ratio.min() <= 0:
        return None
    return 0.0 if np.all(np.abs(ratio - 1) <= wide * ratio) else float(np.log(np.median(ratio)))
