"""Check that a claim's numbers are a function of its draws, and that all it asks for matters."""

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.attention.chunk import Chunk
from mcverify.check_claim.remarks import PROBLEM, WARNING, Remark, about
from mcverify.declare.claim import Case, Claim
from mcverify.declare.loading import load
from mcverify.declare.names import COUNTS, WORLD, parameters
from mcverify.judge.measure import block_values, refusal
from mcverify.judge.processes import Progress, Spread
from mcverify.judge.raised import described
from mcverify.judge.randomness import GlobalRandomness
from mcverify.judge.reference import Reference, refer, resolve
from mcverify.judge.sample import sample
from mcverify.judge.watch import Watch
from mcverify.judge.worker import Killed, note_step, noting
from mcverify.judge.world import world_of
from mcverify.laws import Law
from mcverify.statistic.jackknife import wrong_influence

BLOCKS, SECONDS = 2048, 0.5  # of a case that is looked at: so many, or what comes in that time
FEW = 64  # blocks, that are measured again and again


def sound_cases(claim: Claim, broken: Collection[Law]) -> list[Case]:
    """The cases whose laws are not broken, cheap ones first."""
    return sorted((case for case in claim.cases() if case.drawn.get("law") not in broken),
                  key=lambda case: world_of(case).cost if claim.draws else 0)


def check(claim: Claim, cases: list[Case], spread: Spread, watch: Watch) -> Iterator[Remark]:
    """What is wrong at the cheapest case under each law; of a calculation, at one of them."""
    probes = [*{case.drawn.get("law"): case for case in reversed(cases)}.values()]
    try:
        text = _unsteady(probes, spread, watch) or wrong_influence(
            *sample(cases[0], BLOCKS, seconds=SECONDS))
    except Exception as error:
        text = described(error)
    if text:
        yield about(claim, PROBLEM, text)
        return
    settings = {name for point in claim.over.points for name, _ in point} - {*WORLD, *COUNTS}
    ranges = (*(claim.statistic.support or ()), *(claim.statistic.known or ()))
    functions = filter(callable, (claim.body, claim.prediction[1], *ranges))
    for name in sorted(settings.difference(*map(parameters, functions))):
        yield about(claim, WARNING, f"nothing looks at the setting {name}; let the body or the "
                    "prediction name it, or leave it out of the grid")
    asked = [name for name in parameters(claim.body) if name in ("q", "k", *settings)]
    idle = [name for name in asked if claim.draws and all(_is_idle(each, name) for each in probes)]
    kind = WARNING if {"q", "k", "rng"}.intersection(parameters(claim.body)) - {*idle} else PROBLEM
    for name in idle:
        yield about(claim, kind, f"the values stay the same whatever {name} is, so the body asks "
                    "for it in vain; use it or leave it out, or for an identity use the statistic "
                    "proportion")


def _unsteady(cases: list[Case], spread: Spread, watch: Watch) -> str:
    """How cases break or change when measured again, first where they may kill the process."""
    def follow(index: int, progress: Progress) -> None:
        def now() -> tuple[str, float]:
            step, since = progress()  # a moment after the call's end it may be that of the next one
            return str(cases[min(max(int(step), 0), len(cases) - 1)]), since

        watch.follow(index, now)

    try:
        [(_, there)] = spread(elsewhere, [([refer(case) for case in cases],)],
                              on_begin=follow)
    except (Exception, SystemExit) as error:
        return (f"cannot be taken to another process: {described(error)}; keep what its "
                "grid and its body hold simple")
    finally:
        watch.ended(0, 0.0)
    if isinstance(there, Killed):
        return f"its process was killed ({there.how}); mend the body"
    if isinstance(there, str):
        return there
    for case, other in zip(cases, there, strict=True):
        watch.at(0, str(case))
        here = _numbers(case)
        for how, again in (("in another process", other), ("a second time", _numbers(case))):
            if broken := again.get("broken") or here.get("broken"):
                return f"at {case}: {broken}"
            if differ := [what for what in here if not _same(here[what], again[what])]:
                return (f"at {case}: measured {how} it has another {differ[0]}; let it depend on "
                        "its settings and the rng that is given, not on a clock, process or call")
    return ""


def elsewhere(references: list[Reference]) -> list[dict[str, Any]] | str:
    """Called in the other process: the numbers of cases, or why the file does not load there."""
    sys.argv = [""]  # a file that looks at the arguments of its program finds none
    held, name, _ = references[0]
    if isinstance(held, Path) and name not in [claim.name for claim in load(held).claims]:
        return "; ".join(["does not load in another process", *load(held).faults])
    numbers = []
    for step, reference in enumerate(references):
        note_step(step)
        with noting([-1.0, 0.0]):  # the steps of a sample are no cases
            numbers.append(_numbers(resolve(reference)))
    return numbers


def _numbers(case: Case) -> dict[str, Any]:
    """By their names what must be the same whenever a case is measured, or what is broken."""
    randomness = GlobalRandomness()
    try:
        claimed = case.claimed
        randomness.untouched("the prediction")
        return {"name": str(case), "prediction": claimed,
                "value from the same draws": sample(case, FEW, seconds=SECONDS)[1]}
    except (Exception, SystemExit) as error:
        return {"broken": described(error)}


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray):
        return bool(one == other)
    blocks = min(len(one), len(other))  # of one there may be fewer, when time was up
    one, other = one[:blocks], other[:blocks]  # which agree but for the last bits
    return np.allclose(one, other, rtol=1e-9, atol=1e-12 * float(np.abs(one).max()))


def _is_idle(case: Case, name: str) -> bool:
    """Whether values stay the same with q or k drawn anew, or at all values of a setting."""
    world = world_of(case)
    blocks = next(world.chunks(0, FEW))[1]
    old, new = (dict(zip("qk", world.draw(seed, 0, blocks), strict=True)) for seed in (0, 1))
    if name in old:  # large ones, too, for rare events
        changed = [(case, old | {name: x}) for x in (new[name], 100 * old[name])]
    else:
        changed = [(other, old) for other in case.claim.cases()
                   if {one for one, _ in {*case.settings} ^ {*other.settings}} == {name}]
    before, *after = (_table(*each) for each in [(case, old), *changed])
    identity = case.claim.statistic.support and np.all(before == before[:1])  # for the controls
    return bool(after) and not identity and all(np.array_equal(before, each) for each in after)


def _table(case: Case, drawn: dict[str, Array]) -> Any:
    """Block values of these draws; None where the body raises."""
    world = world_of(case)
    try:
        chunk = Chunk(drawn["q"], drawn["k"], refusal(case, world))
        return block_values(case, world, chunk, 0, 0).table
    except Exception:
        return None
