"""From a claim's body to whether it is a function of its draws: here, again, and elsewhere."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcverify.conformance import predictions
from mcverify.conformance.guard import drawing
from mcverify.conformance.predictions import Claimed
from mcverify.conformance.remarks import Doubt, Problem, Remark, place_of
from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import load
from mcverify.declare.rules import call, parameters
from mcverify.judge.measure import Outcome, Reference, _table, describe, measure, refer, resolve
from mcverify.judge.processes import Killed, Spread
from mcverify.judge.world import World, world_of
from mcverify.statistic import proportion
from mcverify.verdict import FIRST_LOOK


class Elsewhere(NamedTuple):
    """What another process makes of a claim: its cases; of some, claimed intervals and outcomes."""

    cases: list[str]
    claimed: list[tuple[float, float] | str]
    outcomes: list[Outcome]


def first_chunk(case: Case) -> int:
    """The blocks of the first chunk of a run."""
    return next(world_of(case).chunks(0, FIRST_LOOK))[1] if case.claim.draws else 1


def outcome(case: Case, first: int, blocks: int) -> Outcome:
    """The table of some blocks of a case, or why there is none."""
    try:
        if case.claim.draws:
            return measure([refer(case)], 0, first, blocks)[0]
        table = case.claim.statistic.reduce(call(case.claim.body, case.drawn))
    except (Exception, SystemExit) as error:
        return told(error)
    return table if np.isfinite(table).all() else f"the body returned {table}; it must be finite"


def told(error: BaseException) -> str:
    """What was raised, in one line."""
    return describe(error) if isinstance(error, Exception) else f"{type(error).__name__}: {error}"


def probes(claim: Claim, drawable: set[Any]) -> list[Case]:
    """The cheapest case under each law; of a calculation, the first."""
    if not claim.draws:
        return claim.cases()[:1]
    found: dict[Any, Case] = {}
    for case in sorted(claim.cases(), key=cost):
        if dict(case.settings)["law"] in drawable:
            found.setdefault(dict(case.settings)["law"], case)
    return list(found.values())


def cost(case: Case) -> int:
    """The numbers of a block."""
    world = world_of(case)
    return world.tokens * world.d_k


def look(claim: Claim, cases: list[Case], claimed: Claimed, spread: Spread) -> list[Remark]:
    """What is wrong with a claim's body at some of its cases; their claimed intervals, if known.

    Another process measures first, so that a body that kills its process kills that one.
    """
    place = place_of(claim)
    found = _elsewhere(claim, cases, spread)
    if isinstance(found, str):
        return [Problem(place, f"{claim.name}: {found}")]
    if found.cases != [str(case) for case in claim.cases()]:
        return [Problem(place, f"{claim.name}: another process finds other cases, such as "
                        f"{found.cases[0]}; let the grid be the same whenever the file is loaded")]
    remarks: list[Remark] = []
    if claimed and found.claimed != list(claimed.values()):
        remarks.append(Problem(place, f"{claim.name}: another process predicts other numbers; let "
                               "the prediction depend on nothing but the settings"))
    for case, there in zip(cases, found.outcomes, strict=True):
        if text := _impure(case, there):
            return [*remarks, Problem(place, f"{claim.name}: at {case}: {text}")]
    return [*remarks, *_deaf(claim, cases)]


def _impure(case: Case, there: Outcome) -> str:
    """What is wrong with measuring a case, once there and twice here; "" if nothing."""
    if isinstance(there, str):
        return there
    blocks = first_chunk(case)
    with drawing([]) as drew:
        here = None if case.claim.draws else outcome(case, 0, blocks)
    if drew:
        return (f"the body {drew[0]}, but the statistic exact is for a calculation; let it ask "
                "for rng, and use another statistic")
    here, again = outcome(case, 0, blocks) if here is None else here, outcome(case, 0, blocks)
    for other in (here, again):
        if isinstance(other, str):
            return other
    if not _same(here, again):
        return ("measured twice from the same draws, the values differ; draw from rng, read no "
                "clock, and keep nothing between calls")
    if not _same(here, there):
        return ("another process gets other values from the same draws; let the body depend on "
                "nothing but what it is given")
    return ""


def _same(one: Any, other: Any) -> bool:
    # But for the last bits, in which sums may differ with where an array begins in memory.
    return one.shape == other.shape and bool(
        np.allclose(one, other, rtol=1e-9, atol=1e-12 * float(np.abs(one).max())))


def _deaf(claim: Claim, cases: list[Case]) -> Iterator[Remark]:
    """Whether values stay the same when q or k is drawn anew, and whether the body writes to them.

    A share of 0 or 1 may be an identity; of that the controls tell more.
    """
    place, asked = place_of(claim), [name for name in ("q", "k") if name in parameters(claim.body)]
    found = [_deaf_at(case, asked) for case in cases if asked]
    if any(each is None for each in found):
        yield Problem(place, f"{claim.name}: the body changes q or k, which are shared with other "
                      "claims; work on a copy")
        return
    rest = [name for name in asked if found and all(each and name in each[0] for each in found)]
    constant = all(each and each[1] for each in found)
    if not rest or (constant and claim.statistic.name == proportion.name):
        return
    names = f"{' and '.join(rest)} {'are' if len(rest) > 1 else 'is'} drawn anew"
    if constant and rest == asked:
        yield Problem(place, f"{claim.name}: the values are the same in all blocks, also when "
                      f"{names}, so nothing can be decided; for an identity use the statistic "
                      "proportion, and else let the body use what it asks for")
    else:
        kind, also = (Problem, "measures nothing") if rest == asked else (Doubt, "asks in vain")
        yield kind(place, f"{claim.name}: the values stay the same when {names}, so the body "
                   f"{also}; use what it asks for, or do not ask")


def _deaf_at(case: Case, asked: Sequence[str]) -> tuple[list[str], bool] | None:
    """Those of q and k that do not matter, and whether all blocks agree; None if one is changed."""
    world, blocks = world_of(case), first_chunk(case)
    old, new = (dict(zip("qk", world.draw(seed, 0, blocks), strict=True)) for seed in (0, 1))
    before = {name: old[name].copy() for name in asked}
    table = np.asarray(_table(case, world, old["q"], old["k"], 0, 0))
    if any(not np.array_equal(before[name], old[name]) for name in asked):
        return None
    deaf = [name for name in asked if _unmoved(case, world, old, new, name, table)]
    return deaf, bool(np.all(table == table[:1]))


def _unmoved(
    case: Case, world: World, old: dict[str, Any], new: dict[str, Any], name: str, table: Any
) -> bool:
    """Whether the table stays the same with new draws, and with large ones, for rare events."""
    for other in (new[name], 100 * old[name]):
        given = old | {name: other}
        try:
            found = _table(case, world, given["q"], given["k"], 0, 0)
        except Exception:  # of these draws, but not of the old ones
            return False
        if not np.array_equal(table, found):
            return False
    return True


# --- elsewhere ---------------------------------------------------------------------------------


def _elsewhere(claim: Claim, cases: list[Case], spread: Spread) -> Elsewhere | str:
    """What another process makes of the claim, or in a line why it cannot."""
    references = [refer(case) for case in cases or claim.cases()[:1]]
    blocks = [first_chunk(case) for case in cases]
    try:
        (_, found), = spread(report_from_elsewhere, [(references, blocks)])
    except (Exception, SystemExit) as error:
        return (f"cannot be taken to another process: {told(error)}; keep what its grid and its "
                "body hold simple")
    if isinstance(found, Killed):
        return f"its process was killed ({found.how}); mend the body"
    return found if isinstance(found, str) else Elsewhere(*found)


def report_from_elsewhere(references: list[Reference], blocks: list[int]) -> Elsewhere | str:
    """Called in the other process: what it makes of a claim, given cases of it."""
    sys.argv = [""]  # a file that looks at the arguments of its program finds none
    held, name, _ = references[0]
    if isinstance(held, Path) and name not in [claim.name for claim in load(held).claims]:
        why = "; ".join(load(held).faults) or f"{held.name} does not hold it there"
        return f"does not load in another process: {why}"
    cases = [resolve(reference) for reference in references]
    every, cases = cases[0].claim.cases(), cases[:len(blocks)]
    return Elsewhere([str(case) for case in every], [*predictions.claimed(cases).values()],
                     [outcome(case, 0, n) for case, n in zip(cases, blocks, strict=True)])

