"""Coordinates whose mean is not 0: what it adds to scores, and how much of that softmax sees."""

import numpy as np

from mcverify import absolute, claim, grid, laws, relative, theory
from mcverify.attention import rows, scores, softmax
from mcverify.attention.products import row_queries
from mcverify.declare import near
from mcverify.statistic import mean, proportion, variance

D_K = [1, 8, 64, 512]
SHIFTED = [laws.shifted(base, 0.5) for base in laws.STANDARD] + [
    laws.independent(laws.shifted(laws.normal, 1.0), laws.normal)]


@claim(
    mean,
    equals=lambda law, d_k: theory.dot_mean(law, d_k) / d_k,
    within=absolute(0.02),
    over=grid(law=SHIFTED, d_k=D_K),
    decides="A5 B2 C4",
    controls=near.law(laws.independent(laws.shifted(laws.normal, 0.5), laws.normal)),
)
def shifted_mean(q, k, d_k):
    """E q·k = d_k μ_q μ_k when coordinates have means μ_q and μ_k."""
    return scores(q, k, scale=1 / d_k)


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.06),
    over=grid(law=SHIFTED, d_k=D_K),
    decides="A5 B2 C4",
    controls=near.law(laws.independent(laws.shifted(laws.normal, 0.5), laws.normal)),
)
def shifted_variance(q, k):
    """Var(q·k) = d_k(1 + μ_q² + μ_k²) when coordinates have means μ_q and μ_k."""
    return scores(q, k)


# --- what softmax sees -------------------------------------------------------------------------

ON_QUERIES, ON_KEYS = (laws.independent(*pair) for pair in (
    (laws.shifted(laws.normal, 0.5), laws.normal), (laws.normal, laws.shifted(laws.normal, 0.5))))


def spread_over_blocks(law, d_k, keys, tokens):
    return theory.block_spread.row_variance_mean_spread(
        float(law.moments(d_k).mean_q[0]), keys, d_k, row_queries(tokens), tokens // keys)


@claim(
    mean.with_variance(spread_over_blocks),
    equals=lambda law, d_k: 1 + float(law.moments(d_k).mean_q[0]) ** 2,
    within=relative(0.05),
    over=grid(law=[laws.shifted(laws.normal, 0.5), ON_QUERIES, ON_KEYS], d_k=[8, 64], keys=[2, 16]),
    decides="C4",
    controls=near.law(ON_KEYS) + grid(equals=1.5),
)
def variance_within_rows_with_means(q, k, keys, d_k):
    """Within a row scores vary by d_k(1 + μ_q²), 1.25·d_k for means of 0.5, and not by the total d_k(1 + μ_q² + μ_k²): what the keys' mean adds is constant along a row."""
    return np.var(rows(q, k, keys), axis=-1, ddof=1) / d_k


@claim(proportion, at_least=0.99, over=grid(law=laws.STANDARD, d_k=[8, 64], keys=8), decides="C4",
       controls=grid(on="queries"))
def bias_on_keys_changes_no_weight(q, k, keys, d_k, on="keys"):
    """A bias vector added to every one of 8 keys changes no softmax weight; added to the queries it does."""
    bias = np.linspace(-1, 1, d_k)
    p = softmax(rows(q, k, keys))
    biased = rows(q + bias, k, keys) if on == "queries" else rows(q, k + bias, keys)
    return np.isclose(softmax(biased), p, rtol=1e-6, atol=1e-300)
