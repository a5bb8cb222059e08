"""From tables to pages: what all pictures share, their reading, style and saving."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mcverify.declare.fault import UsageError
from mcverify.results.folder import Results

if TYPE_CHECKING:  # matplotlib is an extra, and pytest imports all modules to look for doctests
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which the colour-blind can tell apart; markers say the same in print.
BLUE, VERMILLION, PURPLE, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"

PAGE = 17 / 2.54  # the width of a picture in inches, so that 9 pt are 9 pt in print
STYLE: dict[Any, Any] = {
         "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "legend.fontsize": 9,
         "xtick.labelsize": 9, "ytick.labelsize": 9, "axes.grid": True, "grid.color": "0.9",
         "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
         "lines.markersize": 4.5, "lines.linewidth": 1.4, "axes.unicode_minus": True}


def read(results: Results, name: str, columns: Iterable[str]) -> list[dict[str, str]]:
    """The rows of a table, or UsageError if it is not there or lacks one of the columns."""
    rows, file = results.read(name), results.claims / f"{name}.csv"
    if not rows:
        raise UsageError(f"{file}: no such table; run `mcverify run` first")
    if missing := [column for column in columns if column not in rows[0]]:
        raise UsageError(f"{file}: has no column {missing[0]}; run `mcverify run` first, which "
                         "writes it anew")
    return rows


def numbers(rows: list[dict[str, str]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in frame if name != "scale"})


def styled() -> AbstractContextManager[None]:
    """Fonts and lines for print; UsageError if matplotlib is missing."""
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise UsageError("plot: matplotlib is not installed; run `pip install 'mcverify[plot]'`"
                         ) from error
    return rc_context(STYLE)


def new_figure(height: float, width: float = PAGE) -> "Figure":
    from matplotlib.figure import Figure  # and not pyplot, which keeps a state and seeks a display

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", file: Path) -> Path:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=200)
    except OSError as error:
        raise UsageError(f"--to {file.parent}: cannot be written to ({error.strerror}); choose "
                         "another folder") from None
    return file
