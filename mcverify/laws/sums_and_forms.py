"""Moments of the score of a token with itself, where its key depends on its query."""

import math

from mcverify.laws.base import known
from mcverify.laws.law import Law
from mcverify.laws.q_tied_to_k import Identical, RandomSign
from mcverify.laws.score_contraction import applied, odd, product
from mcverify.laws.side import Image


def matched_moments(law: Law, d_k: int, width: int) -> tuple[float, float, float] | None:
    """Mean, variance and fourth central moment over the first ``width`` of d_k coordinates.

    None where they are not known, and nan for a fourth moment that is not.

    >>> from mcverify import laws
    >>> matched_moments(laws.identical(laws.rademacher), 4, 4)
    (4.0, 0.0, 0.0)
    """
    if isinstance(law, RandomSign):
        if (products := Identical(law.base).coordinate_products()) is None:
            return None
        length, spread, third, fourth = _sum_of_alike(products, width)
        fourth += 4 * length * third + 6 * length**2 * spread + length**4
        return 0.0, spread + length**2, fourth
    if (products := known(law).coordinate_products()) is not None:
        mean, variance, _, fourth = _sum_of_alike(products, width)
        return mean, variance, fourth
    views = known(law).joint(d_k)
    return None if views is None else _quadratic_form(*(view.first(width) for view in views))


def _sum_of_alike(moments: tuple[float, ...], count: int) -> tuple[float, float, float, float]:
    """Mean and central moments 2 to 4 of a sum of independent terms with these raw moments."""
    m1, m2, m3, m4 = moments
    c2, c3 = m2 - m1**2, m3 - 3 * m1 * m2 + 2 * m1**3
    c4 = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    return (count * m1, count * c2, count * c3,
            count * c4 + 3 * count * (count - 1) * c2**2)


def _quadratic_form(q: Image, k: Image) -> tuple[float, float, float]:
    """Mean, variance and fourth central moment of q·k for two views of one z.

    z'Sz + l·z of normal z has the second and fourth cumulants 2 tr S² + |l|² and 48(tr S⁴ + |Sl|²).
    Of others the variance has (κ − 3) Σ S_ii² + 2γ Σ S_ii l_i more; the fourth is not known.
    """
    m = product(q.root, k.root)
    s, tilt = (m + m.T) / 2, applied(q.root, k.mean) + applied(k.root, q.mean)
    square, diagonal = s @ s, s.diagonal()
    variance = 2 * float((s**2).sum()) + float(tilt @ tilt)
    mean, fourth = float(diagonal.sum() + q.mean @ k.mean), math.nan
    if q.round:
        cumulant = 48 * float((square**2).sum() + tilt @ (square @ tilt))
        return mean, variance, 3 * variance**2 + cumulant
    variance += (q.fourth - 3) * float(diagonal @ diagonal)
    return mean, variance + 2 * odd(q.third, float(diagonal @ tilt)), fourth
