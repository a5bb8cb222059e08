"""Hold arrays of queries and keys against what makes Var(q·k/√d_k) = 1, as a table."""

import math
from typing import Any

import pandas as pd

from mcverify.diagnose.population import heads_of, tokens_of
from mcverify.diagnose.rows import rows_of
from mcverify.diagnose.sample import Row, Sample, sample_of
from mcverify.statistic.estimate import Estimate
from mcverify.verdict import Verdict, judge

ERROR_RATE = 1e-3
MARGIN = 0.05
VERDICTS = 10  # of a head, that share the error rate
NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan)


def diagnose(
    q: Any, k: Any, groups: Any = None, error_rate: float = ERROR_RATE, margin: float = MARGIN
) -> pd.DataFrame:
    """How far queries and keys are from what makes Var(q·k/√d_k) = 1: a row a quantity.

    q and k are (n_tokens, d_k), perhaps with groups, (n_tokens,) whole numbers such as the
    sentence of each token; or (blocks, tokens, d_k), each block a group; or (batch, heads, tokens,
    d_k), each head by itself, and each sequence of the batch a group.

    ``value`` is exact for these arrays. ``estimate`` and ``stderr`` are of the law that they are a
    sample of: where the value is biased by its own noise, as the effective rank of a covariance
    that few tokens tell, the estimate is not (see ``diagnose.blocks``). From ``low`` to ``high``
    it lies but for the error rate: an interval from blocks of independent units, wider than the
    standard error needs. Units are the groups, or the tokens where there are none. ``verdict``
    says of an assumption whether it holds ``within`` the margin, which is about what the score's
    variance may change by. All verdicts, ten a head, share ``error_rate``: any of them is false
    with at most that probability. With too few units a verdict is INCONCLUSIVE, and ``takes``,
    otherwise 0, says how many an interval takes. ``table`` is the text of all this. Raises
    ValueError for arrays that cannot be diagnosed.

    >>> import numpy as np
    >>> q, k = np.random.default_rng(0).standard_normal((2, 2000, 8))
    >>> verdicts = diagnose(q, k + 0.5).set_index("quantity").verdict
    >>> verdicts["mean of q"], verdicts["mean of k"]
    ('CONFIRMED', 'REFUTED')
    """
    for name, share, usual in (("error_rate", error_rate, ERROR_RATE), ("margin", margin, MARGIN)):
        if not 0 < share < 1:
            raise ValueError(f"{name}={share}: must be between 0 and 1; use e.g. {usual}")
    heads = heads_of(q, k, groups)
    rows: list[dict[str, Any]] = []
    for head, arrays in enumerate(heads):
        try:
            tokens = tokens_of(*arrays)
        except ValueError as error:
            raise ValueError(f"head {head}: {error}" if len(heads) > 1 else str(error)) from None
        sample = sample_of(tokens, error_rate / (VERDICTS * len(heads)), margin)
        rows += [{"head": head} | _judged(row, sample) for row in rows_of(sample)]
    return pd.DataFrame(rows)


def _judged(row: Row, sample: Sample) -> dict[str, Any]:
    estimate = NOTHING if row.estimate is None else row.estimate
    too_few = bool(estimate.reason) and len(sample.tokens.sizes) < row.takes
    verdict, notes = "", [row.note, "" if too_few else estimate.reason]
    if row.claimed is not None:
        judged = judge((estimate.low, estimate.high), row.claimed)
        verdict = str(judged)
        if judged is Verdict.INCONCLUSIVE and not estimate.reason:
            notes.append("the interval reaches across the margin; more tokens narrow it")
    return {"quantity": row.quantity, "formula": row.formula, "value": row.value,
            "textbook": row.textbook, "estimate": estimate.value, "stderr": estimate.stderr,
            "low": estimate.low, "high": estimate.high, "within": _within(row.claimed),
            "verdict": verdict, "takes": row.takes if too_few else 0,
            "note": "; ".join(filter(None, notes))}


def _within(claimed: tuple[float, float] | None) -> str:
    if claimed is None:
        return ""
    low, high = claimed
    return (f"≤ {high:g}" if math.isinf(low) else f"{(low + high) / 2:g} ± {(high - low) / 2:g}")
