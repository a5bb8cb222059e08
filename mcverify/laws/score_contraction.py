"""Moments of q·k up to the fourth from what is known of q and of k, or of both together.

A law says of either side x = r·Az + m (``laws.side.Image``). With M = A_q'A_k, a = A_q'm_k and
b = A_k'm_q, a score less its mean is s = X'MY + a·X + b·Y, where X = r_q z_q and Y = r_k z_k are
independent. Given X it is u·Y + v with u = M'X + b and v = a·X, so E[s² | X] = |u|² + v²; those of
different tokens are expectations of polynomials in X of independent coordinates with known moments.
A token's score with itself is a sum of terms that are alike, or a form in one z.
"""

import math
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.side import Image


def product(a: Array, b: Array) -> Any:
    """A'B, sparse if both are diagonal: wide laws of independent coordinates cost nothing."""
    if a.ndim == b.ndim == 1:
        from scipy.sparse import csr_array, diags_array  # here: it loads as long as the room

        return csr_array(diags_array(a * b))
    if a.ndim == 1:
        return a[:, None] * b
    return a.T * b if b.ndim == 1 else a.T @ b


def applied(a: Array, x: Array) -> Array:
    """A'x."""
    return np.asarray(a * x if a.ndim == 1 else a.T @ x)


def odd(third: float, factor: float) -> float:
    """third·factor, where an unknown third moment does not matter if nothing comes of it."""
    return third * factor if factor else 0.0


def square_of_form(
    diagonal: Array, trace_of_square: float, c: Array, constant: float, x: Image
) -> float:
    """E (X'GX + 2c'X + constant)², for G of this diagonal and tr G²."""
    trace = float(diagonal.sum())
    quadratic = trace**2 + 2 * trace_of_square + (x.fourth - 3) * float(diagonal @ diagonal)
    return (x.scale_fourth * quadratic + 4 * float(c @ c) + constant**2 + 2 * constant * trace
            + 4 * odd(x.third, float(diagonal @ c)))


def squares_of_shared(m: Any, a: Array, b: Array, x: Image) -> float:
    """E (|u|² + v²)², whose quadratic part has the matrix MM' + aa'."""
    h = m @ m.T
    trace_of_square = float((h**2).sum()) + 2 * float(a @ (h @ a)) + float(a @ a) ** 2
    return square_of_form(h.diagonal() + a * a, trace_of_square, m @ b, float(b @ b), x)


def fourth_moment(m: Any, a: Array, b: Array, x: Image, y: Image) -> float:
    """E (u·Y + v)⁴: over Y, E r_k⁴ (3|u|⁴ + (κ_k − 3) Σ u⁴) + 4γ_k v Σ u³ + 6 v²|u|² + v⁴."""
    h, c, ma, ex = m @ m.T, m @ b, m.T @ a, x.fourth - 3
    rows, aa, bb = h.diagonal(), float(a @ a), float(b @ b)
    second, third, fourth = ((m**n).sum(axis=0) for n in (2, 3, 4))  # of the columns of M
    length = square_of_form(rows, float((h**2).sum()), c, bb, x)  # E |u|⁴
    # In this order: E Σ u⁴, E v Σ u³, E v²|u|² and E v⁴.
    powers = (x.scale_fourth * float((3 * second**2 + ex * fourth).sum())
              + float((6 * b**2 * second + b**4).sum()) + 4 * odd(x.third, float(b @ third)))
    cubes = (x.scale_fourth * float((3 * ma * second + ex * (m**3).T @ a).sum())
             + 3 * odd(x.third, float(b @ ((m**2).T @ a))) + 3 * float(b**2 @ ma))
    both = (x.scale_fourth * (aa * float(rows.sum()) + 2 * float(ma @ ma) + ex * float(a**2 @ rows))
            + 2 * odd(x.third, float(a**2 @ c)) + aa * bb)
    alone = x.scale_fourth * (3 * aa**2 + ex * float((a**4).sum()))
    return (y.scale_fourth * (3 * length + (y.fourth - 3) * powers) + 4 * odd(y.third, cubes)
            + 6 * both + alone)


def sum_of_alike(moments: tuple[float, ...], count: int) -> tuple[float, float, float, float]:
    """Mean and central moments 2 to 4 of a sum of independent terms with these raw moments.

    >>> sum_of_alike((1.0, 1.0, 1.0, 1.0), 4)
    (4.0, 0.0, 0.0, 0.0)
    """
    m1, m2, m3, m4 = moments
    c2, c3 = m2 - m1**2, m3 - 3 * m1 * m2 + 2 * m1**3
    c4 = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    return (count * m1, count * c2, count * c3, count * c4 + 3 * count * (count - 1) * c2**2)


def quadratic_form(q: Image, k: Image) -> tuple[float, float, float]:
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
