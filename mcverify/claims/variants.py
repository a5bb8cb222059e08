"""Attention that models use beside softmax as it is: sigmoid, scalable, differential, soft-capped."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import (
    differential_weights,
    entropy,
    rows,
    scalable_softmax,
    sigmoid_weights,
    soft_cap,
    softmax,
    softmax_entropy,
    sum_squares,
)
from mcverify.claims.ranges import ENTROPY
from mcverify.statistic import exact, mean, variance

NORMAL = laws.normal


def independent(q, keys):
    """Independent N(0, 1) scores, of the queries' own coordinates."""
    return q.reshape(len(q), -1, keys)


# --- sigmoid attention ---------------------------------------------------------------------------


def at_most_of_totals(tokens, more=0.0, sigma=1.0):
    """A weight is at most e^(s + more)/n, whose square has the mean e^(2σ² + 2·more)/n²; rows are independent."""
    return math.exp(2 * sigma**2 + 2 * more) / tokens


TOTAL = mean.with_variance(at_most_of_totals)


@claim(TOTAL, equals=lambda keys, more: theory.variants.sigmoid_total(keys, 1.0, more - math.log(keys)),
       within=relative(0.02), decides="C13", controls=grid(sigma=1.1),
       over=grid(law=NORMAL, d_k=1, keys=[128, 8192], more=[0.0, -0.5]))
def sigmoid_weights_sum_to(q, keys, more, sigma=1.0):
    """With a bias of −ln n, sigmoid weights of n unit-variance scores sum to 1.60 at 128 keys and 1.65, or e^(1/2), at 8192; with −ln n − 1/2 to about 1."""
    return sigmoid_weights(sigma * independent(q, keys), more - math.log(keys)).sum(axis=-1)


@claim(exact, equals=math.exp(0.5), within=relative(0.001), over=grid(keys=[8192, 10**6]), decides="C13",
       controls=grid(more=-0.5))
def sigmoid_total_limit(keys, more=0.0):
    """That total tends to e^(1/2), the mean of e^s."""
    return theory.variants.sigmoid_total(keys, 1.0, more - math.log(keys))


@claim(TOTAL, equals=1, within=relative(0.02), over=grid(law=NORMAL, d_k=1, keys=[128, 8192]),
       decides="C13", expect=Verdict.REFUTED)
def sigmoid_weights_sum_to_one(q, keys):
    """With a bias of −ln n, sigmoid weights of unit-variance scores sum to 1 as those of softmax do."""
    return sigmoid_weights(independent(q, keys)).sum(axis=-1)


# --- scalable softmax ----------------------------------------------------------------------------

USUAL = 0.43  # the strength that its paper finds in trained models


@claim(ENTROPY, equals=lambda keys: theory.softmax.entropy(keys, USUAL * math.log(keys)),
       within=relative(0.04), over=grid(law=NORMAL, d_k=1, keys=[128, 4096]), decides="C16",
       controls=grid(strength=0.5))
def scalable_softmax_entropy(q, keys, strength=USUAL):
    """Scalable softmax of strength 0.43 has an entropy of 3.09 at 128 and of 3.50 at 4096 unit-variance scores."""
    return entropy(scalable_softmax(independent(q, keys), strength))


def longest(strength):
    """ln n where the entropy under scalable softmax is largest."""
    logs = np.arange(4, 27.5, 0.25)
    return logs[np.argmax([theory.softmax.entropy(round(math.exp(x)), strength * x) for x in logs])]


@claim(exact, equals=lambda strength: strength**-2, within=relative(0.12), over=grid(strength=[0.2, 0.25]),
       decides="C16", controls=grid(equals=2 / 0.2**2))
def scalable_softmax_turns_over(strength):
    """Scalable softmax of strength s spreads up to about n = e^(1/s²) and sharpens from there: E H is close to ln n − (s ln n)²/2."""
    return longest(strength)


@claim(exact, equals=lambda strength: 2 * strength**-2, within=relative(0.12),
       over=grid(strength=[0.3, 0.35]), decides="C16", expect=Verdict.REFUTED)
def scalable_softmax_turns_over_where_it_freezes(strength):
    """Scalable softmax of strength s turns over where its scores freeze, at n = e^(2/s²)."""
    return longest(strength)


@claim(exact, at_most=1, over=grid(strength=[USUAL, 0.5]), decides="C16", controls=grid(strength=0.3))
def scalable_softmax_sharpens_in_the_end(strength):
    """At strengths of 0.43 and more, scalable softmax has a smaller entropy at 2^24 keys than at 128."""
    many, few = (theory.softmax.entropy(n, strength * math.log(n)) for n in (2**24, 128))
    return many / few


@claim(exact, equals=lambda c: 1 - c**2, within=absolute(0.012), over=grid(c=[0.3, 0.5, 0.7]),
       decides="C16", controls=grid(c=0.4))
def root_log_power_never_turns(c):
    """Multiplied by c√(2 ln n) instead, with c < 1, scores keep an entropy that grows as (1 − c²) ln n."""
    def slope(n):
        few, many = (theory.softmax.entropy(round(m), c * math.sqrt(2 * math.log(m)))
                     for m in (n / 4, 4 * n))
        return (many - few) / math.log(16)

    return slope(1e11)


# --- differential attention ----------------------------------------------------------------------


def differential(q, k, keys, d_k, strength, shared):
    """Weights of two halves of the coordinates, as two heads, or twice of the first."""
    half = d_k // 2
    first, second = (rows(q[..., part], k[..., part], keys, half**-0.5)
                     for part in (slice(half), slice(half, None)))
    return differential_weights(first, first if shared else second, strength)


@claim(mean.of_degree(0), equals=lambda keys, d_k, strength:
           keys * theory.variants.differential_sum_squares(keys, 1.0, strength, d_k / 2),
       within=relative(0.04), decides="C17", controls=grid(shared=True) + grid(strength=0.2),
       over=grid(law=NORMAL, d_k=[16, 128], keys=128, strength=0.8)
       + grid(law=NORMAL, d_k=128, keys=128, strength=0.0))
def differential_attention_adds_noise(q, k, keys, d_k, strength, shared=False):
    """At initialisation the two maps of differential attention cancel nothing but their mean: n E Σw² = (1 + λ²) n E Σp² − 2λ, which is 2.68 at λ = 0.8 and 2.61 for one map."""
    return keys * sum_squares(differential(q, k, keys, d_k, strength, shared))


@claim(mean.of_degree(0), at_least=50, over=grid(law=NORMAL, d_k=128, keys=128, strength=0.8), decides="C17",
       controls=grid(strength=0.5) + grid(shared=True))
def differential_attention_is_noisy_for_its_weight(q, k, keys, d_k, strength, shared=False):
    """At λ = 0.8, n Σw² is over 50 times the squared total weight (1 − λ)², where for softmax it is 2.6 times."""
    w = differential(q, k, keys, d_k, strength, shared)
    return keys * sum_squares(w) / w.sum(axis=-1) ** 2


@claim(mean.of_degree(0), at_most=1, over=grid(law=NORMAL, d_k=128, keys=128, strength=0.8), decides="C17",
       expect=Verdict.REFUTED)
def differential_attention_removes_noise(q, k, keys, d_k, strength):
    """At initialisation differential attention has less noise than one of its maps: Σw² is smaller than Σp²."""
    one = softmax(rows(q[..., :d_k // 2], k[..., :d_k // 2], keys, (d_k // 2) ** -0.5))
    return sum_squares(differential(q, k, keys, d_k, strength, shared=False)) / sum_squares(one)


# --- soft caps -----------------------------------------------------------------------------------


CAPPED = variance.with_variance(
    lambda tokens, sigma, cap: theory.variants.capped_square_variance(sigma, cap) / tokens)


@claim(CAPPED, equals=lambda sigma, cap: theory.variants.capped_variance(sigma, cap),
       within=relative(0.02), decides="C19", controls=grid(hard=True),
       over=grid(law=NORMAL, d_k=1, tokens=64, sigma=1.0, cap=[0.5, 1.0, 2.0, 5.0, 50.0])
       + grid(law=NORMAL, d_k=1, tokens=64, sigma=8.0, cap=[5.0, 50.0]))
def soft_capped_variance(q, sigma, cap, hard=False):
    """A soft cap c·tanh(s/c) leaves unit-variance scores a variance of 0.69 at c = 2, of 0.93 at 5 and of 1.00 at 50, which is Gemma 2's."""
    s = sigma * q
    return np.clip(s, -cap, cap) if hard else soft_cap(s, cap)


@claim(ENTROPY, equals=lambda keys, sigma, cap: theory.variants.capped_entropy(keys, sigma, cap),
       within=relative(0.01), decides="C19", controls=grid(cap=4.0),
       over=grid(law=NORMAL, d_k=1, keys=128, sigma=[1.0, 8.0], cap=[1.0, 2.0])
       + grid(law=NORMAL, d_k=1, keys=128, sigma=1.0, cap=5.0))
def soft_capped_entropy(q, keys, sigma, cap):
    """Under a soft cap of 2, softmax over 128 keys has an entropy of 4.55 at unit variance and of 4.24 at a deviation of 8, where it would have 0.66 without."""
    return softmax_entropy(soft_cap(sigma * independent(q, keys), cap))


@claim(ENTROPY, equals=lambda keys, cap: math.log(keys) - cap * math.tanh(cap) + math.log(math.cosh(cap)),
       within=relative(0.01), decides="C19", controls=grid(sigma=1.0),
       over=grid(law=NORMAL, d_k=1, keys=512, cap=[1.0, 2.0]))
def soft_capped_rows_never_freeze(q, keys, cap, sigma=1000.0):
    """However widely scores spread, a soft cap leaves an entropy of ln n − c·tanh c + ln cosh c, which is that of coins of ±c."""
    return softmax_entropy(soft_cap(sigma * independent(q, keys), cap))
