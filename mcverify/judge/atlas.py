"""From widths, numbers of keys and scales to the saturation atlas: how one-hot softmax is there.

The law is normal. What is measured draws q and k and knows no theory; what is exact draws nothing.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.polynomial.chebyshev import Chebyshev
from numpy.typing import NDArray

from mcverify import theory
from mcverify.attention import entropy, jacobian_norm, max_weight, rows, softmax
from mcverify.judge.processes import Killed, workers
from mcverify.judge.world import World
from mcverify.laws import normal

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]
Row = dict[str, Any]

WIDTHS = tuple(2**i for i in range(11))  # d_k of 1 to 1024
KEYS = tuple(2**i for i in range(1, 13))  # 2 to 4096
POWERS = {"none": 0.0, "sqrt": 0.5, "full": 1.0}  # a scale by its name: d_k^-power

BLOCKS = 64  # a power of two, as chunks ask for
TOKENS = 64  # of a block, or the next multiple of keys; more rows that share queries tell little
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

DEGREE = 80  # of the polynomials in asinh(sigma): 1e-9 at 4096 keys, where they bend most
NODES = 64  # of the radius of a query, over 14 times its scale: 1e-12
REACH = 7.0  # a radius is within it of √d_k but for a probability of 1e-12


def atlas(
    seed: int = 0, jobs: int | None = None,
    widths: Sequence[int] = WIDTHS, keys: Sequence[int] = KEYS,
) -> pd.DataFrame:
    """The measured table with the exact columns beside it: a row for each (d_k, keys, scale).

    The arguments are those of ``measured``.
    """
    frame = measured(seed, jobs, widths, keys)
    return frame.merge(exact(widths, keys), on=POINT, validate="one_to_one")


# --- measured --------------------------------------------------------------------------------


def measured(
    seed: int = 0, jobs: int | None = None,
    widths: Sequence[int] = WIDTHS, keys: Sequence[int] = KEYS,
) -> pd.DataFrame:
    """Means and medians over the rows of softmax of drawn scores, with the columns MEASURED.

    ``entropy_share`` is H/ln(keys), ``frobenius`` and ``spectral`` are norms of the softmax
    Jacobian, ``saturated_share`` is the share of rows whose largest weight is above 0.99. Standard
    errors are from block to block. The table does not depend on ``jobs``, the number of processes
    (default: one a core), and a row does not depend on which others are asked for.
    Raises ValueError for a bad seed.
    """
    points = [(d_k, n) for d_k in widths for n in keys]
    # Costly ones first, so that none is left to the end. A key's scores cost like 100 coordinates.
    order = sorted(points, key=lambda point: -_tokens(point[1]) * (point[0] + 100))
    with workers(jobs) as spread:
        found = dict(spread(_measured_at, [(seed, d_k, n) for d_k, n in order]))
    table = {point: found[index] for index, point in enumerate(order)}
    for point, result in table.items():
        if isinstance(result, Killed):
            raise RuntimeError(f"the process that measured d_k, keys = {point} was killed "
                               f"({result.how}); run again")
    return pd.DataFrame([row for point in points for row in table[point]], columns=MEASURED)


def _tokens(n: int) -> int:
    """The tokens of a block, a multiple of n."""
    return n * -(-TOKENS // n)


def _measured_at(seed: int, d_k: int, n: int) -> list[Row]:
    """The rows of one width and number of keys, one for each scale, all from the same scores."""
    world = World(normal, d_k, _tokens(n))
    values: dict[str, list[Floats]] = {scale: [] for scale in POWERS}
    for first, blocks in world.chunks(0, BLOCKS):
        for s in rows(*world.draw(seed, first, blocks), n):  # block by block, to stay in the cache
            for scale, power in POWERS.items():
                values[scale].append(_values(softmax(s * d_k**-power)))
    return [{"d_k": d_k, "keys": n, "scale": scale} | _summary(np.stack(of_scale))
            for scale, of_scale in values.items()]


def _values(p: Floats) -> Floats:
    """What is asked of each row of weights: (rows, keys) -> (5, rows)."""
    top = max_weight(p)
    return np.stack([entropy(p) / math.log(p.shape[-1]), top, jacobian_norm(p),
                     jacobian_norm(p, "spectral"), top > SATURATED])


def _summary(values: Floats) -> Row:
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
    return [_interpolated(function, n, longest) for function in (
        theory.softmax.entropy, theory.softmax.max_weight,
        theory.softmax.jacobian_frobenius_squared,
    )]  # fmt: skip


def _interpolated(
    function: Callable[[int, float], float], n: int, longest: float
) -> Callable[[Array], Array]:
    # They are smooth at sigma = 0 and end as powers of sigma: in asinh(sigma), which turns from
    # sigma to its logarithm, their own logarithms are nearly straight at both ends.
    def log_value(x: Array) -> Array:
        return np.log([function(n, sigma) for sigma in np.sinh(x).tolist()])

    polynomial = Chebyshev.interpolate(log_value, DEGREE, domain=[0, math.asinh(longest)])
    return lambda sigma: np.exp(polynomial(np.arcsinh(sigma)))


def _radii(d_k: int) -> tuple[Array, Array]:
    """Lengths r of a query and their weights, r² ~ χ²(d_k), on Gauss-Legendre nodes."""
    low, high = max(0.0, math.sqrt(d_k) - REACH), math.sqrt(d_k) + REACH
    x, w = np.polynomial.legendre.leggauss(NODES)
    r = low + (high - low) * (x + 1) / 2
    log_density = (d_k - 1) * np.log(r) - r**2 / 2
    weight = w * np.exp(log_density - log_density.max())
    return r, weight / weight.sum()
