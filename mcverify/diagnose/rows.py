"""The quantities of a sample of tokens: means, variances, correlations, tails, scores, entropy."""

import math
from collections.abc import Iterator

import numpy as np

from mcverify import theory
from mcverify.arrays import Array
from mcverify.attention import entropy, softmax
from mcverify.declare.prediction import claimed_interval
from mcverify.diagnose.sample import Row, Sample, least_blocks
from mcverify.statistic import kurtosis, ratio
from mcverify.statistic.estimate import Estimate, no_interval
from mcverify.statistic.studentised import studentised

HEAVIEST = 6.0  # the kurtosis of the Laplace law, the heaviest of laws.STANDARD
KEYS = 1024  # so many tokens, evenly spaced, of a longer sequence enter the entropy
NO_GROUPS = no_interval(math.nan, math.nan,
                        "no groups: nothing tells which tokens depend on another")


def rows_of(sample: Sample) -> Iterator[Row]:
    """In the order of the table."""
    for quantities in (_sizes, _means, _variances, _correlations, _pairing, _tails, _scores,
                       _entropy):
        yield from quantities(sample)


def _sizes(sample: Sample) -> Iterator[Row]:
    t = sample.tokens
    yield Row("tokens", "n", len(t.q))
    yield Row("width", "d_k", t.d_k)
    yield Row("independent units", "groups" if t.grouped else "tokens", len(t.sizes),
              note="" if t.grouped else "no groups: tokens are taken for independent")


def _sides(sample: Sample) -> list[tuple[str, Array, Array]]:
    m = sample.tokens.moments
    return [("q", m.mean_q, m.cov_q), ("k", m.mean_k, m.cov_k)]


def _means(sample: Sample) -> Iterator[Row]:
    for side, mean, cov in _sides(sample):
        variances = np.diag(cov)
        varies = variances > 0
        largest = float(np.max(np.abs(mean[varies]) / np.sqrt(variances[varies])))
        yield sample.quotient(f"mean of {side}", "|μ|²/tr Σ", float(mean @ mean / np.trace(cov)),
                              0.0, f"mean_{side}", f"trace_{side}", claimed=sample.small)
        yield Row(f"largest mean in {side}", "max |μ_i|/σ_i", largest, 0.0)


def _variances(sample: Sample) -> Iterator[Row]:
    for side, _, cov in _sides(sample):
        variances = np.diag(cov)
        yield sample.quotient(f"variance of {side}", "tr Σ/d_k", float(variances.mean()), 1.0,
                              f"trace_{side}", "tokens", 1 / sample.tokens.d_k, sample.one)
        yield Row(f"smallest variance in {side}", "min σ_i²", float(variances.min()), 1.0)
        yield Row(f"largest variance in {side}", "max σ_i²", float(variances.max()), 1.0)


def _correlations(sample: Sample) -> Iterator[Row]:
    d_k = sample.tokens.d_k
    for side, _, cov in _sides(sample):
        names = f"correlations in {side}", "Σ_i≠j Σ_ij²/Σ_i Σ_ii²"
        rank = f"effective rank of {side}", "(tr Σ)²/tr Σ²", theory.effective_rank(cov), d_k
        if d_k == 1:
            yield Row(*names, 0.0, 0.0, Estimate(0.0, 0.0, 0.0, 0.0), claimed=sample.small)
            yield Row(*rank)
            continue
        diagonal = np.sum(np.diag(cov) ** 2)
        yield sample.quotient(*names, float((np.sum(cov * cov) - diagonal) / diagonal), 0.0,
                              f"off_{side}", f"diagonal_{side}", claimed=sample.small)
        yield sample.quotient(*rank, f"traces_{side}", f"squares_{side}")


def _pairing(sample: Sample) -> Iterator[Row]:
    m, d_k = sample.tokens.moments, sample.tokens.d_k
    traces = float(np.trace(m.cov_q) * np.trace(m.cov_k))
    aligned = "alignment", "d_k tr(Σ_q Σ_k)/(tr Σ_q tr Σ_k)", theory.alignment(m.cov_q, m.cov_k)
    yield (Row(*aligned, 1.0) if d_k == 1 else
           sample.quotient(*aligned, 1.0, "both", "traces", d_k))
    yield Row("own key, by coordinate", "tr C/√(tr Σ_q tr Σ_k)",
              float(np.trace(m.cross)) / math.sqrt(traces), 0.0)
    yield sample.quotient("own key", "d_k ‖C‖²/(tr Σ_q tr Σ_k)",
                          d_k * float(np.sum(m.cross**2)) / traces, 0.0,
                          "cross", "traces", d_k, sample.small)


def _tails(sample: Sample) -> Iterator[Row]:
    t = sample.tokens
    for side, x in (("q", t.q), ("k", t.k)):
        deviations = np.sqrt(np.mean(x * x, axis=0))
        z = x[:, deviations > 0] / deviations[deviations > 0]
        squares = z * z
        fourths = squares * squares
        third, fourth = np.mean(squares * z, axis=0), np.mean(fourths, axis=0)
        # What a token adds to the mean of m₄/σ⁴ over coordinates, by the chain rule.
        each = np.mean(fourths - fourth - 4 * third * z - 2 * fourth * (squares - 1), axis=1)
        parts = np.stack([each, squares.mean(axis=1), fourths.mean(axis=1)], axis=1)
        table = t.totals(parts) / t.sizes.mean()
        value, constant = float(fourth.mean()), t.d_k - z.shape[1]
        yield Row(
            f"kurtosis of {side}", "mean of m₄/σ⁴", value, 3.0,
            studentised(value, table[:, 0], sample.rate, table[:, 1:], caution=kurtosis.caution),
            least_blocks(sample.rate, kurtosis.caution),
            claimed_interval("at_most", HEAVIEST, None),
            f"{constant} constant coordinates left out" if constant else "")


def _scores(sample: Sample) -> Iterator[Row]:
    t, d_k = sample.tokens, sample.tokens.d_k
    variance = theory.population.score_variance(t.law)
    predicted = theory.predicted_variances(t.moments)
    measured = "Var/d_k, measured", "Var(q·k)/d_k", variance / d_k, 1.0
    yield (sample.quotient(*measured, "measured", "pairs", 1 / d_k) if t.grouped else
           Row(*measured))
    for name, formula, column, factor in (
        ("textbook", "d_k/d_k", "", 0.0),
        ("variances", "tr Σ_q tr Σ_k/d_k²", "traces", 1 / d_k**2),
        ("correlations", "tr(Σ_q Σ_k)/d_k", "both", 1 / d_k),
        ("means", "(tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k)/d_k", "full", 1 / d_k),
    ):
        names = f"Var/d_k by {name}", formula, predicted[name] / d_k, 1.0
        note = f"{100 * predicted[name] / variance:.3g} % of what is measured"
        yield (sample.quotient(*names, column, "pairs", factor, note=note) if column else
               Row(*names, note=note))
    dependence = "dependence of tokens", "measured/by means", variance / predicted["means"], 1.0
    yield (sample.quotient(*dependence, "measured", "full", claimed=sample.one) if t.grouped else
           Row(*dependence, NO_GROUPS, claimed=sample.one))
    yield Row("scale for unit variance", "1/√Var(q·k)", variance**-0.5, d_k**-0.5)


def _entropy(sample: Sample) -> Iterator[Row]:
    t = sample.tokens
    table = np.array([_entropies(t.law.q[members], t.law.k[members]) for members in t.law.members])
    keys, counted = int(np.median(table[:, 1])), int(table[:, 1].sum())
    note = f"a query with all keys{' of its group' if t.grouped else ''}; textbook: normal, " \
           f"{keys} keys" + (f"; {counted} of {len(t.q)} tokens" if counted < len(t.q) else "")
    yield Row(
        "entropy at 1/√d_k", "mean of H/ln n", float(table[:, 0].sum() / counted),
        theory.softmax.entropy(keys, 1.0, d_k=t.d_k) / math.log(keys),
        ratio.estimate(table, sample.rate) if t.grouped else None, least_blocks(sample.rate),
        note=note)


def _entropies(q: Array, k: Array) -> tuple[float, int]:
    """The sum of H/ln n over the rows of one sequence, and n, the number of rows and keys."""
    keys = min(len(q), KEYS)
    kept = np.linspace(0, len(q) - 1, keys).round().astype(np.int64)
    p = softmax(q[kept] @ k[kept].T / math.sqrt(q.shape[1]))
    return float(entropy(p).sum()) / math.log(keys), keys
