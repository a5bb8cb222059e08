"""From a law to the mean and covariance of one of its vectors after a bounded function.

Exact where symmetry or a closed form gives them, nan where they are not known. Each function takes
the law of a vector, as ``side`` gives it, d_k and the arguments of its namesake in ``vectors``.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfc, gammainc

from mcverify.attention import vectors
from mcverify.laws.affine import Scaled
from mcverify.laws.coordinates import Iid, exponential, laplace, normal, rademacher, uniform
from mcverify.laws.dependence import (
    CommonScale,
    Correlated,
    Equicorrelated,
    Identical,
    Independent,
    Shifted,
)
from mcverify.laws.law import Array, Law

Side = tuple[Array, Array]  # the mean (d_k,) and covariance (d_k, d_k) of a query, or of a key

FAR = 1e3  # nothing is left of the known tails here, and squares do not overflow


def side(law: Law, which: str) -> Law:
    """A law whose vectors are distributed like the queries, or the keys, of this one."""
    match law:
        case Independent():
            return side(law.q if which == "q" else law.k, which)
        case Identical():
            return law.base
        case Correlated() if which == "q" or law.base == normal:
            return law.base
        case Shifted():
            return Shifted(side(law.base, which), law.mean)
        case Scaled():
            std = law.std_q if which == "q" else law.std_k
            return Scaled(side(law.base, which), std, std)
    return law


def _exchangeable(law: Law) -> bool:
    return isinstance(law, Iid | Equicorrelated | CommonScale) or (
        isinstance(law, Shifted | Scaled) and _exchangeable(law.base))


def _about_zero(law: Law) -> bool:
    """Whether coordinates are known to be independent and each symmetric about 0."""
    return isinstance(law, Iid) and law.symmetric and not abs(law.mean) > 0  # nan: no mean


def _all_equal(law: Law, d_k: int) -> float:
    """P(all d_k ≥ 2 coordinates of a vector are equal); nan where it is not known."""
    match law:
        case Shifted() | Scaled() | CommonScale():
            return _all_equal(law.base, d_k)
        case Equicorrelated():
            return 1.0 if law.rho == 1 else _all_equal(law.base, d_k)
        case Iid() if law == rademacher:
            return 2.0 ** (1 - d_k)
    return _all_zero(law, d_k)  # where 0 is the only value with a probability of its own


def _all_zero(law: Law, d_k: int) -> float:
    """P(all coordinates of a vector are 0); nan where it is not known."""
    match law:
        case Iid() if law in (normal, uniform, laplace, exponential, rademacher):
            return 0.0
        case Iid() if law.name.startswith("student_t-"):
            return 0.0
        case Iid() if law.name.startswith("sparse-"):
            return (1 - 3 / law.fourth_moment) ** d_k
    return math.nan


def layer_norm(law: Law, d_k: int, gain: float, epsilon: float) -> Side:
    if d_k == 1:
        return np.zeros(1), np.zeros((1, 1))  # one coordinate is its own mean
    if not _exchangeable(law):
        return _diagonal(d_k, math.nan, math.nan, other=math.nan)
    share = 1 - _all_equal(law, d_k) if epsilon == 0 else math.nan
    variance = gain**2 * share
    return _diagonal(d_k, 0.0, variance, other=-variance / (d_k - 1))


def rms_norm(law: Law, d_k: int, gain: float, epsilon: float) -> Side:
    while isinstance(law, Scaled | CommonScale) and epsilon == 0:
        law = law.base  # what a norm forgets
    if not _about_zero(law):
        return _diagonal(d_k, math.nan, math.nan, other=math.nan)
    # The sign of a coordinate is independent of all else, so means and covariances vanish.
    share = 1 - _all_zero(law, d_k) if epsilon == 0 else math.nan
    return _diagonal(d_k, 0.0, gain**2 * share)


def unit_norm(law: Law, d_k: int) -> Side:
    mean, cov = rms_norm(law, d_k, 1.0, 0.0)
    return mean, cov / d_k


def _one_by_one(law: Law, d_k: int, variance: Callable[[Iid], float]) -> Side:
    """Of a function of each coordinate that is odd, so that symmetry about 0 stays."""
    if not isinstance(law, Iid):
        return _diagonal(d_k, math.nan, math.nan, other=math.nan)
    if not _about_zero(law):
        return _diagonal(d_k, math.nan, math.nan)
    return _diagonal(d_k, 0.0, variance(law))


def clipped(law: Law, d_k: int, bound: float) -> Side:
    def variance(law: Iid) -> float:
        if law == rademacher:
            return min(bound, 1.0) ** 2
        inside, beyond = _split(law, np.asarray(bound))
        return float(inside + min(bound, FAR) ** 2 * beyond)

    return _one_by_one(law, d_k, variance)


def quantised(law: Law, d_k: int, bits: float, bound: float) -> Side:
    def variance(law: Iid) -> float:
        if law == rademacher:
            return float(vectors.quantise(1.0, int(bits), bound)) ** 2
        # Level j is passed with P(abs(x) > (j − 1/2)·step), and j² is the sum of 2i − 1 up to j.
        j = np.arange(1, 2 ** (int(bits) - 1))
        step = bound / len(j)
        _, beyond = _split(law, (j - 0.5) * step)
        return (step * math.sqrt(np.sum((2 * j - 1) * beyond))) ** 2

    return _one_by_one(law, d_k, variance)


def _split(law: Iid, b: Array) -> tuple[Array, Array]:
    """E x² where abs(x) <= b, and P(abs(x) > b); nan for laws whose distribution is not known."""
    b = np.minimum(b, FAR)
    if law == normal:
        return gammainc(1.5, b**2 / 2), erfc(b / math.sqrt(2))
    if law == laplace:
        return gammainc(3, math.sqrt(2) * b), np.exp(-math.sqrt(2) * b)
    if law == uniform:
        share = np.minimum(b / math.sqrt(3), 1.0)
        return share**3, 1 - share
    return np.full_like(b, math.nan), np.full_like(b, math.nan)


def _diagonal(d_k: int, mean: float, variance: float, other: float = 0.0) -> Side:
    cov = np.full((d_k, d_k), other)
    np.fill_diagonal(cov, variance)
    return np.full(d_k, mean), cov
