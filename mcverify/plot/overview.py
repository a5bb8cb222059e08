"""Draw all verdicts on a page: every statement with a mark for each claim that decides it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from mcverify.declare.claim import statement_ids
from mcverify.plot.page import MARKERS, ROW, Axes, picture, read
from mcverify.results.folder import Results
from mcverify.results.ledger import SIGNS, ledger_of
from mcverify.results.reader import departure, outcome_of
from mcverify.verdict import COLOURS

COLUMNS = 3
ACROSS = 11  # marks in a line of a column; the others stand in lines below it
PITCH = 0.115  # inches from mark to mark, so that none touches the next
MARKS_FROM = 1.65  # inches from a column's edge to its marks, behind the longest judgement
WIDTH = COLUMNS * (MARKS_FROM + ACROSS * PITCH) + 0.1
SIGN_FROM = 0.33  # behind the longest id
HEAD = 0.55  # inches, for the title and the legend
OTHER = "no statement"  # for claims of one's own

# A statement's id and judgement, or neither for its further lines, and rows of claims.
Lines = list[tuple[str, str, list[dict[Any, Any]]]]


def draw_overview(results: Results, folder: Path, kind: str = ".png") -> Iterator[Path]:
    """Draw overview.png: a mark a claim, ringed in black if it is not as declared.

    UsageError if nothing has been judged yet, or the table is damaged.
    """
    frame = read(results, "verdicts", ("claim", "decides", "verdict", "expected"), ("errors",))
    rows = frame.to_dict("records")
    frame = frame.assign(verdict=[*map(outcome_of, rows)], departure=[*map(departure, rows)])
    table = ledger_of(results)
    judgements = dict(zip(table["id"], table["judgement"], strict=True))
    lines = _lines(frame, judgements)
    height = -(-len(lines) // COLUMNS)
    file = folder / f"overview{kind}"
    with picture(file, HEAD + ROW * (height + 0.5), WIDTH, None) as figure:
        axes = figure.add_axes((0, 0, 1, 1), frame_on=False, xticks=[], yticks=[],
                               xlim=(0, WIDTH), ylim=(height, -0.5 - HEAD / ROW))
        axes.grid(visible=False)
        axes.text(0.1, -0.4 - HEAD / ROW, _title(frame, judgements), va="top")
        for index, (name, judgement, rows) in enumerate(lines):
            column, y = divmod(index, height)
            x = 0.1 + column * WIDTH / COLUMNS
            axes.text(x, y, name, va="center")
            if judgement:
                sign, outcome = SIGNS[judgement]
                axes.text(x + SIGN_FROM, y, f"{sign} {judgement}", va="center",
                          color=COLOURS[outcome])
            for place, row in enumerate(rows):
                ring = ({"markeredgecolor": "black", "markeredgewidth": 1.5}
                        if row["departure"] else {})
                axes.plot(x + MARKS_FROM + place * PITCH, y, **MARKERS[row["verdict"]] | ring,
                          markersize=5)
        _legend(axes, frame)
    yield file


def _title(frame: pd.DataFrame, judgements: dict[str, str]) -> str:
    counts = ", ".join(f"{count} {name}" for name in SIGNS
                       if (count := list(judgements.values()).count(name)))
    return (f"{len(judgements)} statements ({counts}), by {len(frame)} claims" if judgements else
            f"{len(frame)} claims")


def _lines(frame: pd.DataFrame, judgements: dict[str, str]) -> Lines:
    """Lines of at most ACROSS claims; the first of a statement has its id."""
    deciding: dict[str, list[dict[Any, Any]]] = {name: [] for name in judgements}
    for row in frame.to_dict("records"):
        for name in statement_ids(row["decides"]) or [OTHER]:
            deciding.setdefault(name if name in judgements else OTHER, []).append(row)
    return [(name, judgements.get(name, ""), rows[:ACROSS]) if start == 0 else
            ("", "", rows[start:start + ACROSS])
            for name, rows in deciding.items() for start in range(0, max(len(rows), 1), ACROSS)]


def _legend(axes: Axes, frame: pd.DataFrame) -> None:
    counts = frame.verdict.value_counts()
    handles = [axes.plot([], [], **style, ls="", label=f"{verdict} {counts[verdict]}")[0]
               for verdict, style in MARKERS.items() if verdict in counts]
    wrong = int((frame.departure != "").sum())
    handles += axes.plot([], [], "o", mec="black", mfc="none", mew=1.5,
                         label=f"not as declared {wrong}")
    axes.legend(handles=handles, loc="upper left", ncols=len(handles), frameon=False,
                bbox_to_anchor=(0, 0.3 - HEAD / ROW), bbox_transform=axes.transData)
