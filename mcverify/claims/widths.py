"""Which width the scale should follow: a changed head, a padded one, several terms, few keys."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, relative, theory
from mcverify.attention import rows, scores
from mcverify.attention.products import row_queries
from mcverify.attention.vectors import pad
from mcverify.declare import near
from mcverify.statistic import std, variance

NORMAL = laws.normal
MEAN_WIDTH = math.sqrt(128 * 64)  # the geometric mean of the two widths


def padded_scores(q, k, key_width, divisor):
    """Scores of keys of their own width, padded with zeros to the width of the queries."""
    return scores(q, pad(k[..., :key_width], q.shape[-1]), scale=1 / divisor)


def root(width):
    return width**0.5


WIDTHS = (
    grid(law=NORMAL, d_k=64, key_width=64, divisor=[root(64), root(512)])  # 8 heads of 512
    + grid(law=NORMAL, d_k=1024, key_width=1024, divisor=[root(512), root(1024)])
    + grid(law=NORMAL, d_k=128, key_width=64,
           divisor=[root(128), root(64), MEAN_WIDTH, root(MEAN_WIDTH)])
)


def spread(law, tokens, key_width):
    """The variance of a block's mean square: zeros add nothing to the scores of the key's width."""
    found = laws.block_moments(law, key_width, tokens, "all") if law == NORMAL else None
    return found and found.of_squares


def spread_of_squares(law, tokens, key_width, divisor):
    unscaled = spread(law, tokens, key_width)
    return unscaled and unscaled / divisor**4


@claim(variance.with_variance(spread_of_squares),
       equals=lambda key_width, divisor: key_width / divisor**2, within=relative(0.02), over=WIDTHS,
       decides="A16 B22 B25 B26 B39",
       controls=grid(key_width=32) + grid(divisor=root(60)) + near.law(laws.shifted(NORMAL, 0.2)))
def width_that_the_scale_follows(q, k, key_width, divisor):
    """Only coordinates that meet count: Var(q·k/c) = min(d_q, d_k)/c², 1/8 for heads of 64 over √512, 2 for a width that doubles under its old scale, 1/2 for keys of 64 padded to 128 over √128, 1 over √min(d_q, d_k)."""
    return padded_scores(q, k, key_width, divisor)


@claim(variance.with_variance(lambda law, tokens, key_width, d_k, power:
                              spread(law, tokens, key_width) / (d_k * key_width) ** (4 * power)),
       equals=1, within=relative(0.02),
       over=grid(law=NORMAL, d_k=128, key_width=64, power=[0.5, 0.25]), decides="B26 B39",
       expect=Verdict.REFUTED)
def geometric_mean_of_widths(q, k, key_width, d_k, power):
    """Dividing by the geometric mean of the two widths, or by its root, gives unit variance."""
    return padded_scores(q, k, key_width, (d_k * key_width) ** power)


def spread_of_three_terms(tokens, d_k, tied=False):
    """They are (q, o)·(k + t, k): normal scores under a covariance of trace 3 and square 7 a coordinate."""
    return None if tied else (18 + (42 + 28 * (tokens - 1)) / d_k) / tokens**2


@claim(variance.with_variance(spread_of_three_terms), equals=3, within=relative(0.02),
       over=grid(law=NORMAL, d_k=[8, 64]), decides="C6", controls=grid(tied=True))
def three_terms(q, k, d_k, rng, tied=False):
    """Content–content, content–position and position–content terms together need √(3 d_k), not √d_k; if position were content, the terms would be correlated and need more."""
    to, of = rng.standard_normal((2, *q.shape))
    return (scores(q, k) + scores(q, to) + scores(q if tied else of, k)) / math.sqrt(d_k)


def fourth(law):
    """κ_q, of a coordinate of the queries."""
    return law.q.fourth_moment if hasattr(law, "q") else law.fourth_moment


def spread_of_a_rows_variance(law, d_k, keys):
    """Given q a row has variance ‖q‖², and ‖q‖² has the relative variance (κ_q − 1)/d_k."""
    length = (fourth(law) - 1) / d_k
    return math.sqrt(length + 2 * (1 + length) / (keys - 1))


QUERIES = [NORMAL, *(laws.independent(q, NORMAL) for q in (laws.rademacher, laws.laplace))]


def spread_over_blocks(law, d_k, keys, tokens):
    return theory.block_spread.row_variance_spread(
        law.powers("q"), keys, d_k, row_queries(tokens), tokens // keys)


@claim(std.of_degree(2).with_variance(spread_over_blocks, mean=1), equals=spread_of_a_rows_variance, within=relative(0.05),
       over=grid(law=QUERIES, d_k=[8, 64], keys=[8, 128]), decides="C3",
       controls=near.law(laws.independent(laws.rademacher, NORMAL))
       + near.law(laws.independent(laws.laplace, NORMAL)) + grid(equals=math.sqrt(2 / 8)))
def variance_within_a_row(q, k, keys, d_k):
    """With normal keys the variance measured within one row of n keys spreads by √((κ_q − 1)/d_k + 2(1 + (κ_q − 1)/d_k)/(n − 1)): for normal queries no number of keys brings it below √(2/d_k)."""
    return np.var(rows(q, k, keys), axis=-1, ddof=1) / d_k
