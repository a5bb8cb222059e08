"""The text of a diagnosis, at most 100 columns wide: a line a quantity, or a line a head."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

WIDTH = 100
MARKS = {"CONFIRMED": "yes", "REFUTED": "no", "INCONCLUSIVE": "?"}
ASSUMED = {"mean 0": ("mean of q", "mean of k"), "var. 1": ("variance of q", "variance of k"),
           "uncorr.": ("correlations in q", "correlations in k"),
           "tails": ("kurtosis of q", "kurtosis of k"), "own key": ("own key",),
           "tokens": ("dependence of tokens",)}


def table(frame: pd.DataFrame) -> str:
    """What ``diagnose`` found as text: a line a quantity or, of several heads, a line a head.

    What does not apply is left blank; what needs words stands below.

    >>> from mcverify.diagnose import diagnose
    >>> q, k = np.random.default_rng(0).standard_normal((2, 600, 2))
    >>> text = table(diagnose(q, k)).splitlines()
    >>> text[0].split(), text[1].split()
    (['quantity', 'value', 'estimate', 'interval', 'textbook', 'verdict'], ['tokens', '600'])
    """
    heads = frame["head"].nunique()
    return _of_heads(frame) if heads > 1 else _of_quantities(frame)


def _of_quantities(frame: pd.DataFrame) -> str:
    columns = {
        "quantity": frame.quantity,
        "value": frame.value.map(_digits),
        "estimate": frame.estimate.map(_digits),
        "interval": [_interval(*numbers) for numbers in
                     zip(frame.low, frame.high, frame.stderr, strict=True)],
        "textbook": frame.within.mask(frame.within == "", frame.textbook.map(_digits)),
        "verdict": frame.verdict,
    }
    notes = frame.groupby("note", sort=False).quantity.agg(", ".join)
    remarks = [f"{quantities}: {note}" for note, quantities in notes.items() if note]
    few = [f"{text}; ± is a standard error" for text in _too_few(frame)]
    return "\n".join([*_lines(columns, ("value", "estimate")), "", *_wrapped(few + remarks)])


def _of_heads(frame: pd.DataFrame) -> str:
    heads = frame.set_index(["head", "quantity"]).unstack()
    values, marks = heads["value"].map(_digits), heads["verdict"].replace(MARKS)
    columns = {
        "head": values.index.map(str),
        "Var/d_k": values["Var/d_k, measured"],
        "by means": values["Var/d_k by means"],
        "scale": values["scale for unit variance"],
        "entropy": values["entropy at 1/√d_k"],
        **{name: marks[[*quantities]].agg("/".join, axis=1)
           for name, quantities in ASSUMED.items()},
    }
    legend = ["Var/d_k: Var(q·k)/d_k as measured, and by the formula that knows means and "
              "covariances; scale: what gives q·k unit variance; entropy: mean of H/ln n at 1/√d_k",
              "mean 0 … tokens: whether the assumption holds, for q/k"]
    return "\n".join([*_lines(columns, list(columns)), "", *_wrapped(_too_few(frame) + legend)])


def _too_few(frame: pd.DataFrame) -> list[str]:
    """One sentence for all the intervals that take more units."""
    if not frame.takes.any():
        return []
    units = frame[frame.quantity == "independent units"]
    least = int(units.value.min())
    return [f"{least:,} {units.formula.iloc[0]} are too few for the intervals that are missing: "
            f"{frame.takes.max():,} allow them all"]


def _wrapped(notes: Sequence[str]) -> list[str]:
    return [line for note in notes
            for line in textwrap.wrap(note, WIDTH, subsequent_indent="  ")]


def _lines(columns: Mapping[str, Iterable[str]], numbers: Sequence[str]) -> list[str]:
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    return ["  ".join(cell.rjust(widths[name]) if name in numbers else cell.ljust(widths[name])
                      for name, cell in zip(columns, line, strict=True)).rstrip()
            for line in [list(columns), *zip(*columns.values(), strict=True)]]


def _digits(x: float) -> str:
    """
    >>> _digits(20000), _digits(0.12345), _digits(2.5e20), _digits(math.nan)
    ('20,000', '0.1235', '2.5e+20', '')
    """
    if math.isnan(x):
        return ""
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e9 else f"{x:.4g}"


def _interval(low: float, high: float, stderr: float) -> str:
    if np.isfinite(low) and np.isfinite(high):
        return f"[{low:.3g}, {high:.3g}]"
    return f"± {stderr:.2g}" if np.isfinite(stderr) else ""
