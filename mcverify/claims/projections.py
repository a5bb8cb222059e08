"""The gradient that reaches the projections W_Q and W_K, when unscaled softmax leaves many rows dead."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, relative, theory
from mcverify.attention import rows, score_gradient, scores, softmax
from mcverify.declare import near
from mcverify.statistic import mean, proportion, ratio

INPUT = 512  # the width of the inputs x: q = xW_Q and k = xW_K, for orthonormal columns
SQUARES = ratio.of_degree(2)
TWO_KEYS = grid(law=laws.normal, d_k=[64, 512], keys=2, projection=["query", "key"])


def of_scores(q, k, keys, g, scale):
    """∂L/∂s for each query and key, if each query meets each group of ``keys`` keys."""
    of_s = score_gradient(softmax(rows(q, k, keys, scale)), g)
    return of_s.reshape(len(q), q.shape[1], k.shape[1])


def gram_of_normals(rng, blocks, tokens, width):
    """XX' for X of so many tokens of N(0, I), width ≥ tokens, by Bartlett's decomposition: LL' for
    normal numbers below the diagonal of L, and χ of width, width − 1, … degrees on it."""
    lower = np.tril(rng.standard_normal((blocks, tokens, tokens)), -1)
    place = np.arange(tokens)
    lower[:, place, place] = np.sqrt(rng.chisquare(width - place, (blocks, tokens)))
    return scores(lower, lower)


def unscaled_and_scaled(q, k, keys, d_k, rng, projection="query", power=0.0):
    """‖∂L/∂W‖² of a block with and without the scale, for one upstream gradient."""
    g = rng.standard_normal(rows(q, k, keys).shape)
    own, other = (q, k) if projection == "query" else (k, q)
    inputs = scores(own, own)  # of x, W takes orthonormal directions, as many as q is wide
    if INPUT > d_k:  # the rest knows of no score
        inputs = inputs + gram_of_normals(rng, len(q), q.shape[1], INPUT - d_k)

    def square(scale):
        of_s = of_scores(q, k, keys, g, scale)
        of_s = of_s if projection == "query" else np.swapaxes(of_s, 1, 2)
        products = of_s @ scores(other, other) @ np.swapaxes(of_s, 1, 2)  # of gradients, unscaled
        # ‖Σ x ⊗ g‖² = Σ (x·x')(g·g') over pairs of tokens, which builds no matrix of weights.
        return scale**2 * np.einsum("bij,bij->b", inputs, products)

    return square(d_k**-power), square(d_k**-0.5)


def square_ratio(d_k):
    """Exact for two keys, but for what a score tells of the length of its own input: 1/512 of it."""
    return theory.gradients.two_key_square(d_k, 1.0) / theory.gradients.two_key_square(d_k, d_k**-0.5)


@claim(SQUARES, equals=square_ratio, within=relative(0.08), over=TWO_KEYS, decides="A3 A11 B5 B9 C8",
       controls=grid(power=0.1))
def dead_rows_live_projections(q, k, keys, d_k, rng, projection, power=0.0):
    """Unscaled with two keys, ∂L/∂W_Q and ∂L/∂W_K have a mean square 1.27√d_k times that of scaled ones: 10.1 times at 64 and 28.7 at 512, although many rows are dead."""
    return unscaled_and_scaled(q, k, keys, d_k, rng, projection, power)


@claim(SQUARES, at_most=1, over=TWO_KEYS, decides="A3 A11 B5 B9 C8", expect=Verdict.REFUTED)
def projections_get_no_signal(q, k, keys, d_k, rng, projection):
    """Unscaled, W_Q and W_K get less signal than scaled: the mean square of their gradient is no larger."""
    return unscaled_and_scaled(q, k, keys, d_k, rng, projection)


@claim(proportion, at_least=0.9, over=grid(law=laws.normal, d_k=[64, 512], keys=2, tokens=40),
       decides="A11 B5 B9 C8", controls=grid(tokens=2))
def projections_learn_in_every_batch(q, k, keys, d_k, rng):
    """In at least nine of ten batches of 40 queries that each meet 20 pairs of keys, ∂L/∂W_Q is larger unscaled."""
    unscaled, scaled = unscaled_and_scaled(q, k, keys, d_k, rng)
    return unscaled > scaled


@claim(SQUARES, at_least=lambda d_k: {64: 100, 512: 400}[d_k], over=grid(law=laws.normal, d_k=[64, 512], keys=128),
       decides="A11 B5 B9 C8", controls=grid(power=0.2))
def projections_learn_more_with_many_keys(q, k, keys, d_k, rng, power=0.0):
    """With 128 keys, the gradient of W_Q is over 10 times as large unscaled at d_k = 64 and over 20 times at 512, in RMS."""
    return unscaled_and_scaled(q[:, :64], k, keys, d_k, rng, power=power)


# --- which rows carry it ------------------------------------------------------------------------


def is_close(s, gap=2.0):
    return abs(s[..., 0] - s[..., 1]) < gap


@claim(mean.of_degree(0), equals=lambda d_k: math.erf(1 / math.sqrt(d_k)), within=relative(0.1),
       over=grid(law=laws.normal, d_k=[64, 512], keys=2), decides="A11 B9 C8",
       controls=near.query_scale(0.5))
def rows_of_close_scores_are_few(q, k, keys):
    """Unscaled, the two scores of a row differ by less than 2 in erf(1/√d_k) of the rows: 14 % at 64, 5 % at 512."""
    return is_close(rows(q, k, keys))


@claim(SQUARES, equals=theory.gradients.share_of_close_rows(2.0), within=relative(0.03),
       over=grid(law=laws.normal, d_k=[64, 512], keys=2), decides="A11 B9 C8", controls=grid(scaled=True))
def few_rows_carry_the_gradient(q, k, keys, d_k, rng, scaled=False):
    """Unscaled, these few rows carry 92 % of the mean square of ∂L/∂s, at both widths."""
    s = rows(q, k, keys, d_k**-0.5 if scaled else 1.0)
    of_s = score_gradient(softmax(s), rng.standard_normal(s.shape))
    square = np.einsum("...k,...k->...", of_s, of_s)
    return square * is_close(s), square
