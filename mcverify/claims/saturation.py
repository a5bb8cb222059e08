"""Softmax of scores: nearly one-hot unscaled, smooth divided by √d_k, nearly uniform divided by d_k."""

import math

from mcverify import Verdict, claim, grid, laws, relative, theory
from mcverify.attention import entropy, jacobian_norm, max_weight, rows, softmax
from mcverify.statistic import mean, median

KEYS = 128


@claim(
    mean.bounded,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, KEYS]),
    decides="A10 B6 B21",
)
def scaled_entropy(q, k, keys, d_k):
    """Divided by √d_k, attention keeps an entropy that hardly moves with d_k: 4.37 of 4.85 nats at 128 keys."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    mean.bounded,
    at_least=lambda keys: 0.85 * math.log(keys),  # Laplace coordinates come to 0.876 at d_k = 8
    over=grid(law=laws.STANDARD, d_k=[1, 8, 64, 512], keys=KEYS),
    decides="A10 B6",
)
def scaled_entropy_floor(q, k, keys, d_k):
    """Divided by √d_k, attention over 128 keys keeps at least 85 % of the entropy there is, at every d_k."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    mean.bounded,
    equals=lambda keys: math.log(keys),
    within=relative(0.02),
    over=grid(law=laws.STANDARD, d_k=[8, 64, 512], keys=KEYS),
    decides="B21",
    expect=Verdict.REFUTED,
)
def scaled_entropy_is_maximal(q, k, keys, d_k):
    """Divided by √d_k, the entropy of attention over n keys is ln n."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    mean.bounded,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, math.sqrt(d_k), d_k),
    within=relative(0.05),  # entropies are carried by few rows when most are one-hot
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, KEYS]),
    decides="A10 B5 B21",
)
def unscaled_entropy(q, k, keys):
    """Unscaled, the entropy of attention falls with d_k: at 128 keys to 0.67 nats at 64 and 0.20 at 512."""
    return entropy(softmax(rows(q, k, keys)))


@claim(
    mean.bounded,
    at_most=lambda keys: 0.2 * math.log(keys),
    over=grid(law=laws.STANDARD, d_k=[64, 512], keys=KEYS),
    decides="A10 B5",
)
def unscaled_entropy_ceiling(q, k, keys):
    """Unscaled with d_k of 64 or more, attention over 128 keys keeps under 20 % of the entropy there is."""
    return entropy(softmax(rows(q, k, keys)))


@claim(
    mean.bounded,
    equals=lambda keys, d_k: theory.softmax.max_weight(keys, math.sqrt(d_k), d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, 8])
    + grid(law=laws.normal, d_k=[8, 64, 512], keys=KEYS),
    decides="A10 B5",
)
def unscaled_max_weight(q, k, keys):
    """Unscaled at d_k = 64 the largest weight is 0.95 of two keys, 0.88 of 8 and 0.77 of 128, in the mean."""
    return max_weight(softmax(rows(q, k, keys)))


@claim(
    mean.bounded,
    equals=lambda keys, d_k: theory.softmax.max_weight(keys, 1.0, d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, 8])
    + grid(law=laws.normal, d_k=[8, 64, 512], keys=KEYS),
    decides="B6",
)
def scaled_max_weight(q, k, keys, d_k):
    """Divided by √d_k, the largest weight hardly moves with d_k: 0.71 of two keys, 0.07 of 128, in the mean."""
    return max_weight(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    median,
    equals=lambda d_k: 2 * theory.softmax.two_key_product_median(math.sqrt(d_k), d_k),
    within=relative(0.05),  # a median in the steep part: ln p(1 − p) has a spread of about √d_k
    over=grid(law=laws.normal, d_k=[1, 8, 64], keys=2),
    decides="A11",
)
def unscaled_median_slope(q, k, keys):
    """Unscaled, the median norm of the softmax Jacobian of two keys falls like exp(−0.954√d_k)."""
    return jacobian_norm(softmax(rows(q, k, keys)))


@claim(
    median,
    equals=lambda d_k: 2 * theory.softmax.two_key_product_median(1.0, d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=2),
    decides="A11",
)
def scaled_median_slope(q, k, keys, d_k):
    """Divided by √d_k, the median norm of the softmax Jacobian of two keys stays near 0.4, of at most 1/2."""
    return jacobian_norm(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    mean.bounded,
    at_least=lambda keys: 0.98 * math.log(keys),
    over=grid(law=laws.STANDARD, d_k=[8, 64, 512], keys=KEYS),
    decides="A12 B7",
)
def overscaled_entropy(q, k, keys, d_k):
    """Divided by d_k, attention over 128 keys is nearly uniform from d_k = 8: over 98 % of the entropy there is."""
    return entropy(softmax(rows(q, k, keys, scale=1 / d_k)))
