"""From the sums of rows of weights, and their zeros, to what else is done to them."""

import numpy as np

from mcverify.arrays import Array
from mcverify.probing.readings import Readings
from mcverify.probing.result import listed
from mcverify.probing.rounding import STORED, TYPES, computed


def remark_on_zeros(readings: Readings) -> str:
    """Whether weights are 0 where none is too small for its type; "" if not."""
    gone = np.mean(readings.p[np.broadcast_to(readings.visible, readings.p.shape)] == 0)
    if gone == 0 or readings.precision == "float16":
        return ""
    return (f"{gone:.2g} of the weights that no mask hides are 0: small ones are left out, or "
            "underflow in float16")


def remark_on_sums(readings: Readings, roundoff: float) -> str:
    """What the rows of weights sum to, and why; "" where they sum to 1."""
    p, at_zero = readings.p, readings.at_zero
    u, smallest = TYPES[readings.precision]
    unsure = STORED * u + computed(max(u, roundoff)) + p.shape[-1] * smallest
    seen = readings.visible.sum(axis=-1)
    total = np.where(seen > 0, p.sum(axis=-1), np.nan)  # (batch, heads, tokens)
    least, most = np.nanmin(total, axis=(0, 2)), np.nanmax(total, axis=(0, 2))
    if np.all(most - least <= 2 * unsure * most):
        middle = (least + most) / 2
        one = np.all(np.abs(middle - 1) <= unsure)
        digits = int(np.clip(np.ceil(-np.log10(unsure)), 2, 6))
        sums = listed(np.unique([float(f"{x:.{digits}g}") for x in middle]))
        return "" if one else f"each row of weights sums to {sums}: values or outputs are scaled"
    sinks = _sinks(readings, unsure)
    if sinks is not None:
        what = ("softmax with 1 in the denominator" if not sinks.any() else
                f"a sink of logit {listed(np.unique(sinks.round(2)))} in the denominator")
        return f"rows of weights sum to less than 1: {what}"
    if np.all(np.abs(at_zero.sum(axis=-1) * p.shape[-1] - seen) <= unsure * seen):
        return "rows of weights sum to the share of keys they see: the mask comes after the softmax"
    return f"rows of weights sum to {least.min():.4g} to {most.max():.4g}, not 1"


def _sinks(readings: Readings, unsure: float) -> Array | None:
    """The logit of one more key without value, (heads,), if what rows lack of 1 is its weight."""
    p, at_zero, visible = readings.p, readings.at_zero, readings.visible
    zero = (readings.design.products[:, None] == 0) & visible
    lack, quiet = 1 - p.sum(axis=-1, keepdims=True), 1 - at_zero.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(zero, p / at_zero, 0)
        if np.any(zero & (np.abs(lack - times * quiet) > 4 * unsure * (1 + times))):
            return None
        ratio = np.min(np.where(visible, quiet / at_zero, np.inf), axis=-1)
        wide = 4 * unsure * (1 + 1 / quiet[..., 0]) * ratio
    rows = visible.any(axis=-1)
    if np.any(ratio[rows] <= 0):
        return None
    ratio, wide = np.where(rows, ratio, np.nan), np.where(rows, wide, 0)
    plain = np.all((np.abs(ratio - 1) <= wide) | ~rows, axis=1)
    return np.where(plain, 0.0, np.log(np.nanmedian(ratio, axis=1)))
