"""Closed forms of rows of many keys against sums, quadrature and softmax itself; nothing draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from mcverify.attention import entropy, softmax, top_share
from mcverify.theory import many_keys
from mcverify.theory import softmax as quadrature

UNIT = st.floats(0.02, 0.98)


def quantiles(n, sigma):
    """A row of n scores that is the law of N(0, σ²) as evenly as n numbers can be."""
    return sigma * stats.norm.ppf((np.arange(n) + 0.5) / n)


@given(st.integers(1, 10**6), st.sampled_from([4, 16, 64]))
def test_a_match_has_half_the_weight_of_as_many_keys_as_its_formula_says(n, d_k):
    half = math.exp(math.sqrt(d_k) - 0.5)
    weight = many_keys.match_weight(n, d_k, d_k**-0.5)
    assert weight == pytest.approx(1 / (1 + n / half))
    assert many_keys.match_weight(n, d_k, 0.0) == pytest.approx(1 / (n + 1))


def test_match_among_scores_that_are_spread_evenly():
    s = quantiles(10**5, 1.0)
    row = softmax(np.append(s[:: 10**5 // 1000], 8.0))  # 1000 others
    assert row[-1] == pytest.approx(many_keys.match_weight(1000, 64, 1 / 8), rel=0.02)


@pytest.mark.parametrize("sigma", [0.125, 0.5, 1.0])
def test_alikeness_is_the_limit_of_quadrature(sigma):
    n = 10**8
    assert many_keys.alikeness(sigma) == pytest.approx(
        1 / (n * quadrature.sum_squares(n, sigma)), rel=1e-5)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.61])
def test_top_share_of_scores_that_are_spread_evenly(share, sigma):
    found = float(top_share(softmax(quantiles(10**5, sigma)), share))
    assert found == pytest.approx(many_keys.top_share(share, sigma), abs=2e-3)


@given(UNIT, st.floats(0, 4))
def test_shares_above_and_below_a_key_sum_to_one(share, sigma):
    """The other keys hold what the same share has for scores turned round: Φ(x + σ) + Φ(−x − σ)."""
    rest = 1 - many_keys.top_share(share, sigma)
    assert rest == pytest.approx(many_keys.top_share(1 - share, -sigma), abs=1e-12)
    assert many_keys.top_share(share, 0.0) == pytest.approx(share)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 150])
def test_causal_entropy_is_the_mean_over_all_lengths(n):
    exact = [0.0] + [quadrature.entropy(i, 1.0) for i in range(2, n + 1)]
    assert many_keys.causal_entropy(n, 1.0) == pytest.approx(np.mean(exact), rel=1e-6)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_causal_entropy_of_long_sequences(sigma):
    n = 10**5
    assert many_keys.causal_entropy(n, sigma) == pytest.approx(
        math.log(n) - 1 - sigma**2 / 2, abs=1e-3)


def cumulants_entropy(law_q, law_k, d_k, queries=4000):
    """ln n − H of infinitely many keys, from the exact E e^(ts) at given queries, on a lattice."""
    rng = np.random.default_rng(5)
    (a, p), (b, r) = law_q, law_k
    q = rng.choice(a, p=p, size=(queries, d_k)) / math.sqrt(d_k)
    terms = np.exp(q[..., None] * b) * r
    total = terms.sum(-1)
    log_m, slope = np.log(total).sum(1), ((terms * b).sum(-1) / total * q).sum(1)
    return (log_m - slope).mean(), (log_m - slope).std() / math.sqrt(queries)


def standard(values, p):
    values, p = np.asarray(values, float), np.asarray(p)
    values = values - p @ values
    return values / math.sqrt(p @ values**2), p


def third_and_fourth(law):
    return float(law[1] @ law[0] ** 3), float(law[1] @ law[0] ** 4)


SKEW, COIN, HEAVY = (standard([0, 1], [0.75, 0.25]), standard([-1, 1], [0.5, 0.5]),
                     standard([-1, 0, 1], [0.1, 0.8, 0.1]))


@pytest.mark.parametrize(("q", "k"), [(COIN, HEAVY), (HEAVY, COIN), (SKEW, SKEW), (SKEW, HEAVY),
                                      (SKEW, COIN)])
def test_entropy_shift_against_exact_generating_functions(q, k):
    d_k = 256
    found, stderr = cumulants_entropy(q, k, d_k)
    predicted = -0.5 + many_keys.entropy_shift(third_and_fourth(q), third_and_fourth(k), d_k)
    assert found == pytest.approx(predicted, abs=6 * stderr + 2 / d_k**1.5)


def test_only_keys_shift_the_entropy_by_their_tails():
    assert many_keys.entropy_shift((0, 9), (0, 3), 64) == 0
    assert many_keys.entropy_shift((2, 3), (0, 3), 64) == 0
    assert many_keys.entropy_shift((2, 3), (2, 3), 16) == pytest.approx(-1 / 3)


def saddle(c, log_n):
    """ln E Σp² by a sum over one score against a Z that is n e^(σ²/2) and the score itself."""
    sigma = c * math.sqrt(2 * log_n)
    log_z = log_n + sigma**2 / 2

    def integrand(x):
        return math.exp(2 * (x - np.logaddexp(x, log_z)) - x * x / (2 * sigma**2) + log_n)

    top = min(2 * sigma**2, log_z)
    reach = 12 * sigma
    value, _ = integrate.quad(integrand, top - reach, top + reach, points=[top], limit=200)
    return math.log(value / (sigma * math.sqrt(2 * math.pi)))


@pytest.mark.parametrize("c", [0.1, 0.3, 0.5, 0.65, 0.8])
def test_exponents_of_the_sum_of_squares(c):
    """At lengths that no quadrature over all scores reaches: e^300 and e^600 keys."""
    slope = (saddle(c, 600) - saddle(c, 300)) / 300
    assert slope == pytest.approx(many_keys.sum_squares_exponent(c), abs=0.01)


def test_the_two_exponents_meet():
    edge = 1 / math.sqrt(3)
    assert many_keys.sum_squares_exponent(edge) == pytest.approx(-1 / 3)
    assert many_keys.sum_squares_exponent(edge + 1e-9) == pytest.approx(-1 / 3)
    assert many_keys.sum_squares_exponent(1.0) == 0
    for c in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="from 0 to 1"):
            many_keys.sum_squares_exponent(c)


def test_rows_of_one_key_have_no_entropy():
    assert many_keys.causal_entropy(1, 1.0) == float(entropy([1.0])) == 0
