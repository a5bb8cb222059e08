"""Draw the saturation atlas: what is left of the entropy, and of the Jacobian."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from mcverify.declare.fault import UsageError
from mcverify.declare.names import ATLAS
from mcverify.plot.page import BLUE, VERMILLION, Axes, Figure, picture, read
from mcverify.results.folder import Results
from mcverify.theory import softmax

Colour = tuple[float, ...]

SCALES = {"none": "unscaled: falls", "sqrt": "divided by √d_k: flat",
          "full": "divided by d_k: rises"}
KEYS = (2, 8, 32, 128, 512, 4096)  # as many lines as can be told apart
WIDTH_OF_JACOBIAN = 64  # the d_k at which the norms are drawn over the number of keys
MARKERS = "os^DvP"


def draw_saturation(results: Results, folder: Path, kind: str = ".png") -> Iterator[Path]:
    """Draw saturation.png and jacobian.png into the folder, yielding each when it is written."""
    atlas = read(results, ATLAS, ("scale",), (
        "d_k", "keys", "entropy_share", "entropy_share_stderr", "exact_entropy_share",
        "frobenius_mean", "frobenius_mean_stderr", "frobenius_median"))
    for column, value in (("keys", 2), ("d_k", WIDTH_OF_JACOBIAN)):
        if value not in set(atlas[column]):
            raise UsageError(f"{results.file(ATLAS)}: has no row with {column} {value}, which the "
                             "pictures show; `mcverify run` makes it anew")
    for name, panels in (("saturation", _entropies), ("jacobian", _norms)):
        file = folder / f"{name}{kind}"
        with picture(file, 3.3) as figure:
            panels(figure, atlas)
        yield file


def _entropies(figure: Figure, atlas: pd.DataFrame) -> None:
    """Three panels: what is left of the entropy, unscaled and scaled, over d_k."""
    panels = figure.subplots(1, len(SCALES), sharey=True)
    for axes, (scale, title) in zip(panels, SCALES.items(), strict=True):
        axes.set_title(title, loc="left")
        _doubling(axes, atlas["d_k"], every=3)
        ends = _entropy_lines(axes, atlas[atlas["scale"] == scale])
        if scale == "sqrt":  # where the lines end apart
            _label_ends(axes, ends)
    panels[0].set_ylim(-0.03, 1.09)
    panels[0].set_ylabel("mean entropy of the weights over ln(keys)")
    right, left = {"x": 0.98, "ha": "right"}, {"x": 0.03, "ha": "left"}
    for axes, y, text, place in (
        (panels[0], 1.02, "1: all keys alike", right), (panels[0], 0.02, "0: one key", left),
        (panels[2], 0.02, "points: measured,\n± 2 standard errors\nlines: exact", right),
    ):
        axes.text(y=y, s=text, transform=axes.get_yaxis_transform(), **place)
    figure.supxlabel("width d_k of queries and keys", fontsize=9)


def _entropy_lines(axes: Axes, atlas: pd.DataFrame) -> list[tuple[float, float, int, Colour]]:
    """A line of each number of keys; where each ends, with its number and colour."""
    from matplotlib import colormaps

    counts = [n for n in KEYS if n in set(atlas["keys"])] or sorted(set(atlas["keys"]))[:len(KEYS)]
    colours = colormaps["viridis"](np.linspace(0, 0.78, len(counts)))  # yellow is lost on white
    ends = []
    for n, marker, colour in zip(counts, MARKERS, colours, strict=False):
        line = atlas[atlas["keys"] == n].sort_values("d_k")
        axes.plot(line["d_k"], line["exact_entropy_share"], color=colour, lw=1.1)
        axes.errorbar(line["d_k"], line["entropy_share"], 2 * line["entropy_share_stderr"],
                      fmt=marker, color=colour, ms=3.6)
        ends.append((line["d_k"].iloc[-1], line["entropy_share"].iloc[-1], n, colour))
    return ends


def _label_ends(axes: Axes, ends: list[tuple[float, float, int, Colour]]) -> None:
    """Write the number of keys at the end of each line, a line of text apart."""
    gap = 0.065
    middle = sum(y for _, y, _, _ in ends) / max(len(ends), 1)
    level = middle - gap * (len(ends) + 1) / 2
    for x, y, n, colour in sorted(ends, key=lambda end: end[1]):
        level += gap
        axes.annotate(f"{n} keys" if n == ends[-1][2] else str(n), (x, y), (1.08, level),
                      textcoords=("axes fraction", "data"), va="center", color=colour, arrowprops={
                          "arrowstyle": "-", "color": colour, "lw": 0.7, "relpos": (0, 0.5),
                          "shrinkA": 0, "shrinkB": 3})


def _doubling(axes: Axes, values: "pd.Series[float]", every: int = 2) -> None:
    """A logarithmic axis whose ticks are some of the values themselves."""
    ticks = sorted(set(values))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks[::every] if len(ticks) > 6 else ticks)
    axes.xaxis.set_major_formatter("{x:g}")


# --- Jacobian -----------------------------------------------------------------------------------


def _norms(figure: Figure, atlas: pd.DataFrame) -> None:
    """Mean and median of the Jacobian's norm: two keys over d_k, and one d_k over the keys."""
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.1, 1)})
    two, wide = atlas[atlas["keys"] == 2], atlas[atlas["d_k"] == WIDTH_OF_JACOBIAN]
    for scale, colour, marker in (("none", VERMILLION, "o"), ("sqrt", BLUE, "s")):
        line = two[two["scale"] == scale].sort_values("d_k")
        _norm_points(left, line["d_k"], line, (marker, colour, "", ""))
        _exact_norms(left, line["d_k"], scale, colour)
        line = wide[wide["scale"] == scale].sort_values("keys")
        _norm_points(right, line["keys"], line, (marker, colour, "-", "--"))
    for axes, values in ((left, two["d_k"]), (right, wide["keys"])):
        axes.set_yscale("log")
        _doubling(axes, values)
    left.set_title("2 keys; curves: exact", loc="left")
    left.set_xlabel("width d_k of queries and keys")
    left.set_ylabel("Frobenius norm of the softmax Jacobian")
    right.set_title(f"d_k = {WIDTH_OF_JACOBIAN}; lines join the points", loc="left")
    right.set_xlabel("number of keys")
    _label_norms(left, right)
    _mark_crossing(right, wide)


def _norm_points(axes: Axes, x: "pd.Series[float]", line: pd.DataFrame,
                 style: tuple[str, str, str, str]) -> None:
    marker, colour, of_mean, of_median = style
    axes.errorbar(x, line["frobenius_mean"], 2 * line["frobenius_mean_stderr"], fmt=marker,
                  color=colour, ls=of_mean)
    axes.plot(x, line["frobenius_median"], marker, color=colour, mfc="white", ls=of_median)


def _exact_norms(axes: Axes, widths: "pd.Series[float]", scale: str, colour: str) -> None:
    """The curves through the points of two keys, whose norm is 2p(1 − p)."""
    d_k = np.geomspace(min(widths), max(widths), 31)
    for of, style in ((softmax.two_key_product, "-"), (softmax.two_key_product_median, "--")):
        exact = [2 * of(math.sqrt(d) if scale == "none" else 1.0, d) for d in d_k]
        axes.plot(d_k, exact, style, color=colour, zorder=1.5)


def _label_norms(left: Axes, right: Axes) -> None:
    """Names at the curves, at places in the panel where the exact curves leave room."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator

    for axes, x, y, text, colour, side in (
        (left, 0.98, 0.98, "divided by √d_k, mean and median: flat", BLUE, "right"),
        (left, 0.98, 0.755, "unscaled, mean:\nlike 1/√d_k", VERMILLION, "right"),
        (left, 0.05, 0.42, "unscaled, median:\nlike exp(−0.954√d_k)", VERMILLION,
         "left"),
        (right, 0.98, 0.91, "unscaled", VERMILLION, "right"),
        (right, 0.98, 0.44, "divided by √d_k", BLUE, "right"),
    ):
        axes.text(x, y, text, color=colour, ha=side, va="top", transform=axes.transAxes)
    left.set_ylim(top=20)
    left.yaxis.set_major_locator(LogLocator(base=100))
    right.set_ylim(top=1)
    right.legend([Line2D([], [], color="0.3", marker="o"),
                  Line2D([], [], color="0.3", marker="o", mfc="white", ls="--")],
                 ["mean, ± 2 standard errors", "median"], loc="lower right", frameon=False)


def _mark_crossing(axes: Axes, wide: pd.DataFrame) -> None:
    """Mark the number of keys from which the unscaled mean exceeds the scaled one, if any."""
    mean = wide.pivot(index="keys", columns="scale", values="frobenius_mean")
    above = np.log(mean["none"] / mean["sqrt"])
    late = (above.shift() < 0) & (above >= 0)
    if late.sum() != 1:
        return
    after = int(np.argmax(late))
    both = [after - 1, after]
    keys = np.exp(np.interp(0, above.iloc[both], np.log(mean.index[both])))
    axes.axvline(keys, ymin=0.19, color="0.3", lw=0.8, ls=":")
    axes.text(1.15 * keys, 0.32, f"the means cross at\nabout {keys:.0f} keys", va="top",
              transform=axes.get_xaxis_transform())
