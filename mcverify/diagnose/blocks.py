"""Units dealt to blocks, and a few unbiased numbers of each block.

Squares and products of estimated means and covariances are biased: 592 tokens give 32 uncorrelated
coordinates an effective rank of 30.3. So each block's units are cut into two halves, and every
product takes one factor from each: independent factors have the product of their expectations.
All is counted in pairs of different units, so that units of unequal sizes do no harm either.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mcverify import theory
from mcverify.arrays import Array, Ints
from mcverify.diagnose.population import Tokens

UNITS_OF_A_BLOCK = 4  # at least: each half needs two for a covariance
PARTS = 16  # of all units, each left out once for a standard error


class _Side(NamedTuple):
    """Of the queries, or the keys, of half of a block.

    Means over units of sums over their tokens; the last two over ordered pairs of different units,
    of sums over pairs of their tokens.
    """

    total: Array  # of vectors less the mean of all tokens
    square: float  # of their lengths
    cov: Array  # Σ times the mean number of pairs
    outer: Array  # μμ' times the mean number of pairs


class _Half(NamedTuple):
    """Half of a block: means over its units, and over ordered pairs of different ones."""

    tokens: float
    pairs: float
    q: _Side
    k: _Side
    cross: Array  # times pairs
    variance: float  # of the score of two tokens of one group, times pairs


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
    parts = min(PARTS, len(units) // UNITS_OF_A_BLOCK)
    part = np.arange(len(units)) // 2 % max(parts, 1)  # of either half the same number
    left = [units[part != leave] for leave in range(parts)] if parts > 1 else []
    return _columns(tokens, [units, *left])


def _shuffled(tokens: Tokens) -> Ints:
    return np.random.default_rng(0).permutation(len(tokens.sizes))


def _columns(tokens: Tokens, blocks: list[Ints]) -> dict[str, Array]:
    scores = (theory.population.pair_sums(tokens.law) if tokens.grouped
              else np.zeros((len(tokens.sizes), 2)))
    totals = tokens.totals(tokens.q), tokens.totals(tokens.k), scores
    rows = []
    for units in blocks:
        a, b = (_half(tokens, totals, half) for half in (units[0::2], units[1::2]))
        rows.append({f"{name}_{side}": value for side in ("q", "k")
                     for name, value in _one_side(a, b, side, tokens).items()} | _both_sides(a, b))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _half(tokens: Tokens, totals: tuple[Array, Array, Array], units: Ints) -> _Half:
    sizes, which = tokens.sizes[units].astype(np.float64), tokens.of_units(units)
    others = (sizes.sum() - np.repeat(sizes, tokens.sizes[units]))[:, None]
    number, ways = len(units), len(units) * (len(units) - 1)
    (q, k), (total_q, total_k, score) = (tokens.q[which], tokens.k[which]), (
        total[units] for total in totals)

    def different(x: Array, y: Array) -> Array:
        # Σ x_g y_h' over pairs of different units.
        return np.asarray(np.outer(x.sum(axis=0), y.sum(axis=0)) - x.T @ y) / ways

    def scatter(x: Array, y: Array, total_x: Array, total_y: Array) -> Array:
        # Σ (x_i − x_j)(y_i − y_j)'/2 over pairs of tokens of different units.
        return np.asarray((x * others).T @ y) / ways - different(total_x, total_y)

    def side(x: Array, total: Array, mean: Array) -> _Side:
        raw = total + np.outer(sizes, mean)
        return _Side(total.sum(axis=0) / number, float(np.sum(x * x)) / number,
                     scatter(x, x, total, total), different(raw, raw))

    first, second, one = score[:, :1], score[:, 1:], sizes[:, None]
    return _Half(
        sizes.sum() / number, different(one, one).item(),
        side(q, total_q, tokens.moments.mean_q), side(k, total_k, tokens.moments.mean_k),
        scatter(q, k, total_q, total_k),
        (different(second, one) - different(first, first)).item(),
    )


def _one_side(a: _Half, b: _Half, side: str, tokens: Tokens) -> dict[str, float]:
    """What is told of q alone, or of k."""
    x, y = getattr(a, side), getattr(b, side)
    mean = getattr(tokens.moments, f"mean_{side}")
    squares = float(np.sum(x.cov * y.cov))
    diagonal = float(np.diag(x.cov) @ np.diag(y.cov))
    return {
        "mean": float((x.total + a.tokens * mean) @ (y.total + b.tokens * mean)),
        # Σ |x_i − x_j|²/2 over the tokens i of one half and j of the other.
        "trace": (x.square * b.tokens + y.square * a.tokens) / 2 - float(x.total @ y.total),
        "traces": float(np.trace(x.cov) * np.trace(y.cov)),
        "squares": squares,
        "diagonal": diagonal,
        "off": squares - diagonal,
    }


def _both_sides(a: _Half, b: _Half) -> dict[str, float]:
    """What is told of q with k: either half gives the one side, the mean of both ways."""

    def both_ways(product: Callable[[_Half, _Half], float]) -> float:
        return float(product(a, b) + product(b, a)) / 2

    covariances = both_ways(lambda x, y: np.sum(x.q.cov * y.k.cov))
    means = both_ways(lambda x, y: np.sum(x.q.outer * y.k.cov) + np.sum(x.q.cov * y.k.outer))
    return {
        "tokens": a.tokens * b.tokens,
        "pairs": a.pairs * b.pairs,
        "cross": float(np.sum(a.cross * b.cross)),
        "traces": both_ways(lambda x, y: np.trace(x.q.cov) * np.trace(y.k.cov)),
        "both": covariances,
        "full": covariances + means,
        "measured": both_ways(lambda x, y: x.variance * y.pairs),
    }
