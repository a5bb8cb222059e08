"""Softmax of scores: nearly one-hot unscaled, smooth divided by √d_k, nearly uniform divided by d_k."""

import math

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import max_weight, rows, softmax, softmax_entropy
from mcverify.claims.ranges import ENTROPY, LOW_ENTROPY, SCALED_WEIGHT, WEIGHT
from mcverify.declare import near
from mcverify.statistic import exact, mean, ratio

KEYS = 128
NORMAL = laws.normal


# --- entropy -----------------------------------------------------------------------------------


@claim(
    ENTROPY,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, d_k),
    within=relative(0.02),
    over=grid(law=NORMAL, d_k=[1, 8, 64, 512], keys=[2, KEYS]),
    decides="A10 B6 B21",
    controls=near.query_scale(1.1),
)
def scaled_entropy(q, k, keys, d_k):
    """Divided by √d_k, the entropy of attention over 128 keys is between 4.36 and 4.42 of 4.85 nats at widths of 1 to 512."""
    return softmax_entropy(rows(q, k, keys, scale=1 / math.sqrt(d_k)))


@claim(
    ratio.within(0, lambda keys: math.log(keys)),
    equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, 1) / theory.softmax.entropy(keys, 1.0, d_k),
    within=absolute(0.005),
    over=grid(law=NORMAL, d_k=64, keys=KEYS),
    decides="A21",
    controls=grid(narrow=64),
)
def scaled_entropy_of_one_coordinate(q, k, keys, d_k, narrow=1):
    """Divided by √d_k, the entropy over 128 keys is 1.1 % higher at d_k = 1 than at 64: the variance is the same, the law is not."""
    def of_width(d):  # of few queries: a range asks for many blocks, and not for many rows of each
        return softmax_entropy(rows(q[:, :16, :d], k[..., :d], keys, scale=1 / math.sqrt(d)))

    return of_width(narrow), of_width(d_k)


@claim(
    ENTROPY,
    at_least=lambda keys: 0.8 * math.log(keys),  # Laplace coordinates come to 0.876 at d_k = 8
    over=grid(law=laws.STANDARD, d_k=[1, 8, 64, 512], keys=KEYS),
    decides="A10 B6",
    controls=near.query_scale(1.5),
)
def scaled_entropy_floor(q, k, keys, d_k):
    """Divided by √d_k, attention over 128 keys keeps at least 80 % of the entropy there is at widths of 1, 8, 64 and 512, for four laws."""
    return softmax_entropy(rows(q, k, keys, scale=1 / math.sqrt(d_k)))


@claim(
    ENTROPY,
    equals=lambda keys: math.log(keys),
    within=relative(0.02),
    over=grid(law=laws.STANDARD, d_k=[8, 64, 512], keys=KEYS),
    decides="B21",
    expect=Verdict.REFUTED,
)
def scaled_entropy_is_maximal(q, k, keys, d_k):
    """Divided by √d_k, the entropy of attention over n keys is ln n."""
    return softmax_entropy(rows(q, k, keys, scale=1 / math.sqrt(d_k)))


@claim(exact, equals=lambda keys: math.log(keys) - 0.5 + (math.e + 1) / (2 * keys),
       within=absolute(0.001), over=grid(keys=[128, 512, 4096, 65536]), decides="B6 B13 B21",
       controls=grid(equals=math.log(128) - 0.5))
def scaled_entropy_formula(keys):
    """At unit variance E H = ln n − 1/2 + (e + 1)/(2n) for independent normal scores from 128 keys on: the context may grow, the spread stays."""
    return theory.softmax.entropy(keys, 1.0)


@claim(
    LOW_ENTROPY,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, math.sqrt(d_k), d_k),
    within=relative(0.05),  # entropies are carried by few rows when most are one-hot
    over=grid(law=NORMAL, d_k=[1, 8, 64, 512], keys=[2, KEYS]),
    decides="A10 B5 B21 B34 C2",
    controls=near.query_scale(0.8),
)
def unscaled_entropy(q, k, keys):
    """Unscaled, the entropy over 128 keys falls with d_k: to 0.668 nats at 64 and 0.2035 at 512."""
    return softmax_entropy(rows(q, k, keys))


@claim(
    ENTROPY,
    at_most=lambda keys: 0.2 * math.log(keys),
    over=grid(law=laws.STANDARD, d_k=[64, 512], keys=KEYS),
    decides="A10 B5",
    controls=near.query_scale(0.6),
)
def unscaled_entropy_ceiling(q, k, keys):
    """Unscaled at d_k = 64 and 512, attention over 128 keys keeps under 20 % of the entropy there is, for four laws."""
    return softmax_entropy(rows(q, k, keys))


def gap(law, keys, d_k):
    """ln n − H of scores that hardly vary: half their second cumulant in a row, a third of the
    third, an eighth of the fourth, which of independent coordinates is κ(κ − 3)/d_k³."""
    fourth = law.fourth_moment * (law.fourth_moment - 3) / d_k**3
    return (1 - 1 / keys) / (2 * d_k) + fourth / 8


@claim(
    mean.of_degree(2),
    equals=gap,
    within=relative(0.05),
    over=grid(law=NORMAL, d_k=4, keys=KEYS) + grid(law=laws.STANDARD, d_k=[8, 64, 512], keys=KEYS),
    decides="A12 B7 B21",
    controls=near.query_scale(1.1),
)
def overscaled_entropy_gap(q, k, keys, d_k):
    """Divided by d_k, the entropy falls short of its ceiling ln n by half the variance within a row, 1/(2d_k): 0.124 at 4, 0.0078 at 64; for Laplace coordinates by 7 % more at 8."""
    return math.log(keys) - softmax_entropy(rows(q, k, keys, scale=1 / d_k))


# --- the largest weight ------------------------------------------------------------------------


@claim(
    WEIGHT,
    equals=lambda keys, d_k: theory.softmax.max_weight(keys, math.sqrt(d_k), d_k),
    within=relative(0.02),
    over=grid(law=NORMAL, d_k=[1, 8, 64, 512], keys=[2, 8])
    + grid(law=NORMAL, d_k=[8, 64, 512], keys=KEYS) + grid(law=NORMAL, d_k=64, keys=512),
    decides="A10 B5",
    controls=near.query_scale(0.8),
)
def unscaled_max_weight(q, k, keys):
    """Unscaled at d_k = 64 the largest weight is 0.951 of two keys, 0.875 of 8, 0.768 of 128 and 0.725 of 512, in the mean."""
    return max_weight(softmax(rows(q, k, keys)))


@claim(
    SCALED_WEIGHT,
    equals=lambda keys, d_k: theory.softmax.max_weight(keys, 1.0, d_k),
    within=relative(0.02),
    over=grid(law=NORMAL, d_k=[1, 8, 64, 512], keys=[2, 8])
    + grid(law=NORMAL, d_k=[8, 64, 512], keys=KEYS) + grid(law=NORMAL, d_k=64, keys=1024),
    decides="B6 B13",
    controls=near.query_scale(1.2),
)
def scaled_max_weight(q, k, keys, d_k):
    """Divided by √d_k, the mean of the largest weight at d_k = 64 falls with the number of keys: 0.724 of two, 0.069 of 128, 0.0164 of 1024."""
    return max_weight(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


# --- is a width of 64 small? -------------------------------------------------------------------


@claim(ENTROPY, equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, d_k), within=relative(0.2),
       over=grid(law=NORMAL, d_k=64, keys=KEYS), decides="B34", expect=Verdict.REFUTED)
def the_scale_matters_little_at_64(q, k, keys, d_k):
    """At d_k = 64 the scale matters little: unscaled, the entropy over 128 keys is within 20 % of the scaled one (it is 0.67 against 4.37)."""
    return softmax_entropy(rows(q, k, keys))


@claim(ENTROPY, equals=lambda keys: theory.softmax.entropy(keys, 768 * 0.02**2 * math.sqrt(64), 64),
       within=relative(0.02), over=grid(law=NORMAL, d_k=64, keys=KEYS), decides="B34",
       controls=grid(length=1.0))
def bert_starts_less_saturated(q, k, keys, length=768 * 0.02**2):
    """At BERT's initial score variance of (768·0.0004)²·64 = 6.04 the unscaled entropy over 128 keys is 2.69 of 4.85 nats."""
    return softmax_entropy(rows(q, k, keys, scale=length))
