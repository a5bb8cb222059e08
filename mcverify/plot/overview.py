"""Draw all verdicts on a page: every statement with a mark for each claim that decides it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mcverify.declare.claim import statement_ids
from mcverify.plot.page import MARKERS, ROW, picture, read
from mcverify.results.folder import Results
from mcverify.results.ledger import statements

if TYPE_CHECKING:  # matplotlib is an extra, and pytest imports all modules to look for doctests
    from matplotlib.axes import Axes

COLUMNS = 3
ACROSS = 11  # marks in a line of a column; the others stand in lines below it
PITCH = 0.115  # inches from mark to mark, so that none touches the next
MARKS_FROM = 1.45  # inches from a column's edge to its marks, behind the longest judgement
WIDTH = COLUMNS * (MARKS_FROM + ACROSS * PITCH) + 0.1
HEAD = 0.55  # inches, for the title and the legend
OTHER = "no statement"  # for claims of one's own

Lines = list[tuple[str, list[dict[Any, Any]]]]


def draw_overview(results: Results, folder: Path) -> Iterator[Path]:
    """Draw overview.png: a mark a claim, ringed in black if it is not as declared.

    UsageError if nothing has been judged yet, or the table is damaged.
    """
    frame = read(results, "verdicts", ("claim", "decides", "verdict", "expected"), ("errors",))
    frame.loc[frame.errors > 0, "verdict"] = "ERROR"
    lines = _lines(frame)
    height = -(-len(lines) // COLUMNS)
    with picture(folder / "overview.png", HEAD + ROW * (height + 0.5), WIDTH, None) as figure:
        axes = figure.add_axes((0, 0, 1, 1), frame_on=False, xticks=[], yticks=[],
                               xlim=(0, WIDTH), ylim=(height, -0.5 - HEAD / ROW))
        axes.grid(visible=False)
        axes.text(0.1, -0.4 - HEAD / ROW,
                  f"{len(frame)} claims, by the statements that they decide", va="top")
        for index, (label, rows) in enumerate(lines):
            column, y = divmod(index, height)
            x = 0.1 + column * WIDTH / COLUMNS
            axes.text(x, y, label, va="center")
            for place, row in enumerate(rows):
                _mark(axes, x + MARKS_FROM + place * PITCH, y, row["verdict"],
                      row["verdict"] != row["expected"])
        _legend(axes, frame)
    yield folder / "overview.png"


def _lines(frame: pd.DataFrame) -> Lines:
    """A label and at most ACROSS claims of each line; the first of a statement has its label."""
    table = statements()
    judgement = dict(zip(table["id"], table["judgement"], strict=True))
    deciding: dict[str, list[dict[Any, Any]]] = {name: [] for name in judgement}
    for row in frame.to_dict("records"):
        for name in statement_ids(row["decides"]) or [OTHER]:
            deciding.setdefault(name if name in judgement else OTHER, []).append(row)
    return [(f"{name}  {judgement.get(name, '')}".strip() if start == 0 else "",
             rows[start:start + ACROSS])
            for name, rows in deciding.items() for start in range(0, max(len(rows), 1), ACROSS)]


def _mark(axes: "Axes", x: float, y: float, verdict: str, wrong: bool) -> None:
    ring = {"markeredgecolor": "black", "markeredgewidth": 1.5} if wrong else {}
    axes.plot(x, y, **MARKERS[verdict] | ring, markersize=5)


def _legend(axes: "Axes", frame: pd.DataFrame) -> None:
    counts = frame.verdict.value_counts()
    handles = [axes.plot([], [], **look, ls="", label=f"{verdict} {counts[verdict]}")[0]
               for verdict, look in MARKERS.items() if verdict in counts]
    wrong = int((frame.verdict != frame.expected).sum())
    handles += axes.plot([], [], "o", mec="black", mfc="none", mew=1.5,
                         label=f"not as declared {wrong}")
    axes.legend(handles=handles, loc="upper left", ncols=len(handles), frameon=False,
                bbox_to_anchor=(0, 0.3 - HEAD / ROW), bbox_transform=axes.transData)
