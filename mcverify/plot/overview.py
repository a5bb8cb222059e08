"""From verdicts.csv to one page: every statement with a mark for each claim that decides it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mcverify.declare.claim import statement_ids
from mcverify.declare.fault import UsageError
from mcverify.plot.claims import VERDICTS
from mcverify.plot.page import BLACK, PAGE, new_figure, save, styled
from mcverify.results.folder import Results
from mcverify.results.ledger import statements

if TYPE_CHECKING:  # matplotlib is an extra, and pytest imports all modules to look for doctests
    from matplotlib.axes import Axes

COLUMNS = 3
ROW = 0.21  # the height of a statement in inches: a line of 9 pt
ACROSS = 15  # marks in a line; the rest is told as a number
OTHER = "other"  # for claims of one's own that decide no statement

Rows = list[dict[str, str]]


def draw_overview(results: Results, folder: Path) -> Iterator[Path]:
    """Draw overview.png: a mark a claim, ringed in black if it is not as declared.

    UsageError if nothing has been judged yet.
    """
    rows = results.read("verdicts")
    if not rows:
        raise UsageError(f"{results.folder}: no verdicts.csv; run `mcverify run` first")
    lines = _by_statement(rows)
    height = -(-len(lines) // COLUMNS)
    with styled():
        figure = new_figure(height * ROW + 0.9, 1.25 * PAGE)
        panels = figure.subplots(1, COLUMNS, squeeze=False)[0]
        for index, axes in enumerate(panels):
            _column(axes, lines[index * height:(index + 1) * height], height)
        _legend(panels[0], rows)
        file = save(figure, folder / "overview.png")
    yield file


def _by_statement(rows: Rows) -> list[tuple[str, Rows]]:
    table = statements()
    judgement = dict(zip(table["id"], table["judgement"], strict=True))
    lines: dict[str, Rows] = {name: [] for name in judgement}
    for row in rows:
        for name in statement_ids(row["decides"]) or [OTHER]:
            lines.setdefault(name if name in judgement else OTHER, []).append(row)
    return [(f"{name}  {judgement.get(name, '')}".strip(), found) for name, found in lines.items()]


def _column(axes: "Axes", lines: list[tuple[str, Rows]], height: int) -> None:
    axes.set_xlim(-0.7, ACROSS + 1.7)
    axes.set_ylim(height - 0.4, -0.6)
    axes.set_yticks(range(len(lines)), [label for label, _ in lines])
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    for y, (_, rows) in enumerate(lines):
        for x, row in enumerate(rows[:ACROSS]):
            marker, edge, face = VERDICTS[row["verdict"]]
            wrong = row["verdict"] != row["expected"]
            axes.plot(x, y, marker, markeredgecolor=BLACK if wrong else edge, markerfacecolor=face,
                      markersize=7 if wrong else 5, markeredgewidth=1.5 if wrong else 0.8)
        if len(rows) > ACROSS:
            axes.text(ACROSS - 0.3, y, f"+{len(rows) - ACROSS}", va="center")


def _legend(axes: "Axes", rows: Rows) -> None:
    handles = []
    for verdict, (marker, edge, face) in VERDICTS.items():
        count = sum(row["verdict"] == verdict for row in rows)
        if count:
            handles += axes.plot([], [], marker, markeredgecolor=edge, markerfacecolor=face,
                                 label=f"{verdict} {count}")
    wrong = sum(row["verdict"] != row["expected"] for row in rows)
    handles += axes.plot([], [], "o", markeredgecolor=BLACK, markerfacecolor="none",
                         markeredgewidth=1.5, label=f"not as declared {wrong}")
    figure = axes.figure
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), frameon=False,
                  title=f"{len(rows)} claims, by the statements that they decide",
                  alignment="left")
