"""What initialised projections make of inputs of unit variance: the variance of q, k and the score."""

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import matched_scores, other_scores
from mcverify.declare import near
from mcverify.laws import initialisation as init
from mcverify.statistic import exact, mean, std, variance

MODEL = 512  # the width of the inputs; 8 heads of 64


def projected(initialisation, **others):
    return laws.projected(laws.normal, initialisation, MODEL, **others)


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
    """Under common initialisations the coordinates of q have variance 1."""
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


@claim(exact, equals=lambda matrix: printed({"model": "1.00", "head": "1.78", "fused": "0.50"}[matrix]),
       over=grid(matrix=["model", "head", "fused"]), decides="B1")
def xavier_variance(matrix):
    """Xavier's 2/(fan_in + fan_out) makes Var q = 1, 1.78 or 0.50 for 512 → 512, 512 → 64 and 512 → 3·512."""
    variance_of_weight = init.xavier(matrix).variance(MODEL, 64)
    return theory.projections.coordinate_variance(MODEL, variance_of_weight)


@claim(
    variance,
    equals=scaled_score_variance,
    within=relative(0.04),
    over=grid(law=[projected(init.lecun(), gain=gain) for gain in (0.5, 2.0)], d_k=64),
    decides="A17 A18",
)
def gain_of_both_projections(q, k, d_k):
    """The score's variance grows as the fourth power of a common gain of W_Q and W_K: 1/16 at 1/2, 16 at 2."""
    return other_scores(q, k, scale=d_k**-0.5)


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.04),
    over=grid(law=[projected(init.lecun(), weights=seed) for seed in (1, 2, 3)], d_k=[8, 64]),
    decides="A17",
)
def one_initialisation(q, k):
    """For one fixed draw of the weights Var(q·k) = tr(Σ_q Σ_k), with Σ = W'W: no longer exactly d_k."""
    return other_scores(q, k)


@claim(exact, equals=lambda d_k: printed({8: "0.031", 64: "0.011"}[d_k]), over=grid(d_k=[8, 64]),
       decides="A17")
def spread_of_initialisations(d_k):
    """From one draw of 512 → d_k weights to another the score's variance varies by 3.1 % at d_k = 8, 1.1 % at 64."""
    return theory.projections.relative_spread(MODEL, d_k)


@claim(
    mean,
    equals=0,
    within=absolute(0.02),
    over=grid(law=[SQUARE, projected(init.lecun())], d_k=64),
    decides="A17",
)
def own_key_is_uncorrelated_over_initialisations(q, k, d_k):
    """Although a token's q and k come from the same input, E q·k = 0 over the draw of the weights."""
    return matched_scores(q, k, scale=d_k**-0.5)


@claim(std, equals=printed("2.46"), within=absolute(0.04), over=grid(law=BERT, d_k=64), decides="B34")
def bert_score_deviation(q, k):
    """At BERT's initialisation, N(0, 0.02²) and width 768, unscaled scores have standard deviation √6.04 = 2.46."""
    return other_scores(q, k)
