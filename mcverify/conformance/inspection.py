"""From a file to remarks, and from remarks to the report that its author reads."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mcverify.conformance import bodies, controls, costs, laws, names, predictions
from mcverify.conformance.guard import generators
from mcverify.conformance.remarks import Doubt, Note, Problem, Remark, place_of
from mcverify.declare.claim import Claim
from mcverify.declare.discover import _files, survey
from mcverify.judge.processes import Spread, workers
from mcverify.laws import Law


def inspect(*paths: str | Path) -> list[Remark]:
    """All that can be told of files, or of folders of files, in a few seconds.

    A ``Problem`` breaks a rule, a ``Doubt`` may not mean what it seems to, a ``Note`` is what a
    run will cost. All claims are looked at, whatever is wrong with others. Raises ClaimError when
    there is no such Python file or folder.
    """
    remarks = [remark for file in _files(paths) for remark in names.look(file)]
    found = survey(*paths)
    told = {(remark.place, remark.message) for remark in remarks}
    for fault in found.faults:  # those between files, besides those of each
        place, _, message = fault.partition(": ")
        if (place, message) not in told:
            remarks.append(Problem(place, message))
    with workers(2) as spread:
        remarks += _claims(list(found.claims), spread)
    return remarks


def _claims(claims: list[Claim], spread: Spread) -> Iterator[Remark]:
    known = generators()
    intervals: dict[Claim, predictions.Claimed] = {}
    for claim in claims:  # before anything is measured that a prediction might wait for
        intervals[claim], remarks = predictions.look(claim, known)
        yield from remarks
        if not ok(remarks):  # one line is enough
            intervals[claim].clear()
    drawable: set[Law] = set()
    yield from _laws(claims, known, drawable)
    for claim in claims:
        yield from _claim(claim, intervals[claim], drawable, spread)


def _laws(claims: list[Claim], known: list[Any], drawable: set[Law]) -> Iterator[Remark]:
    """What is wrong with the laws that the claims name; those that can be drawn are collected."""
    found = laws.worlds(claims)
    for law, (world, case) in found.items():
        can, remarks = laws.look(world, case, known, laws.FALSE_ALARM / len(found))
        yield from remarks
        if can:
            drawable.add(law)
    for law, text in laws.same_names(list(found)):
        yield Problem(place_of(found[law][1].claim), text)


def _claim(
    claim: Claim, intervals: predictions.Claimed, drawable: set[Law], spread: Spread
) -> list[Remark]:
    cases = bodies.probes(claim, drawable)
    claimed = {case: intervals[case] for case in cases} if intervals else {}
    remarks = bodies.look(claim, cases, claimed, spread)
    if claimed and ok(remarks):
        remarks += [*controls.look(claim), *costs.look(claim, drawable)]
    if claimed and predictions.claimed(cases) != claimed:
        remarks.append(Problem(place_of(claim), f"{claim.name}: its prediction has changed since "
                               "it was measured; let it depend on nothing but the settings"))
    return remarks


def ok(remarks: Sequence[Remark]) -> bool:
    """Whether none of the remarks is a problem.

    >>> ok([Note("mine.py:3", "…")]), ok([Problem("mine.py:3", "…")])
    (True, False)
    """
    return not any(isinstance(remark, Problem) for remark in remarks)


def report(remarks: Sequence[Remark]) -> str:
    """The remarks as lines, problems first, and their sum.

    >>> print(report([Note("mine.py:3", "mine: 4 cases"), Problem("mine.py:3", "mine: is wrong")]))
    mine.py:3: problem: mine: is wrong
    mine.py:3: note: mine: 4 cases
    1 problem, 0 warnings
    """
    kinds = (Problem, Doubt, Note)
    lines = [str(remark) for kind in kinds for remark in remarks if isinstance(remark, kind)]
    counts = [sum(isinstance(remark, kind) for remark in remarks) for kind in kinds[:2]]
    return "\n".join([*lines, ", ".join(
        f"{count} {kind.word}{'' if count == 1 else 's'}"
        for count, kind in zip(counts, kinds, strict=False))])
