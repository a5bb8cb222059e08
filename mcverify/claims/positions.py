"""Rotary positions: what distance does to the variance and the mean of a score."""

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import matched_scores, scores
from mcverify.declare import near
from mcverify.statistic import exact, mean, variance
from mcverify.theory import rotary

DISTANCES = [0, 1, 64, 4096]
# Halves are paired as in most implementations: coordinate i turns with i + d_k/2, at frequency
# 10000^(−2i/d_k). Variances that fall over the coordinates differ most within such a pair.
UNEQUAL = laws.unequal(laws.normal, 2)


def at(base, distances=DISTANCES):
    return [laws.rotary(base, distance) for distance in distances]


@claim(
    variance,
    equals=lambda d_k: d_k,
    within=relative(0.03),
    over=grid(law=[*at(laws.normal), *at(laws.laplace), *at(laws.independent(UNEQUAL, laws.normal))],
              d_k=[8, 64]),
    decides="B12",
)
def rotation_keeps_isotropic_variance(q, k):
    """Rotary positions keep Var(q·k) at every distance if either side has mean 0 and equal, uncorrelated coordinates."""
    return scores(q, k)


@claim(
    variance,
    equals=theory.dot_variance,
    within=relative(0.04),
    over=grid(law=at(UNEQUAL), d_k=[8, 64]),
    decides="B12",
)
def rotation_moves_anisotropic_variance(q, k):
    """With unequal variances in both q and k, Var(q·k) moves with the distance, as tr(RΣR'Σ) says."""
    return scores(q, k)


@claim(
    variance,
    equals=lambda law, d_k: theory.dot_variance(law.base, d_k),
    within=relative(0.04),
    over=grid(law=at(UNEQUAL, [64, 4096]), d_k=8),
    decides="B12",
    expect=Verdict.REFUTED,
)
def rotation_never_changes_the_variance(q, k):
    """Rotary positions keep Var(q·k) at every distance for any q and k."""
    return scores(q, k)


@claim(
    variance,
    between=lambda law, d_k: rotary.variance_bounds(
        law.base.moments(d_k).cov_q, law.base.moments(d_k).cov_k, "halves"),
    within=relative(0.02),
    over=grid(law=at(UNEQUAL, [1, 3, 16, 64, 300, 4096]), d_k=[8, 64]),
    decides="B12",
    controls=near.query_scale(2.0),
)
def rotation_has_bounds(q, k):
    """At every distance Var(q·k) lies between bounds from the eigenvalues of each pair's covariances, sorted oppositely and alike."""
    return scores(q, k)


@claim(exact, at_least=1.02, decides="B12", controls=grid(decades=0.1))
def rotation_can_amplify(decades=2):
    """Rotary positions can amplify the variance beyond that at the training length of 512: for some pair of laws and a longer distance."""
    base = laws.independent(laws.unequal(laws.normal, decades), laws.gaussian(_turned(decades, 64)))

    def largest(distances):
        return max(theory.dot_variance(laws.rotary(base, m), 64) for m in distances)

    return largest(range(512, 4096, 4)) / largest(range(512))


def _turned(decades, d_k):
    """The covariance of the unequal law, each pair turned a quarter: at distance 0 the variance is least."""
    cov = laws.unequal(laws.normal, decades).moments(d_k).cov_k
    half = d_k // 2
    order = [*range(half, d_k), *range(half)]
    return cov[order][:, order]


@claim(
    mean,
    equals=lambda law, d_k: rotary.matched_mean(d_k, law.distance) / d_k,
    within=absolute(0.02),
    over=grid(law=at(laws.identical(laws.normal), [0, 5, 64, 725, 4096]), d_k=64),
    decides="B12",
)
def rotation_makes_the_mean_decay(q, k, d_k):
    """With q = k the mean score falls with the distance as Σ 2cos(mθ_i), unevenly: all of d_k at 0, 0.43 d_k at 64."""
    return matched_scores(q, k, scale=1 / d_k)


@claim(exact, at_most=-0.01, decides="B12", controls=grid(distance=64))
def rotation_can_turn_the_mean_negative(distance=1500):
    """The mean score of q = k turns negative far away: first at 725, at d_k = 64 and base 10000."""
    return min(rotary.matched_mean(64, m) for m in range(distance))
