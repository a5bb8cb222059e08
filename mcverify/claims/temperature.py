"""Temperatures that are learned: a gradient step on T moves the entropy where it is wanted."""

import numpy as np

from mcverify import claim, grid, laws, relative
from mcverify.attention import entropy, scores, softmax, softmax_entropy, variance_under
from mcverify.claims.ranges import ENTROPY
from mcverify.statistic import proportion

KEYS = 16


@claim(proportion, at_least=0.99, over=grid(law=laws.STANDARD[::3], d_k=[8, 64], tokens=KEYS),
       decides="B16", controls=grid(sign=-1.0) + grid(uniform=True))
def entropy_rises_with_temperature(q, k, sign=1.0, uniform=False):
    """∂H/∂ln T = Var_p(s)/T² under the weights p, not under equal ones, is what a difference quotient says: a gradient knows which way to turn T."""
    s, T, h = scores(q[:, :1], k)[:, 0], np.sqrt(q.shape[-1]), 1e-4
    p = np.full_like(s, 1 / KEYS) if uniform else softmax(s / T)
    exact = sign * variance_under(p, s / T)
    quotient = (softmax_entropy(s / (T * np.exp(h))) - softmax_entropy(s / (T * np.exp(-h)))) / (2 * h)
    return (exact >= 0) & np.isclose(exact, quotient, rtol=1e-4, atol=1e-9)


def learned(s, target, steps):
    """One T a block after so many steps of gradient descent on (mean H − target)²/2 in ln T."""
    log_T = np.zeros((len(s), 1, 1))
    for _ in range(steps):
        cooled = s / np.exp(log_T)
        p = softmax(cooled)
        slope = variance_under(p, cooled).mean(axis=1)  # ∂H/∂ln T
        step = (entropy(p).mean(axis=1) - target) * slope / (slope**2 + 0.1)
        log_T -= np.clip(step, -0.5, 0.5)[:, None, None]
    return np.exp(log_T)


@claim(
    ENTROPY,
    equals=lambda keys, share: share * np.log(keys),
    within=relative(0.02),
    over=grid(law=laws.normal, d_k=[8, 64], keys=KEYS, tokens=4 * KEYS, share=[0.8, 0.5]),
    decides="B16",
    controls=grid(steps=1),
)
def learned_temperature_finds_an_entropy(q, k, keys, share, steps=12):
    """Gradient descent on a temperature that 64 rows share, from T = 1, brings the mean entropy of rows over other keys to a target, half or four fifths of ln n."""
    seen, unseen = scores(q, k[:, :keys]), scores(q, k[:, keys:2 * keys])
    return softmax_entropy(unseen / learned(seen, share * np.log(keys), steps))
