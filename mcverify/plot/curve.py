"""Draw estimates over a setting, such as d_k or the number of keys, without a verdict."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mcverify.plot.page import Axes, is_wide, picture
from mcverify.statistic.estimate import Estimate

Curves = Mapping[str, Sequence[Estimate]]


def draw_curve(
    file: str | Path, values: Sequence[float], estimates: Sequence[Estimate] | Curves,
    setting: str = "d_k", quantity: str = "estimate",
    formula: Callable[[float], float] | None = None,
) -> Path:
    """Draw the estimates that ``check`` gives over a grid, with their intervals, to a PNG file.

    ``estimates``, one for each of the values of the setting, or a mapping from labels to several
    such curves; ``formula``, of a value, is drawn as a line. An axis is logarithmic where all is
    positive and the largest is over 30 times the smallest. Raises ValueError for other lengths,
    UsageError without matplotlib or for a file that cannot be written. ::

        widths = [1, 4, 16, 64]
        estimates = check(scores, statistic=variance, law=laws.normal, d_k=widths)
        draw_curve("variance.png", widths, estimates, quantity="Var(q·k)", formula=lambda d_k: d_k)
    """
    curves = estimates if isinstance(estimates, Mapping) else {"measured": estimates}
    for label, curve in curves.items():
        if len(curve) != len(values):
            raise ValueError(f"{label}: {len(curve)} estimates at {len(values)} values of "
                             f"{setting}; give one for each")
    with picture(Path(file), 3.3) as figure:
        axes = figure.add_subplot()
        axes.set_xlabel(setting, parse_math=False)
        axes.set_ylabel(quantity, parse_math=False)
        for (label, curve), marker in zip(curves.items(), "osD^vP" * len(curves), strict=False):
            _draw(axes, values, curve, marker, label)
        if formula is not None:
            line = sorted(values)
            axes.plot(line, [formula(value) for value in line], "--", color="0.3", label="formula")
        _set_scales(axes, values, curves)
        if len(curves) > 1 or formula is not None:
            for text in axes.legend(frameon=False).get_texts():
                text.set_parse_math(False)
    return Path(file)


def _draw(
    axes: Axes, values: Sequence[float], curve: Sequence[Estimate], marker: str, label: str
) -> None:
    heights = [estimate.value for estimate in curve]
    known = any(map(math.isfinite, heights))
    line, = axes.plot(values, heights, f"{marker}-", lw=1,
                      label=label if known else f"{label}: no estimates")
    for value, estimate in zip(values, curve, strict=True):
        if math.isfinite(estimate.high - estimate.low):
            axes.vlines(value, estimate.low, estimate.high, color=line.get_color(), lw=2)
        else:  # a white point has no interval
            axes.plot(value, estimate.value, marker, color=line.get_color(), mfc="white")


def _set_scales(axes: Axes, values: Sequence[float], curves: Curves) -> None:
    if is_wide(height for curve in curves.values() for estimate in curve
               for height in (estimate.value, estimate.low, estimate.high)):
        axes.set_yscale("log")
    if is_wide(values):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
