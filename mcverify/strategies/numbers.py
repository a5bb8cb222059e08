"""Draw numbers, means and covariances: what worlds, bodies and laws are made with."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcverify.arrays import Array
from mcverify.laws.parameters import Range

LEAST_ORDER = 0.5  # of drawn exponents and degrees of freedom: at 0.03 Student t draws infinities


def widths(max_d_k: int = 64, even: bool = False, min_d_k: int = 1) -> SearchStrategy[int]:
    """d_k from ``min_d_k`` to ``max_d_k``; shrinks to the narrowest. ``even`` for rotary positions.

    Raises ValueError where there is none.

    >>> from hypothesis import find
    >>> find(widths(even=True), lambda d_k: d_k > 4)
    6
    """
    step = 2 if even else 1
    least, most = -(-min_d_k // step), max_d_k // step
    if not 1 <= min_d_k <= max_d_k or least > most:
        raise ValueError(f"widths({max_d_k}, even={even}, min_d_k={min_d_k}): there is no such "
                         "width; it needs 1 <= min_d_k <= max_d_k")
    return st.integers(least, most).map(lambda n: step * n)


def tokens(max_tokens: int = 8) -> SearchStrategy[int]:
    """Tokens of a block, from 1, to which it shrinks, to ``max_tokens``."""
    return st.integers(1, max_tokens)


def seeds() -> SearchStrategy[int]:
    """Seeds for ``check`` or ``np.random.default_rng``; shrinks to 0."""
    return st.integers(0, 2**63 - 1)


def scales(smallest: float = 1e-3, largest: float = 1e3) -> SearchStrategy[float]:
    """Factors of a score: 1, to which it shrinks, √d_k, 1/√d_k, 1/d_k, and all between both ends.

    Raises ValueError unless 0 < smallest <= 1 <= largest.

    >>> from hypothesis import find
    >>> find(scales(), lambda scale: True)
    1.0
    """
    if not 0 < smallest <= 1 <= largest < math.inf:
        raise ValueError(f"scales({smallest}, {largest}): 1 must lie between the two, which must "
                         "be positive and finite; use e.g. scales(1e-3, 1e3)")
    powers = [d_k**exponent for d_k in (4, 64, 512) for exponent in (-0.5, -1.0, 0.5)]
    named = [scale for scale in (1.0, *powers) if smallest <= scale <= largest]
    return st.sampled_from(named) | st.floats(smallest, largest)


def hundredths(low: float, high: float) -> SearchStrategy[float]:
    """Numbers with two decimals: people can read them, and names of laws show all their digits.

    >>> from hypothesis import find
    >>> find(hundredths(-1, 1), lambda x: x < 0)
    -0.01
    """
    n = st.integers(math.ceil(100 * low - 1e-9), math.floor(100 * high + 1e-9))
    return n.map(lambda n: n / 100)


@lru_cache(maxsize=256)
def numbers(range: Range, order: float) -> tuple[float, float, SearchStrategy[float]]:
    """The least and the largest number that is drawn of a range, and all that are.

    ``order`` is that of a moment which a law must have: ValueError where no number gives it.

    >>> from hypothesis import find
    >>> low, high, drawn = numbers(Range(2, order=True), 6)
    >>> low, find(drawn, lambda df: df > 7)
    (6.01, 8.0)
    """
    low, high = range.low, range.high
    if range.whole:
        low, high = (-1000, 1000) if low == -math.inf else (low, min(high, low + 7))
        return low, high, st.integers(int(low), int(high))
    low += 0.01 * range.above
    if not range.order:
        low, high = max(low, -3.0), min(high, 3.0)
        return low, high, (st.just(1.0) if range.above else st.nothing()) | hundredths(low, high)
    if order > 100:
        raise ValueError(f"a moment of the order {order}: none beyond 100 is drawn")
    low = min(max(low, LEAST_ORDER, order + 0.01), high)
    high = min(high, low + 20)
    whole = st.integers(math.ceil(low), math.floor(high)).map(float)
    return low, high, whole | hundredths(low, high)


# --- means and covariances --------------------------------------------------------------------


def means(d_k: int) -> SearchStrategy[Array]:
    """Means, (d_k,), with entries from −3 to 3; shrinks to 0.

    >>> from hypothesis import find
    >>> find(means(2), lambda mean: mean.sum() > 1)
    array([0.  , 1.01])
    """
    return st.lists(hundredths(-3, 3), min_size=d_k, max_size=d_k).map(np.array)


def covariances(d_k: int, kind: str = "any") -> SearchStrategy[Array]:
    """Covariances, (d_k, d_k), of trace d_k; the first three kinds shrink to the identity.

    ``kind`` is "toeplitz" (ρ^lag), "diagonal", "block" (two blocks of equal covariances, besides
    the diagonal), "low_rank" (below d_k, from d_k = 2), "ill_conditioned" (eigenvalues over 6 to
    14 powers of ten, the smallest of which rounding may bring below 0), or "any". Raises
    ValueError for another.

    >>> from hypothesis import find
    >>> find(covariances(2), lambda cov: cov[0, 1] < 0)
    array([[ 1.  , -0.01],
           [-0.01,  1.  ]])
    """
    if kind not in (*COVARIANCES, "any"):
        raise ValueError(f"covariances(kind={kind!r}): kind must be one of "
                         f"{', '.join([*COVARIANCES, 'any'])}")
    made = COVARIANCES.values() if kind == "any" else [COVARIANCES[kind]]
    return st.one_of([make(d_k) for make in made]).map(lambda cov: cov * (d_k / np.trace(cov)))


def _toeplitz(d_k: int) -> SearchStrategy[Array]:
    lag = np.abs(np.subtract.outer(np.arange(d_k), np.arange(d_k)))
    return hundredths(-1, 1).map(lambda rho: np.asarray(rho**lag))


def _diagonal(d_k: int) -> SearchStrategy[Array]:
    variances = st.lists(hundredths(0.01, 10), min_size=d_k, max_size=d_k)
    return variances.map(lambda values: np.diag(values))


def _block(d_k: int) -> SearchStrategy[Array]:
    def made(first: int, strength: float) -> Array:
        group = np.arange(d_k) < first
        return np.asarray(np.eye(d_k) + strength * (group[:, None] == group))

    return st.builds(made, st.integers(1, d_k), hundredths(0, 5))


def _low_rank(d_k: int) -> SearchStrategy[Array]:
    ranks = st.integers(1, max(1, d_k - 1))
    return _turned(ranks.map(lambda rank: (np.arange(d_k) < rank).astype(np.float64)))


def _ill_conditioned(d_k: int) -> SearchStrategy[Array]:
    decades = st.integers(6, 14)
    return _turned(decades.map(lambda decades: 10.0 ** -np.linspace(0, decades, d_k)))


def _turned(eigenvalues: SearchStrategy[Array]) -> SearchStrategy[Array]:
    """Matrices of these eigenvalues, along the coordinates or turned at random."""

    def made(values: Array, seed: int | None) -> Array:
        if seed is None:
            return np.diag(values)
        square = np.random.default_rng(seed).standard_normal((len(values), len(values)))
        turn = np.linalg.qr(square)[0]
        cov = (turn * values) @ turn.T
        return np.asarray((cov + cov.T) / 2)

    return st.builds(made, eigenvalues, st.none() | seeds())


COVARIANCES: dict[str, Callable[[int], SearchStrategy[Array]]] = {
    "toeplitz": _toeplitz,
    "diagonal": _diagonal,
    "block": _block,
    "low_rank": _low_rank,
    "ill_conditioned": _ill_conditioned,
}
