"""From a claim's table to a picture of its measured intervals against the claimed bands."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcverify.declare.rules import COLUMNS
from mcverify.plot.page import (
    BLACK,
    BLUE,
    PAGE,
    PURPLE,
    VERMILLION,
    new_figure,
    read,
    save,
    styled,
)
from mcverify.results.folder import Results

if TYPE_CHECKING:  # matplotlib is an extra, and pytest imports all modules to look for doctests
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERDICTS = {"CONFIRMED": ("o", BLUE, BLUE), "REFUTED": ("s", VERMILLION, VERMILLION),
            "INCONCLUSIVE": ("D", PURPLE, "white"), "ERROR": ("X", BLACK, BLACK)}
ROW = 0.22  # the height of a case in inches: a line of 9 pt and its space
MOST = 100  # cases in one picture; Agg draws no picture over 65 535 dots


def draw_claims(names: Sequence[str], results: Results, folder: Path) -> Iterator[Path]:
    """Draw <claim>.png of each claim named, yielding each; over 100 cases go on in <claim>_2.png.

    UsageError, before anything is drawn, when a claim has no table.
    """
    tables = {name: read(results, name, COLUMNS) for name in names}
    sentences = {row["claim"]: row["sentence"] for row in results.read("verdicts")}
    for name, rows in tables.items():
        title = f"{name}: {sentences[name]}" if name in sentences else name
        fixed, cases = _cases(rows)
        for page, start in enumerate(range(0, len(cases), MOST)):
            with styled():  # also while saving, when ticks are made that come into view
                figure = _forest(title, fixed, cases[start:start + MOST])
                file = save(figure, folder / f"{name}{f'_{page + 1}' if page else ''}.png")
            yield file


class _Case(NamedTuple):
    """A row of a claim's table, as it is drawn."""

    label: str
    verdict: str  # a key of VERDICTS
    as_declared: bool
    reason: str
    estimate: float
    low: float
    high: float
    claimed_low: float
    claimed_high: float


def _cases(rows: list[dict[str, str]]) -> tuple[str, list[_Case]]:
    """The settings that all cases share, in words, and the cases labelled by the others."""
    names = [name for name in rows[0] if name not in COLUMNS]
    varied = [name for name in names if len({row[name] for row in rows}) > 1]
    cases = []
    for row in rows:
        verdict = row["verdict"]
        cases.append(_Case(
            _label(row, varied) or "the only case", verdict, verdict == row["expected"],
            row["reason"], *(float(row[name]) for name in _Case._fields[4:])))
    return ", ".join(f"{name} {rows[0][name]}" for name in names if name not in varied), cases


def _label(row: Mapping[str, str], names: Sequence[str]) -> str:
    return ", ".join(row[name] if name == "law" else f"{name} {row[name]}" for name in names)


def _forest(title: str, fixed: str, cases: list[_Case]) -> "Figure":
    """A row a case: its measured interval on its claimed one."""
    longest = max(len(case.label) for case in cases)
    width = PAGE + max(0, longest - 30) * 0.075  # what is left for the intervals stays legible
    lines = textwrap.wrap(title, int(15.5 * width)) + ([f"In all cases: {fixed}."] if fixed else [])
    figure = new_figure(1.1 + ROW * (len(cases) + len(lines)), width)
    axes = figure.add_subplot()
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9, parse_math=False)
    drawn = _place(axes, cases)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.set_yticks(range(len(cases)), [case.label for case in cases], parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.text(1.02, -0.7, "estimate", va="bottom", transform=axes.get_yaxis_transform())
    for y, case in enumerate(drawn):
        _draw_case(axes, y, case, cases[y].estimate)
    _legend(figure, {case.verdict for case in cases})
    return figure


def _place(axes: "Axes", cases: list[_Case]) -> list[_Case]:
    """Set the axis of values; returns the cases with their numbers as places on it.

    Claimed values that differ by factors, with margins of per cents, share no axis on which both
    can be seen; so bounded claims are drawn in margins. Half-lines have none.
    """
    claimed = [case for case in cases if not math.isnan(case.claimed_low)]
    if claimed and all(0 < c.claimed_high - c.claimed_low < math.inf for c in claimed):
        axes.set_xlabel("measured value: 0 is the middle of what is claimed, ±1 are its edges")
        drawn = [_in_margins(case) for case in cases]
        _margins_axis(axes, _finite(drawn))
        return drawn
    axes.set_xlabel("measured value")
    numbers = _finite(cases) or [0.0]
    low, high = min(numbers), max(numbers)
    if 0 < 30 * low < high:
        axes.set_xscale("log")
        axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.08)
    else:
        margin = 0.08 * (high - low) or abs(high) or 1.0
        axes.set_xlim(low - margin, high + margin)
    return cases


def _finite(cases: list[_Case]) -> list[float]:
    return [x for case in cases for x in case[4:] if math.isfinite(x)]


def _in_margins(case: _Case) -> _Case:
    middle = (case.claimed_low + case.claimed_high) / 2
    half = (case.claimed_high - case.claimed_low) / 2
    return _Case(*case[:4], *((x - middle) / half for x in case[4:]))


def _margins_axis(axes: "Axes", numbers: list[float]) -> None:
    """A linear axis of margins; logarithmic beyond 2 if a measured value is far off."""
    low, high = min(numbers), max(numbers)
    if max(-low, high) <= 6:
        axes.set_xlim(low - 0.25, high + 0.25)
        return
    far_off = sum(math.log10(max(2, x)) for x in (-low, high))  # in decades
    axes.set_xscale("symlog", linthresh=2, linscale=max(0.7, 0.15 * far_off))
    axes.set_xlim(2 * low if low < -2 else -2, 2 * high if high > 2 else 2)
    decades = range(1, 1 + math.floor(math.log10(max(-low, high))))
    far = [10.0**n for n in decades if n % (1 + len(decades) // 5) == 0]
    ticks = [-x for x in reversed(far)] + [-1, 0, 1] + far
    texts = [f"{x:g}".replace("-", "−") if abs(x) < 1e5 else
             f"${'-' * (x < 0)}10^{{{math.log10(abs(x)):.0f}}}$" for x in ticks]
    left, right = axes.get_xlim()
    shown = [(x, text) for x, text in zip(ticks, texts, strict=True) if left <= x <= right]
    axes.set_xticks(*zip(*shown, strict=True))
    axes.minorticks_off()


def _draw_case(axes: "Axes", y: int, case: _Case, estimate: float) -> None:
    marker, colour, face = VERDICTS[case.verdict]
    left, right = axes.get_xlim()
    if not math.isnan(case.claimed_low):
        low, high = max(case.claimed_low, left), min(case.claimed_high, right)
        axes.fill_betweenx([y - 0.5, y + 0.5], low, high, color="0.85", lw=0)
        for edge in (case.claimed_low, case.claimed_high):
            axes.plot([edge, edge], [y - 0.5, y + 0.5], color="0.55", lw=1)
    beside: dict[str, Any] = {"va": "center", "transform": axes.get_yaxis_transform()}
    if math.isnan(case.estimate):
        axes.plot([0.02], [y], marker, color=colour, mfc=face, transform=beside["transform"])
        reason = textwrap.shorten(case.reason, 42, placeholder=" …")
        axes.text(0.04, y, reason, parse_math=False, clip_on=True, **beside,
                  bbox={"fc": "white", "ec": "none", "pad": 1})
    else:
        axes.plot([max(case.low, left), min(case.high, right)], [y, y], color=colour, lw=2)
        for end, edge, arrow in ((case.low, left, "<"), (case.high, right, ">")):
            if math.isinf(end):
                axes.plot([edge], [y], arrow, color=colour)
        axes.plot([case.estimate], [y], marker, color=colour, mfc=face, ms=5.5)
    text = "" if math.isnan(estimate) else f"{estimate:.4g}".replace("-", "−")
    axes.text(1.02, y, text if case.as_declared else f"{text} not as declared".strip(), **beside)


def _legend(figure: "Figure", verdicts: set[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = [
        Line2D([], [], marker=marker, color=colour, mfc=face, lw=2 * (verdict != "ERROR"), ms=5.5,
               label=verdict)
        for verdict, (marker, colour, face) in VERDICTS.items() if verdict in verdicts]
    figure.legend(handles=[*handles, Patch(fc="0.85", ec="0.55", label="claimed")],
                  loc="outside lower center", ncols=5, frameon=False)
