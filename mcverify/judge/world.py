"""From a law, a width and a number of tokens to draws that everyone who names them shares."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NoReturn

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import Chunk
from mcverify.declare.claim import Case
from mcverify.declare.names import call
from mcverify.judge.stream import Stream
from mcverify.laws import Law
from mcverify.statistic import Statistic

CHUNK_NUMBERS = 2**19  # 4 MiB: large enough to forget the overhead, small enough to stay in cache
MIN_TOKENS = 8  # of a block: of fewer, heavy coordinates one at a time ask for too many blocks
WIDE = 512  # from here on as many tokens as decide 2 % at the first look, four blocks a chunk
MAX_TOKENS = 128  # of a block, unless keys or the claim ask for more
MAX_OF_ROWS = 40  # of a block whose rows are asked for: a range needs many blocks anyway

RUNS = 16  # of a model that are trained by one call: few, so that workers share a look
MOST_SEED = 2**53  # whole numbers below it are kept by double precision
MOST_RUNS = 512  # of a case, which is left open after them: a look costs minutes
COST_OF_RUN = 2**22  # in numbers drawn, so that what is left of a run of several kinds is foreseen


@dataclass(frozen=True)
class Seeds:
    """A law whose blocks are training runs: a token of width 1, whose query is the run's seed.

    Runs at all settings begin from the same seeds, so that what is measured at several of them is
    measured side by side; cases at the same settings look at the same chunks.
    """

    settings: tuple[tuple[str, Any], ...]

    coupled = False
    finite_moments = math.inf

    def __str__(self) -> str:
        return "training runs"

    def moments(self, d_k: int) -> NoReturn:
        """Seeds are no numbers to average."""
        raise NotImplementedError

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        """(blocks, tokens, d_k) seeds, and as many zeros."""
        seeds = rng.integers(MOST_SEED, size=(blocks, tokens, d_k)).astype(float)
        return seeds, np.zeros_like(seeds)


@dataclass(frozen=True)
class World:
    """A law at a width, with a number of tokens a block: what is drawn."""

    law: Law
    d_k: int
    tokens: int

    def __hash__(self) -> int:
        return hash(self.stream)

    def __str__(self) -> str:
        return f"{self.law}, d_k = {self.d_k}, {self.tokens} tokens"

    @cached_property
    def stream(self) -> tuple[str, int, int]:
        """What its draws descend from besides the seed: names and numbers, not objects."""
        return str(self.law), self.d_k, self.tokens

    @property
    def of_runs(self) -> bool:
        """Whether a block is a training run."""
        return isinstance(self.law, Seeds)

    @property
    def most(self) -> float:
        """Blocks after which a case is left open, however far looks go."""
        return MOST_RUNS if self.of_runs else math.inf

    @property
    def cost(self) -> int:
        """Of a block, in a unit that grows as time does."""
        return COST_OF_RUN if self.of_runs else self.tokens * self.d_k

    def chunk(self, blocks: int) -> int:
        """The blocks of a chunk at a look at so many: a power of two of them, at most the look.

        Chunks are part of the stream's definition.
        """
        fitting = RUNS if self.of_runs else max(1, CHUNK_NUMBERS // (2 * self.tokens * self.d_k))
        return min(1 << int(math.log2(fitting)), blocks)

    def chunks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """(first block, blocks) of the chunks from ``start`` to ``stop``, both ends of looks."""
        size = self.chunk(stop - start)
        return ((first, size) for first in range(start, stop, size))

    def draw(self, seed: int, first: int, blocks: int) -> tuple[Array, Array]:
        """The q and k of a chunk, each (blocks, tokens, d_k) and read-only."""
        return self.chunk_at(seed, first, blocks).drawn

    def chunk_at(self, seed: int, first: int, blocks: int) -> Chunk:
        """The draws of so many blocks from the ``first`` on, which others look at as well.

        Raises ValueError when the law returns anything else.
        """
        rng = generator(seed, *self.stream, first)
        drawn = self.law.draw(rng, blocks, self.tokens, self.d_k)
        shape = (blocks, self.tokens, self.d_k)
        for name, array in zip("qk", drawn, strict=True):
            made = getattr(array, "shape", type(array).__name__)
            if made != shape:
                raise ValueError(f"the law {self.law} drew {name} of shape {made}; it must be "
                                 f"(blocks, tokens, d_k) = {shape}")
        chunk = Chunk(*drawn)
        # The sums are finite unless an entry is not, or entries are huge: the cheap test first.
        for name, array, total in zip("qk", drawn, chunk.sums, strict=True):
            if not (math.isfinite(total) or np.isfinite(array).all()):
                raise ValueError(f"the law {self.law} drew {name} with NaN or infinite entries; "
                                 "every coordinate must be finite")
        return chunk


@lru_cache(maxsize=4096)
def world_of(case: Case) -> World:
    """The world a case lives in: the one it fixes, or as many tokens as serve its width and keys.

    >>> from mcverify.declare.discover import discover
    >>> claim = next(claim for claim in discover() if claim.name == "dot_variance")
    >>> world_of(claim.cases()[2]).tokens
    40
    """
    settings = case.drawn
    if not case.claim.of_world:
        # What a control changes that no grid names may be what is made of the same runs.
        return World(Seeds(tuple((name, settings[name]) for name, _ in case.settings)), 1, 1)
    d_k, keys = settings["d_k"], settings.get("keys", 1)
    tokens = settings.get("tokens")
    if tokens is None:
        tokens = keys * -(-tokens_for(d_k, keys) // keys)  # the next multiple
    return World(settings["law"], d_k, tokens)


def tokens_for(d_k: int, keys: int = 1) -> int:
    """How many tokens of a block take least time to a verdict on the variance of their scores.

    Crossed, T tokens of normal coordinates give a variance whose relative error squared is
    2/T² + 4/(d_k T), and the blocks that Catoni's interval needs grow as 1 + that/margin². A block
    takes about 9 ns a number drawn, 0.05 ns a multiply-add, 5 ns a score and 150 ns more. At 2 %
    5√d_k are within 2 % of the least product of the two at widths from 2 to 128.

    >>> [tokens_for(d_k) for d_k in (1, 8, 64, 512)], tokens_for(512, keys=2)
    ([8, 14, 40, 128], 40)
    """
    most = MAX_TOKENS if keys == 1 else MAX_OF_ROWS
    best = MAX_TOKENS if d_k >= WIDE else round(5 * math.sqrt(d_k))
    return min(max(best, MIN_TOKENS), most)


@lru_cache(maxsize=4096)
def statistic_of(case: Case, world: World) -> Statistic:
    """The claim's statistic, with the numbers that its range or variance has in this world."""
    settings = {"tokens": world.tokens, **case.drawn}
    return case.claim.statistic.settled(lambda function: call(function, settings))


def generator(seed: int, name: str, *path: int) -> np.random.Generator:
    """The random stream of a name and some numbers under a seed; the same on every machine.

    >>> a, b = generator(0, "normal", 64), generator(0, "normal", 64)
    >>> bool(a.integers(100) == b.integers(100))
    True
    """
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    key = (int.from_bytes(digest, "little"), *path)
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    return Stream(np.random.SFC64(sequence))  # a fifth faster than the default bits
