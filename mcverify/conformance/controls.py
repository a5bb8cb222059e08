"""From a claim's near misses to whether they are refuted, and so whether anything can refute it."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from mcverify.conformance.bodies import outcome
from mcverify.conformance.remarks import Doubt, Problem, Remark, place_of
from mcverify.declare.claim import Case, Claim
from mcverify.declare.prediction import KINDS
from mcverify.judge.measure import Outcome
from mcverify.judge.world import world_of
from mcverify.statistic.estimate import Estimate, no_interval
from mcverify.verdict import Verdict, judge

ERROR_RATE = 1e-3  # of one look at a control: a first impression, not a verdict
BLOCKS = 4096  # of that look at most
NUMBERS = 2**22  # drawn at most, if that is not too few for an interval


def look(claim: Claim) -> Iterator[Remark]:
    """What the controls of a claim that is declared CONFIRMED tell on a first look."""
    if claim.expect is not Verdict.CONFIRMED:
        return
    place, controls = place_of(claim), claim.control_cases()
    if not controls:
        yield Problem(place, f"{claim.name}: no control shows that anything can refute it; name a "
                      "near miss with controls=grid(…): other settings for the draws and the body, "
                      "under which the prediction must be REFUTED")
        return
    case = Case(claim, controls[0].settings)
    if not missing_moments(case):  # of which the costs tell
        yield from _first_look(case, controls)


def _first_look(case: Case, controls: list[Case]) -> Iterator[Remark]:
    claim, place, own = case.claim, place_of(case.claim), estimate(case)
    if isinstance(own, str):
        yield Problem(place, f"{claim.name}: at {case}: {own}")
        return
    if judge((own.low, own.high), case.claimed) is Verdict.REFUTED:
        yield Doubt(place, f"{claim.name}: declared CONFIRMED, but a first look at {case} has it "
                    f"in [{own.low:.4g}, {own.high:.4g}], outside of what is claimed, "
                    f"[{case.claimed[0]:.4g}, {case.claimed[1]:.4g}]")
        return
    remarks: list[Remark] = []
    for control in controls:
        # A control that only moves the prediction has the draws of the case itself.
        moved = all(name in KINDS for name, _ in control.control)
        remarks += _remarks(control, own if moved else estimate(control), place)
    yield from [remark for remark in remarks if isinstance(remark, Problem)]
    yield from [remark for remark in remarks if isinstance(remark, Doubt)][:1]


def _remarks(control: Case, found: Estimate | str, place: str) -> Iterator[Remark]:
    name = f"{control.claim.name}: the control {control}"
    if isinstance(found, str):
        yield Problem(place, f"{name} is broken: {found}; mend or replace it")
        return
    verdict = judge((found.low, found.high), control.claimed)
    if verdict is Verdict.CONFIRMED:
        yield Problem(place, f"{name} must be REFUTED, but a first look has it in "
                      f"[{found.low:.4g}, {found.high:.4g}], inside of what is claimed, "
                      f"[{control.claimed[0]:.4g}, {control.claimed[1]:.4g}]; move it farther")
    elif verdict is Verdict.INCONCLUSIVE:
        why = found.reason or f"it is in [{found.low:.4g}, {found.high:.4g}]"
        yield Doubt(place, f"{name} must be REFUTED, and a first look leaves it open: {why}; a run "
                    "will look longer, and at all of them")


def missing_moments(case: Case) -> str:
    """Why the case cannot be decided whatever is drawn; "" if it can."""
    if not case.claim.draws:
        return ""
    law = world_of(case).law
    needed = case.claim.statistic.moments * (2 if law.coupled else 1)
    if 0 < needed and law.finite_moments <= needed:
        return (f"the interval needs the moment of order {needed:g} of a coordinate; {law} has "
                f"those below {law.finite_moments:g}")
    return ""


def estimate(case: Case) -> Estimate | str:
    """The case on one look at the rate above, or what is broken."""
    try:
        if reason := missing_moments(case):
            return no_interval(math.nan, math.nan, reason)
        case.claimed  # noqa: B018  # raises if it is broken
        table = _table(case)
        return table if isinstance(table, str) else (
            case.claim.statistic.estimate(table, ERROR_RATE))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _table(case: Case) -> Outcome:
    if not case.claim.draws:
        return outcome(case, 0, 1)
    world = world_of(case)
    numbers = 2 * world.tokens * world.d_k
    t = -float(ndtri(ERROR_RATE / 2))
    least = 2 ** math.ceil(math.log2(case.claim.statistic.caution * t * t) + 0.5)
    blocks = max(least, min(BLOCKS, 2 ** int(math.log2(max(1, NUMBERS // numbers)))))
    tables = []
    for first, size in world.chunks(0, blocks):
        table = outcome(case, first, size)
        if isinstance(table, str):
            return table
        tables.append(table)
    return np.concatenate(tables)
