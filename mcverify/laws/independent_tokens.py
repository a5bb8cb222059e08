"""Exact moments of scores up to the fourth, and how much the block values made of them vary.

Here stands what they are for independent tokens and which pairs of a block share what; how they
follow from what a law says of either side stands in ``score_contraction``.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import known
from mcverify.laws.law import BlockMoments, Law, Which
from mcverify.laws.normed_alike import ERROR, fourth_of_score
from mcverify.laws.score_contraction import applied, fourth_moment, product, squares_of_shared
from mcverify.laws.side import Image

Pairs = Literal["all", "other", "matched"]
WHICH: tuple[Which, ...] = ("q", "k")


@dataclass(frozen=True)
class ScoreMoments:
    """Moments of s = q·k − E q·k for tokens independent of each other; nan where not known.

    Attributes
    ----------
    mean, variance, fourth : E q·k, E s² and E s⁴ of different tokens.
    shared_query, shared_key : E s_1² s_2² of two scores of one query with independent keys, and
        of one key with independent queries.
        These two and E s⁴ are bounds from above where a law knows no more than a bound on lengths.
    query_share, key_share : E s_1 s_2 of the same: the variances of E[s | q] and of E[s | k].
    coupled : whether a token's own query and key are dependent.
    matched_mean, matched_variance, matched_fourth : E q·k, E s² and E s⁴ of a token with itself.
    """

    mean: float
    variance: float
    fourth: float
    shared_query: float
    shared_key: float
    query_share: float
    key_share: float
    coupled: bool
    matched_mean: float = math.nan
    matched_variance: float = math.nan
    matched_fourth: float = math.nan

    def of_block(self, tokens: int, pairs: Pairs = "all") -> BlockMoments:
        """Those of a block: exact, unless q and k are coupled or only bounds on E s⁴ are known.

        Two scores of a block are dependent if they share the query or the key, so over all pairs
        the variance of the mean of s² is [Var s² + (tokens − 1)(C_q + C_k)]/tokens², where C_q =
        E s_1² s_2² − (E s²)² is that of a shared query, and C_k of a shared key. If q and k are
        coupled it is known of matched pairs and bounded for other ones: see ``_over_pairs``.

        >>> from mcverify import laws
        >>> score_moments(laws.normal, 64).of_block(1)  # Var s² is 2·64² + 6·64
        BlockMoments(mean=0.0, variance=64.0, of_means=64.0, of_squares=8576.0)
        """
        if pairs == "matched":
            variance = self.matched_variance
            return BlockMoments(self.matched_mean, variance, variance / tokens,
                                (self.matched_fourth - variance**2) / tokens)
        square = self.variance**2
        return BlockMoments(
            math.nan if pairs == "all" and self.coupled else self.mean, self.variance,
            self._over_pairs(self.variance, self.query_share, self.key_share, tokens, pairs),
            self._over_pairs(self.fourth - square, self.shared_query - square,
                             self.shared_key - square, tokens, pairs))

    def _over_pairs(
        self, variance: float, query: float, key: float, tokens: int, pairs: Pairs
    ) -> float:
        """Var of the mean of f(s) over pairs, from Var f(s) and what sharing a side gives.

        A coupled token ties its scores as a query to those as a key: Cov(f(s_ij), f(s_jl)) is that
        of E[f(s_ij) | k_j] and E[f(s_jl) | q_j], at most √(C_q C_k) in size, and there are as many
        of them as of C_q and C_k together. Cov(f(s_ij), f(s_ji)) is at most Var f(s).
        """
        if pairs == "all":
            if self.coupled:
                return math.nan  # matched pairs are among them
            return (variance + (tokens - 1) * (query + key)) / tokens**2
        if tokens == 1:
            return math.nan  # there is no other token
        if self.coupled:
            query, key = (math.sqrt(max(share, 0.0)) for share in (query, key))  # 0 may be rounded
            variance, query, key = 2 * variance, *2 * [(query + key) ** 2 / 2]
        return (variance + (tokens - 2) * (query + key)) / (tokens * (tokens - 1))


def score_moments(law: Law, d_k: int, width: int | None = None) -> ScoreMoments | None:
    """The moments of q·k at this width; None unless tokens are known to be independent.

    With ``width`` they are of the first so many of the d_k coordinates.

    Of independent coordinates of variance 1, E s⁴ is 3(d_k² + d_k(κ_q − 1)) + (κ_k − 3)κ_q d_k
    and E s_1² s_2² of a shared query is E |q|⁴ = d_k² + d_k(κ_q − 1).

    >>> from mcverify import laws
    >>> moments = score_moments(laws.rademacher, 64)
    >>> moments.variance, moments.fourth, moments.shared_query
    (64.0, 12160.0, 4096.0)
    >>> score_moments(laws.memory(laws.normal, 0.5), 64) is None
    True
    """
    if not known(law).tokens_independent:
        return None
    width = width or d_k
    q, k = (known(law).side(which, d_k).image for which in WHICH)
    moments = (_second_order(law, d_k, width) if q is None or k is None else
               _fourth_order(q.first(width).narrowed(), k.first(width).narrowed(), law.coupled))
    own = (known(law).matched_moments(d_k, width) if law.coupled
           else (moments.mean, moments.variance, moments.fourth))
    return replace(moments, matched_mean=own[0], matched_variance=own[1],
                   matched_fourth=own[2]) if own else moments


def _fourth_order(q: Image, k: Image, coupled: bool) -> ScoreMoments:
    m, a, b = product(q.root, k.root), applied(q.root, k.mean), applied(k.root, q.mean)
    query_share, key_share = float(a @ a), float(b @ b)
    return ScoreMoments(
        float(q.mean @ k.mean), float((m**2).sum()) + query_share + key_share,
        fourth_moment(m, a, b, q, k), squares_of_shared(m, a, b, q),
        squares_of_shared(m.T, b, a, k), query_share, key_share, coupled)


@np.errstate(all="ignore")  # of moments that do not exist
def _second_order(law: Law, d_k: int, width: int) -> ScoreMoments:
    """What the first two moments say, and what lengths that have a bound say of the others.

    Of q and k with mean 0 and lengths of at most L_q and L_k, abs(s) is at most L_q·L_k, so E s⁴
    is at most (L_q·L_k)² E s²; and E[s² | q] = q'Σ_k q is at most L_q² times the largest
    eigenvalue of Σ_k, so the mean of its square is at most that times E s². After a norm of
    exchangeable coordinates E[s² | q] is this number, and the bound is E s_1² s_2² itself; if they
    were independent before it, E s⁴ is known but for the error of a quadrature. Along common axes
    on which signs are even all three are known.
    """
    m = law.moments(d_k)
    mean_q, mean_k = m.mean_q[:width], m.mean_k[:width]
    cov_q, cov_k = m.cov_q[:width, :width], m.cov_k[:width, :width]
    query_share, key_share = float(mean_k @ cov_q @ mean_k), float(mean_q @ cov_k @ mean_q)
    variance = float(np.sum(cov_q * cov_k)) + query_share + key_share
    sides = [known(law).side(which, d_k) for which in WHICH]
    longest_q, longest_k = (each.longest for each in sides)
    fourth = shared_query = shared_key = math.nan
    if max(longest_q, longest_k) < math.inf and not (mean_q.any() or mean_k.any()):
        fourth = (longest_q * longest_k) ** 2 * variance
        shared_query = longest_q**2 * _largest_eigenvalue(cov_k) * variance
        shared_key = longest_k**2 * _largest_eigenvalue(cov_q) * variance
        if (of_q := sides[0].products) and (of_k := sides[1].products):
            of_one = (1 + ERROR) * fourth_of_score(of_q, of_k, width)
            fourth = min(fourth, (longest_q * longest_k) ** 4 * of_one)
    q, k = (each.axes for each in sides)
    if q and k and width == d_k and np.array_equal(q.directions, k.directions):
        fourth = float(3 * (q.fourths * k.fourths).sum()
                       - 2 * q.fourths.diagonal() @ k.fourths.diagonal())
        shared_query = float(k.squares @ q.fourths @ k.squares)
        shared_key = float(q.squares @ k.fourths @ q.squares)
    return ScoreMoments(float(mean_q @ mean_k), variance, fourth, shared_query, shared_key,
                        query_share, key_share, law.coupled)


def _largest_eigenvalue(cov: Array) -> float:
    return float(np.linalg.eigvalsh(cov)[-1]) if np.isfinite(cov).all() else math.nan
