"""Exact moments of scores up to the fourth, and how much the block values made of them vary.

A law says of either side x = r·Az + m (``laws.side.Image``). With M = A_q'A_k, a = A_q'm_k and
b = A_k'm_q, a score less its mean is s = X'MY + a·X + b·Y, where X = r_q z_q and Y = r_k z_k are
independent. Given X it is u·Y + v with u = M'X + b and v = a·X, so E[s² | X] = |u|² + v²; all that
follows are expectations of polynomials in X of independent coordinates with known moments.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from mcverify.laws.law import Law, side
from mcverify.laws.side import Image

Array = NDArray[np.float64]
Pairs = Literal["all", "other", "matched"]


@dataclass(frozen=True)
class ScoreMoments:
    """Moments of s = q·k − E q·k, where q and k are independent.

    Attributes
    ----------
    mean : E q·k.
    variance, fourth : E s² and E s⁴.
    shared_query, shared_key : E s_1² s_2² of two scores of one query with independent keys, and
        of one key with independent queries.
    query_share, key_share : E s_1 s_2 of the same: the variances of E[s | q] and of E[s | k].
    """

    mean: float
    variance: float
    fourth: float
    shared_query: float
    shared_key: float
    query_share: float
    key_share: float

    @property
    def kurtosis(self) -> float:
        """Excess kurtosis of a score."""
        return self.fourth / self.variance**2 - 3

    def square_variance(self, tokens: int, pairs: Pairs = "all") -> float:
        """Var of a block's mean of s², over its pairs of independent tokens.

        Pairs are those of ``attention.scores``, ``other_scores`` and ``matched_scores``. Two
        scores of a block are dependent if they share the query or the key, so over all pairs it
        is [Var s² + (tokens − 1)(C_q + C_k)]/tokens² with C_q = E s_1² s_2² − (E s²)² for a shared
        query, and C_k for a shared key.

        >>> from mcverify import laws
        >>> score_moments(laws.normal, 64).square_variance(1)  # 2·64² + 6·64
        8576.0
        """
        square = self.variance**2
        return _over_pairs(self.fourth - square, self.shared_query - square,
                           self.shared_key - square, tokens, pairs)

    def mean_variance(self, tokens: int, pairs: Pairs = "all") -> float:
        """Var of a block's mean score, over its pairs of independent tokens.

        >>> from mcverify import laws
        >>> score_moments(laws.normal, 64).mean_variance(8)
        1.0
        """
        return _over_pairs(self.variance, self.query_share, self.key_share, tokens, pairs)


def _over_pairs(
    variance: float, query: float, key: float, tokens: int, pairs: Pairs
) -> float:
    """Var of the mean over pairs, from the covariances of two that share a query, or a key."""
    if pairs == "matched":
        return variance / tokens
    others = tokens - 1 if pairs == "all" else tokens - 2  # pairs that share the query of one
    return (variance + others * (query + key)) / (tokens * (others + 1))


def score_moments(law: Law, d_k: int) -> ScoreMoments | None:
    """The moments of q·k for a law of independent q, k and tokens; None where they are not known.

    E s⁴ of independent coordinates of variance 1 is 3(d_k² + d_k(κ_q − 1)) + (κ_k − 3)κ_q d_k,
    and E s_1² s_2² of a shared query is E abs(q)⁴ = d_k² + d_k(κ_q − 1).

    >>> from mcverify import laws
    >>> found = score_moments(laws.rademacher, 64)
    >>> found.variance, found.fourth, found.shared_query
    (64.0, 12160.0, 4096.0)
    >>> score_moments(laws.correlated(laws.normal, 0.5), 64) is None
    True
    """
    q, k = side(law, "q", d_k).image, side(law, "k", d_k).image
    if law.coupled or not getattr(law, "tokens_independent", False) or q is None or k is None:
        return None
    m, a, b = _product(q.root, k.root), _applied(q.root, k.mean), _applied(k.root, q.mean)
    query_share, key_share = float(a @ a), float(b @ b)
    found = ScoreMoments(
        mean=float(q.mean @ k.mean),
        variance=float((m**2).sum()) + query_share + key_share,
        fourth=_fourth(m, a, b, q, k),
        shared_query=_shared(m, a, b, q),
        shared_key=_shared(m.T, b, a, k),
        query_share=query_share,
        key_share=key_share,
    )
    return found if math.isfinite(found.fourth + found.shared_query + found.shared_key) else None


def _product(a: Array, b: Array) -> Any:
    """A'B, sparse if both are diagonal: wide laws of independent coordinates cost nothing."""
    if a.ndim == b.ndim == 1:
        return csr_array(diags_array(a * b))
    if a.ndim == 1:
        return a[:, None] * b
    return a.T * b if b.ndim == 1 else a.T @ b


def _applied(a: Array, x: Array) -> Array:
    """A'x."""
    return np.asarray(a * x if a.ndim == 1 else a.T @ x)


def _odd(third: float, factor: float) -> float:
    """third·factor, where an unknown third moment does not matter if nothing comes of it."""
    return third * factor if factor else 0.0


def _square(
    diagonal: Array, trace_of_square: float, c: Array, constant: float, x: Image
) -> float:
    """E (X'GX + 2c'X + constant)², for G of this diagonal and tr G²."""
    trace = float(diagonal.sum())
    quadratic = trace**2 + 2 * trace_of_square + (x.fourth - 3) * float(diagonal @ diagonal)
    return (x.scale_fourth * quadratic + 4 * float(c @ c) + constant**2 + 2 * constant * trace
            + 4 * _odd(x.third, float(diagonal @ c)))


def _shared(m: Any, a: Array, b: Array, x: Image) -> float:
    """E (|u|² + v²)², whose quadratic part has the matrix MM' + aa'."""
    h = m @ m.T
    trace_of_square = float((h**2).sum()) + 2 * float(a @ (h @ a)) + float(a @ a) ** 2
    return _square(h.diagonal() + a * a, trace_of_square, m @ b, float(b @ b), x)


def _fourth(m: Any, a: Array, b: Array, x: Image, y: Image) -> float:
    """E (u·Y + v)⁴: over Y, E r_k⁴ (3|u|⁴ + (κ_k − 3) Σ u⁴) + 4γ_k v Σ u³ + 6 v²|u|² + v⁴."""
    h, c, ma, ex = m @ m.T, m @ b, m.T @ a, x.fourth - 3
    rows, aa, bb = h.diagonal(), float(a @ a), float(b @ b)
    second, third, fourth = ((m**n).sum(axis=0) for n in (2, 3, 4))  # of the columns of M
    length = _square(rows, float((h**2).sum()), c, bb, x)  # E |u|⁴
    powers = (x.scale_fourth * float((3 * second**2 + ex * fourth).sum())
              + float((6 * b**2 * second + b**4).sum()) + 4 * _odd(x.third, float(b @ third)))
    cubes = (x.scale_fourth * float((3 * ma * second + ex * (m**3).T @ a).sum())
             + 3 * _odd(x.third, float(b @ ((m**2).T @ a))) + 3 * float(b**2 @ ma))
    both = (x.scale_fourth * (aa * float(rows.sum()) + 2 * float(ma @ ma) + ex * float(a**2 @ rows))
            + 2 * _odd(x.third, float(a**2 @ c)) + aa * bb)
    alone = x.scale_fourth * (3 * aa**2 + ex * float((a**4).sum()))
    return (y.scale_fourth * (3 * length + (y.fourth - 3) * powers) + 4 * _odd(y.third, cubes)
            + 6 * both + alone)
