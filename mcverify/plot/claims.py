"""Draw a claim's cases: their measured intervals on what is claimed."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcverify.declare.rules import COLUMNS
from mcverify.plot.page import MARKERS, PAGE, ROW, picture, read
from mcverify.results.folder import Results

if TYPE_CHECKING:  # matplotlib is an extra, and pytest imports all modules to look for doctests
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 100  # cases in one picture; Agg draws no picture over 65 535 dots
PLACES = ["estimate", "low", "high", "claimed_low", "claimed_high"]


def draw_claims(names: Sequence[str], results: Results, folder: Path) -> Iterator[Path]:
    """Draw <claim>.png of each claim named, yielding each; over 100 cases go on in <claim>_2.png.

    UsageError, before anything is drawn, when a claim has no table or a damaged one.
    """
    tables = {name: read(results, name, ("verdict", "expected", "reason"), PLACES)
              for name in names}
    sentences = {row["claim"]: f": {row['sentence']}" for row in results.read("verdicts")}
    for name, frame in tables.items():
        fixed, labels = _labels(frame.drop(columns=[*COLUMNS], errors="ignore"))
        for page, start in enumerate(range(0, len(frame), MOST)):
            shown = slice(start, start + MOST)
            yield _forest(folder / f"{name}{f'_{page + 1}' if page else ''}.png",
                          name + sentences.get(name, ""), fixed, labels[shown], frame[shown])


def _labels(settings: pd.DataFrame) -> tuple[str, list[str]]:
    """The settings that all cases share, in words, and of each case the others."""
    shared = [name for name in settings if settings[name].nunique() == 1]

    def words(row: Mapping[str, str], names: list[str]) -> str:
        return ", ".join(row[name] if name == "law" else f"{name} {row[name]}"
                         for name in names if row[name])

    rows = settings.to_dict("records")
    varied = [name for name in settings if name not in shared]
    return words(rows[0], shared), [words(row, varied) or "the only case" for row in rows]


def _forest(file: Path, title: str, fixed: str, labels: list[str], cases: pd.DataFrame) -> Path:
    """A row a case."""
    # What is left for the intervals stays legible.
    width = PAGE + max(0, max(map(len, labels)) - 30) * 0.075
    lines = textwrap.wrap(title, int(15.5 * width)) + ([f"In all cases: {fixed}."] if fixed else [])
    with picture(file, 1.1 + ROW * (len(cases) + len(lines)), width) as figure:
        axes = figure.add_subplot()
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9, parse_math=False)
        places = _set_axis(axes, cases)
        axes.set_ylim(len(cases) - 0.4, -0.6)
        axes.set_yticks(range(len(cases)), labels, parse_math=False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.text(1.02, -0.7, "estimate", va="bottom", transform=axes.get_yaxis_transform())
        for y, (case, place) in enumerate(zip(cases.to_dict("records"),
                                              places.to_dict("records"), strict=True)):
            _draw_case(axes, y, case, place)
        _legend(figure, set(cases.verdict))
    return file


def _set_axis(axes: "Axes", cases: pd.DataFrame) -> pd.DataFrame:
    """Set the axis of values; returns the numbers of the cases as places on it.

    Claimed values that differ by factors, with margins of per cents, share no axis on which both
    can be seen; so bounded claims are drawn in margins. Half-lines have none.
    """
    places = cases[PLACES]
    half = (places.claimed_high - places.claimed_low) / 2
    if half.notna().any() and half.dropna().between(0, math.inf, inclusive="neither").all():
        axes.set_xlabel("measured value: 0 is the middle of what is claimed, ±1 are its edges")
        places = places.sub(places.claimed_low + half, axis=0).div(half, axis=0)
        _set_axis_of_margins(axes, *_ends(places))
        return places
    axes.set_xlabel("measured value")
    low, high = _ends(places)
    if 0 < 30 * low < high:
        axes.set_xscale("log")
        axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.08)
    else:
        margin = 0.08 * (high - low) or abs(high) or 1.0
        axes.set_xlim(low - margin, high + margin)
    return places


def _ends(places: pd.DataFrame) -> tuple[float, float]:
    finite = places.to_numpy()[np.isfinite(places)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _set_axis_of_margins(axes: "Axes", low: float, high: float) -> None:
    """Linear; logarithmic beyond 2 if a measured value is far off."""
    if max(-low, high) <= 6:
        axes.set_xlim(low - 0.25, high + 0.25)
        return
    decades = sum(math.log10(max(2, x)) for x in (-low, high))
    axes.set_xscale("symlog", linthresh=2, linscale=max(0.7, 0.15 * decades))
    axes.set_xlim(2 * low if low < -2 else -2, 2 * high if high > 2 else 2)
    powers = range(1, 1 + math.floor(math.log10(max(-low, high))))
    far = [10.0**n for n in powers[::1 + len(powers) // 5]]
    left, right = axes.get_xlim()
    axes.set_xticks([x for x in [-x for x in far] + [-1, 0, 1] + far if left <= x <= right])
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}".replace("-", "−") if abs(x) < 1e5 else
                                   f"${'-' if x < 0 else ''}10^{{{math.log10(abs(x)):.0f}}}$")
    axes.minorticks_off()


def _draw_case(axes: "Axes", y: int, case: Mapping[Any, Any], place: Mapping[Any, Any]) -> None:
    look, (left, right) = MARKERS[case["verdict"]], axes.get_xlim()
    if not math.isnan(place["claimed_low"]):
        claimed = place["claimed_low"], place["claimed_high"]
        axes.fill_betweenx([y - 0.5, y + 0.5], *np.clip(claimed, left, right), color="0.85", lw=0)
        axes.vlines([edge for edge in claimed if math.isfinite(edge)], y - 0.5, y + 0.5,
                    color="0.55", lw=1)
    beside: dict[str, Any] = {"va": "center", "transform": axes.get_yaxis_transform()}
    text = "" if case["verdict"] == case["expected"] else "not as declared"
    if math.isnan(place["estimate"]):
        axes.plot([0.02], [y], **look, transform=beside["transform"])
        reason = textwrap.shorten(case["reason"], 42, placeholder=" …")
        axes.text(0.04, y, reason, parse_math=False, clip_on=True, **beside,
                  bbox={"fc": "white", "ec": "none", "pad": 1})
    else:
        estimate = float(f"{case['estimate']:.4g}")
        text = f"{estimate:.6g} {text}".replace("-", "−")  # 10000 and not 1e+04
        axes.hlines(y, *np.clip([place["low"], place["high"]], left, right),
                    color=look["color"], lw=2)
        for end, edge, arrow in ((place["low"], left, "<"), (place["high"], right, ">")):
            if math.isinf(end):
                axes.plot([edge], [y], arrow, color=look["color"])
        axes.plot([place["estimate"]], [y], **look, ms=5.5)
    axes.text(1.02, y, text.strip(), **beside)


def _legend(figure: "Figure", verdicts: set[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = [
        Line2D([], [], **look, lw=2 * (verdict != "ERROR"), ms=5.5, label=verdict)
        for verdict, look in MARKERS.items() if verdict in verdicts]
    figure.legend(handles=[*handles, Patch(fc="0.85", ec="0.55", label="claimed")],
                  loc="outside lower center", ncols=5, frameon=False)
