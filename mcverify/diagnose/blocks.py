"""From independent units to blocks of them, and a few unbiased numbers for each block.

Squares and products of estimated means and covariances are biased: 592 tokens give 32 uncorrelated
coordinates an effective rank of 30.3. So each block's units are cut into two halves, and every
product takes one factor from each: independent factors have the product of their expectations.
All is counted in pairs of different units, so that units of unequal sizes do no harm either.
"""

from functools import lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from mcverify.diagnose.population import Indices, Tokens
from mcverify.laws.law import Array
from mcverify.statistic.interval import CAUTION

LEAST = 4  # units a block: each half needs two for a covariance
SPARE = 1.25  # so many times the blocks that an interval takes: more would only be smaller ones
LARGE = 64  # units a block, from which on there are more blocks instead of larger ones
PARTS = 16  # of all units, each left out once for a standard error


@lru_cache
def blocks_needed(rate: float, caution: float = CAUTION) -> int:
    """The fewest blocks that interval.studentised gives an interval for.

    >>> blocks_needed(1e-4)
    130
    """
    return next(blocks for blocks in count(2)
                if blocks >= caution * float(stdtrit(blocks - 1, rate / 2)) ** 2)


def number_of_blocks(units: int, rate: float) -> int:
    """How many blocks so many units are cut into: few and large ones, for small errors.

    >>> [number_of_blocks(units, 1e-4) for units in (21, 592, 5000, 10**6)]
    [5, 148, 162, 15625]
    """
    return max(min(int(SPARE * blocks_needed(rate)), units // LEAST), units // LARGE)


class _Half(NamedTuple):
    """Means over half of a block's units, or over the ordered pairs of different ones of them.

    Of each unit, or pair, they are sums over its tokens, or pairs of tokens.
    """

    tokens: float
    sum_q: Array  # of q less the mean of all tokens
    sum_k: Array
    square_q: float
    square_k: float
    pairs: float
    cov_q: Array  # times pairs, as all below
    cov_k: Array
    cross: Array
    mean_q: Array  # μ_q μ_q'
    mean_k: Array
    variance: float  # of the score of two tokens of one group


def block_sums(tokens: Tokens, blocks: int) -> dict[str, Array]:
    """Named columns of one number a block; a quotient of two expectations is a number of the law.

    Units are dealt to blocks and halves in an order shuffled once for all: neighbours, or tokens
    a sentence's length apart, may be alike. So even where tokens are not independent the numbers
    are those of the arrays: a block is a random sample of them.
    """
    units = _shuffled(tokens)
    return _columns(tokens, [units[block::blocks] for block in range(blocks)])


def whole_sums(tokens: Tokens) -> dict[str, Array]:
    """The same of all units as one block, and then of all but a 16th of them, 16 times.

    One block of all units makes the smallest errors; blocks are for intervals.
    """
    units = _shuffled(tokens)
    parts = min(PARTS, len(units) // LEAST)
    part = np.arange(len(units)) // 2 % max(parts, 1)  # of either half the same number
    left = [units[part != leave] for leave in range(parts)] if parts > 1 else []
    return _columns(tokens, [units, *left])


def _shuffled(tokens: Tokens) -> Indices:
    return np.random.default_rng(0).permutation(len(tokens.sizes))


def _columns(tokens: Tokens, blocks: list[Indices]) -> dict[str, Array]:
    scores = tokens.pairs if tokens.grouped else np.zeros((len(tokens.sizes), 2))
    sums = tokens.totals(tokens.q), tokens.totals(tokens.k), scores
    rows = []
    for units in blocks:
        a, b = (_half(tokens, sums, half) for half in (units[0::2], units[1::2]))
        rows.append(_one_side(a, b, "q", tokens.mean_q) | _one_side(a, b, "k", tokens.mean_k)
                    | _both_sides(a, b))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _half(tokens: Tokens, sums: tuple[Array, Array, Array], units: Indices) -> _Half:
    sizes = tokens.sizes[units].astype(np.float64)
    which = tokens.of_units(units)
    q, k, number, ways = tokens.q[which], tokens.k[which], len(units), len(units) * (len(units) - 1)
    unit_q, unit_k = sums[0][units], sums[1][units]
    others = (sizes.sum() - np.repeat(sizes, tokens.sizes[units]))[:, None]
    raw_q, raw_k = (unit + np.outer(sizes, mean) for unit, mean in
                    ((unit_q, tokens.mean_q), (unit_k, tokens.mean_k)))

    def different(x: Array, y: Array) -> Array:
        # Σ x_g y_h' over pairs of different units.
        return np.asarray(np.outer(x.sum(axis=0), y.sum(axis=0)) - x.T @ y) / ways

    def scatter(x: Array, y: Array, unit_x: Array, unit_y: Array) -> Array:
        # Σ (x_i − x_j)(y_i − y_j)'/2 over pairs of tokens of different units.
        return np.asarray((x * others).T @ y) / ways - different(unit_x, unit_y)

    first, second, one = sums[2][units, :1], sums[2][units, 1:], sizes[:, None]
    return _Half(
        sizes.sum() / number, unit_q.sum(axis=0) / number, unit_k.sum(axis=0) / number,
        float(np.sum(q * q)) / number, float(np.sum(k * k)) / number,
        different(one, one).item(),
        scatter(q, q, unit_q, unit_q), scatter(k, k, unit_k, unit_k), scatter(q, k, unit_q, unit_k),
        different(raw_q, raw_q), different(raw_k, raw_k),
        (different(second, one) - different(first, first)).item(),
    )


def _one_side(a: _Half, b: _Half, side: str, mean: Array) -> dict[str, float]:
    """What is told of q alone, or of k: names end in the side."""
    total, square, cov = (
        [getattr(half, f"{name}_{side}") for half in (a, b)] for name in ("sum", "square", "cov"))
    squares = float(np.sum(cov[0] * cov[1]))
    diagonal = float(np.diag(cov[0]) @ np.diag(cov[1]))
    found = {
        "mean": float((total[0] + a.tokens * mean) @ (total[1] + b.tokens * mean)),
        # Σ |x_i − x_j|²/2 over the tokens i of one half and j of the other.
        "trace": (square[0] * b.tokens + square[1] * a.tokens) / 2 - float(total[0] @ total[1]),
        "traces": float(np.trace(cov[0]) * np.trace(cov[1])),
        "squares": squares,
        "diagonal": diagonal,
        "off": squares - diagonal,
    }
    return {f"{name}_{side}": value for name, value in found.items()}


def _both_sides(a: _Half, b: _Half) -> dict[str, float]:
    """What is told of q with k: either half gives the one side, the mean of both ways."""

    def crossed(x: str, y: str) -> float:
        return float(np.sum(getattr(a, x) * getattr(b, y))
                     + np.sum(getattr(b, x) * getattr(a, y))) / 2

    return {
        "tokens": a.tokens * b.tokens,
        "pairs": a.pairs * b.pairs,
        "cross": float(np.sum(a.cross * b.cross)),
        "traces": float(np.trace(a.cov_q) * np.trace(b.cov_k)
                        + np.trace(b.cov_q) * np.trace(a.cov_k)) / 2,
        "both": crossed("cov_q", "cov_k"),
        "full": crossed("cov_q", "cov_k") + crossed("mean_q", "cov_k") + crossed("cov_q", "mean_k"),
        "measured": crossed("variance", "pairs"),
    }
