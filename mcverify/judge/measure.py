"""From chunks of a world to the table of each case that lives in it; runs in the workers."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import Chunk, Made
from mcverify.declare.claim import Case
from mcverify.declare.names import call, parameters
from mcverify.judge.independence import (
    PIECES,
    check_beside,
    check_law,
    check_pieces,
    check_repeats,
    digest_of,
)
from mcverify.judge.raised import described, own_faults
from mcverify.judge.randomness import GlobalRandomness
from mcverify.judge.reference import Reference, resolve
from mcverify.judge.worker import note_share, note_step
from mcverify.judge.world import World, generator, statistic_of, world_of
from mcverify.statistic.values import parts_of

ChunkAt = tuple[int, int]  # the first block of a chunk of a world, and how many it has


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


def numbers_in(outcome: Outcome) -> int:
    """How many block values an outcome holds."""
    return 0 if isinstance(outcome, str) else outcome.table.size


class Measurement(NamedTuple):
    """The outcomes of some cases in a chunk of their world, and a digest of its draws."""

    digest: bytes
    outcomes: list[Outcome]


def measure(
    references: Sequence[Reference], seed: int, chunks: Sequence[ChunkAt]
) -> list[Measurement]:
    """Draw chunks of the cases' common world, and reduce each to block values for all of them.

    Whatever goes wrong becomes that case's outcome, as a line of text; nothing is drawn again,
    unless a body has changed the draws of the others. What is at work is noted as a step, see
    ``at_step``, so that it is known which case has killed its process.
    """
    cases = [resolve(reference) for reference in references]
    world = world_of(cases[0])
    return [_measured(cases, world, seed, chunk, number * (len(cases) + 1))
            for number, chunk in enumerate(chunks)]


def at_step(step: int, cases: int) -> tuple[int, int | None]:
    """Which chunk of a call's a step is of, and which of so many cases; None while it is drawn.

    >>> at_step(0, 2), at_step(2, 2), at_step(4, 2)
    ((0, None), (0, 1), (1, 0))
    """
    chunk, at = divmod(max(step, 0), cases + 1)
    return chunk, at - 1 if at else None


def _measured(
    cases: list[Case], world: World, seed: int, place: ChunkAt, step: int
) -> Measurement:
    """What one chunk gives; its draws are a step, and each of the cases is one."""
    (first, blocks), randomness = place, GlobalRandomness()
    note_step(step)
    try:
        chunk = world.chunk_at(seed, first, blocks)
        digest = digest_of(*chunk.drawn)
        if first == 0:
            check_repeats(*chunk.drawn)
            _check_law(World(world.law, world.d_k, min(world.tokens, 2)), seed)
    except own_faults() as error:
        return Measurement(b"", [described(error)] * len(cases))
    outcomes = list[Outcome]()
    for number, case in enumerate(cases, start=1):
        note_step(step + number)
        outcomes.append(_outcome(case, world, chunk, seed, first))
    # What bodies share is looked at once; only if it has changed, after each of them.
    if chunk.changed() or randomness.touched():
        outcomes.clear()
        for number, case in enumerate(cases, start=1):
            note_step(step + number)
            outcomes.append(_alone(case, world, seed, first, blocks))
    return Measurement(digest, outcomes)


def _outcome(case: Case, world: World, chunk: Chunk, seed: int, first: int) -> Outcome:
    chunk.refusal = refusal(case, world)
    try:
        measured = block_values(case, world, chunk, seed, first)
        if first == 0:
            _check_body(case, world, chunk, measured.table, seed)
    except own_faults() as error:
        return described(error)
    return measured


def _alone(case: Case, world: World, seed: int, first: int, blocks: int) -> Outcome:
    """The outcome on draws of its own, where a body that changes what others share has a fault."""
    randomness = GlobalRandomness()
    try:
        chunk = world.chunk_at(seed, first, blocks)
        randomness.untouched(f"the law {world.law}")
        outcome = _outcome(case, world, chunk, seed, first)
        randomness.untouched("the body")
    except own_faults() as error:
        return described(error)
    if chunk.changed():
        return ("the body changed q, k or their scores, which are shared with other claims; work "
                "on a copy")
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
    blocks = len(chunk.q)
    with np.errstate(all="ignore"):
        values = call(claim.body, available)
        _check_values(values, blocks)
        table = statistic.block_values(values)
    if len(table) != blocks:
        raise ValueError(f"the statistic {statistic.name} made {len(table)} rows of {blocks} "
                         "blocks; its reduce must give one for each")
    if not np.isfinite(table).all():
        raise ValueError(_not_finite(values))
    return Measured(table, chunk.made(values) if statistic.learns else None)


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
