"""Measure how one-hot softmax is at 396 points of d_k, keys and scale, and set it beside theory.

The law is normal. What is measured draws q and k and knows no theory; what is exact draws nothing.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.polynomial.chebyshev import Chebyshev

from mcverify import theory
from mcverify.arrays import Array
from mcverify.attention.jacobian import JACOBIAN_NORMS, take_top
from mcverify.attention.slabs import SHORT, dot, largest, total
from mcverify.judge.processes import Spread, workers
from mcverify.judge.worker import Killed
from mcverify.judge.world import generator

Row = dict[str, Any]
Point = tuple[int, int, str]
Piece = tuple[Point, Array, float]  # of one point: rows, and what they are to be multiplied by

WIDTHS = tuple(2**i for i in range(11))  # d_k of 1 to 1024
KEYS = tuple(2**i for i in range(1, 13))  # 2 to 4096
POWERS = {"none": 0.0, "sqrt": 0.5, "full": 1.0}  # a scale by its name: d_k^-power

BLOCKS = 32
QUERIES = 128  # of a block
MANY = 256  # keys, which a row of so many or more has to itself; of fewer there are several groups
MANY_QUERIES = 48  # of a block, that meet so many keys: to look at them all costs most of the time
SHARED = 512  # keys of a block that rows of fewer than MANY are made of
ENTRIES = 2**16  # scores that are looked at together, to stay in the cache
SATURATED = 0.99  # a row whose largest weight is above

POINT = ["d_k", "keys", "scale"]
MEASURED = [
    *POINT, "blocks", "rows",
    "entropy_share", "entropy_share_stderr", "max_weight", "max_weight_stderr",
    "frobenius_mean", "frobenius_mean_stderr", "frobenius_median",
    "spectral_mean", "spectral_mean_stderr", "spectral_median",
    "saturated_share", "saturated_share_stderr",
]  # fmt: skip
EXACT = [*POINT, "exact_entropy_share", "exact_max_weight", "exact_frobenius_rms"]

# Degrees of the polynomials in asinh(sigma), at one key and more for each doubling: 1e-8.
DEGREES = {theory.softmax.entropy: (24, 2.0), theory.softmax.max_weight: (22, 2.5),
           theory.softmax.jacobian_frobenius_squared: (27, 4.0)}
NODES = 64  # of the radius of a query, over 14 times its scale: 1e-12
REACH = 7.0  # a radius is within it of √d_k but for a probability of 1e-12


def atlas(
    seed: int = 0, jobs: int | Spread | None = None,
    widths: Sequence[int] = WIDTHS, keys: Sequence[int] = KEYS,
) -> pd.DataFrame:
    """The measured table with the exact columns beside it: a row for each (d_k, keys, scale).

    The arguments are those of ``measured``.
    """
    with ThreadPoolExecutor(1) as beside:  # while processes measure
        wanted = beside.submit(exact, widths, keys)
        frame = measured(seed, jobs, widths, keys)
    return frame.merge(wanted.result(), on=POINT, validate="one_to_one")


# --- measured --------------------------------------------------------------------------------


def measured(
    seed: int = 0, jobs: int | Spread | None = None,
    widths: Sequence[int] = WIDTHS, keys: Sequence[int] = KEYS,
) -> pd.DataFrame:
    """Means and medians over the rows of softmax of drawn scores, with the columns MEASURED.

    ``entropy_share`` is H/ln(keys), ``frobenius`` and ``spectral`` are norms of the softmax
    Jacobian, ``saturated_share`` is the share of rows whose largest weight is above 0.99. Standard
    errors are from block to block. All points are cut from the same draws: a width has the first
    coordinates, a number of keys the first keys. So errors of neighbours go together. The table
    does not depend on ``jobs``, the number of processes (default: one a core), and a row does not
    depend on which others are asked for. Raises ValueError for a bad seed.
    """
    points = [(d_k, n, scale) for d_k in widths for n in keys for scale in POWERS]
    with workers(jobs) as spread:
        of_blocks = dict(spread(_block_values, [(seed, block, tuple(widths), tuple(keys))
                                                for block in range(BLOCKS)]))
    for block, result in of_blocks.items():
        if isinstance(result, Killed):
            raise RuntimeError(f"the process that measured block {block} was killed "
                               f"({result.how}); run again")
    return pd.DataFrame([dict(zip(POINT, point, strict=True)) | _summary(
        np.stack([of_blocks[block][point] for block in range(BLOCKS)])) for point in points],
        columns=MEASURED)


def _block_values(
    seed: int, block: int, widths: Sequence[int], keys: Sequence[int]
) -> dict[Point, Array]:
    """What is asked of each row of a block, (5, rows), at every point."""
    values: dict[Point, Array] = {}
    of_few: dict[int, list[Piece]] = {n: [] for n in keys if n < MANY}
    for d_k, few, many in _scores(seed, block, widths, max(*keys, SHARED)):
        for n in keys:
            if n < MANY:  # one call for all widths takes less time
                of_few[n] += _pieces(_rows_of_few(few, n), d_k)
            else:
                values |= _values(_pieces(many[:, :n], d_k))
    for pieces in of_few.values():
        values |= _values(pieces)
    if 1 in widths:  # where all scales are the same
        values |= {(1, n, scale): values[1, n, "none"] for n in keys for scale in POWERS}
    return values


def _pieces(s: Array, d_k: int) -> list[Piece]:
    """The rows that are looked at, at each scale: scores below the largest of their row."""
    below, n = s - largest(s)[:, None], s.shape[1]
    return [((d_k, n, scale), below[::_step(n, d_k ** (0.5 - power))], d_k**-power)
            for scale, power in POWERS.items() if d_k > 1 or not power]


def _step(n: int, deviation: float) -> int:
    """Every which of the rows of n keys is looked at, by the standard deviation of a score.

    At a scale and d_k all numbers of keys are measured as well as that with the largest errors:
    few keys where scores vary little, many where they vary so much that few have the weight. The
    medians of two and four keys, tiny where scores vary much, need all rows.
    """
    if deviation > 1:
        return 4 if 4 < n < 32 else 1
    if deviation < 1:
        return 4 if n > 8 else 1
    return min(4, n // 512) or 1


def _scores(
    seed: int, block: int, widths: Sequence[int], keys: int
) -> Iterator[tuple[int, Array, Array]]:
    """At each width the scores of all queries with few keys, and of some of them with ``keys``.

    Coordinates are drawn from one power of two to the next: those of 8 to 15 together.
    """
    few, many = np.zeros((QUERIES, SHARED)), np.zeros((MANY_QUERIES, keys))
    start, stop = 0, 1
    while start < max(widths):
        # The usual method, whose first numbers do not depend on how many are asked for.
        stream = generator(seed, "saturation atlas", block, start)
        rng = np.random.Generator(stream.bit_generator)
        q = rng.standard_normal((QUERIES, stop - start))
        k = rng.standard_normal((keys, stop - start))
        for d_k in sorted({stop, *(d_k for d_k in widths if start < d_k < stop)}):
            new = slice(0, d_k - start)
            few_here = few + q[:, new] @ k[:SHARED, new].T
            many_here = many + q[:MANY_QUERIES, new] @ k[:, new].T
            if d_k in widths:
                yield d_k, few_here, many_here
        few, many = few_here, many_here  # of the last, which is stop
        start, stop = stop, 2 * stop


def _rows_of_few(s: Array, n: int) -> Array:
    """Each query with one group of n keys or several, 64 keys in all, and with others in turn."""
    groups, each = SHARED // n, max(1, 64 // n)
    chosen = (each * np.arange(QUERIES)[:, None] + np.arange(each)) % groups
    s = s[:, :groups * n].reshape(QUERIES, groups, n)[np.arange(QUERIES)[:, None], chosen]
    s = s.reshape(-1, n)
    return np.asfortranarray(s) if n <= SHORT else s  # what sums over few keys goes along the rows


def _values(pieces: Sequence[Piece]) -> dict[Point, Array]:
    """What is asked of each row, (5, rows), of pieces with one number of keys."""
    u = np.concatenate([rows * scale for _, rows, scale in pieces])
    ends, at_once = np.cumsum([len(rows) for _, rows, _ in pieces]), max(1, ENTRIES // u.shape[1])
    values = np.concatenate([_values_at_once(u[first:first + at_once])
                            for first in range(0, len(u), at_once)], axis=1)
    return {point: each for (point, _, _), each in zip(
        pieces, np.split(values, ends[:-1], axis=1), strict=True)}


def _values_at_once(u: Array) -> Array:
    """Entropy share, largest weight, Frobenius and spectral norm, saturated: (5, rows).

    From scores less the largest of their row, so that its exponential is 1.
    """
    rest = np.exp(u)
    sum_below = dot(rest, u)
    take_top(rest)
    others = total(rest)
    top = 1 / (1 + others)
    share = (np.log1p(others) - top * sum_below) / math.log(u.shape[1])
    rest *= top[:, None]
    frobenius = JACOBIAN_NORMS["frobenius"](top, rest)
    # Of two keys' Jacobian one eigenvalue is 0, and its norms are the same.
    spectral = frobenius if u.shape[1] == 2 else JACOBIAN_NORMS["spectral"](top, rest)
    return np.stack([share, top, frobenius, spectral, top > SATURATED])


def _summary(values: Array) -> Row:
    """Means with standard errors, and medians: (blocks, 5, rows) -> the columns behind POINT."""
    names = ["entropy_share", "max_weight", "frobenius_mean", "spectral_mean", "saturated_share"]
    blocks, _, count = values.shape
    means = values.mean(axis=2)
    row: Row = {"blocks": blocks, "rows": blocks * count}
    row |= dict(zip(names, means.mean(axis=0).tolist(), strict=True))
    stderr = means.std(axis=0, ddof=1) / math.sqrt(blocks)
    row |= {f"{name}_stderr": x for name, x in zip(names, stderr.tolist(), strict=True)}
    frobenius, spectral = np.median(values[:, 2:4], axis=(0, 2)).tolist()
    return row | {"frobenius_median": frobenius, "spectral_median": spectral}


# --- exact -----------------------------------------------------------------------------------


def exact(widths: Sequence[int] = WIDTHS, keys: Sequence[int] = KEYS) -> pd.DataFrame:
    """Expectations of entropy share and largest weight, and √E‖J‖_F², with the columns EXACT.

    Scores that share a query of length r are independent N(0, (scale·r)²), and r² ~ χ²(d_k). So
    ``theory.softmax`` is asked for independent scores alone, at few sigma, and its functions of
    sigma, interpolated, are mixed over r. Relative error below 1e-8 on the default grid.
    """
    # No scale is above 1, so that no standard deviation is above the longest query.
    longest = math.sqrt(max(widths)) + REACH
    of_keys = {n: _functions(n, longest) for n in keys}
    table = []
    for d_k in widths:
        radii, weight = _radii(d_k)
        for n in keys:
            for scale, power in POWERS.items():
                h, top, squared = (weight @ f(d_k**-power * radii) for f in of_keys[n])
                table.append([d_k, n, scale, h / math.log(n), top, math.sqrt(squared)])
    return pd.DataFrame(table, columns=EXACT)


def _functions(n: int, longest: float) -> list[Callable[[Array], Array]]:
    """Entropy, largest weight and ‖J‖_F² of n independent scores, as functions of sigma."""
    return [_interpolated(partial(function, n), round(least + more * math.log2(n)), longest)
            for function, (least, more) in DEGREES.items()]


def _interpolated(
    function: Callable[[float], float], degree: int, longest: float
) -> Callable[[Array], Array]:
    # They are smooth at sigma = 0 and end as powers of sigma: in asinh(sigma), which turns from
    # sigma to its logarithm, their own logarithms are nearly straight at both ends.
    def log_value(x: Array) -> Array:
        return np.log([function(sigma) for sigma in np.sinh(x).tolist()])

    polynomial = Chebyshev.interpolate(log_value, degree, domain=[0, math.asinh(longest)])
    return lambda sigma: np.exp(polynomial(np.arcsinh(sigma)))


def _radii(d_k: int) -> tuple[Array, Array]:
    """Lengths r of a query and their weights, r² ~ χ²(d_k), on Gauss-Legendre nodes."""
    low, high = max(0.0, math.sqrt(d_k) - REACH), math.sqrt(d_k) + REACH
    x, w = np.polynomial.legendre.leggauss(NODES)
    r = low + (high - low) * (x + 1) / 2
    log_density = (d_k - 1) * np.log(r) - r**2 / 2
    weight = w * np.exp(log_density - log_density.max())
    return r, weight / weight.sum()
