"""How a block's scores vary together where each coordinate is jointly normal over the tokens.

Of d independent coordinates that are alike let P, R and X be the covariances of one coordinate's
queries at two tokens, of its keys, and of a query and a key. Isserlis' theorem gives everything: of
s = Σ q_i k_j and s' = Σ q_k k_l, each less its mean,

    Cov(s, s') = d(pr + uw)  and  Cov(s², s'²) = 2 Cov(s, s')² + d·κ(x, x, x', x')

with p = P_ik, r = R_jl, u = X_il, w = X_kj, and x = q_i k_j, x' = q_k k_l of one coordinate.
"""

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.law import BlockMoments, Values


def of_normal_tokens(covariances: tuple[Array, ...], d: int, of: Values) -> BlockMoments:
    """What is known of a block by P, R and X, each (tokens, tokens), of mean 0; all exact.

    >>> of_normal_tokens((np.eye(2), np.eye(2), np.zeros((2, 2))), 3, "all").of_means
    0.75
    """
    p, r, x = covariances
    if of == "q" or of == "k":
        own = p if of == "q" else r
        return BlockMoments(0.0, float(own[0, 0]), float(own.mean()) / d,
                            2 * float((own**2).mean()) / d)
    weights, means, squares = weights_of(of, len(p)), 0.0, 0.0
    own = p.diagonal()[:, None] * r.diagonal() + x**2
    mean, variance = d * float((weights * x).sum()), d * float((weights * own).sum())
    if not x.any():  # then each term is of queries alone times keys alone
        def over_pairs(of_queries: Array, of_keys: Array) -> float:
            return float((weights * (of_queries @ weights @ of_keys)).sum())

        alone = over_pairs(p**2, np.outer(r.diagonal(), r.diagonal())) + over_pairs(
            np.outer(p.diagonal(), p.diagonal()), r**2)
        squares = 2 * d * ((d + 1) * over_pairs(p**2, r**2) + alone)
        return BlockMoments(mean, variance, d * over_pairs(p, r), squares)
    for i in range(len(p)):  # one query at a time, as tokens⁴ numbers at once are too many
        shares = weights[i][:, None, None] * weights  # axes j, k, l
        covariance, cumulant = _two_scores(p, r, x, i)
        means += d * float((shares * covariance).sum())
        squares += float((shares * (2 * (d * covariance) ** 2 + d * cumulant)).sum())
    return BlockMoments(mean, variance, means, squares)


def weights_of(of: Values, tokens: int) -> Array:
    """How much each pair counts in a mean over pairs, (tokens, tokens); nan if there is none.

    >>> weights_of("other", 2)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    same = np.eye(tokens)
    pairs = {"all": np.ones_like(same), "matched": same, "other": 1 - same}[of]
    with np.errstate(invalid="ignore"):
        return np.asarray(pairs / pairs.sum())


def _two_scores(p: Array, r: Array, x: Array, i: int) -> tuple[Array, Array]:
    """Cov(x, x') and κ(x, x, x', x') of q_i k_j and q_k k_l over the axes j, k, l.

    A product is a quadratic form in normal numbers, and the cumulant is 32 tr(A²B²) + 16 tr(ABAB)
    of two; either is a sum over the ways around the four factors.
    """
    pp, rr = p[i][None, :, None], r[:, None, :]
    u, w = x[i][None, None, :], x.T[:, :, None]  # of q_i with k_l, and of k_j with q_k
    one, two = x[i][:, None, None], x[None]  # of the factors of one product
    a1, b1 = p[i, i], r.diagonal()[:, None, None]
    a2, b2 = p.diagonal()[None, :, None], r.diagonal()
    covariance = pp * rr + u * w
    twice = (2 * one * (two * covariance + b2 * w * pp + a2 * rr * u)
             + 2 * two * (b1 * pp * u + a1 * w * rr)
             + b1 * (b2 * pp**2 + a2 * u**2) + a1 * (b2 * w**2 + a2 * rr**2))
    cumulant = 2 * twice + 2 * covariance**2 + 8 * pp * rr * u * w
    return np.broadcast_to(covariance, cumulant.shape), cumulant
