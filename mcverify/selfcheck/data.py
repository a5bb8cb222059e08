"""From the names of laws to what is judged on them: populations, coins and orders of known truth.

One value a block is the hardest sample of a law: more only come closer to the normal law. Squares
and fourth powers of one value are so skew that no interval is given for a long time, so blocks of
a variance, a slope and a kurtosis have as many values as those need, and are rows of a table that
is drawn once and is from then on the law, its truth known exactly. Blocks of one ±1 are coins:
their variance and kurtosis are flat at the truth, so that their errors are not normal and only
misses are judged.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from mcverify import laws
from mcverify.attention import scores
from mcverify.laws.coordinates import Iid
from mcverify.selfcheck.exactly import Coin, Order
from mcverify.selfcheck.population import Population, of_shares, of_values, resampled
from mcverify.selfcheck.stream import stream
from mcverify.statistic import (
    Statistic,
    kurtosis,
    mean,
    proportion,
    quantile,
    ratio,
    slope,
    std,
    variance,
)

Array = NDArray[np.float64]
Quantiles = Callable[[Array], Array]

TABLE = 4096  # blocks
TOKENS = {"variance": 16, "std": 16, "slope of variance": 16}
KURTOSIS_TOKENS = {"normal": 256, "laplace": 4096, "exponential": 8192}  # t(9) lacks the moments
AWAY = 3.0  # from 0, in standard deviations of a value, are the means of a ratio and of a slope


def _laplace(u: Array) -> Array:
    side = np.where(u < 0.5, 1.0, -1.0)
    return np.asarray(side * np.log(2 * np.minimum(u, 1 - u)) * math.sqrt(0.5))


def _skew_laplace(u: Array) -> Array:
    # −E in a third of the cases, 2E in the others: mean 1, variance 5, κ/γ² = 2.6. The law with
    # few parameters whose κ/γ² is beyond what the rule was made for: see limits.
    left, right = np.log(3 * np.minimum(u, 1 / 3)), np.log(1.5 * (1 - np.maximum(u, 1 / 3)))
    return np.asarray((np.where(u < 1 / 3, left, -2 * right) - 1) / math.sqrt(5))


@lru_cache
def _student_spline(df: float) -> CubicSpline:
    # stdtrit takes microseconds a number; over the normal score the quantile is smooth: 2e-10.
    z = np.linspace(0, 9, 2001)
    x = -math.sqrt((df - 2) / df) * stdtrit(df, ndtr(-z))
    return CubicSpline(np.concatenate([-z[:0:-1], z]), np.concatenate([-x[:0:-1], x]))


QUANTILES: dict[str, Quantiles] = {
    "normal": ndtri,
    "laplace": _laplace,
    "rademacher": lambda u: np.where(u < 0.5, -1.0, 1.0),
    "exponential": lambda u: -np.log1p(-u) - 1,
    "student_t-9": lambda u: np.asarray(_student_spline(9.0)(ndtri(u))),
    "skew_laplace": _skew_laplace,
}
LAWS = {str(law): law for law in (laws.normal, laws.laplace, laws.rademacher, laws.exponential,
                                  laws.student_t(9))}


def far_from_zero(x: Array) -> Any:
    """Numerator and denominator of a ratio: (blocks, 2) -> two of (blocks, 1)."""
    return x[:, :1] + AWAY, x[:, 1:] + AWAY


def _growing(x: Array) -> Any:
    """Sums of 2 and of 4 values, whose variance grows as their number: (blocks, tokens, 4)."""
    return [(2, x[..., :2].sum(axis=-1)), (4, x.sum(axis=-1))]


def _noisy_end(x: Array) -> Any:
    """A mean of 3 at 1, nearly without error, and of 12 at 4: (blocks, 2) -> (blocks, 1) each."""
    return [(1, AWAY + x[:, :1] / 10), (4, 4 * (AWAY + x[:, 1:]))]


def _table_of(statistic: Statistic, law: Iid) -> Population:
    name, rng = statistic.name, stream(0, "table", statistic.name, str(law))
    if statistic is kurtosis:
        values = law.sample(rng, (TABLE, KURTOSIS_TOKENS[str(law)]))
    elif name.startswith("slope"):
        values = _growing(law.sample(rng, (TABLE, TOKENS[name], 4)))
    else:
        values = law.sample(rng, (TABLE, TOKENS[name]))
    return resampled(str(law), statistic, values)


def scores_table(statistic: Statistic, law: Iid, d_k: int, tokens: int = 31) -> Population:
    """Blocks of all scores of their tokens, which share queries and keys."""
    name = f"scores of {law}, d_k {d_k}"
    rng = stream(0, "table", name)
    return resampled(name, statistic, scores(*law.draw(rng, TABLE, tokens, d_k)))


@lru_cache
def population(statistic: str, data: str) -> Population:
    """The population behind a key of POPULATIONS."""
    return POPULATIONS[statistic, data]()


Builder = Callable[[], Population]


def _populations() -> dict[tuple[str, str], Builder]:
    found: dict[tuple[str, str], Builder] = {("variance", "normal, one"): partial(
        of_values, "normal, one a block", variance, 1.0, QUANTILES["normal"])}
    for name, quantiles in QUANTILES.items():
        if name != "rademacher":
            found["mean", name] = partial(of_values, name, mean, 0.0, quantiles)
        found["ratio", name] = partial(of_values, name, ratio, 1.0, quantiles, far_from_zero, 2)
        found["slope of mean", name] = partial(
            of_values, name, slope(mean), 1.0, quantiles, _noisy_end, 2)
    for name, law in LAWS.items():
        found["slope of variance", name] = partial(_table_of, slope(variance), law)
        if name != "rademacher":
            found["variance", name] = partial(_table_of, variance, law)
            found["std", name] = partial(_table_of, std, law)
        if name in KURTOSIS_TOKENS:
            found["kurtosis", name] = partial(_table_of, kurtosis, law)
    for d_k, statistic in ((2, variance), (8, kurtosis)):
        found[statistic.name, f"scores, d_k {d_k}"] = partial(
            scores_table, statistic, laws.normal, d_k)
    for level in (0.5, 0.9):
        found[quantile(level).name, "four"] = partial(of_shares, level, 4, quantile(level))
    return found


POPULATIONS = _populations()


def _coins() -> dict[tuple[str, str], Coin | Order]:
    above_one = {"normal": float(ndtr(-1)), "laplace": math.exp(-math.sqrt(2)) / 2,
                 "rademacher": 0.5, "exponential": math.exp(-2),
                 "student_t-9": float(stdtr(9, -math.sqrt(9 / 7)))}
    found: dict[tuple[str, str], Coin | Order] = {
        ("proportion", name): Coin(f"{name}, at least 1", proportion, p, p)
        for name, p in above_one.items()}
    for statistic, truth in ((mean, 0.0), (variance, 1.0), (std, 1.0), (kurtosis, -2.0)):
        found[statistic.name, "rademacher"] = Coin("rademacher", statistic, 0.5, truth, -1.0, 1.0)
    for level in (0.5, 0.9):
        found[quantile(level).name, "one"] = Order(level)
    return found


COINS = _coins()
