"""Second and fourth moments of a normal vector after a norm that fixes its length.

Along its principal axes a normal vector of mean 0 has independent coordinates z_i of variances
λ_i. After the norm only w_i = z_i/‖z‖ are left: signs are as likely as ever, so all odd moments
are 0, and from 1/‖z‖² = ∫ e^(−t‖z‖²) dt and 1/‖z‖⁴ = ∫ t·e^(−t‖z‖²) dt

    E w_i² = ∫ g_i p dt and E w_i² w_j² = ∫ t·g_i g_j p dt (i ≠ j), g_i = λ_i/(1 + 2tλ_i),

with p the product of all (1 + 2tλ_j)^(−1/2); for i = j it is 3 times as much.
"""

from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array

STEP, REACH = 0.25, 80.0  # of log t: the integrands are analytic within π of the real line
ROUNDING = 1e-12  # of the largest variance: smaller ones are 0
TINY = 1e-200  # of a density, which takes long where it is nearly 0


@dataclass(frozen=True, eq=False)
class Axes:
    """A vector Uw of coordinates whose signs are independent and even, whatever their sizes.

    Attributes
    ----------
    directions : U, (d_k, axes), with orthonormal columns.
    squares, fourths : E w_i², (axes,), and E w_i² w_j², (axes, axes).
    """

    directions: Array
    squares: Array
    fourths: Array

    @property
    def cov(self) -> Array:
        """That of the vector, (d_k, d_k); its mean is 0."""
        return (self.directions * self.squares) @ self.directions.T


def normed(root: Array, length: float) -> Axes:
    """The axes of Az over its length, times ``length``, for a (d_k, any) root A and normal z.

    >>> axes = normed(np.diag([2.0, 1.0]), 1.0)
    >>> axes.squares.round(6).tolist(), round(float(axes.fourths.sum()), 9)
    ([0.333333, 0.666667], 1.0)
    """
    variances, directions = np.linalg.eigh(root @ root.T)
    kept = variances > ROUNDING * variances[-1]
    squares, fourths = of_unit_length(variances[kept])
    return Axes(directions[:, kept], length**2 * squares, length**4 * fourths)


def of_unit_length(variances: Array) -> tuple[Array, Array]:
    """E w_i² and E w_i² w_j² of w = z/‖z‖ for independent normal z_i of these variances.

    >>> of_unit_length(np.array([4.0, 1.0]))[0].round(6)
    array([0.666667, 0.333333])
    """
    variances = variances / variances.sum()
    t = np.exp(np.arange(-REACH, REACH, STEP))
    density = STEP * t * np.exp(-np.log1p(2 * np.outer(t, variances)).sum(axis=1) / 2)
    t, density = t[density > TINY], density[density > TINY]
    g = variances / (1 + 2 * np.outer(t, variances))
    fourths = g.T @ (g * (t * density)[:, None])
    fourths += 2 * np.diag(fourths.diagonal())
    return density @ g, fourths
