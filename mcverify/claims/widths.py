"""Which width the scale should follow: a changed head, a padded one, several terms, few keys."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, printed, relative
from mcverify.attention import rows, scores
from mcverify.statistic import exact, std, variance

NORMAL = laws.normal


@claim(exact, equals=printed("8"), decides="A16")
def width_of_a_head():
    """512 dimensions over 8 heads are 64 a head, whose root is 8."""
    return math.sqrt(512 / 8)


@claim(variance, equals=lambda d_model, d_k: d_k / d_model, within=relative(0.02),
       over=grid(law=NORMAL, d_k=64, d_model=512), decides="A16")
def model_width_overscales(q, k, d_model):
    """Dividing by the root of the model's width 512 leaves heads of 64 a score variance of 1/8."""
    return scores(q, k, scale=1 / math.sqrt(d_model))


@claim(variance, equals=lambda d_k, scaled_for: d_k / scaled_for, within=relative(0.02),
       over=grid(law=NORMAL, d_k=1024, scaled_for=[512, 1024]), decides="B22")
def scale_kept_when_the_width_doubles(q, k, scaled_for):
    """From d_k = 512 to 1024 the scale must become 1/32; kept as it was, the variance doubles."""
    return scores(q, k, scale=1 / math.sqrt(scaled_for))


def padded_scores(q, k, narrow, divisor):
    """Keys of the narrow width, padded with zeros to the width of the queries."""
    k = k.copy()
    k[..., narrow:] = 0
    return scores(q, k, scale=1 / divisor)


def spread(tokens, narrow):
    """The variance of a block's mean square: zeros add nothing to the scores of the narrow width."""
    found = laws.block_moments(NORMAL, narrow, tokens, "all")
    return found and found.of_squares


PADDED = grid(law=NORMAL, d_k=128, narrow=64)


@claim(variance.with_variance(lambda tokens, narrow, d_k: spread(tokens, narrow) / d_k**2), equals=0.5,
       within=relative(0.02), over=PADDED, decides="B25")
def padded_keys(q, k, narrow, d_k):
    """Keys of width 64 padded to 128 and divided by √128 leave a score variance of 1/2."""
    return padded_scores(q, k, narrow, math.sqrt(d_k))


@claim(variance.with_variance(lambda tokens, narrow, d_k, power:
                              spread(tokens, narrow) / (d_k * narrow) ** (4 * power)),
       equals=1, within=relative(0.02),
       over=grid(law=NORMAL, d_k=128, narrow=64, power=[0.5, 0.25]), decides="B26",
       expect=Verdict.REFUTED)
def geometric_mean_of_widths(q, k, narrow, d_k, power):
    """Dividing by the geometric mean of the two widths, or by its root, gives unit variance."""
    return padded_scores(q, k, narrow, (d_k * narrow) ** power)


@claim(variance.with_variance(lambda tokens, narrow: spread(tokens, narrow) / narrow**2), equals=1,
       within=relative(0.02), over=PADDED, decides="B26")
def root_of_the_smaller_width(q, k, narrow):
    """Dividing by the root of the smaller width does."""
    return padded_scores(q, k, narrow, math.sqrt(narrow))


def spread_of_three_terms(tokens, d_k):
    """They are (q, o)·(k + t, k): normal scores under a covariance of trace 3 and square 7 a coordinate."""
    return (18 + (42 + 28 * (tokens - 1)) / d_k) / tokens**2


@claim(variance.with_variance(spread_of_three_terms), equals=3, within=relative(0.02),
       over=grid(law=NORMAL, d_k=[8, 64]), decides="C6")
def three_terms(q, k, d_k, rng):
    """Content–content, content–position and position–content terms together need √(3 d_k), not √d_k."""
    to, of = rng.standard_normal((2, *q.shape))
    return (scores(q, k) + scores(q, to) + scores(of, k)) / math.sqrt(d_k)


def spread_of_a_rows_variance(law, d_k, keys):
    return math.sqrt((law.fourth_moment - 1) / d_k + 2 * (1 + 2 / d_k) / (keys - 1))


@claim(std.of_degree(2), equals=spread_of_a_rows_variance, within=relative(0.05),
       over=grid(law=NORMAL, d_k=[8, 64], keys=[8, 128]), decides="C3")
def variance_within_a_row(q, k, keys, d_k):
    """The variance measured within one row of n keys spreads by √((κ_q − 1)/d_k + 2(1 + 2/d_k)/(n − 1)), however many keys."""
    return np.var(rows(q, k, keys), axis=-1, ddof=1) / d_k
