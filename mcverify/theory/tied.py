"""Closed forms of scores where a key is tied to its query, or tokens to each other."""

import numpy as np


def correlated_variance(rho: float, fourth_moment: float, d_k: int) -> float:
    """Var(q·k) of a token with itself when k_i = ρq_i + √(1−ρ²) z_i: d_k(1 + ρ²(κ − 2)).

    Coordinates have mean 0, variance 1 and fourth moment κ. In q_i k_i = ρq_i² + √(1−ρ²) q_i z_i
    the two terms are uncorrelated, with variances ρ²(κ − 1) and 1 − ρ². ρ = 1 is q = k; the normal
    law, κ = 3, has d_k(1 + ρ²).

    >>> correlated_variance(0.5, 3.0, 64), correlated_variance(1.0, 1.0, 64)
    (80.0, 0.0)
    """
    return d_k * (1 + rho**2 * (fourth_moment - 2))


def random_sign_variance(fourth_moment: float, d_k: int) -> float:
    """Var(q·k) of a token with itself when k = ±q by a fair coin: E‖q‖⁴ = d_k(d_k + κ − 1).

    Coordinates are iid with mean 0 and variance 1. Independent q and k have the same covariances
    and a variance of d_k: uncorrelated is not enough.

    >>> random_sign_variance(3.0, 64), random_sign_variance(1.0, 8)
    (4224.0, 64.0)
    """
    return d_k * (d_k + fourth_moment - 1)


def topic_mean(strength: float, d_k: int) -> float:
    """E q·k of any two tokens of a block with a topic: s·d_k, for coordinates of variance 1.

    >>> topic_mean(0.25, 64)
    16.0
    """
    return strength * d_k


def topic_variance(strength: float, fourth_moment: float, d_k: int) -> float:
    """Var(q·k) of any two tokens of a block with a topic, over blocks: d_k(1 + s²(κ − 2)).

    q_i k_i = (1−s)zz' + √(s(1−s)) c(z + z') + s c² has uncorrelated terms of variances (1−s)²,
    2s(1−s) and s²(κ − 1): that of a pair with correlation s. Normal coordinates have d_k(1 + s²).

    >>> topic_variance(0.5, 3.0, 64)
    80.0
    """
    return correlated_variance(strength, fourth_moment, d_k)


def topic_block_variance(strength: float, fourth_moment: float, tokens: int, d_k: int) -> float:
    """Var of the mean of all tokens² scores of a block: d_k((1−s)²/t² + 2s(1−s)/t + s²(κ − 1)).

    The mean score is that of mean query and mean key, whose own parts have variance (1 − s)/t.
    What is shared does not average out: s²(κ − 1)d_k remains with any number of tokens.

    >>> topic_block_variance(0.0, 3.0, 8, 64), topic_block_variance(1.0, 3.0, 8, 64)
    (1.0, 128.0)
    """
    own = (1 - strength) / tokens
    return d_k * (own**2 + 2 * strength * own + strength**2 * (fourth_moment - 1))


def memory_block_variance(rho: float, tokens: int, d_k: int) -> float:
    """Var of the mean of all tokens² scores of a block whose tokens have correlation ρ^lag: d_k v².

    v = Σ_tu ρ^abs(t−u)/tokens² = (1 + 2Σ_l (1 − l/tokens)ρ^l)/tokens is the variance of a mean
    query's coordinate. A single pair keeps variance d_k at any lag, since its q and k are
    independent; two scores are correlated by ρ^(lag of their q + lag of their k).

    >>> memory_block_variance(0.0, 8, 64), memory_block_variance(1.0, 8, 64)
    (1.0, 64.0)
    """
    lag = np.arange(1, tokens)
    v = (1 + 2 * float((1 - lag / tokens) @ rho**lag)) / tokens
    return d_k * v**2
