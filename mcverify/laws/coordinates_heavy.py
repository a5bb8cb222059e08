"""Laws of independent coordinates with heavy tails: Student's t, sparse ones, stable ones."""

import math
from typing import Annotated

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.coordinates import Iid
from mcverify.laws.law import Rng, With
from mcverify.laws.parameters import Range, checked


@checked
def student_t(df: Annotated[float, Range(0.05, rule=(
    "at least 0.05, below which draws overflow, and finite; use laws.normal for the limit"),
    order=True)],
) -> Iid:
    """Student's t, scaled to variance 1 where it has a variance (df > 2), raw otherwise.

    Absolute moments exist below order ``df``. Raises ValueError unless 0.05 ≤ df < inf.

    >>> str(student_t(5)), student_t(5).fourth_moment, student_t(5).finite_moments
    ('student_t-5', 9.0, 5.0)
    """
    return Iid(
        f"student_t-{df:.12g}",
        With(_student_t, df),
        fourth_moment=3 + 6 / (df - 4) if df > 4 else math.inf,
        mean=0.0 if df > 1 else math.nan,
        variance=1.0 if df > 2 else math.inf,
        finite_moments=float(df),
        symmetric=True,
        atoms=(),
    )


def _student_t(rng: Rng, shape: tuple[int, ...], df: float) -> Array:
    """As a point of the plane whose angle is uniform, and (1 + r²/df)^(−df/2) of whose distance r.

    Two thirds of the time of Generator.standard_t, which needs a gamma law.
    Source: Bailey 1994, doi 10.1090/S0025-5718-1994-1208571-8.
    """
    t = rng.random(shape)
    t *= math.pi
    np.tan(t, out=t)  # of half the angle
    if df == 1:
        return t
    half = rng.standard_exponential(shape)
    half /= df
    x = np.exp(half)
    half *= -2
    np.negative(np.expm1(half, out=half), out=half)
    x *= np.sqrt(half, out=half)
    t *= t
    x *= np.subtract(1, t, out=half)
    t += 1
    x /= t
    x *= math.sqrt(df - 2 if df > 2 else df)
    return x


@checked
def sparse(
    share: Annotated[float, Range(0, 1, "above 0 and at most 1; use e.g. sparse(0.1)", above=True)],
) -> Iid:
    """Zero, but for a ``share`` of the coordinates that are N(0, 1/share): variance 1.

    Raises ValueError unless 0 < share <= 1.

    >>> str(sparse(0.1)), round(sparse(0.1).fourth_moment, 12)
    ('sparse-0.1', 30.0)
    """
    return Iid(f"sparse-{share:.12g}", With(_sparse, share), fourth_moment=3 / share,
               symmetric=True, atoms=((0.0, 1 - share),))


def _sparse(rng: Rng, shape: tuple[int, ...], share: float) -> Array:
    chosen = rng.random(shape) < share
    x = np.zeros(shape)
    x[chosen] = rng.standard_normal(np.count_nonzero(chosen)) / math.sqrt(share)
    return x


@checked
def stable(
    alpha: Annotated[float, Range(0.1, 2, "at least 0.1 and at most 2; use e.g. stable(1.5)",
                                  order=True)],
) -> Iid:
    """The symmetric α-stable law: sums of d coordinates have its own shape, d^(1/α) times as wide.

    Its characteristic function is exp(−abs(t)^α), so α = 1 is the Cauchy law. α = 2, the only one
    with a variance, is scaled to variance 1 and so is the normal law. Absolute moments exist below
    order α. Drawn by the formula of Chambers, Mallows and Stuck (1976, doi:
    10.1080/01621459.1976.10480344). Raises ValueError unless 0.1 <= alpha <= 2: below, draws
    leave the range of double precision.

    >>> str(stable(1.5)), stable(1.5).finite_moments, stable(1.5).mean, stable(1.5).variance
    ('stable-1.5', 1.5, 0.0, inf)
    >>> stable(2).variance, stable(2).fourth_moment
    (1.0, 3.0)
    """
    light = alpha == 2
    return Iid(
        f"stable-{alpha:.12g}",
        With(_stable, alpha),
        fourth_moment=3.0 if light else math.inf,
        mean=0.0 if alpha > 1 else math.nan,
        variance=1.0 if light else math.inf,
        finite_moments=math.inf if light else float(alpha),
        symmetric=True,
        atoms=(),
        round=light,
    )


def _stable(rng: Rng, shape: tuple[int, ...], alpha: float) -> Array:
    u = math.pi * (rng.random(shape) - 0.5)
    w = rng.standard_exponential(shape)
    x = np.sin(alpha * u) / np.cos(u) ** (1 / alpha)
    x *= (np.cos((1 - alpha) * u) / w) ** ((1 - alpha) / alpha)
    return x if alpha < 2 else math.sqrt(0.5) * x
