"""What initialised projections make of inputs of unit variance: the variance of q, k and the score."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import matched_scores, other_scores
from mcverify.declare import near
from mcverify.laws import initialisation as init
from mcverify.statistic import mean, std, variance

MODEL = 512  # the width of the inputs; 8 heads of 64


def projected(initialisation, base=laws.normal, **others):
    return laws.projected(base, initialisation, MODEL, **others)


# With weights drawn anew for each block, a block is one initialisation and some of its tokens.
SQUARE, HEAD, FUSED = (projected(init.xavier(matrix)) for matrix in ("model", "head", "fused"))
OTHERS = [projected(init.uniform_fan_in()), projected(init.gaussian(0.02)), projected(init.lecun())]
BERT = laws.projected(laws.normal, init.gaussian(0.02), 768)


def scaled_score_variance(law, d_k):
    """Var(q·k/√d_k) over weights and tokens."""
    return theory.projections.score_variance(law.width, law.weight_variance(d_k), d_k) / d_k


@claim(
    variance,
    equals=lambda law, d_k: theory.projections.coordinate_variance(law.width, law.weight_variance(d_k)),
    within=relative(0.02),
    over=grid(law=[SQUARE, HEAD, FUSED, *OTHERS], d_k=64),
    decides="B1 A17",
    controls=near.law(projected(init.xavier("model"), base=laws.shifted(laws.normal, 0.3))) + near.law(HEAD),
)
def initial_variance(q):
    """A projection of unit-variance inputs has coordinates of variance fan_in·Var W: 1 square, 1.78 for one head's own matrix, 1/2 fused."""
    return q


@claim(
    variance,
    equals=scaled_score_variance,
    within=relative(0.03),
    over=grid(law=[SQUARE, HEAD, FUSED, *OTHERS], d_k=64),
    decides="B1 A17",
    controls=near.law(laws.independent(SQUARE, HEAD)) + near.law(FUSED),
)
def initial_score_variance(q, k, d_k):
    """Var(q·k/√d_k) is (fan_in·Var W)² at initialisation: 1 square, 3.16 for one head's own matrix, 1/4 fused, 1/9 for uniform(±1/√fan_in)."""
    return other_scores(q, k, scale=d_k**-0.5)


@claim(
    variance,
    equals=1,
    within=relative(0.05),
    over=grid(law=[HEAD, FUSED, *OTHERS[:2]], d_k=64),
    decides="B1",
    expect=Verdict.REFUTED,
)
def common_initialisations_give_unit_variance(q):
    """Under Xavier for a head's own or a fused matrix, PyTorch's uniform(±1/√fan_in) and N(0, 0.02²), coordinates of q have variance 1."""
    return q


@claim(
    mean,
    equals=0,
    within=absolute(0.02),
    over=grid(law=[SQUARE, HEAD, FUSED, *OTHERS], d_k=64),
    decides="B1",
    controls=near.law(laws.shifted(SQUARE, 0.2)),
)
def initial_mean(q):
    """A projection by weights of mean 0 has coordinates of mean 0, over tokens and weights."""
    return q


@claim(
    variance,
    equals=scaled_score_variance,
    within=relative(0.04),
    over=grid(law=[projected(init.lecun(), gain=gain) for gain in (0.5, 2.0)], d_k=64),
    decides="A17 A18",
    controls=near.law(laws.independent(projected(init.lecun(), gain=0.5), projected(init.lecun()))),
)
def gain_of_both_projections(q, k, d_k):
    """The score's variance grows as the fourth power of a common gain of W_Q and W_K: 1/16 at 1/2, 16 at 2."""
    return other_scores(q, k, scale=d_k**-0.5)


# --- one draw of the weights ---------------------------------------------------------------------
# Below, q and k of a block stand for the weights of one initialisation: a row for each of its inputs.


def weights_of(law, **settings):
    return grid(law=law, tokens=MODEL, **settings)


@claim(
    std.of_degree(4),
    equals=lambda law, d_k: theory.projections.relative_spread(MODEL, d_k, law.fourth_moment),
    within=relative(0.1),
    over=weights_of([laws.normal, laws.uniform], d_k=8) + weights_of(laws.normal, d_k=16),
    decides="A17 B40",
    controls=near.law(laws.sparse(0.5)) + grid(one_sided=True),
)
def spread_of_initialisations(q, k, d_k, one_sided=False):
    """From one draw of 512 → d_k weights to another Var(q·k)/d_k = tr(Σ_q Σ_k)/d_k, Σ = W'W, varies by 3.1 % at d_k = 8 and 2.2 % at 16 for normal weights, and by 2.0 % at 8 for uniform ones."""
    cov_q, cov_k = (np.swapaxes(w, -1, -2) @ w / MODEL for w in (q, k))
    if one_sided:
        cov_k = np.broadcast_to(np.eye(d_k), cov_q.shape)
    return np.einsum("bij,bij->b", cov_q, cov_k) / d_k


def correlations(w):
    """Of the coordinates that the columns of the weights make of white inputs: (blocks, pairs)."""
    w = w / np.linalg.norm(w, axis=-2, keepdims=True)
    first, second = np.triu_indices(w.shape[-1], 1)
    return (np.swapaxes(w, -1, -2) @ w)[:, first, second]


def spread_of_squares(law, d_k, tokens):
    """The variance of a block's mean squared correlation: a cosine of two directions, squared, is
    Beta(1/2, (tokens − 1)/2), and two pairs are independent given the column that they share."""
    if law != laws.normal:
        return None
    return 2 * (tokens - 1) / (tokens**2 * (tokens + 2)) / math.comb(d_k, 2)


CORRELATION = std.with_variance(spread_of_squares)


@claim(
    CORRELATION,
    equals=MODEL**-0.5,
    within=relative(0.05),
    over=weights_of(laws.normal, d_k=8),
    decides="B40",
    controls=grid(tokens=MODEL // 2) + grid(equals=1 / MODEL),
)
def coordinates_of_one_initialisation_are_correlated(q):
    """At one draw of 512 → d_k weights any two coordinates of q have a correlation of size 1/√512 = 0.044, as an RMS over draws."""
    return correlations(q)


@claim(
    CORRELATION,
    equals=0,
    within=absolute(0.01),
    over=weights_of(laws.normal, d_k=8),
    decides="B40",
    expect=Verdict.REFUTED,
)
def coordinates_of_one_initialisation_are_independent(q):
    """At one draw of 512 → d_k weights the coordinates of q are uncorrelated, as independent ones are."""
    return correlations(q)


@claim(
    mean,
    equals=0,
    within=absolute(0.02),
    over=grid(law=[SQUARE, projected(init.lecun())], d_k=64),
    decides="A17",
    controls=near.law(laws.identical(laws.normal)) + near.law(laws.correlated(laws.normal, 0.02)),
)
def own_key_is_uncorrelated_over_initialisations(q, k, d_k):
    """Although a token's q and k come from the same input, E q·k = 0 over the draw of the weights."""
    return matched_scores(q, k, scale=d_k**-0.5)


@claim(std, equals=printed("2.46"), within=absolute(0.04), over=grid(law=BERT, d_k=64), decides="B34",
       controls=near.law(projected(init.gaussian(0.02))))
def bert_score_deviation(q, k):
    """At BERT's initialisation, N(0, 0.02²) and width 768, unscaled scores have standard deviation √6.04 = 2.46."""
    return other_scores(q, k)
