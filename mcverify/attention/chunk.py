"""The draws of a chunk: queries and keys that know what may be made of them, and what has been."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


class Scores(NamedTuple):
    """Which scores an array holds: "all" pairs, "matched" or "other" ones, times a scale."""

    pairs: str
    scale: float


class Chunk:
    """A chunk of a world, that several claims look at.

    It passes along with its queries and keys, so that functions of both stay pure: the products of
    all pairs are computed once, and scores that a body returns as they are can be told from others.

    Parameters
    ----------
    q, k : (blocks, tokens, d_k) arrays; they become read-only.
    refusal : why pairs of all tokens may not be formed, "" if they may. Under a law that ties a
        token's key to its own query, the law of a block's scores depends on the number of tokens,
        so a claim on all pairs must say that number.
    """

    def __init__(self, q: Array, k: Array, refusal: str = "") -> None:
        for x in (q, k):
            x.setflags(write=False)
        self._q, self._k, self.refusal = q, k, refusal
        self._sums = fingerprint(q), fingerprint(k)
        self._products: Array | None = None
        self._made: list[tuple[Array, Scores, Callable[[], Array]]] = []

    @property
    def q(self) -> "Drawn":
        """The queries, as a body gets them."""
        return self._handed(self._q)

    @property
    def k(self) -> "Drawn":
        """The keys, as a body gets them."""
        return self._handed(self._k)

    def _handed(self, x: Array) -> "Drawn":
        drawn = x.view(Drawn)
        drawn.chunk = self
        return drawn

    def products(self, q: Array, k: Array) -> Array | None:
        """A copy of q·k of all pairs, if these are the chunk's own queries and keys, else None."""
        if not (_same(q, self._q) and _same(k, self._k)):
            return None
        if self._products is None:
            self._products = self._q @ np.swapaxes(self._k, -1, -2)
        return self._products.copy()

    def note(self, q: Array, k: Array, which: Scores, make: Callable[[], Array]) -> Array:
        """The scores that ``make`` makes; remembered if q and k are the chunk's own."""
        s = make()
        if _same(q, self._q) and _same(k, self._k):
            self._made.append((s, which, make))
        return s

    def made(self, values: Any) -> Scores | None:
        """Which scores the values are, as they were made and unchanged since; None if none."""
        return next((which for s, which, make in self._made
                     if s is values and np.array_equal(s, make())), None)

    def forget(self) -> None:
        """Let go of the scores that a body has made."""
        self._made.clear()

    def changed(self) -> bool:
        """Whether a body has changed the draws, whose memory others may reach by some way."""
        return (fingerprint(self._q), fingerprint(self._k)) != self._sums


class Drawn(np.ndarray[Any, np.dtype[Any]]):
    """Queries or keys of a chunk; what NumPy makes of them knows the chunk as well."""

    chunk: Chunk | None

    def __array_finalize__(self, origin: Any) -> None:
        self.chunk = getattr(origin, "chunk", None)


def chunk_of(*arrays: Any) -> Chunk | None:
    """The chunk that arrays come from, if any does."""
    return next((x.chunk for x in arrays if isinstance(x, Drawn) and x.chunk is not None), None)


def check_all_pairs(*arrays: Any) -> None:
    """Raise ValueError if pairs of all tokens of these arrays may not be formed."""
    chunk = chunk_of(*arrays)
    if chunk is not None and chunk.refusal:
        raise ValueError(chunk.refusal)


def fingerprint(x: Array) -> tuple[float, ...]:
    """Three sums that change when numbers, signs or places do, at the cost of reading x thrice."""
    flat = x.reshape(-1)
    return float(flat.sum()), float(flat @ flat), float(flat[1:] @ flat[:-1])


def _same(x: Array, own: Array) -> bool:
    """Whether an array is the chunk's own memory, whole and in its order."""
    return (x.shape, x.strides, x.dtype, x.ctypes.data) == (
        own.shape, own.strides, own.dtype, own.ctypes.data)
