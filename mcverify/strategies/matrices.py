"""From a width to means and covariances of q or of k, simple, singular and ill-conditioned."""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcverify.laws.law import Array
from mcverify.strategies.numbers import hundredths, seeds


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
    if kind not in (*KINDS, "any"):
        raise ValueError(f"covariances(kind={kind!r}): kind must be one of "
                         f"{', '.join([*KINDS, 'any'])}")
    made = KINDS.values() if kind == "any" else [KINDS[kind]]
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


KINDS: dict[str, Callable[[int], SearchStrategy[Array]]] = {
    "toeplitz": _toeplitz,
    "diagonal": _diagonal,
    "block": _block,
    "low_rank": _low_rank,
    "ill_conditioned": _ill_conditioned,
}
