"""From one chunk of a world to the table of each case that lives in it; runs in the workers."""

import ctypes
import pickle
import random
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import Chunk, Made
from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import load, loaded_from
from mcverify.declare.imports import INSTALLED
from mcverify.declare.rules import call, parameters
from mcverify.judge.independence import (
    PIECES,
    check_beside,
    check_law,
    check_pieces,
    check_repeats,
    digest_of,
)
from mcverify.judge.worker import in_worker, note_share, note_step
from mcverify.judge.world import World, generator, statistic_of, world_of
from mcverify.statistic.base import parts_of

PACKAGE = Path(__file__).resolve().parents[1]
CLAIMS = PACKAGE / "claims"

# How a case reaches a worker: by file, name and place in the grid, since a claim's name hides its
# function from pickle. A claim that no file holds (changed by dataclasses.replace, or typed at a
# prompt) goes by value.
Reference = tuple[Path | Claim, str, int]
locate: Callable[[Path], Path] = Path  # where that file is here; set on other machines


def refer(case: Case) -> Reference:
    """The case in a form that any process can resolve."""
    claim, index = case.claim, _all(case.claim).index(case)
    return (loaded_from(claim) or claim, claim.name, index)


def resolve(reference: Reference) -> Case:
    """The case that a reference stands for."""
    held, name, index = reference
    claim = held if isinstance(held, Claim) else next(
        claim for claim in load(locate(held)).claims if claim.name == name)
    return _all(claim)[index]


def _all(claim: Claim) -> list[Case]:
    return [*claim.cases(), *claim.control_cases()]


class Measured(NamedTuple):
    """What a chunk's draws give for a case.

    Attributes
    ----------
    table : the block values.
    made : what the body returned, if it is scores, queries or keys as they are.
    """

    table: Array
    made: Made | None


Outcome = Measured | str  # of a chunk, or why there is none


class Measurement(NamedTuple):
    """The outcomes of some cases in a chunk of their world, and a digest of its draws."""

    digest: bytes
    outcomes: list[Outcome]


def measure(references: list[Reference], seed: int, first: int, blocks: int) -> Measurement:
    """Draw one chunk of the cases' common world and reduce it to block values for each of them.

    Whatever goes wrong becomes that case's outcome, as a line of text; nothing is drawn again,
    unless a body has changed the draws of the others. The place of the case at work is noted, so
    that it is known which one killed its process.
    """
    cases = [resolve(reference) for reference in references]
    world, randomness = world_of(cases[0]), GlobalRandomness()
    note_step(-1)  # files are loaded: the time of the draws begins
    try:
        chunk = world.chunk_at(seed, first, blocks)
        digest = digest_of(*chunk.drawn)
        if first == 0:
            check_repeats(*chunk.drawn)
            _check_law(World(world.law, world.d_k, min(world.tokens, 2)), seed)
    except own_faults() as error:
        return Measurement(b"", [describe(error)] * len(cases))
    outcomes = [_outcome(index, case, world, chunk, seed, first)
                for index, case in enumerate(cases)]
    # What bodies share is looked at once; only if it has changed, after each of them.
    if chunk.changed() or randomness.touched():
        outcomes = [_alone(index, case, world, seed, first, blocks)
                    for index, case in enumerate(cases)]
    return Measurement(digest, outcomes)


def _outcome(
    index: int, case: Case, world: World, chunk: Chunk, seed: int, first: int
) -> Outcome:
    note_step(index)
    chunk.refusal = refusal(case, world)
    try:
        measured = block_values(case, world, chunk, seed, first)
        if first == 0:
            _check_body(case, world, chunk, measured.table, seed)
    except own_faults() as error:
        return describe(error)
    return measured


def _alone(index: int, case: Case, world: World, seed: int, first: int, blocks: int) -> Outcome:
    """The outcome on draws of its own, where a body that changes what others share has a fault."""
    randomness = GlobalRandomness()
    try:
        chunk = world.chunk_at(seed, first, blocks)
        randomness.untouched(f"the law {world.law}")
        outcome = _outcome(index, case, world, chunk, seed, first)
        randomness.untouched("the body")
    except own_faults() as error:
        return describe(error)
    if chunk.changed():
        return "the body changed q or k, which are shared with other claims; work on a copy"
    return outcome


@lru_cache(maxsize=256)
def _check_law(world: World, seed: int) -> None:
    """Raise ValueError if blocks depend on each other that nothing is measured on.

    Worlds of a law differ in tokens; of few tokens, they are looked at once in a process.
    """
    rng = generator(seed, f"pieces of {world.law}")

    def draw(blocks: int) -> tuple[Array, Array]:
        q, k = world.law.draw(rng, blocks, world.tokens, world.d_k)
        return np.asarray(q), np.asarray(k)

    check_law(draw)


def _check_body(case: Case, world: World, chunk: Chunk, table: Array, seed: int) -> None:
    """Raise ValueError unless the body treats blocks as the independent replicates that they are.

    Its own draws are compared in pieces of the chunk; if that is small, those are its chunks.
    """
    def measured(chosen: Any, piece: int | None = None) -> Array:
        q, k = (np.asarray(x[chosen]) for x in (chunk.q, chunk.k))
        part = Chunk(q, k, chunk.refusal)
        return block_values(case, world, part, seed, 0, piece).table

    if world.of_runs:
        check_beside(table, measured, count=1)
    elif "rng" not in parameters(case.claim.body):
        check_beside(table, measured)
    elif len(table) >= 4 * PIECES:
        size = len(table) // PIECES
        check_pieces("the body", [measured(slice(i * size, (i + 1) * size), piece=i)
                                  for i in range(PIECES)])


def own_faults() -> tuple[type[BaseException], ...]:
    """What a law or a body may raise without ending the run, for use after ``except``.

    Ctrl-C is left to the parent, so that in a process of its own KeyboardInterrupt is a fault, too.
    """
    return (BaseException,) if in_worker() else (Exception, SystemExit)


class GlobalRandomness:
    """The global random states of NumPy and Python, which nothing that is measured may touch."""

    def __init__(self) -> None:
        self.numpy, self.python = _state_of_numpy(), random.getstate()

    def touched(self) -> bool:
        """Whether somebody has drawn from them or set them; they are put back."""
        if self.numpy == _state_of_numpy() and self.python == random.getstate():
            return False
        np.random.set_state(pickle.loads(self.numpy))  # noqa: NPY002
        random.setstate(self.python)
        return True

    def untouched(self, who: str) -> None:
        """Raise ValueError if ``who`` has touched them."""
        if self.touched():
            raise ValueError(f"{who} used the global random state, which others may move; draw "
                             "from the rng that it is given")


def _state_of_numpy() -> bytes:
    """NumPy's global random state.

    To ask for it takes 100 microseconds, to read the words and the place of its Mersenne twister,
    which draws move, takes one; a normal number that it may hold in store is not among them.
    """
    state: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(state) is np.random.MT19937:
        return _state_with(ctypes.string_at(state.ctypes.state_address, 625 * 4))
    return pickle.dumps(np.random.get_state(legacy=False))  # noqa: NPY002


@lru_cache(maxsize=1)
def _state_with(memory: bytes) -> bytes:
    return pickle.dumps(np.random.get_state(legacy=False))  # noqa: NPY002


def refusal(case: Case, world: World) -> str:
    """Why the case may not cross all tokens of a block; "" if it may."""
    if not world.law.coupled or "tokens" in case.drawn:
        return ""
    return (f"all pairs under {world.law}: with a token's key tied to its query the result depends "
            "on the number of tokens; fix tokens in the grid, or use matched_scores or "
            "other_scores")


def block_values(
    case: Case, world: World, chunk: Chunk, seed: int, first: int, piece: int | None = None
) -> Measured:
    """The body's values for a chunk, reduced to block values; ValueError if they are not usable.

    ``first`` is the chunk's first block; a ``piece`` of it has extra draws of its own.
    """
    claim, statistic = case.claim, statistic_of(case, world)
    available: dict[str, Any] = {**case.drawn, **_drawn(world, chunk)}
    if "rng" in parameters(claim.body):
        path = (first,) if piece is None else (first, piece)
        available["rng"] = generator(seed, str(case), *path)
    blocks, chunk.noting = len(chunk.q), statistic.learns
    try:
        with np.errstate(all="ignore"):
            values = call(claim.body, available)
            _check_values(values, blocks)
            table = statistic.block_values(values)
            made = chunk.made(values) if chunk.noting else None
    finally:
        chunk.forget()
    if len(table) != blocks:
        raise ValueError(f"the statistic {statistic.name} made {len(table)} rows of {blocks} "
                         "blocks; its reduce must give one for each")
    if not np.isfinite(table).all():
        raise ValueError(_not_finite(values))
    return Measured(table, made)


def _drawn(world: World, chunk: Chunk) -> dict[str, Any]:
    """What a body may name of a chunk."""
    if not world.of_runs:
        return {"q": chunk.q, "k": chunk.k, "tokens": world.tokens}
    return {"seeds": np.asarray(chunk.q)[:, 0, 0].astype(np.int64), "progress": note_share}


def _check_values(values: Any, blocks: int) -> None:
    """Raise ValueError unless every array is real, not empty, and has the blocks first."""
    if values is None:
        raise ValueError("the body returned None; end it with `return` and the values")
    for part in parts_of(values):
        if part.dtype.kind not in "biuf":
            raise ValueError(f"the body returned {part.dtype} values; they must be real numbers")
        if part.ndim == 0 or len(part) != blocks:
            raise ValueError(f"the body returned shape {part.shape}; the first axis must be the "
                             f"{blocks} blocks; reduce behind it, e.g. .mean(axis=-1)")
        if part.size == 0:
            raise ValueError(f"the body returned an empty array of shape {part.shape}; each block "
                             "needs a value")


def _not_finite(values: Any) -> str:
    parts = parts_of(values)
    bad = sum(int(np.sum(~np.isfinite(part))) for part in parts)
    if not bad:
        return "the body returned numbers too large to average in double precision; scale them"
    return (f"the body returned {bad} NaN or infinite values out of {sum(p.size for p in parts)}; "
            "all must be finite")


def describe(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own text breaks
        text = ""
    if "read-only" in text or "WRITEABLE" in text:
        text += "; q and k are shared with other claims: work on a copy"
    told = text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
    return told + _place(error)


def _place(error: BaseException) -> str:
    """Where in a file of claims or laws it happened: the innermost line of one; "" if nowhere."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename).resolve()
        own = PACKAGE in file.parents and CLAIMS not in file.parents
        if not own and file.is_file() and not any(home in file.parents for home in INSTALLED):
            place = f" ({file.name}, line {line})"
    return place
