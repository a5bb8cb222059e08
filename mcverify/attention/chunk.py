"""The draws of a chunk: queries and keys that know what may be made of them, and what has been."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array

TILE = 1024
Pairs = Literal["all", "other", "matched"]


class Scores(NamedTuple):
    """Which scores an array holds: "all" pairs, "matched" or "other" ones, times a scale.

    ``width`` is how many coordinates they are of, the first ones; 0 for all that there are.
    """

    pairs: Pairs
    scale: float
    width: int = 0


class Vectors(NamedTuple):
    """That an array holds the queries, "q", or the keys, "k", as they were drawn."""

    which: Literal["q", "k"]


Made = Scores | Vectors | tuple[Scores | Vectors, ...]


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
    noting : whether scores are remembered, so that ``made`` can tell which a body returned.
    """

    def __init__(self, q: Array, k: Array, refusal: str = "", noting: bool = True) -> None:
        for x in (q, k):
            x.setflags(write=False)
        self._q, self._k, self.refusal, self.noting = q, k, refusal, noting
        self.sums = fingerprint(q), fingerprint(k)
        self._kept: dict[Hashable, Array] = {}
        self._made: list[tuple[Array, Scores, float]] = []
        self._rows: list[tuple[Array, tuple[int, float], float]] = []

    @property
    def drawn(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Queries and keys as plain arrays."""
        return self._q, self._k

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

    def owns(self, q: Array, k: Array) -> bool:
        """Whether these are the chunk's own queries and keys, whole and unchanged."""
        return _same(q, self._q) and _same(k, self._k)

    def _width(self, q: Array, k: Array) -> int:
        """How many of the first coordinates of the chunk's own queries and keys these are, or 0."""
        width = q.shape[-1]
        return width if all(_same(x, own[..., :width]) for x, own in (
            (q, self._q), (k, self._k))) else 0

    def kept(self, name: Hashable, make: Callable[[], Array]) -> Array:
        """What several bodies ask for by a name, made when it is first asked for; read-only."""
        if name not in self._kept:
            self._kept[name] = made = np.asarray(make())
            made.setflags(write=False)
        return self._kept[name]

    def handed_rows(self, s: Array, keys: int, scale: float) -> Array:
        """Rows of scores of the chunk, whose weights are then computed once for all bodies."""
        handed = self._handed(s)
        self._rows.append((handed, (keys, scale), fingerprint(s)))
        return handed

    def weights(self, s: Array, make: Callable[[], Array]) -> Array:
        """The softmax of s that ``make`` makes; kept if s are rows of the chunk, and unchanged."""
        for rows, name, sum_ in self._rows:
            if rows is s and fingerprint(s) == sum_:
                return self.kept(name, make).copy()
        return make()

    def note(self, q: Array, k: Array, which: Scores, s: Array) -> Array:
        """Scores as they were made, remembered if q and k are the chunk's own, or the first
        coordinates of them."""
        if self.noting and (width := self._width(q, k)):
            own = which if self.owns(q, k) else which._replace(width=width)
            self._made.append((s, own, fingerprint(s)))
        return s

    def made(self, values: Any) -> Made | None:
        """What the values are, as it was made and unchanged since; None if it is not known.

        Scores, the queries or the keys; of a list of pairs (x, values) a tuple of those.
        """
        if isinstance(values, list):
            parts = [self._made_alone(pair[-1]) for pair in values]
            return None if None in parts else tuple(part for part in parts if part is not None)
        return self._made_alone(values)

    def _made_alone(self, values: Any) -> Scores | Vectors | None:
        if isinstance(values, Drawn):
            for own, vectors in ((self._q, Vectors("q")), (self._k, Vectors("k"))):
                if _same(values, own):
                    return vectors
        return next((which for s, which, sum_ in self._made
                     if s is values and fingerprint(s) == sum_), None)


    def forget(self) -> None:
        """Let go of the scores that a body has made."""
        self._made.clear()
        self._rows.clear()

    def changed(self) -> bool:
        """Whether a body has changed the draws, whose memory others may reach by some way."""
        return (fingerprint(self._q), fingerprint(self._k)) != self.sums


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


def fingerprint(x: Array) -> float:
    """A sum that changes when any number of x, or its place, does."""
    flat = x.reshape(-1)
    whole = flat.size - flat.size % TILE
    rows = flat[:whole].reshape(-1, TILE) @ _weights(TILE)  # these weights stay in cache
    return float(rows @ _weights(len(rows))) + float(flat[whole:] @ _weights(flat.size - whole))


@lru_cache(maxsize=64)
def _weights(size: int) -> Array:
    return np.random.default_rng(size).standard_normal(size)


def _same(x: Array, own: Array) -> bool:
    """Whether an array is the chunk's own memory, whole and in its order."""
    return (x.shape, x.strides, x.dtype, x.ctypes.data) == (
        own.shape, own.strides, own.dtype, own.ctypes.data)
