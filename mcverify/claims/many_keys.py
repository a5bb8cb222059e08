"""Many keys: what an exact match is worth, what the top keys hold, and what a causal mask changes."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import causal_rows, scores, softmax, softmax_entropy, top_share
from mcverify.attention.vectors import rms_norm
from mcverify.statistic import exact, mean

QUERIES = 8  # of a block are used: they share its keys


def own_weight(q, power):
    """What some queries get as keys, when all queries are keys as well, of ‖q‖² = d_k."""
    x = rms_norm(q)
    p = softmax(scores(x[:, :QUERIES], x, x.shape[-1] ** -power))
    return p.diagonal(axis1=1, axis2=2)


def among(tokens):
    """The number of keys that do not match."""
    return tokens - 1


# A range of 1 asks for 2048 blocks, which are many at a width of 64.
OWN = mean.within(0, lambda d_k: 1.0 if d_k < 64 else None).of_degree(0)


@claim(OWN, equals=lambda tokens, d_k: theory.many_keys.match_weight(among(tokens), d_k, d_k**-0.5),
       within=absolute(0.02), decides="C9", controls=grid(tokens=2 * 33 + 1) + grid(power=0.45),
       over=grid(law=laws.normal, d_k=16, tokens=34) + grid(law=laws.normal, d_k=36, tokens=246)
       + grid(law=laws.normal, d_k=64, tokens=[129, 1809]))
def match_is_outvoted(q, power=0.5):
    """Divided by √d_k, a key that equals the query has the weight 1/(1 + n e^(1/2 − √d_k)) among n others: 1/2 at 33, 245 and 1808 of them for widths of 16, 36 and 64."""
    return own_weight(q, power)


@claim(mean.within(0, 1), at_most=0.05, over=grid(law=laws.normal, d_k=[16, 36, 64], tokens=129),
       decides="C9 B7", controls=grid(power=0.5))
def match_is_lost_divided_by_the_width(q, power=1.0):
    """Divided by d_k, a key that equals the query has less than 5 % of the weight among 128 others."""
    return own_weight(q, power)


@claim(mean.within(0, 1), at_least=0.5, over=grid(law=laws.normal, d_k=16, tokens=[129, 257]),
       decides="C9", expect=Verdict.REFUTED)
def match_always_wins(q, power=0.5):
    """Divided by √d_k, a key that equals the query has at least half of the weight however many others there are."""
    return own_weight(q, power)


# --- what the top keys hold ---------------------------------------------------------------------

INDEPENDENT = grid(law=laws.normal, d_k=1, keys=[1000, 8000], share=[0.1, 0.61], sigma=1.0)


@claim(mean.within(0, 1), equals=lambda share, sigma: theory.many_keys.top_share(share, sigma),
       within=absolute(0.015), decides="C10",
       over=INDEPENDENT + grid(law=laws.normal, d_k=1, keys=8000, share=0.1, sigma=0.5),
       controls=grid(sigma=1.2) + grid(share=0.12))
def top_keys_hold_a_share(q, keys, share, sigma):
    """The top share f of 1000 or 8000 keys holds Φ(Φ⁻¹(f) + σ) of the weight: at unit variance the top tenth holds 39 %, and 90 % needs 61 % of the keys."""
    return top_share(softmax(sigma * q.reshape(len(q), -1, keys)), share)


@claim(mean.within(0, 1), equals=lambda share: theory.many_keys.top_share(share, 1.0),
       within=absolute(0.02), over=grid(law=laws.normal, d_k=16, tokens=500, share=[0.1, 0.61]),
       decides="C10", controls=grid(power=0.4))
def top_keys_of_a_query_hold_a_share(q, k, d_k, share, power=0.5):
    """The top tenth, and the top 61 %, of 500 keys hold as much for q·k/√d_k at d_k = 16: 39 and 90 %."""
    return top_share(softmax(scores(q[:, :QUERIES], k, d_k**-power)), share)


# --- a causal mask ------------------------------------------------------------------------------


def causal_entropy(tokens):
    return theory.many_keys.causal_entropy(tokens, 1.0)


# At 512 tokens a block is so much work that the 4096 blocks of a range are too many.
CAUSAL = mean.within(0, lambda tokens: math.log(tokens) if tokens < 512 else None).of_degree(0)
POSITIONS = 32  # of a block: equally spaced from a random one on, so that each is as likely


def entropy_of_positions(q, k, d_k, rng, causal=True):
    blocks, tokens, _ = q.shape
    if not causal:
        return softmax_entropy(scores(q[:, :POSITIONS], k, d_k**-0.5))
    apart = tokens // POSITIONS
    positions = rng.integers(apart, size=(blocks, 1)) + apart * np.arange(POSITIONS)
    return softmax_entropy(causal_rows(q, k, d_k**-0.5, positions))


@claim(CAUSAL, equals=causal_entropy, within=relative(0.02), decides="C11",
       over=grid(law=laws.normal, d_k=8, tokens=[128, 512]), controls=grid(causal=False))
def causal_mean_entropy(q, k, d_k, rng, causal=True):
    """Under a causal mask the mean entropy over 128 and 512 positions is 3.43 and 4.76, as quadrature over rows of all lengths says."""
    return entropy_of_positions(q, k, d_k, rng, causal)


@claim(exact, equals=lambda tokens: math.log(tokens) - 1.5, within=absolute(0.03), decides="C11",
       over=grid(tokens=[512, 4096, 65536]), controls=grid(sigma=0.9))
def causal_entropy_formula(tokens, sigma=1.0):
    """At unit variance the mean entropy over n causal positions is close to ln n − 3/2: 4.76 of 6.24 at 512."""
    return theory.many_keys.causal_entropy(tokens, sigma)


@claim(CAUSAL, equals=lambda tokens: math.log(tokens) - 0.5, within=relative(0.05),
       over=grid(law=laws.normal, d_k=8, tokens=128), decides="C11", expect=Verdict.REFUTED)
def causal_rows_are_like_full_ones(q, k, d_k, rng):
    """Under a causal mask the mean entropy is that of full rows, ln n − 1/2."""
    return entropy_of_positions(q, k, d_k, rng)


# --- how Σp² falls with n ------------------------------------------------------------------------


def local_power(c, n):
    """The power of n that E Σp² follows from n/4 to 4n, at σ = c√(2 ln n)."""
    few, many = (math.log(theory.softmax.sum_squares(round(m), c * math.sqrt(2 * math.log(m))))
                 for m in (n / 4, 4 * n))
    return (many - few) / math.log(16)


@claim(exact, equals=lambda c: theory.many_keys.sum_squares_exponent(c), within=absolute(0.012),
       over=grid(c=[0.2, 0.3, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9]), decides="C15", controls=grid(c=0.25))
def sum_of_squares_falls_as_a_power(c):
    """With σ = c√(2 ln n), E Σp² falls as n^−(1 − 2c²) up to c = 1/√3 and as n^−((1 − c²)²/4c²) from there to 1, extrapolated in 1/ln n."""
    return 2 * local_power(c, 10**11) - local_power(c, 10**5.5)  # ln 10^11 = 2 ln 10^5.5


@claim(exact, equals=lambda c: -(1 - 2 * c**2), within=absolute(0.012), over=grid(c=[0.65, 0.7, 0.8]),
       decides="C15", expect=Verdict.REFUTED)
def sum_of_squares_has_one_power(c):
    """E Σp² falls as n^−(1 − 2c²) beyond c = 1/√3, too, as if typical rows carried it."""
    return 2 * local_power(c, 10**11) - local_power(c, 10**5.5)
