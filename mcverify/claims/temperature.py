"""Temperatures that are learned: a gradient step on T moves the entropy where it is wanted."""

import numpy as np

from mcverify import claim, grid, laws
from mcverify.attention import entropy, scores, softmax
from mcverify.statistic import proportion

KEYS = 16


def row(q, k):
    """One row a block, over its first 16 keys."""
    return scores(q[:, :1], k[:, :KEYS])[:, 0]


def slope_in_log_temperature(p, s, temperature):
    """∂H/∂ln T = Var_p(s)/T²: the variance of the scores under their own weights."""
    first = np.einsum("bi,bi->b", p, s)
    return (np.einsum("bi,bi->b", p, s * s) - first**2) / temperature**2


@claim(proportion, at_least=0.99, over=grid(law=laws.STANDARD[::3], d_k=[8, 64], tokens=KEYS),
       decides="B16", controls=grid(sign=-1.0))
def entropy_rises_with_temperature(q, k, sign=1.0):
    """∂H/∂ln T = Var_p(s)/T² is never negative, and is what a difference quotient says: a gradient knows which way to turn T."""
    s, T, h = row(q, k), np.sqrt(q.shape[-1]), 1e-4
    exact = sign * slope_in_log_temperature(softmax(s / T), s, T)
    quotient = (entropy(softmax(s / (T * np.exp(h)))) - entropy(softmax(s / (T * np.exp(-h))))) / (2 * h)
    return (exact >= 0) & np.isclose(exact, quotient, rtol=1e-4, atol=1e-9)


def learned(s, target, steps):
    """T after so many steps of gradient descent on (H − target)²/2 in ln T."""
    log_T = np.full(len(s), 0.5 * np.log(s.shape[-1]))
    for _ in range(steps):
        p = softmax(s / np.exp(log_T)[:, None])
        slope = slope_in_log_temperature(p, s, np.exp(log_T))
        log_T -= np.clip((entropy(p) - target) * slope / (slope**2 + 0.1), -0.5, 0.5)
    return np.exp(log_T)


@claim(
    proportion,
    at_least=0.98,
    over=grid(law=laws.normal, d_k=[8, 64], tokens=KEYS, share=[0.5, 0.8]),
    decides="B16",
    controls=grid(steps=1),
)
def learned_temperature_finds_an_entropy(q, k, share, steps=80):
    """Gradient descent on a temperature brings the entropy of a row to a target, half or four fifths of ln n, from unscaled scores."""
    s, target = row(q, k), share * np.log(KEYS)
    T = learned(s, target, steps)
    return abs(entropy(softmax(s / T[:, None])) - target) < 0.02


@claim(proportion, at_least=0.98, over=grid(law=laws.normal, d_k=64, tokens=KEYS), decides="B16 A19",
       controls=grid(factor=3.8))
def learned_temperature_undoes_a_scale(q, k, factor=4.0):
    """The temperature that a row learns follows the size of its scores: queries 4 times as long get 4 times the temperature."""
    s, target = row(q, k), 0.8 * np.log(KEYS)
    return abs(learned(factor * s, target, 80) / learned(s, target, 80) - 4) < 0.1
