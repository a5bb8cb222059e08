"""How a block's scores vary together when its weights are drawn anew with its tokens.

Inputs x of ``width`` independent coordinates of mean 0, variance 1 and fourth moment κ; q = W_Q'x
and k = W_K'x for independent weights of variance v. Given the inputs the d columns of q are
independent, and normal over the tokens, with covariance vG for G = XX'; so are those of k. With
a = vG_ik and b = vG_jl the scores s = s_ij and s' = s_kl have, over the weights,

    E s s' = d·ab,  E s² = d·v²G_ii G_jj and
    Cov(s², s'²) = 2d²a²b² + 2d(a²·v²G_jj G_ll + b²·v²G_ii G_kk + a²b²),

which is to be averaged over the inputs, with Cov of E s² and E s'² added. Normal weights make all
of this exact. For weights with a fourth moment of at most the normal law's it is at least as much.
"""

import math

from mcverify.laws.law import BlockMoments, Values


def of_projected_tokens(
    width: int, kappa: float, v: float, d: int, tokens: int, of: Values
) -> BlockMoments | None:
    """What is known of a block with weights of its own; None for all pairs together.

    >>> of_projected_tokens(4, 3.0, 0.25, 2, 1, "q")
    BlockMoments(mean=0.0, variance=1.0, of_means=0.5, of_squares=2.0)
    """
    length = width**2 + width * (kappa - 1)  # E G_ii², also E G_ij² G_jl² and E G_ij² G_jj
    if of == "q" or of == "k":
        squares = 2 * (length + (tokens - 1) * width) / (tokens * d) + (length - width**2) / tokens
        return BlockMoments(0.0, v * width, v * width / (tokens * d), v**2 * squares)
    if of == "matched":
        means = d * v**2 * (length + (tokens - 1) * width) / tokens
        return BlockMoments(0.0, d * v**2 * length, means, math.nan)
    if of == "all" or tokens < 2:
        return None
    means = d * v**2 * (width**2 + width) / (tokens * (tokens - 1))
    return BlockMoments(0.0, d * (v * width) ** 2, means,
                        v**4 * _squares(width, kappa, length, d, tokens))


def _squares(w: int, kappa: float, length: float, d: int, tokens: int) -> float:
    """Var of the mean of s² over pairs of different tokens, for v = 1."""
    fourth = 3 * length + (kappa - 3) * kappa * w  # E G_ij⁴
    turned = w * (w + kappa - 1) ** 2  # E G_ij² G_ii G_jj

    def covariance(both: float, one: float, of_lengths: float) -> float:
        """By E a²b², E(a²G_jj G_ll + b²G_ii G_kk) and E G_ii G_jj G_kk G_ll."""
        return 2 * d * (d * both + one + both) + d**2 * (of_lengths - w**4)

    same = covariance(length**2, 2 * length**2, length**2)
    reverse = covariance(fourth, 2 * turned, length**2)
    side = covariance(length * w, length * w**2 + length * w, length * w**2)  # query, or key
    cross = covariance(length, 2 * length * w, length * w**2)  # the key's token is the query's
    unshared = covariance(w**2, 2 * w**3, w**4)
    t = tokens
    return (same + reverse + (t - 2) * (2 * side + 2 * cross + (t - 3) * unshared)) / (t * (t - 1))
