"""Laws of one coordinate from frozen ``scipy.stats`` distributions."""

import hashlib
import math
import warnings
from typing import Any

import numpy as np

from mcverify.laws.coordinates import Iid
from mcverify.laws.law import Array, Rng


def iid(distribution: Any, raw: bool = False) -> Iid:
    """The law of a frozen ``scipy.stats`` distribution, standardised unless ``raw=True``.

    Mean, variance and fourth moment are taken from it; the order of its finite moments is read
    off its tails. Raises TypeError for anything else, ValueError when it cannot be standardised.

    >>> from scipy import stats
    >>> law = iid(stats.gamma(4))
    >>> str(law), law.mean, law.variance, law.fourth_moment
    ('iid[gamma-4]', 0.0, 1.0, 4.5)
    """
    if not (hasattr(distribution, "dist") and hasattr(distribution, "rvs")):
        raise TypeError(f"iid({distribution!r}): takes a frozen scipy.stats distribution; "
                        "freeze it by calling it, e.g. scipy.stats.gamma(4)")
    mean, variance, _, excess = (float(value) for value in distribution.stats(moments="mvsk"))
    if raw:
        shift, scale = 0.0, 1.0
    elif math.isfinite(mean) and 0 < variance < math.inf:
        shift, scale = mean, math.sqrt(variance)
    else:
        raise ValueError(f"iid({_frozen_name(distribution)}): mean {mean:.12g} and variance "
                         f"{variance:.12g} cannot be standardised; use raw=True")

    def sample(rng: Rng, shape: tuple[int, ...]) -> Array:
        drawn = np.asarray(distribution.rvs(size=shape, random_state=rng), dtype=np.float64)
        return (drawn - shift) / scale

    return Iid(
        f"{'raw' if raw else 'iid'}[{_frozen_name(distribution)}]",
        sample,
        fourth_moment=excess + 3,
        mean=mean if raw else 0.0,
        variance=variance if raw else 1.0,
        finite_moments=tail_index(distribution),
    )


def _frozen_name(distribution: Any) -> str:
    args = [f"{value:.12g}" for value in distribution.args]
    named = [f"{name}:{value:.12g}" for name, value in sorted(distribution.kwds.items())]
    told = []
    if type(distribution.dist).__name__ in ("rv_sample", "rv_histogram"):
        # Made from a table, it has no parameters to be told apart by: its quantiles do it.
        quantiles = np.asarray(distribution.ppf((np.arange(512) + 0.5) / 512), dtype=np.float64)
        told = [hashlib.blake2b(quantiles.tobytes(), digest_size=4).hexdigest()]
    return "-".join([distribution.dist.name, *args, *named, *told])


def tail_index(distribution: Any) -> float:
    """The a of the heavier tail P(abs(x) > u) ~ u^−a, inf for tails lighter than any power.

    Moments exist below order a. For a continuous law it is read off the quantiles at 1e-50 and
    1e-100 (Student t gives its df), so a law that only looks heavy there, such as a wide
    lognormal, gets a finite order: too few moments declared is the safe side. Where quantiles
    give out or stand still, and for discrete laws, the moments themselves are asked.

    >>> from scipy import stats
    >>> [round(tail_index(law), 6) for law in (stats.t(3), stats.cauchy(), stats.norm())]
    [3.0, 1.0, inf]
    """
    if not hasattr(distribution.dist, "pdf"):
        return _moments_by_value(distribution)
    near, far = 1e-50, 1e-100
    left, right = distribution.support()
    index = math.inf
    for end, quantile in ((left, distribution.ppf), (right, distribution.isf)):
        if math.isfinite(end):
            continue  # no tail on this side
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of quantiles that give out
            inner, outer = abs(float(quantile(near))), abs(float(quantile(far)))
        if math.inf > outer > inner > 0:
            index = min(index, math.log(near / far) / math.log(outer / inner))
        else:
            index = min(index, _moments_by_value(distribution))
    return index if index < 30 else math.inf  # an exponential tail reads as 115/ln 2 = 166


def _moments_by_value(distribution: Any) -> float:
    with np.errstate(all="ignore"):
        return next((float(order) for order in range(1, 25)
                     if not math.isfinite(float(distribution.moment(order)))), math.inf)
