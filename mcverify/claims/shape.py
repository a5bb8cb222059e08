"""The shape of the law of q·k: its variance is the same for all laws, its kurtosis is not."""

from fractions import Fraction

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import scores
from mcverify.declare import near
from mcverify.statistic import exact, kurtosis
from mcverify.theory import enumeration

COINS = {"coin": enumeration.COIN, "sparse": enumeration.sparse_coin(Fraction(1, 4))}
FOURTH = {"coin": 1.0, "sparse": 4.0}  # standardised fourth moments: 1/share


@claim(
    exact,
    equals=lambda q_law, k_law, d_k: theory.dot_kurtosis(FOURTH[q_law], FOURTH[k_law], d_k),
    within=relative(1e-9),
    over=grid(q_law=["coin", "sparse"], k_law=["coin", "sparse"], d_k=[1, 2, 4, 8, 16]),
    decides="B3",
    controls=grid(k_law="sparse"),
)
def enumerated_kurtosis(q_law, k_law, d_k):
    """The excess kurtosis of q·k is (κ_q κ_k − 3)/d_k, exactly, for coins and sparse coins up to d_k = 16."""
    return float(enumeration.excess_kurtosis(
        enumeration.score_law(COINS[q_law], COINS[k_law], d_k)))


def _iid_kurtosis(law, d_k):
    return theory.dot_kurtosis(law.fourth_moment, law.fourth_moment, d_k)


@claim(
    kurtosis,
    equals=_iid_kurtosis,
    within=relative(0.1),  # of excesses of 1.5 and 0.75; fourth powers converge slowly
    over=grid(law=laws.normal, d_k=[4, 8]),
    decides="B3 A21",
    controls=near.law(laws.independent(laws.normal, laws.uniform)),
)
def normal_kurtosis(q, k):
    """For normal coordinates the excess kurtosis of q·k is 6/d_k, at 4 and 8: normal vectors, but no normal score."""
    return scores(q, k)


@claim(
    kurtosis,
    equals=lambda law, d_k: theory.dot_kurtosis(law.q.fourth_moment, law.k.fourth_moment, d_k),
    within=absolute(0.05),
    over=grid(law=[laws.independent(laws.normal, laws.rademacher),
                   laws.independent(laws.laplace, laws.uniform)], d_k=[8, 16]),
    decides="B3",
    controls=near.law(laws.normal) + near.law(laws.rademacher),
)
def mixed_kurtosis(q, k):
    """When q and k follow different laws the excess kurtosis of q·k is (κ_q κ_k − 3)/d_k: 0 for normal q and coin k."""
    return scores(q, k)


@claim(
    kurtosis,
    equals=_iid_kurtosis,
    within=absolute(0.02),
    over=grid(law=laws.rademacher, d_k=[2, 8, 64]) + grid(law=laws.uniform, d_k=[1, 8, 64]),
    decides="B3",
    controls=near.law(laws.uniform),
)
def light_kurtosis(q, k):
    """For coins and uniform coordinates the excess kurtosis of q·k is (κ² − 3)/d_k as well, negative for coins."""
    return scores(q, k)


@claim(
    kurtosis,
    equals=lambda law, d_k: theory.scaled_vector_kurtosis(
        law.scale_fourth_moment, law.scale_fourth_moment, d_k),
    within=absolute(0.1),
    over=grid(law=laws.common_scale(laws.normal, 30), d_k=[16, 64]),
    decides="B3",
    controls=near.law(laws.normal),
)
def common_scale_kurtosis(q, k):
    """With a random length common to a vector's coordinates the score keeps an excess kurtosis as d_k grows, 0.91 and 0.59 at 16 and 64, with limit 0.48: no limit theorem."""
    return scores(q, k)


@claim(
    kurtosis,
    equals=0,
    within=absolute(0.1),
    over=grid(law=laws.normal, d_k=[4, 8]) + grid(law=laws.common_scale(laws.normal, 30), d_k=64),
    decides="B3",
    expect=Verdict.REFUTED,
)
def score_is_normal_where_its_variance_is_right(q, k):
    """A score whose variance is d_k is normal, by the central limit theorem (excess kurtosis 0)."""
    return scores(q, k)
