"""From a source to the quantities of scores: variance by every formula, scale, entropy."""

import math

import numpy as np

from mcverify import theory
from mcverify.attention import entropy, softmax
from mcverify.diagnose.blocks import blocks_needed
from mcverify.diagnose.source import Row, Source
from mcverify.laws.law import Array
from mcverify.statistic import ratio
from mcverify.statistic.interval import no_interval

KEYS = 1024  # so many tokens, evenly spaced, of a longer sequence enter the entropy
UNKNOWN = no_interval(math.nan, math.nan, "no groups: nothing tells which tokens depend on another")


def score_rows(source: Source) -> list[Row]:
    """In the order of the table."""
    return [*_scores(source), _dependence(source), _scale(source), _softmax(source)]


def _scores(source: Source) -> list[Row]:
    d_k = source.tokens.d_k
    measured, known = theory.population.score_variance(source.tokens.law) / d_k, predicted(source)
    rows = [Row("score variance, measured", "Var(q·k)/d_k", measured, 1.0,
                source.quotient("measured", "pairs", 1 / d_k) if source.tokens.grouped else None)]
    for name, formula, column, factor in (
        ("textbook", "d_k/d_k", "", 0.0),
        ("variances", "tr Σ_q tr Σ_k/d_k²", "traces", 1 / d_k**2),
        ("correlations", "tr(Σ_q Σ_k)/d_k", "both", 1 / d_k),
        ("means", "(tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k)/d_k", "full", 1 / d_k),
    ):
        value = known[name] / d_k
        rows.append(Row(f"score variance, by {name}", formula, value, 1.0,
                        source.quotient(column, "pairs", factor) if column else None,
                        note=f"{100 * value / measured:.3g} % of what is measured"))
    return rows


def predicted(source: Source) -> dict[str, float]:
    law = source.tokens.law
    return theory.predicted_variances(law.moments(law.d_k))


def _dependence(source: Source) -> Row:
    value = theory.population.score_variance(source.tokens.law) / predicted(source)["means"]
    found = source.quotient("measured", "full") if source.tokens.grouped else UNKNOWN
    return Row("dependence of tokens", "measured/by means", value, 1.0, found, source.one)


def _scale(source: Source) -> Row:
    variance = theory.population.score_variance(source.tokens.law)
    return Row("scale for unit variance", "1/√Var(q·k)", 1 / math.sqrt(variance),
               1 / math.sqrt(source.tokens.d_k))


def _softmax(source: Source) -> Row:
    t = source.tokens
    q, k = t.q + t.mean_q, t.k + t.mean_k
    table = np.array([_entropies(a, b) for a, b in
                      zip(t.sequences(q), t.sequences(k), strict=True)])
    keys = int(np.median(table[:, 1]))
    textbook = theory.softmax.entropy(keys, 1.0, d_k=t.d_k) / math.log(keys)
    group = " of its group" if t.grouped else ""
    note = f"a query with all keys{group}; textbook: normal, {keys} keys"
    if len(q) > table[:, 1].sum():
        note += f"; {int(table[:, 1].sum())} of {len(q)} tokens"
    found = source.worded(ratio.estimate(table, source.rate), blocks_needed(source.rate))
    return Row("entropy at 1/√d_k", "mean of H/ln n", float(table[:, 0].sum() / table[:, 1].sum()),
               textbook, found if t.grouped else None, note=note)


def _entropies(q: Array, k: Array) -> tuple[float, int]:
    """The sum of H/ln n over the rows of one sequence, and n, the number of rows and keys."""
    keys = min(len(q), KEYS)
    kept = np.linspace(0, len(q) - 1, keys).round().astype(np.int64)
    p = softmax(q[kept] @ k[kept].T / math.sqrt(q.shape[1]))
    return float(entropy(p).sum()) / math.log(keys), keys
