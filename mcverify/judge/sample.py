"""From a case to some of its block values, as a run would have them, but without a verdict."""

import math
import time

import numpy as np

from mcverify.arrays import Array
from mcverify.declare.claim import Case
from mcverify.declare.names import call
from mcverify.judge.known import known_values
from mcverify.judge.measure import Measured, measure
from mcverify.judge.reference import refer
from mcverify.judge.world import statistic_of, world_of
from mcverify.statistic import Statistic
from mcverify.verdict import FIRST_LOOK


def sample(
    case: Case, blocks: int, seed: int = 0, start: int = 0, seconds: float = math.inf,
) -> tuple[Statistic, Array]:
    """The case's statistic, with all that is known of its values, and so many block values.

    A hand calculation has one. With ``seconds`` there may be fewer, but at least two. Raises
    ValueError where a run would make the case an error.

    >>> from mcverify import discover
    >>> claims = {claim.name: claim for claim in discover()}
    >>> statistic, table = sample(claims["dot_variance"].cases()[2], 128)
    >>> table.shape, 62 < statistic.estimate(table, 0.1).value < 66
    ((128, 2), True)
    """
    if not case.claim.draws:
        return case.claim.statistic, calculated(case)
    world, measured, began = world_of(case), list[Measured](), time.perf_counter()
    _, size = next(world.chunks(0, min(blocks, FIRST_LOOK)))
    for first in range(start, start + blocks, size):
        [measurement] = measure([refer(case)], seed, [(first, size)])
        [outcome] = measurement.outcomes
        if isinstance(outcome, str):
            raise ValueError(outcome)
        measured.append(outcome)
        if size * len(measured) > 1 and time.perf_counter() - began > seconds:
            break
    statistic = statistic_of(case, world)
    known = known_values(world, measured[0].made, statistic.power)
    return statistic.informed(known), np.concatenate([each.table for each in measured])


def calculated(case: Case) -> Array:
    """The block value of a hand calculation; ValueError if it is not finite."""
    table = case.claim.statistic.block_values(call(case.claim.body, case.drawn))
    if not np.isfinite(table).all():
        raise ValueError(f"the body returned {table.item()}; it must be finite")
    return table
