"""From the quantities of tokens to a table with their intervals and verdicts, and to its text."""

import math
from typing import Any

import numpy as np
import pandas as pd

from mcverify.diagnose.moments import moment_rows
from mcverify.diagnose.population import Tokens, tokens_of
from mcverify.diagnose.scores import score_rows
from mcverify.diagnose.source import Row, source_of
from mcverify.statistic.interval import Estimate
from mcverify.verdict import Verdict, judge

ERROR_RATE = 1e-3
MARGIN = 0.05
VERDICTS = 10  # that share the error rate
NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan)


def diagnose(
    q: Any, k: Any, groups: Any = None, error_rate: float = ERROR_RATE, margin: float = MARGIN
) -> pd.DataFrame:
    """How far queries and keys, (n_tokens, d_k) each, are from what makes Var(q·k/√d_k) = 1.

    A row a quantity. ``value`` is exact for these arrays. ``estimate`` and ``stderr`` are of the
    law that they are a sample of: where the value is biased by its own noise, as the effective
    rank of a covariance that few tokens tell, the estimate is not (see ``diagnose.blocks``). From
    ``low`` to ``high`` it lies but for the error rate: an interval from blocks of independent
    units, wider than the standard error needs. Units are the groups, (n_tokens,) whole numbers, or
    the tokens where there are none. ``verdict`` says of an assumption whether it holds ``within``
    the margin, which is about what the score's variance may change by. Ten verdicts share
    ``error_rate``: any of them is false with at most that probability. With too few units a
    verdict is INCONCLUSIVE, and the note says how many it takes. Raises ValueError for arrays
    that cannot be diagnosed.

    >>> q, k = np.random.default_rng(0).standard_normal((2, 2000, 8))
    >>> found = diagnose(q, k + 0.5).set_index("quantity")
    >>> found.verdict["mean of q"], found.verdict["mean of k"]
    ('CONFIRMED', 'REFUTED')
    """
    for name, share, usual in (("error_rate", error_rate, ERROR_RATE), ("margin", margin, MARGIN)):
        if not 0 < share < 1:
            raise ValueError(f"{name}={share}: must be between 0 and 1; use e.g. {usual}")
    tokens = tokens_of(q, k, groups)
    source = source_of(tokens, error_rate / VERDICTS, margin)
    rows = [*_sizes(tokens), *moment_rows(source), *score_rows(source)]
    return pd.DataFrame([_judged(row) for row in rows])


def _sizes(tokens: Tokens) -> list[Row]:
    return [
        Row("tokens", "n", len(tokens.q)),
        Row("width", "d_k", tokens.d_k),
        Row("independent units", "groups" if tokens.grouped else "tokens", len(tokens.sizes),
            note="" if tokens.grouped else "no groups: tokens are taken for independent"),
    ]


def _judged(row: Row) -> dict[str, Any]:
    found = NOTHING if row.estimate is None else row.estimate
    verdict, notes = "", [row.note, found.reason]
    if row.claimed is not None:
        judged = judge((found.low, found.high), row.claimed)
        verdict = str(judged)
        if judged is Verdict.INCONCLUSIVE and not found.reason:
            notes.append("the interval reaches across the margin; more tokens narrow it")
    return {"quantity": row.quantity, "formula": row.formula, "value": row.value,
            "textbook": row.textbook, "estimate": found.value, "stderr": found.stderr,
            "low": found.low, "high": found.high, "within": _within(row.claimed),
            "verdict": verdict, "note": "; ".join(filter(None, notes))}


def _within(claimed: tuple[float, float] | None) -> str:
    if claimed is None:
        return ""
    low, high = claimed
    return f"≤ {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"


def table(frame: pd.DataFrame) -> str:
    """What ``diagnose`` found as text, a line a quantity; what does not apply is left blank.

    >>> q, k = np.random.default_rng(0).standard_normal((2, 600, 2))
    >>> text = table(diagnose(q, k)).splitlines()
    >>> text[0].split()[:5], text[1].split()
    (['quantity', 'formula', 'value', 'textbook', 'estimate'], ['tokens', 'n', '600'])
    """
    numbers = ("value", "textbook", "estimate", "stderr")
    columns: dict[str, list[str]] = {
        "quantity": list(frame.quantity), "formula": list(frame.formula),
        **{name: [_digits(x) for x in frame[name]] for name in numbers},
        "interval": [_interval(*ends) for ends in zip(frame.low, frame.high, strict=True)],
        "holds if": list(frame.within), "verdict": list(frame.verdict), "note": list(frame.note),
    }
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    lines = []
    for line in [list(columns), *zip(*columns.values(), strict=True)]:
        cells = [cell.rjust(widths[name]) if name in numbers else cell.ljust(widths[name])
                 for name, cell in zip(columns, line, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _digits(x: float) -> str:
    return "" if math.isnan(x) else f"{x:.4g}"


def _interval(low: float, high: float) -> str:
    return f"[{low:.4g}, {high:.4g}]" if np.isfinite(low) and np.isfinite(high) else ""
