"""Projections by initialised weights in theory: over all weights, over all inputs, and in draws."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from agreement import assert_mean

from mcverify import laws, theory
from mcverify.attention import matched_scores, other_scores
from mcverify.laws import initialisation as init
from mcverify.theory import projections


@pytest.mark.parametrize(("how", "variance"), [
    (init.xavier(), 1), (init.xavier("model", "normal"), 1), (init.xavier("head"), 16 / 9),
    (init.xavier("fused"), 1 / 2), (init.uniform_fan_in(), 1 / 3), (init.gaussian(0.02), 0.2048),
    (init.lecun(), 1), (init.he(), 2), (init.he("uniform"), 2),
], ids=str)
def test_variance_of_coordinates_and_scores_at_512_inputs_and_heads_of_64(how, variance):
    entry = how.variance(512, 64)
    assert projections.coordinate_variance(512, entry) == pytest.approx(variance, rel=1e-14)
    score = projections.score_variance(512, entry, 64) / 64
    assert score == pytest.approx(variance**2, rel=1e-14)
    law = laws.projected(laws.rademacher, how, 512)
    assert theory.dot_variance(law, 64) / 64 == pytest.approx(score)


def all_weights(values, shares, fan_in, d_k):
    """Every (fan_in, d_k) matrix with such entries, and its probability."""
    chosen = np.array(list(itertools.product(range(len(values)), repeat=fan_in * d_k)))
    return (np.array(values)[chosen].reshape(-1, fan_in, d_k),
            np.array(shares)[chosen].prod(axis=1))


NORMAL = [-math.sqrt(3), 0, math.sqrt(3)], [1 / 6, 2 / 3, 1 / 6]  # moments up to the fifth are all


@pytest.mark.parametrize(("values", "shares", "rho"), [
    ([-1, 1], [1 / 2, 1 / 2], 0.0), ([-2, 0, 2], [1 / 8, 3 / 4, 1 / 8], 0.0),
    (*NORMAL, 0.0), (*NORMAL, 0.5)], ids=["coin", "ternary", "normal", "correlated inputs"])
@pytest.mark.parametrize(("fan_in", "d_k"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)])
def test_spread_over_weights_against_all_weights(values, shares, rho, fan_in, d_k):
    w, p = all_weights(values, shares, fan_in, d_k)
    m = 0.7
    cov = m * ((1 - rho) * np.eye(fan_in) + rho)
    gram = np.swapaxes(w, 1, 2) @ cov @ w
    variances = np.einsum("aij,bij->ab", gram, gram)  # rows: W_Q, columns: W_K
    joint = np.outer(p, p)
    v = float(np.square(values) @ np.array(shares))
    mean = float((joint * variances).sum())
    relative = math.sqrt(max(float((joint * variances**2).sum()) / mean**2 - 1, 0.0))
    fourth = float(np.power(values, 4) @ np.array(shares)) / v**2
    assert projections.relative_spread(theory.effective_rank(cov), d_k, fourth) == pytest.approx(
        relative, abs=1e-7)
    if not rho:
        assert mean == pytest.approx(projections.score_variance(fan_in, v, d_k, m), rel=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.2])
@pytest.mark.parametrize("how", [init.lecun(), init.lecun("uniform")], ids=str)
def test_over_seeds_fixed_weights_average_to_the_closed_form(how, rho):
    law = laws.projected(laws.equicorrelated(laws.normal, rho), how, 12)
    fixed = [replace(law, weights=seed) for seed in range(1024)]
    variances = [theory.dot_variance(one, 8) for one in fixed]
    assert_mean(np.array(variances), theory.dot_variance(law, 8))
    assert_mean(np.array([theory.matched_mean(one, 8) for one in fixed]), 0.0)


@pytest.mark.parametrize("how", [init.he(), init.he("uniform")], ids=str)
@pytest.mark.parametrize("tokens", [2, 8])
def test_a_token_scores_itself_with_the_fourth_moment_of_its_length(how, tokens):
    law = laws.projected(laws.uniform, how, 4)
    v = law.weight_variance(3)

    def drawn(blocks):
        q, k = law.draw(np.random.default_rng(7), blocks, tokens, 3)
        s, others = matched_scores(q, k), other_scores(q, k)
        return np.stack([s.mean(axis=1), (s**2).mean(axis=1), (others**2).mean(axis=(1, 2))], 1)

    # Given x, q and k are independent with covariance v‖x‖²·I, and E‖x‖⁴ is 4² + 4(9/5 − 1).
    assert_mean(drawn, [0.0, 3 * v**2 * 19.2, projections.score_variance(4, v, 3)])


def test_at_fixed_weights_a_token_scores_itself_with_a_mean():
    law = laws.projected(laws.uniform, init.lecun(), 8, weights=1)
    w_q, w_k = law.weights_at(4)
    expected = np.trace(w_q.T @ w_k)
    assert theory.matched_mean(law, 4) == pytest.approx(expected)
    q, k = law.draw(np.random.default_rng(8), 4000, 5, 4)
    assert_mean(matched_scores(q, k).mean(axis=1), expected)
    assert_mean(other_scores(q, k).mean(axis=(1, 2)), 0.0)
    crossed = replace(law, shared=False)
    q, k = crossed.draw(np.random.default_rng(8), 4000, 5, 4)
    assert_mean(matched_scores(q, k).mean(axis=1), 0.0)
    assert abs(expected) > 0.3
