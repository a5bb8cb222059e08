"""From a claim's prediction to whether it is one: known before anything is drawn, or measured."""

import inspect
from collections.abc import Iterator
from typing import Any

from mcverify.conformance.guard import Read, drawing, reading
from mcverify.conformance.remarks import Doubt, Problem, Remark, place_of, place_of_function
from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import source
from mcverify.judge.measure import describe

Claimed = dict[Case, tuple[float, float] | str]  # the claimed intervals, or why there is none


def claimed(cases: list[Case]) -> Claimed:
    """The claimed interval of each case, or what its prediction raises."""
    intervals: Claimed = {}
    for case in cases:
        try:
            intervals[case] = case.claimed
        except Exception as error:
            intervals[case] = describe(error)
    return intervals


def look(claim: Claim, known: list[Any]) -> tuple[Claimed, list[Remark]]:
    """The claimed intervals, and what was done to get them that a prediction must not do.

    ``known`` are the generators of random numbers that there are (see ``guard.generators``).
    """
    _forget(claim.prediction[1])
    with drawing(known) as drew, reading() as read:
        intervals = claimed(claim.cases())
    remarks = [*_remarks(claim, drew, read)]
    broken = [(case, text) for case, text in intervals.items() if isinstance(text, str)]
    if broken and not drew:
        case, text = broken[0]
        remarks.append(Problem(place_of(claim), f"{claim.name}: its prediction at {case} is "
                               f"broken: {text}; mend it"))
    return intervals, remarks


def _forget(prediction: Any) -> None:
    """Empty the caches that the file keeps, so that the prediction is really calculated."""
    names = getattr(inspect.unwrap(prediction), "__globals__", {}) if callable(prediction) else {}
    for value in [prediction, *names.values()]:
        clear = getattr(value, "cache_clear", None)
        if callable(clear) and not isinstance(value, type):
            clear()


def _remarks(claim: Claim, drew: list[str], read: list[Read]) -> Iterator[Remark]:
    kind, prediction = claim.prediction
    place = place_of_function(prediction, source(claim)) or place_of(claim)
    rule = "a prediction must be known before anything is measured; give a number or a formula"
    if drew:
        yield Problem(place, f"{claim.name}: {kind} {drew[0]}; {rule}")
    for what, of in read:
        yield (Doubt if of == "file" else Problem)(place, f"{claim.name}: {kind} {what}; {rule}")
