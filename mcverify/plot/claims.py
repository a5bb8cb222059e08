"""Draw a claim's cases: their measured intervals on what is claimed."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcverify.declare.names import COLUMNS
from mcverify.plot.page import (
    MARKERS,
    PAGE,
    ROW,
    Axes,
    Figure,
    is_wide,
    picture,
    power_of_ten,
    read,
)
from mcverify.results.folder import Results
from mcverify.verdict import ERROR

MOST = 100  # cases in one picture; Agg draws no picture over 65 535 dots
PLACES = ["estimate", "low", "high", "claimed_low", "claimed_high"]


def draw_claims(
    names: Sequence[str], results: Results, folder: Path, kind: str = ".png"
) -> Iterator[Path]:
    """Draw <claim>.png of each claim named, yielding each; over 100 cases go on in <claim>_2.png.

    A picture of another kind, ``.svg``, is for a page that tells the sentence, and has no title.
    UsageError, before anything is drawn, when a claim has no table or a damaged one.
    """
    tables = {name: read(results, name, ("verdict", "expected", "reason"), PLACES)
              for name in names}
    verdicts = results.read("verdicts") if kind == ".png" else []
    titles = {row["claim"]: f"{row['claim']}: {row['sentence']}" for row in verdicts}
    for name, frame in tables.items():
        fixed, labels = _labels(frame.drop(columns=[*COLUMNS], errors="ignore"))
        for page, start in enumerate(range(0, len(frame), MOST)):
            shown = slice(start, start + MOST)
            title = titles.get(name, name) if kind == ".png" else ""
            yield _forest(folder / f"{name}{f'_{page + 1}' if page else ''}{kind}", title, fixed,
                          labels[shown], frame[shown])


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
        _draw_claimed(axes, places)
        _draw_measured(axes, cases.verdict, places)
        for y, case in enumerate(cases.to_dict("records")):
            _write_estimate(axes, y, case)
        _legend(figure, set(cases.verdict))
    return file


def _set_axis(axes: Axes, cases: pd.DataFrame) -> pd.DataFrame:
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
    if is_wide((low, high)):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: power_of_ten(x))
        axes.xaxis.set_minor_formatter("")
        axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.08)
    else:
        margin = 0.08 * (high - low) or abs(high) or 1.0
        axes.set_xlim(low - margin, high + margin)
    return places


def _ends(places: pd.DataFrame) -> tuple[float, float]:
    finite = places.to_numpy()[np.isfinite(places)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _set_axis_of_margins(axes: Axes, low: float, high: float) -> None:
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
                                   power_of_ten(x))
    axes.minorticks_off()


def _draw_claimed(axes: Axes, places: pd.DataFrame) -> None:
    """The claimed intervals as bands, kind after kind, which is quicker than case after case."""
    rows, seen = np.arange(len(places)), places.clip(*axes.get_xlim())
    known = places.claimed_low.notna()
    axes.barh(rows[known], (seen.claimed_high - seen.claimed_low)[known], 1,
              seen.claimed_low[known], color="0.85", lw=0)
    for edge in ("claimed_low", "claimed_high"):
        drawn = np.isfinite(places[edge])
        axes.vlines(seen[edge][drawn], rows[drawn] - 0.5, rows[drawn] + 0.5, color="0.55", lw=1)


def _draw_measured(axes: Axes, verdicts: "pd.Series[str]", places: pd.DataFrame) -> None:
    """The measured intervals and estimates; a mark at the left edge if there is no estimate."""
    rows, (left, right) = np.arange(len(places)), axes.get_xlim()
    seen = places.clip(left, right)
    for verdict, mine in [(verdict, verdicts == verdict) for verdict in MARKERS]:
        style = MARKERS[verdict] | {"ls": ""}
        known, broken = mine & places.estimate.notna(), mine & places.estimate.isna()
        axes.hlines(rows[known], seen.low[known], seen.high[known], color=style["color"], lw=2)
        for end, edge, arrow in (("low", left, "<"), ("high", right, ">")):
            beyond = rows[known & np.isinf(places[end])]
            axes.plot([edge] * len(beyond), beyond, arrow, color=style["color"])
        axes.plot(places.estimate[known], rows[known], **style, ms=5.5)
        axes.plot([0.02] * broken.sum(), rows[broken], **style,
                  transform=axes.get_yaxis_transform())


def _write_estimate(axes: Axes, y: int, case: Mapping[Any, Any]) -> None:
    """Beside a row its estimate, or in it why there is none, and whether it is as declared."""
    beside: dict[str, Any] = {"va": "center", "transform": axes.get_yaxis_transform()}
    text = "" if case["verdict"] == case["expected"] else "not as declared"
    if math.isnan(case["estimate"]):
        reason = textwrap.shorten(case["reason"], 42, placeholder=" …")
        axes.text(0.04, y, reason, parse_math=False, clip_on=True, **beside,
                  bbox={"fc": "white", "ec": "none", "pad": 1})
    else:
        estimate = float(f"{case['estimate']:.4g}")
        text = f"{estimate:.6g} {text}".replace("-", "−")  # 10000 and not 1e+04
    axes.text(1.02, y, text.strip(), **beside)


def _legend(figure: Figure, verdicts: set[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = [
        Line2D([], [], **style, lw=2 * (verdict != ERROR), ms=5.5, label=verdict)
        for verdict, style in MARKERS.items() if verdict in verdicts]
    figure.legend(handles=[*handles, Patch(fc="0.85", ec="0.55", label="claimed")],
                  loc="outside lower center", ncols=5, frameon=False)
