"""From an exponent α to coordinates with tails so heavy that sums never become normal."""

import math

import numpy as np

from mcverify.laws.coordinates import Iid
from mcverify.laws.law import Array


def stable(alpha: float) -> Iid:
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
    if not 0.1 <= alpha <= 2:
        raise ValueError(f"stable(alpha={alpha}): alpha must be at least 0.1 and at most 2; use "
                         "e.g. stable(1.5)")

    def sample(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        u = math.pi * (rng.random(shape) - 0.5)
        w = rng.standard_exponential(shape)
        x = np.sin(alpha * u) / np.cos(u) ** (1 / alpha)
        x *= (np.cos((1 - alpha) * u) / w) ** ((1 - alpha) / alpha)
        return x if alpha < 2 else math.sqrt(0.5) * x

    normal = alpha == 2
    return Iid(
        f"stable-{alpha:.12g}",
        sample,
        fourth_moment=3.0 if normal else math.inf,
        mean=0.0 if alpha > 1 else math.nan,
        variance=1.0 if normal else math.inf,
        finite_moments=math.inf if normal else float(alpha),
        symmetric=True,
    )
