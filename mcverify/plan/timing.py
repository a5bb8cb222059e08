"""From two small chunks of a world to what its draws and bodies cost, in CPU seconds."""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import Chunk, Made
from mcverify.declare.claim import Case
from mcverify.declare.names import parameters
from mcverify.judge.independence import BESIDE, CALLS, PIECE, PIECES, digest_of
from mcverify.judge.measure import block_values, refusal
from mcverify.judge.raised import described, own_faults
from mcverify.judge.world import World
from mcverify.verdict import FIRST_LOOK

NUMBERS = 2**16  # of the larger chunk: so many that a call costs little beside them
APART = 8  # of both chunks' blocks: the smaller one tells what a call costs
SECONDS = 0.5  # of CPU time, for more of them
ENOUGH = 32  # blocks that tell how values spread, where no results do


class Cost(NamedTuple):
    """CPU seconds: of the first call beyond others, of any call, and of each block in it."""

    first: float = 0.0
    call: float = 0.0
    block: float = 0.0

    def of(self, calls: float, blocks: float) -> float:
        """Of so many calls with so many blocks in all, the first one among them."""
        return self.first + calls * self.call + blocks * self.block


class Timed(NamedTuple):
    """What a case's body costs, and its block values of the larger chunk.

    ``fault`` says why there are none.
    """

    cost: Cost
    checks: float
    table: Array
    made: Made | None = None
    fault: str = ""


def sizes(world: World, blocks: int = 0) -> list[int]:
    """The chunks that are drawn: a small one twice, for what only a first call costs, and one that
    is larger if the world's chunks are, and has ``blocks`` if they do.
    """
    if world.of_runs:
        return [1, 1, 2]
    wanted = max(2, blocks, NUMBERS // (2 * world.tokens * world.d_k))
    large = world.chunk(1 << (wanted - 1).bit_length())
    small = max(1, large // APART)
    return [small, small, large]


def time_world(
    world: World, cases: Iterable[Case], seed: int, blocks: int = 0
) -> tuple[Cost, dict[Case, Timed]]:
    """What a world's draws cost, checks of the law aside, and each case's body.

    Raises ValueError where a run would make all cases errors.
    """
    drawing, bodies = Stopwatch(), {case: Stopwatch() for case in cases}
    timed: dict[Case, Timed] = {}
    for size in (drawn := sizes(world, blocks)):
        with drawing:
            chunk = world.chunk_at(seed, 0, size)
            digest_of(*chunk.drawn)
        for case, watch in bodies.items():
            if case not in timed or not timed[case].fault:
                with watch:
                    timed[case] = _measured(case, world, chunk, seed)
    return drawing.cost(drawn), {
        case: each._replace(cost=(cost := bodies[case].cost(drawn)), checks=_checks(case, cost))
        for case, each in timed.items()}


def more_blocks(
    world: World, timed: dict[Case, Timed], seed: int, blocks: int
) -> dict[Case, Timed]:
    """The same with so many block values of each case, if that takes less than SECONDS."""
    size, longer = world.chunk(blocks), dict(timed)
    began, first = time.process_time(), size
    while first < blocks and time.process_time() - began < SECONDS:
        chunk = world.chunk_at(seed, first, size)
        for case, each in longer.items():
            if not each.fault:
                more = _measured(case, world, chunk, seed)
                longer[case] = each._replace(table=np.concatenate([each.table, more.table]))
        first += size
    return longer


def of_law(world: World, seed: int) -> float:
    """What it costs to look whether blocks of a world's law depend on each other: see check_law."""
    watch, drawn = Stopwatch(), [1, 1, APART]
    for blocks in drawn:
        with watch:
            world.chunk_at(seed, 0, blocks)
    cost = watch.cost(drawn)._replace(first=0.0)
    return cost.of(CALLS + 1 + PIECES, CALLS + CALLS + PIECES * PIECE)


def _measured(case: Case, world: World, chunk: Chunk, seed: int) -> Timed:
    chunk.refusal = refusal(case, world)
    try:
        measured = block_values(case, world, chunk, seed, 0)
    except own_faults() as error:
        return Timed(Cost(), 0.0, np.empty((0, 1)), fault=described(error))
    return Timed(Cost(), 0.0, *measured)


def _checks(case: Case, cost: Cost) -> float:
    """Of a body at the first look: a few blocks again, or pieces if it draws itself."""
    pieces = "rng" in parameters(case.claim.body)
    return cost._replace(first=0.0).of(*((PIECES, FIRST_LOOK) if pieces else (1, BESIDE + 1)))


class Stopwatch:
    """The CPU seconds spent each time inside it, in ``laps``."""

    def __init__(self) -> None:
        self.laps: list[float] = []

    def __enter__(self) -> "Stopwatch":
        self.began = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.laps.append(time.process_time() - self.began)

    def cost(self, blocks: list[int]) -> Cost:
        """What they tell, if they are of calls with so many blocks: twice few, once more."""
        if len(self.laps) < len(blocks):
            return Cost()
        first, small, large = self.laps
        more = blocks[-1] - blocks[0]
        block = max(0.0, large - small) / more if more else large / blocks[-1]
        call = max(0.0, small - blocks[0] * block)
        return Cost(max(0.0, first - small), call, block)
