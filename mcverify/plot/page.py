"""What all pictures share: how tables are read, how pages look, how files are written."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mcverify.declare.fault import UsageError
from mcverify.results.folder import Results
from mcverify.results.reader import DamagedError
from mcverify.verdict import COLOURS, OUTCOMES

if TYPE_CHECKING:  # matplotlib is an extra, and pytest imports all modules to look for doctests
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

# Of lines, which the colour-blind can tell apart.
BLUE, VERMILLION = COLOURS["CONFIRMED"], COLOURS["REFUTED"]
# A marker and its face say a verdict in print as well.
MARKERS: dict[str, dict[str, Any]] = {
    verdict: {"marker": marker, "color": COLOURS[verdict], "markeredgecolor": COLOURS[verdict],
              "markerfacecolor": face or COLOURS[verdict]}
    for verdict, marker, face in zip(OUTCOMES, "osDX", ("", "", "white", ""), strict=True)}

PAGE = 17 / 2.54  # the width of a picture in inches, so that 9 pt are 9 pt in print
ROW = 0.22  # the height in inches of a line of 9 pt and its space
STYLE: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "legend.fontsize": 9,
    "xtick.labelsize": 9, "ytick.labelsize": 9, "axes.grid": True, "grid.color": "0.9",
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "lines.markersize": 4.5, "lines.linewidth": 1.4, "axes.unicode_minus": True,
    "svg.fonttype": "none"}


def read(results: Results, name: str, texts: Iterable[str], numbers: Iterable[str]) -> pd.DataFrame:
    """A table with at least these columns; UsageError if it is not there, or damaged."""
    rows, file = results.read(name, (*texts, *numbers)), results.file(name)
    if not rows:
        wrong = "has no rows" if file.exists() else "no such table"
        raise UsageError(f"{file}: {wrong}; run `mcverify run` first")
    frame = pd.DataFrame(rows)
    try:
        return frame.assign(**{name: [float(text) for text in frame[name]] for name in numbers})
    except ValueError as error:
        raise DamagedError(file, str(error)) from None


def is_wide(numbers: Iterable[float]) -> bool:
    """Whether numbers, of which those count that are finite, need a logarithmic axis.

    >>> is_wide([1, 31]), is_wide([0, 31]), is_wide([])
    (True, False, False)
    """
    finite = [number for number in numbers if math.isfinite(number)]
    return bool(finite) and 0 < 30 * min(finite) < max(finite)


def power_of_ten(x: float) -> str:
    """The power of ten at x, in letters that need no mathematical font.

    >>> power_of_ten(1000), power_of_ten(-0.01)
    ('10³', '−10⁻²')
    """
    exponent = str(round(math.log10(abs(x)))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'−' if x < 0 else ''}10{exponent}"


@contextmanager
def picture(
    file: Path, height: float, width: float = PAGE,
    layout: Literal["constrained"] | None = "constrained",
) -> Iterator[Figure]:
    """A figure that is written to the file, PNG or SVG; the settings of others stay as they are.

    UsageError if matplotlib is missing or the file cannot be written.
    """
    try:
        from matplotlib import figure as figures  # not pyplot, which keeps a state
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise UsageError("plot: matplotlib is not installed; run `pip install 'mcverify[plot]'`"
                         ) from error
    # The style is on also while saving, when ticks are made that come into view.
    with rc_context(STYLE | {"svg.hashsalt": file.stem}):
        figure = figures.Figure(figsize=(width, height), layout=layout)
        yield figure
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".svg":  # no date: a picture drawn again is the same file
                figure.savefig(file, transparent=True, metadata={"Date": None})
            else:
                figure.savefig(file, dpi=200)
        except OSError as error:
            raise UsageError(f"--to {file.parent}: cannot be written to ({error.strerror}); "
                             "choose another folder") from None
