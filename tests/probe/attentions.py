"""Attention functions in NumPy with every fault, and every rounding, that a probe should see."""

import math

import numpy as np

from mcverify.attention import bfloat16
from mcverify.attention.vectors import rms_norm, unit_norm

ROUND = {
    "float64": lambda x: np.asarray(x, np.float64),
    "float32": lambda x: np.asarray(x, np.float32).astype(np.float64),
    "float16": lambda x: np.asarray(x, np.float16).astype(np.float64),
    "bfloat16": lambda x: bfloat16(np.asarray(x, np.float32)).astype(np.float64),
}


def attention(
    scale=0.125, *, causal=False, window=None, hide=-np.inf, bias=None, scale_bias=False, cap=None,
    cap_first=True, normalise=None, by_position=None, key_head=None, value_head=None, sink=None,
    values=1.0, mask_after=False, dropout=0.0, noise=0.0, added=0.0, bend=None,
    out="float64", compute=None, store=None, where="product", exps=None, weights=None,
):
    """A function of q, k, v whose steps are those asked for; softmax(scale·q·kᵀ)v without any.

    out rounds outputs and weights, compute logits and exponentials (the same type if not given),
    store the scale; where says what is scaled: "product", "q" or "both". exps and weights may name
    other types for the exponentials, and for the weights before the outputs.
    """
    compute, store = compute or out, store or compute or out
    exp, weight = ROUND[exps or compute], ROUND[weights or out]
    drawn = np.random.default_rng(1)
    step = ROUND[compute]

    def attend(q, k, v):
        heads, kv_heads, tokens, keys = q.shape[1], k.shape[1], q.shape[2], k.shape[2]
        block = np.arange(heads) // (heads // kv_heads)
        q, k, v = ROUND[out](q), ROUND[out](k), ROUND[out](v)
        k = k[:, block if key_head is None else key_head]
        v = v[:, block if value_head is None else value_head]
        for side in normalise or ():
            norm = {"q": rms_norm, "k": rms_norm, "Q": unit_norm, "K": unit_norm}[side]
            q, k = (step(norm(q)), k) if side in "qQ" else (q, step(norm(k)))
        s = np.broadcast_to(np.asarray(scale, np.float64), (heads,))[:, None, None]
        if by_position is not None:
            s = s * by_position(np.arange(1.0, tokens + 1))[:, None]
        added_bias = 0.0 if bias is None else step(bias)
        logits = scaled(q, k, s, step, ROUND[store], where)
        if added or noise:
            logits = step(logits + added + noise * drawn.standard_normal(logits.shape))
        if bend is not None:
            logits = step(bend(logits))
        if bias is not None:
            logits = step(logits + (step(s * added_bias) if scale_bias else added_bias))
        ahead = np.arange(keys) - np.arange(tokens)[:, None]
        hidden = (ahead > 0) if causal else np.zeros(ahead.shape, bool)
        if window is not None:
            hidden |= np.abs(ahead) >= window
        if cap is not None and cap_first:
            logits = step(cap * step(np.tanh(step(logits / cap))))
        if not mask_after:
            logits = np.where(hidden, hide, logits)
        if cap is not None and not cap_first:
            logits = step(cap * step(np.tanh(logits / cap)))
        top = logits.max(axis=-1, keepdims=True)
        top = top if sink is None else np.maximum(top, sink)
        e = exp(np.exp(exp(logits - top)))
        total = e.sum(axis=-1, keepdims=True) + (0 if sink is None else np.exp(sink - top))
        p = weight(exp(e / exp(total)))
        if mask_after:
            p = np.where(hidden, 0, p)
        if dropout:
            p = p * (drawn.random(p.shape) >= dropout) / (1 - dropout)
        return ROUND[out](values * (p @ v))
    return attend


def scaled(q, k, s, step, stored, where):
    k = np.swapaxes(k, -1, -2)
    if where == "q" or (where == "both" and s.shape[1] > 1):
        return step(step(q * stored(s)) @ k)
    if where == "both":
        root = stored(np.sqrt(s))
        return step(step(q * root) @ step(k * root))
    return step(step(q @ k) * stored(s))


def alibi(slopes, tokens):
    """The bias −m·|i − j| of each head: (heads, tokens, tokens)."""
    distance = np.abs(np.arange(tokens) - np.arange(tokens)[:, None])
    return -np.asarray(slopes)[:, None, None] * distance


ROOT_64 = 1 / math.sqrt(64)
