"""The draws of a chunk: queries and keys that know what may be made of them, and what has been."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array

TILE = 1024
SOME = 2**13  # numbers of what is kept
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


class Part(NamedTuple):
    """The first so many tokens of every block, and the first coordinates of them.

    Of both arrays that are multiplied: queries and keys, "qk", or either with itself.
    """

    sides: Literal["qk", "qq", "kk"]
    first: int
    second: int
    width: int


class Chunk:
    """A chunk of a world, that several claims look at.

    It passes along with its queries and keys, so that functions of both stay pure. Their products,
    and what is made of these as they are, is computed once for all bodies, and is as read-only as
    the draws; an array knows its name, so that scores that a body returns can be told from others.

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
        self.sums = fingerprint(q), fingerprint(k)
        self._kept: dict[Hashable, tuple[Array, float]] = {}

    @property
    def drawn(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Queries and keys as plain arrays."""
        return self._q, self._k

    @property
    def q(self) -> "Drawn":
        """The queries, as a body gets them."""
        return self._handed(self._q, Vectors("q"))

    @property
    def k(self) -> "Drawn":
        """The keys, as a body gets them."""
        return self._handed(self._k, Vectors("k"))

    def _handed(self, x: Array, name: Hashable) -> "Drawn":
        # A view each time: were one held here, it and the chunk would hold each other in memory.
        drawn = x.view(Drawn)
        drawn.chunk, drawn.name = self, name
        return drawn

    def part(self, q: Array, k: Array) -> Part | None:
        """Which part of the chunk's own queries and keys these are; None if they are others."""
        own: dict[Literal["qk", "qq", "kk"], tuple[Array, Array]] = {
            "qk": (self._q, self._k), "qq": (self._q, self._q), "kk": (self._k, self._k)}
        return next((Part(sides, q.shape[1], *k.shape[1:]) for sides, (first, second) in own.items()
                     if q.shape[-1] == k.shape[-1] and _begins(q, first) and _begins(k, second)),
                    None)

    def kept(self, name: Hashable, make: Callable[[], Array]) -> "Drawn":
        """What several bodies ask for by a name, made when it is first asked for; read-only."""
        if name not in self._kept:
            made = np.asarray(make())
            made.setflags(write=False)
            self._kept[name] = made, fingerprint(_some(made))
        return self._handed(self._kept[name][0], name)

    def named(self, scores: Scores, part: Part) -> Hashable:
        """By which name scores of a part are kept: by what they are if it has all tokens."""
        tokens, d_k = self._q.shape[1:]
        if part[:3] != ("qk", tokens, tokens):
            return scores, part
        return scores._replace(width=0 if part.width == d_k else part.width)

    def made(self, values: Any) -> Made | None:
        """What the values are, if they are as the chunk made them; None if they are others.

        Scores, the queries or the keys; of a list of pairs (x, values) a tuple of those.
        """
        if isinstance(values, list):
            parts = [_made(pair[-1]) for pair in values]
            return None if None in parts else tuple(part for part in parts if part is not None)
        return _made(values)

    def changed(self) -> bool:
        """Whether a body has changed the draws or what is kept, whose memory others may reach."""
        return (fingerprint(self._q), fingerprint(self._k)) != self.sums or any(
            fingerprint(_some(made)) != sum_ for made, sum_ in self._kept.values())


class Drawn(np.ndarray[Any, np.dtype[Any]]):
    """Queries or keys of a chunk; what NumPy makes of them knows the chunk as well."""

    chunk: Chunk | None
    name: Hashable = None  # of what is handed as it is

    def __array_finalize__(self, origin: Any) -> None:
        self.chunk = getattr(origin, "chunk", None)


def _made(values: Any) -> Scores | Vectors | None:
    name = values.name if isinstance(values, Drawn) else None
    return name if isinstance(name, Scores | Vectors) else None


def made_once(what: Hashable, x: Any, make: Callable[[], Array]) -> Array:
    """What ``make`` makes of x; if that is as a chunk hands it, made once for all bodies."""
    if isinstance(x, Drawn) and x.chunk is not None and x.name is not None:
        return x.chunk.kept((what, x.name), make)
    return make()


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


def _begins(x: Array, own: Array) -> bool:
    """Whether an array is the chunk's own memory: the first tokens and coordinates of blocks."""
    return (x.ndim == 3 and len(x) == len(own) and x.strides == own.strides
            and x.shape[1] <= own.shape[1] and x.shape[2] <= own.shape[2]
            and x.dtype == own.dtype and _address(x) == _address(own))


def _address(x: Array) -> Any:
    return x.__array_interface__["data"][0]


def _some(x: Array) -> Array:
    """Some blocks of an array, by which it is seen that a body has changed it."""
    return x[::max(1, x.size // SOME)]
