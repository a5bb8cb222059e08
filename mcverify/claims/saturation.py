"""Softmax of scores: nearly one-hot unscaled, smooth divided by √d_k, nearly uniform divided by d_k."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import entropy, jacobian_norm, max_weight, rows, softmax, sum_squares
from mcverify.claims.ranges import (
    ENTROPY,
    LOW_ENTROPY,
    NEAR_ENTROPY,
    NORM,
    NORMS,
    SCALED_WEIGHT,
    SQUARED_NORM,
    WEIGHT,
)
from mcverify.declare import near
from mcverify.statistic import exact, mean, median, slope

KEYS = 128


@claim(
    ENTROPY,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, KEYS]),
    decides="A10 B6 B21",
)
def scaled_entropy(q, k, keys, d_k):
    """Divided by √d_k, attention keeps an entropy that hardly moves with d_k: 4.37 of 4.85 nats at 128 keys."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    ENTROPY,
    at_least=lambda keys: 0.8 * math.log(keys),  # Laplace coordinates come to 0.876 at d_k = 8
    over=grid(law=laws.STANDARD, d_k=[1, 8, 64], keys=KEYS),
    decides="A10 B6",
    controls=near.query_scale(8.0),
)
def scaled_entropy_floor(q, k, keys, d_k):
    """Divided by √d_k, attention over 128 keys keeps at least 80 % of the entropy there is, at every d_k."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    ENTROPY,
    equals=lambda keys: math.log(keys),
    within=relative(0.02),
    over=grid(law=laws.STANDARD, d_k=[8, 64], keys=KEYS) + grid(law=laws.normal, d_k=512, keys=KEYS),
    decides="B21",
    expect=Verdict.REFUTED,
)
def scaled_entropy_is_maximal(q, k, keys, d_k):
    """Divided by √d_k, the entropy of attention over n keys is ln n."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(
    LOW_ENTROPY,
    equals=lambda keys, d_k: theory.softmax.entropy(keys, math.sqrt(d_k), d_k),
    within=relative(0.05),  # entropies are carried by few rows when most are one-hot
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, KEYS]),
    decides="A10 B5 B21",
)
def unscaled_entropy(q, k, keys):
    """Unscaled, the entropy of attention falls with d_k: at 128 keys to 0.67 nats at 64 and 0.20 at 512."""
    return entropy(softmax(rows(q, k, keys)))


@claim(
    ENTROPY,
    at_most=lambda keys: 0.2 * math.log(keys),
    over=grid(law=laws.STANDARD, d_k=64, keys=KEYS) + grid(law=laws.normal, d_k=512, keys=KEYS),
    decides="A10 B5",
    controls=near.query_scale(1 / 8),
)
def unscaled_entropy_ceiling(q, k, keys):
    """Unscaled with d_k of 64 or more, attention over 128 keys keeps under 20 % of the entropy there is."""
    return entropy(softmax(rows(q, k, keys)))


@claim(
    WEIGHT,
    equals=lambda keys, d_k: theory.softmax.max_weight(keys, math.sqrt(d_k), d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, 8])
    + grid(law=laws.normal, d_k=[8, 64, 512], keys=KEYS),
    decides="A10 B5",
)
def unscaled_max_weight(q, k, keys):
    """Unscaled at d_k = 64 the largest weight is 0.95 of two keys, 0.87 of 8 and 0.77 of 128, in the mean."""
    return max_weight(softmax(rows(q, k, keys)))


@claim(
    SCALED_WEIGHT,
    equals=lambda keys, d_k: theory.softmax.max_weight(keys, 1.0, d_k),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[1, 8, 64, 512], keys=[2, 8])
    + grid(law=laws.normal, d_k=[8, 64, 512], keys=KEYS),
    decides="B6",
)
def scaled_max_weight(q, k, keys, d_k):
    """Divided by √d_k, the largest weight hardly moves with d_k: 0.72 of two keys, 0.07 of 128, in the mean."""
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
    ENTROPY,
    at_least=lambda keys: 0.98 * math.log(keys),
    over=grid(law=laws.STANDARD, d_k=[8, 64], keys=KEYS) + grid(law=laws.normal, d_k=512, keys=KEYS),
    decides="A12 B7",
    controls=near.query_scale(8**0.5),
)
def overscaled_entropy(q, k, keys, d_k):
    """Divided by d_k, attention over 128 keys is nearly uniform from d_k = 8: over 98 % of the entropy there is."""
    return entropy(softmax(rows(q, k, keys, scale=1 / d_k)))


# --- two routes to the same numbers -----------------------------------------------------------
#
# Rows of q·k share their query: given ‖q‖ their scores are independent, and the exact route mixes
# over ‖q‖² ~ χ²(d_k). Independent normal scores are another law, with slightly other numbers.

SHARED = grid(law=laws.normal, d_k=[8, 64], keys=[2, 8, KEYS], power=[0.0, 0.5])
INDEPENDENT = grid(law=laws.normal, d_k=1, keys=[2, 8, KEYS], sigma=[1.0, 8.0])


def agrees(exact):
    """The exact value for scores divided by d_k^power, whose standard deviation is d_k^(1/2 − power)."""
    return lambda keys, d_k, power: exact(keys, d_k ** (0.5 - power), d_k)


def weights(q, k, keys, d_k, power):
    return softmax(rows(q, k, keys, scale=d_k**-power))


@claim(SCALED_WEIGHT, equals=agrees(theory.softmax.sum_squares), within=relative(0.02), over=SHARED,
       decides="C2")
def shared_sum_squares(q, k, keys, d_k, power):
    """E Σp² of q·k of normal laws is what quadrature over χ²(d_k) says, scaled and unscaled."""
    return sum_squares(weights(q, k, keys, d_k, power))


@claim(WEIGHT, equals=agrees(theory.softmax.jacobian_trace), within=relative(0.05),
       over=SHARED, decides="C2")
def shared_jacobian_trace(q, k, keys, d_k, power):
    """E tr J of q·k of normal laws is what quadrature says; unscaled, few rows carry it."""
    return jacobian_norm(weights(q, k, keys, d_k, power), "trace")


@claim(SQUARED_NORM, equals=agrees(theory.softmax.jacobian_frobenius_squared),
       within=relative(0.05), over=SHARED, decides="C2")
def shared_jacobian_squared(q, k, keys, d_k, power):
    """E ‖J‖² (Frobenius) of q·k of normal laws is what quadrature says; unscaled, few rows carry it."""
    return jacobian_norm(weights(q, k, keys, d_k, power)) ** 2


@claim(mean, equals=agrees(theory.softmax.log_partition), within=relative(0.02), over=SHARED,
       decides="C2")
def shared_log_partition(q, k, keys, d_k, power):
    """E ln Σexp(s) of q·k of normal laws is what quadrature says."""
    s = rows(q, k, keys, scale=d_k**-power)
    return s.max(axis=-1) - np.log(max_weight(softmax(s)))


@claim(ENTROPY, equals=lambda keys, sigma: theory.softmax.entropy(keys, sigma),
       within=relative(0.02), over=INDEPENDENT, decides="C2 B6 B21")
def independent_entropy(q, keys, sigma):
    """The entropy of softmax over independent N(0, σ²) scores is what quadrature says: 0.658 at 128 keys, σ = 8."""
    return entropy(softmax(sigma * q.reshape(len(q), -1, keys)))


@claim(WEIGHT, equals=lambda keys, sigma: theory.softmax.max_weight(keys, sigma),
       within=relative(0.02), over=INDEPENDENT, decides="C2")
def independent_max_weight(q, keys, sigma):
    """The largest weight of softmax over independent N(0, σ²) scores is what quadrature says."""
    return max_weight(softmax(sigma * q.reshape(len(q), -1, keys)))


@claim(exact, equals=lambda d_k: theory.softmax.entropy(KEYS, math.sqrt(d_k)),
       within=relative(0.005), over=grid(d_k=64), decides="C2", expect=Verdict.REFUTED)
def sharing_a_query_changes_nothing(d_k):
    """Scores that share a query have the same mean entropy as independent ones (it is 1.6 % more at d_k = 64)."""
    return theory.softmax.entropy(KEYS, math.sqrt(d_k), d_k)


@claim(exact, equals=lambda keys: math.log(keys) - 0.5 + (math.e + 1) / (2 * keys),
       within=absolute(0.001), over=grid(keys=[128, 512, 4096, 65536]), decides="B6 B21")
def scaled_entropy_formula(keys):
    """At unit variance E H = ln n − 1/2 + (e + 1)/(2n) for independent normal scores, to 1/n²."""
    return theory.softmax.entropy(keys, 1.0)


def near_the_limit(d_k):
    limit = theory.softmax.entropy(KEYS, 1.0)
    return limit - 2.5 / d_k, limit + 2.5 / d_k


@claim(NEAR_ENTROPY, between=near_the_limit,
       over=grid(law=[laws.rademacher, laws.uniform, laws.laplace], d_k=[8, 32, 128], keys=KEYS),
       decides="C2", controls=near.query_scale(1.5))
def light_tails_approach_the_normal_entropy(q, k, keys, d_k):
    """Scaled entropies of coins, uniform and Laplace coordinates approach that of normal scores as 1/d_k."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(ENTROPY, between=near_the_limit,
       over=grid(law=laws.student_t(3), d_k=16, keys=KEYS), decides="C2",
       expect=Verdict.REFUTED)
def heavy_tails_approach_the_normal_entropy(q, k, keys, d_k):
    """The scaled entropy of Student t coordinates with 3 degrees of freedom approaches that of normal scores as 1/d_k (it lags far behind)."""
    return entropy(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


# --- two keys, in the mean and in the median ---------------------------------------------------


def two_key_product(q, k, keys, scale=1.0):
    return jacobian_norm(softmax(rows(q, k, keys, scale))) / 2  # ‖J‖ = 2 p(1 − p) for two keys


@claim(SQUARED_NORM, equals=lambda d_k: 1 / (2 * math.sqrt(math.pi * d_k)), within=relative(0.05),
       over=grid(law=laws.normal, d_k=[16, 64, 256], keys=2), decides="A11")
def two_key_mean(q, k, keys):
    """Unscaled, E p(1 − p) of two keys is about 1/(2√(πd_k)): near-ties keep it from vanishing."""
    return two_key_product(q, k, keys)


@claim(slope(SQUARED_NORM), equals=-0.5, within=absolute(0.05),
       over=grid(law=laws.normal, d_k=256, keys=2), decides="A11")
def two_key_mean_falls_slowly(q, k, keys, d_k):
    """Unscaled, E p(1 − p) of two keys falls only as d_k^(−1/2)."""
    return [(d, two_key_product(q[..., :d], k[..., :d], keys)) for d in (16, 64, 256) if d <= d_k]


@claim(exact, equals=-0.954, within=relative(0.02), over=grid(d_k=[256, 1024]), decides="A11")
def two_key_median_falls_fast(d_k):
    """Unscaled, the median p(1 − p) of two keys falls like exp(−0.954√d_k): a typical pair is saturated."""
    near, far = (math.log(theory.softmax.two_key_product_median(math.sqrt(d), d))
                 for d in (d_k, 4 * d_k))
    return (far - near) / math.sqrt(d_k)


@claim(NORM, at_most=0.01, over=grid(law=laws.normal, d_k=64, keys=[2, 8, KEYS]),
       decides="A11 B5", expect=Verdict.REFUTED)
def unscaled_jacobian_vanishes(q, k, keys):
    """Unscaled at d_k = 64, the softmax Jacobian is almost zero in the mean (Frobenius norm below 0.01)."""
    return jacobian_norm(softmax(rows(q, k, keys)))


def norms(q, k, keys, d_k):
    s = rows(q, k, keys)
    return jacobian_norm(softmax(s)), jacobian_norm(softmax(s / math.sqrt(d_k)))


@claim(NORMS, at_most=0.95, over=grid(law=laws.normal, d_k=64, keys=[2, 8, 32]), decides="A11",
       controls=grid(keys=KEYS))
def unscaled_jacobian_is_smaller_with_few_keys(q, k, keys, d_k):
    """At d_k = 64 the mean Frobenius norm of the softmax Jacobian is smaller unscaled than scaled up to 32 keys."""
    return norms(q, k, keys, d_k)


@claim(NORMS, at_least=1.05, over=grid(law=laws.normal, d_k=64, keys=[64, KEYS, 512]),
       decides="A11 B5", controls=grid(keys=8))
def unscaled_jacobian_is_larger_with_many_keys(q, k, keys, d_k):
    """At d_k = 64 the mean Frobenius norm of the softmax Jacobian is larger unscaled than scaled from 64 keys on (they cross near 48)."""
    return norms(q, k, keys, d_k)


@claim(NORMS, at_most=1, over=grid(law=laws.normal, d_k=64, keys=[KEYS, 512]), decides="A11 B5",
       expect=Verdict.REFUTED)
def scaling_always_enlarges_the_jacobian(q, k, keys, d_k):
    """Unscaled, the softmax Jacobian is smaller in the mean than scaled, however many keys there are."""
    return norms(q, k, keys, d_k)


# --- is a width of 64 small? -------------------------------------------------------------------


@claim(ENTROPY, equals=lambda keys, d_k: theory.softmax.entropy(keys, 1.0, d_k), within=relative(0.2),
       over=grid(law=laws.normal, d_k=64, keys=KEYS), decides="B34", expect=Verdict.REFUTED)
def the_scale_matters_little_at_64(q, k, keys, d_k):
    """At d_k = 64 the scale matters little: unscaled, the entropy over 128 keys is within 20 % of the scaled one (it is 0.67 against 4.37)."""
    return entropy(softmax(rows(q, k, keys)))


@claim(exact, equals=printed("2.694"), decides="B34")
def bert_starts_less_saturated():
    """At BERT's own initial score variance of (768·0.0004)²·64 = 6.04 the unscaled entropy over 128 keys is 2.694 of 4.852."""
    return theory.softmax.entropy(KEYS, 768 * 0.02**2 * math.sqrt(64), 64)
