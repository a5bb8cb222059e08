"""Tokens of a block that depend on each other, and how its scores then vary together."""

import itertools
import math

import numpy as np
import pytest
from agreement import assert_mean
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify import laws, theory
from mcverify.attention import matched_scores, other_scores, scores
from mcverify.laws.tokens_tied import remember

BLOCKS = 2**15


@given(st.floats(-1, 1), st.integers(1, 12))
def test_memory_remembers_by_lag_and_forgets_nothing_of_its_variance(rho, tokens):
    x = remember(np.eye(tokens), rho)  # token t is x[t] @ z
    lag = np.abs(np.arange(tokens)[:, None] - np.arange(tokens))
    np.testing.assert_allclose(x @ x.T, rho**lag, atol=1e-12)
    v = np.sum(x.mean(axis=0) ** 2)
    assert theory.memory_block_variance(rho, tokens, 7) == pytest.approx(7 * v**2, abs=1e-12)


def test_memory_keeps_the_variance_of_a_pair_at_every_lag():
    law, d_k, rho = laws.memory(laws.uniform, 0.7), 4, 0.7
    s = scores(*law.draw(np.random.default_rng(7), BLOCKS, 5, d_k))
    assert_mean(s, 0.0)
    assert_mean(s**2, theory.dot_variance(law, d_k))
    assert_mean(s[:, 0, 1] * s[:, 2, 4], d_k * rho**2 * rho**3)
    assert_mean(s.mean(axis=(1, 2)) ** 2, theory.memory_block_variance(rho, 5, d_k))


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_topic_enumerated_with_coins(s):
    # Two tokens and one coordinate: z₁ z₂ z'₁ z'₂ c. Coordinates of a law are independent.
    z = np.array([*itertools.product([-1.0, 1.0], repeat=5)])
    q = math.sqrt(1 - s) * z[:, :2] + math.sqrt(s) * z[:, 4:]
    k = math.sqrt(1 - s) * z[:, 2:4] + math.sqrt(s) * z[:, 4:]
    pairs = q[:, :, None] * k[:, None, :]
    assert pairs.mean(axis=0) == pytest.approx(theory.topic_mean(s, 1))
    assert pairs.var(axis=0) == pytest.approx(theory.topic_variance(s, 1.0, 1), abs=1e-12)
    assert pairs.mean(axis=(1, 2)).var() == pytest.approx(
        theory.topic_block_variance(s, 1.0, 2, 1), abs=1e-12)


@pytest.mark.parametrize("base", [laws.normal, laws.uniform], ids=str)
@pytest.mark.parametrize("d_k", [1, 6])
def test_topic_ties_a_query_to_every_key_alike(base, d_k):
    s, tokens = 0.6, 3
    law = laws.topic(base, s)
    mean = theory.topic_mean(s, d_k)
    variance = theory.topic_variance(s, base.fourth_moment, d_k)
    assert theory.matched_mean(law, d_k) == pytest.approx(mean)
    assert theory.matched_variance(law, d_k) == pytest.approx(variance)

    def drawn(blocks):
        q, k = law.draw(np.random.default_rng(8), blocks, tokens, d_k)
        own, other = matched_scores(q, k)[:, 0], other_scores(q, k)[:, 0, 0]
        block = scores(q, k).mean(axis=(1, 2))
        return np.stack([own, other, *((x - mean) ** 2 for x in (own, other, block))], axis=1)

    assert_mean(drawn, [mean, mean, variance, variance,
                        theory.topic_block_variance(s, base.fourth_moment, tokens, d_k)])


def test_topics_of_different_blocks_are_independent():
    q, k = laws.topic(laws.normal, 1.0).draw(np.random.default_rng(9), 5000, 2, 3)
    np.testing.assert_array_equal(q, k)
    np.testing.assert_array_equal(q[:, 0], q[:, 1])
    assert_mean(q[:-1:2, 0] * q[1::2, 0], 0.0)


def test_shared_query_is_one_query_for_all_keys_of_a_block():
    law, tokens, d_k = laws.shared_query(laws.normal), 4, 6
    q, k = law.draw(np.random.default_rng(10), BLOCKS, tokens, d_k)
    np.testing.assert_array_equal(q, np.repeat(q[:, :1], tokens, axis=1))
    s = scores(q, k)
    assert_mean(s**2, d_k)
    assert_mean(s.mean(axis=(1, 2)) ** 2, d_k / tokens)  # not d_k/tokens²
    assert len(np.unique(k[..., 0])) == k[..., 0].size


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.memory(laws.normal, 2), "between -1 and 1"),
    (lambda: laws.memory(laws.iid(stats.norm(1), raw=True), 0.5), "mean 0 and a variance"),
    (lambda: laws.topic(laws.student_t(2), 0.5), "mean 0 and a variance"),
    (lambda: laws.topic(laws.normal, 1.5), "between 0 and 1"),
    (lambda: laws.shared_query(laws.identical(laws.normal)), "belongs to one key"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
