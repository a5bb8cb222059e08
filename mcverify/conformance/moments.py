"""From the moments that a law declares to whether its draws contradict them.

Compared are at most 8 coordinates, the sum of all, and their alternating sum. A covariance is the
mean of (x − x')(y − y')/2 over pairs of blocks, which needs no mean, declared or measured. The
blocks are the independent units, so every comparison is the interval of ``interval.studentised``,
and none is made where that gives no interval, or where the law lacks the moments it needs.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mcverify.conformance.guard import drawing
from mcverify.judge.measure import describe
from mcverify.judge.world import Array, World
from mcverify.laws import Moments
from mcverify.statistic.studentised import studentised

COORDINATES = 8
BLOCKS = (1024, 4096)  # at least 512 pairs: fewer give no interval at rates of 1e-9
NUMBERS = 2**22  # drawn at most, but for the least number of blocks
SECONDS = 1.0  # spent on drawing at most
PARTS = {"mean_q": 1, "mean_k": 1, "cov_q": 2, "cov_k": 2, "cross": 2}
BOUNDED: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "x²/(1 + x²)": lambda x: x * x / (1 + x * x),
}


def look(world: World, known: list[Any], rate: float) -> list[str]:
    """What is wrong with the declared moments of the world's law; ``known`` as in ``drawing``."""
    law = world.law
    wrong = []
    with drawing(known) as drew, np.errstate(all="ignore"):
        try:
            declared = law.moments(world.d_k)
            wrong = _shapes(declared, world.d_k)
        except Exception as error:
            wrong = [f"moments({world.d_k}) is broken: {describe(error)}; mend it"]
    if drew:
        return [f"moments({world.d_k}) {drew[0]}; declare what is known, nan for what is not"]
    try:
        return wrong or [*_in_itself(world, declared)] or [*_against_draws(world, declared, rate)]
    except ValueError as error:  # of draws
        return [describe(error).removeprefix(f"the law {law} ")]


def _shapes(declared: Moments, d_k: int) -> list[str]:
    wrong = []
    for name, axes in PARTS.items():
        found = np.shape(getattr(declared, name))
        if found != (d_k,) * axes:
            wrong.append(f"moments({d_k}).{name} has shape {found}; it must be {(d_k,) * axes}, "
                         "with nan for what is not known")
    return wrong


def _in_itself(world: World, declared: Moments) -> Iterator[str]:
    law, at = world.law, f"moments({world.d_k})"
    for name in ("cov_q", "cov_k"):
        cov = np.asarray(getattr(declared, name), dtype=np.float64)
        if not np.allclose(cov, cov.T, equal_nan=True):
            yield f"{at}.{name} is not symmetric; a covariance is"
        if (np.diag(cov) < 0).any():
            yield f"{at}.{name} has a negative variance; a variance is at least 0"
        if law.finite_moments > 2 and np.isinf(np.diag(cov)).any():
            yield (f"{at}.{name} is infinite, but finite_moments is {law.finite_moments:g}, "
                   "which promises a variance; change the one or the other")
    cross = np.asarray(declared.cross)
    if not law.coupled and (np.abs(cross[np.isfinite(cross)]) > 1e-12).any():
        yield (f"{at}.cross is not 0, but coupled is False; a token's own q and k depend on each "
               "other: set coupled to True")


def _against_draws(world: World, declared: Moments, rate: float) -> Iterator[str]:
    law, rows = world.law, _directions(world.d_k)
    means, seconds, ties = _block_values(world, rows)
    m = len(rows)
    rate /= 2 * m + (3 + len(BOUNDED)) * m * m  # as many comparisons as there may be
    for name in PARTS:
        values, needed = (means[name], 3) if name in means else (seconds[name], 6)
        if law.finite_moments <= needed:
            continue
        target = _seen_from(rows, np.asarray(getattr(declared, name), dtype=np.float64))
        if name == "cross" and not law.coupled:
            continue  # which is told below, as what it is
        if found := _worst(values, target, rate):
            index, value, low, high = found
            yield (f"moments({world.d_k}).{name} of {_named(rows, index, world.d_k)} is declared "
                   f"{value:.6g}, and the draws have it in [{low:.4g}, {high:.4g}]; correct the "
                   "one or the other")
    for name, values in ties.items() if not law.coupled else ():
        if name == "x" and law.finite_moments <= 6:
            continue
        if found := _worst(values, np.zeros((m, m)), rate):
            index, _, low, high = found
            yield (f"coupled is False, but a token's own q and k are correlated: the covariance "
                   f"of {name} of {_named(rows, index, world.d_k)} is in [{low:.4g}, {high:.4g}]; "
                   "set coupled to True, and declare cross")
            return


def _directions(d_k: int) -> Array:
    """(m, d_k): single coordinates, the sum of all, and their alternating sum, of length 1."""
    single = np.unique(np.linspace(0, d_k - 1, min(d_k, COORDINATES)).round().astype(int))
    rows = [*np.eye(d_k)[single]]
    if d_k > 1:
        rows += [np.full(d_k, d_k**-0.5), d_k**-0.5 * (-1.0) ** np.arange(d_k)]
    return np.array(rows)


def _seen_from(rows: Array, moment: Array) -> Array:
    """A mean (d_k,) or covariance (d_k, d_k) along the rows; nan where it is not known."""
    known = np.where(np.isfinite(moment), moment, 0.0)
    gaps = (~np.isfinite(moment)).astype(np.float64)
    size = np.abs(rows)
    if moment.ndim == 1:
        return np.where(size @ gaps > 0, np.nan, rows @ known)
    return np.where(size @ gaps @ size.T > 0, np.nan, rows @ known @ rows.T)


def _block_values(world: World, rows: Array) -> tuple[dict[str, Array], ...]:
    """By name, values whose mean over the first axis is a moment: one a block, or a pair of them.

    Means (blocks, m); second moments (pairs, m, m); covariances of functions of q with those of k
    of the same token (pairs, m, m).
    """
    numbers = 2 * world.tokens * world.d_k
    blocks = max(BLOCKS[0], min(BLOCKS[1], 2 ** int(np.log2(max(1, NUMBERS // numbers)))))
    chunks, started = list[tuple[Array, Array]](), time.perf_counter()
    for first, size in world.chunks(0, blocks):
        chunks.append(_chunk(world, rows, first, size))
        if time.perf_counter() - started > SECONDS and len(chunks) * size % 2 == 0:
            break  # of a law that takes long; too few blocks give no interval
    q, k = (np.concatenate(part) for part in zip(*chunks, strict=True))
    x, y = _differences(q), _differences(k)
    means = {"mean_q": q.mean(axis=1), "mean_k": k.mean(axis=1)}
    seconds = {"cov_q": _products(x, x), "cov_k": _products(y, y), "cross": _products(x, y)}
    ties = {"x": seconds["cross"]} | {
        name: _products(_differences(f(q)), _differences(f(k))) for name, f in BOUNDED.items()}
    return means, seconds, ties


def _chunk(world: World, rows: Array, first: int, blocks: int) -> tuple[Array, Array]:
    q, k = world.draw(3, first, blocks)
    return q @ rows.T, k @ rows.T


def _differences(x: Array) -> Array:
    """Half as many blocks, each the difference of two, with the covariances of one."""
    return np.asarray((x[::2] - x[1::2]) * 0.5**0.5)


def _products(x: Array, y: Array) -> Array:
    return np.asarray(np.swapaxes(x, 1, 2) @ y / x.shape[1])


def _worst(
    values: Array, target: Array, rate: float
) -> tuple[tuple[int, ...], float, float, float] | None:
    """The entry whose interval is farthest from its target: (index, target, low, high)."""
    means = values.mean(axis=0)
    stderr = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    excess = np.abs(means - target)
    # An interval is wider than 4 standard errors at any rate below 1e-4; sums may cancel.
    excess[excess <= np.maximum(4 * stderr, 1e-9 * np.abs(values).mean())] = np.nan
    scores = excess / stderr
    for index in np.argwhere(scores > 0)[np.argsort(-scores[scores > 0])]:
        place = tuple(index.tolist())
        column, value = values[(slice(None), *place)], float(target[place])
        found = studentised(float(means[place]), column - means[place], rate)
        if not found.low <= value <= found.high:
            return place, value, found.low, found.high
    return None


def _named(rows: Array, index: tuple[int, ...], d_k: int) -> str:
    """What the rows of an entry stand for, in words."""
    names = []
    for i in index:
        row = rows[i]
        names.append(f"coordinate {int(np.argmax(row))}" if row.max() == 1.0 else (
            "the sum of coordinates over √d_k" if row.min() > 0
            else "the alternating sum of coordinates over √d_k"))
    return " and ".join(dict.fromkeys(names))
