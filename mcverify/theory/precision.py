"""Where floating point gives out: the scores whose exponential, or that themselves, overflow."""

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import DTypeLike

from mcverify.arrays import Array
from mcverify.theory.radius import log_density

LARGEST = {  # the largest finite number of each type
    "float16": (2 - 2.0**-10) * 2.0**15,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
}
DEPTH = 45.0  # what is below e^-DEPTH of an integrand's maximum is left out
MAX_WIDTH = 10**12  # of the widths that are tried; beyond, rounding shows in the tenth digit


def largest_exponent(dtype: DTypeLike) -> float:
    """ln of the largest finite number: exp(s) of the type is infinite just beyond it.

    ``dtype`` is "float16", "bfloat16", "float32", "float64", or what NumPy understands as one.
    Raises ValueError for another.

    >>> [round(largest_exponent(dtype), 2) for dtype in ("float16", "float32", np.float64)]
    [11.09, 88.72, 709.78]
    """
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in LARGEST:
        raise ValueError(f"largest_exponent({name!r}): the type must be one of "
                         f"{', '.join(LARGEST)}")
    return math.log(LARGEST[name])


def row_overflow(
    d_k: int, keys: int, limit: float, scale: float = 1.0, two_sided: bool = False
) -> float:
    """P(at least one of ``keys`` scores q·k·scale that share a query exceeds ``limit``).

    q and k are standard normal with d_k coordinates; two-sided, the size of a score counts. With
    ``limit = largest_exponent(dtype)`` it is the probability that exp of one score overflows,
    which is when ``naive_softmax`` gives NaN. That the *sum* of the exponentials overflows is
    likelier: it implies a score above limit − ln(keys), so its probability is between this and
    ``row_overflow(d_k, keys, limit - math.log(keys), scale)``.

    Relative accuracy 1e-9 down to the smallest normal number. Raises ValueError unless d_k is from
    1 to 1e12, keys at least 1, and limit and scale are positive and finite.
    Source: given r = |q|, scores are independent N(0, scale²r²), r² ~ χ²(d_k); so it is the mean
    of 1 − Φ(limit/(scale·r))^keys, and two-sided of 1 − (1 − 2Φ(−limit/(scale·r)))^keys.

    >>> round(row_overflow(2, 1, limit=math.log(5)), 12)  # two coordinates: a Laplace score
    0.1
    """
    _check(d_k, keys, limit, scale)
    score = min(limit / scale, 1e150)  # of q·k; squares of more overflow, and its chance is 0
    if _log_chernoff(d_k, keys, score) < -800:
        return 0.0  # the smallest float64 is e^-745

    def given_radius(u: Array) -> Array:
        x = score / math.sqrt(d_k) * np.exp(-u)
        return _log_any(x, keys, two_sided) + log_density(u, d_k)

    left = -math.sqrt(2 * DEPTH / d_k) - DEPTH / d_k  # long since below e^-DEPTH: r is small there
    log_total = _log_integral(lambda u: log_density(u, d_k), left, -left)
    return min(1.0, math.exp(_log_integral(given_radius, left, -left) - log_total))


def product_overflow(
    d_k: int, keys: int = 1, std: float = 1.0, scale: float = 1.0,
    limit: float = LARGEST["float16"],
) -> float:  # fmt: skip
    """P(one of ``keys`` products |q·k| of a query, with q scaled first, exceeds ``limit``).

    The coordinates of q and k are N(0, std²), so products have standard deviation scale·std²·√d_k:
    scale 1 is to scale after the product, scale 1/√d_k before it. What counts is the finished
    product, summed in a wider type; the limit is the largest float16, and rounding leaves numbers
    finite up to 65520. Raises ValueError as ``row_overflow`` does.

    >>> after, before = product_overflow(64, std=64.0), product_overflow(64, std=64.0, scale=1 / 8)
    >>> after > 0.03, before < 1e-30
    (True, True)
    """
    return row_overflow(d_k, keys, limit, scale * std**2, two_sided=True)


def rounding_distance(spacing: float) -> float:
    """Total variation between a row of softmax weights and that of its scores rounded.

    Of many scores rounded to the nearest multiple of ``spacing``, each off by δ, uniform within
    half of it: E max(e^δ/E e^δ − 1, 0), which is spacing/8 in the limit of fine rounding.

    >>> round(rounding_distance(1.0), 4), round(rounding_distance(1 / 64), 6), 1 / 512
    (0.1233, 0.001953, 0.001953125)
    """
    half = spacing / 2
    mean = math.sinh(half) / half
    return ((math.exp(half) - mean) / mean - (half - math.log(mean))) / spacing


def _check(d_k: int, keys: int, limit: float, scale: float) -> None:
    if not 1 <= d_k <= MAX_WIDTH or not keys >= 1:
        raise ValueError(f"d_k = {d_k} and keys = {keys}: d_k is from 1 to {MAX_WIDTH:g} and keys "
                         "1 or more; pass the width of a head and the number of keys of a row")
    if not (0 < limit < math.inf and 0 < scale < math.inf):
        raise ValueError(f"limit = {limit} and scale = {scale}: both must be positive and finite; "
                         "pass e.g. largest_exponent('float32')")


def _log_chernoff(d_k: int, keys: int, score: float) -> float:
    """ln of 2·keys·E e^{t(q·k − score)} = 2·keys·(1 − t²)^(−d_k/2) e^(−t·score) at the best t."""
    t = min(2 * score / (math.hypot(d_k, 2 * score) + d_k), 1 - 1e-9)
    return math.log(2 * keys) - d_k / 2 * math.log1p(-(t**2)) - t * score


def _log_any(x: Array, keys: int, two_sided: bool) -> Array:
    """ln of the probability that one of ``keys`` independent N(0, 1) exceeds x > 0."""
    one: Array = np.minimum(scipy.special.log_ndtr(-x) + (math.log(2) if two_sided else 0.0), 0.0)
    with np.errstate(divide="ignore"):  # ln 0 where p is 1, and of where p is below all numbers
        any_of_them = np.log(-np.expm1(keys * np.log1p(-np.exp(one))))
    return np.asarray(np.where(one > -600, any_of_them, one + math.log(keys)))


def _log_integral(h: Callable[[Array], Array], left: float, right: float) -> float:
    """ln ∫ e^h of a concave h, negligible left of ``left``, that may peak beyond ``right``.

    Both integrands here are log-concave in u: ln Φ(−ae^−u) is concave and increasing, and so is
    ln(1 − (1 − p)^n) as a function of ln p. So what is within e^−DEPTH of the maximum is an
    interval, which a few grids enclose; in it a trapezoid is halved until it settles.
    """
    while True:
        u = np.linspace(left, right, 65)
        values = h(u)
        inside = np.flatnonzero(values > values.max() - DEPTH)
        if inside[-1] == 64:
            right += right - left
        elif len(inside) < 16:
            left, right = float(u[max(inside[0] - 1, 0)]), float(u[inside[-1] + 1])
        else:
            break
    top, last = float(values.max()), math.nan
    for intervals in 2 ** np.arange(7, 18):
        u = np.linspace(left, right, intervals + 1)
        total = float(np.exp(h(u) - top).sum()) * (right - left) / intervals
        if abs(total - last) <= 1e-12 * total:
            break
        last = total
    return top + math.log(total)
