"""From a source to the quantities of q and of k: means, variances, correlations, tails."""

import math

import numpy as np

from mcverify.declare.prediction import claimed_interval
from mcverify.diagnose.blocks import blocks_needed
from mcverify.diagnose.source import Row, Source
from mcverify.statistic import kurtosis
from mcverify.statistic.interval import Estimate, studentised

HEAVIEST = 6.0  # the kurtosis of the Laplace law, the heaviest of laws.STANDARD


def moment_rows(source: Source) -> list[Row]:
    """In the order of the table."""
    return [*_means(source), *_variances(source), *_correlations(source), *_pairing(source),
            *_tails(source)]


def _means(source: Source) -> list[Row]:
    rows = []
    for side, _, mean, cov in source.sides:
        variances = np.diag(cov)
        varies = variances > 0
        largest = float(np.max(np.abs(mean[varies]) / np.sqrt(variances[varies])))
        rows += [
            Row(f"mean of {side}", "|μ|²/tr Σ", float(mean @ mean / np.trace(cov)), 0.0,
                source.quotient(f"mean_{side}", f"trace_{side}"), source.small),
            Row(f"largest mean in {side}", "max |μ_i|/σ_i", largest, 0.0),
        ]
    return rows


def _variances(source: Source) -> list[Row]:
    rows = []
    for side, _, _, cov in source.sides:
        variances = np.diag(cov)
        rows += [
            Row(f"variance of {side}", "tr Σ/d_k", float(variances.mean()), 1.0,
                source.quotient(f"trace_{side}", "tokens", 1 / source.tokens.d_k), source.one),
            Row(f"smallest variance in {side}", "min σ_i²", float(variances.min()), 1.0),
            Row(f"largest variance in {side}", "max σ_i²", float(variances.max()), 1.0),
        ]
    return rows


def _correlations(source: Source) -> list[Row]:
    rows, d_k = [], source.tokens.d_k
    single = Estimate(0.0, 0.0, 0.0, 0.0) if d_k == 1 else None
    for side, _, _, cov in source.sides:
        square, diagonal, trace = np.sum(cov * cov), np.sum(np.diag(cov) ** 2), np.trace(cov)
        rows += [
            Row(f"correlations in {side}", "Σ_i≠j Σ_ij²/Σ_i Σ_ii²",
                float((square - diagonal) / diagonal), 0.0,
                single or source.quotient(f"off_{side}", f"diagonal_{side}"), source.small),
            Row(f"effective rank of {side}", "(tr Σ)²/tr Σ²", float(trace**2 / square), d_k,
                None if single else source.quotient(f"traces_{side}", f"squares_{side}")),
        ]
    return rows


def _pairing(source: Source) -> list[Row]:
    t = source.tokens
    traces = float(np.trace(t.cov_q) * np.trace(t.cov_k))
    return [
        Row("alignment", "d_k tr(Σ_q Σ_k)/(tr Σ_q tr Σ_k)",
            t.d_k * float(np.sum(t.cov_q * t.cov_k)) / traces, 1.0,
            None if t.d_k == 1 else source.quotient("both", "traces", t.d_k)),
        Row("own key, by coordinate", "tr C/√(tr Σ_q tr Σ_k)",
            float(np.trace(t.cross)) / math.sqrt(traces), 0.0),
        Row("own key", "d_k ‖C‖²/(tr Σ_q tr Σ_k)", t.d_k * float(np.sum(t.cross**2)) / traces, 0.0,
            source.quotient("cross", "traces", t.d_k), source.small),
    ]


def _tails(source: Source) -> list[Row]:
    rows, t = [], source.tokens
    for side, x, _, cov in source.sides:
        variances = np.diag(cov)
        varies = variances > 0
        z = x[:, varies] / np.sqrt(variances[varies])
        squares = z * z
        fourths = squares * squares
        third, fourth = np.mean(squares * z, axis=0), np.mean(fourths, axis=0)
        # What a token adds to the mean of m₄/σ⁴ over coordinates, by the chain rule.
        each = np.mean(fourths - fourth - 4 * third * z - 2 * fourth * (squares - 1), axis=1)
        parts = np.stack([each, squares.mean(axis=1), fourths.mean(axis=1)], axis=1)
        table = t.totals(parts) / t.sizes.mean()
        found = studentised(float(fourth.mean()), table[:, 0], source.rate, table[:, 1:],
                            caution=kurtosis.caution)
        left = int(np.sum(~varies))
        rows.append(Row(
            f"kurtosis of {side}", "mean of m₄/σ⁴", float(fourth.mean()), 3.0,
            source.worded(found, blocks_needed(source.rate, kurtosis.caution)),
            claimed_interval("at_most", HEAVIEST, None),
            f"{left} constant coordinates left out" if left else ""))
    return rows
