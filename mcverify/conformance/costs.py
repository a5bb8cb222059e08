"""From one chunk of each case to what a run of the claim will take, and what it cannot decide."""

import math
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, rel_entr

from mcverify.conformance.bodies import cost, first_chunk, outcome
from mcverify.conformance.controls import missing_moments
from mcverify.conformance.remarks import Doubt, Note, Problem, Remark, place_of
from mcverify.declare.claim import Case, Claim
from mcverify.judge.measure import describe
from mcverify.judge.trial import MAX_TABLE
from mcverify.judge.world import Array
from mcverify.laws import Law
from mcverify.statistic import Statistic, proportion
from mcverify.statistic.studentised import MAX_DELTA, MIN_SPREAD, first_order
from mcverify.verdict import CASE_ERROR_RATE, LOOKS, Verdict, looks

SECONDS = 1.0  # spent on a claim's cases; what is left is taken to cost as the last one measured
BLOCKS, PATIENCE = 32, 0.5  # of a case: so many blocks, or what comes in so many seconds
ROUGH = 0.3  # an error rate at which a few blocks give a standard error
RATE = CASE_ERROR_RATE / LOOKS
FAR = 4  # times the last look: of 743 cases, 10 took a quarter of what was foreseen, or less


class Cost(NamedTuple):
    """What a case takes: seconds a block, blocks until it is decided, and why it never will be."""

    seconds: float
    blocks: float
    reason: str


def look(claim: Claim, drawable: set[Law]) -> Iterator[Remark]:
    """What a run of the claim takes, cases that are broken, and cases it cannot decide."""
    place, cases = place_of(claim), claim.cases()
    if not claim.draws:
        yield _calculations(claim)
        return
    cases = sorted((case for case in cases if dict(case.settings)["law"] in drawable), key=cost,
                   reverse=True)
    peak = _peak(cases[0])
    costs: list[Cost] = []
    started = time.perf_counter()
    for case in cases:
        if costs and time.perf_counter() - started > SECONDS:
            costs.append(costs[-1]._replace(reason=""))
            continue
        found = _cost(case)
        if isinstance(found, str):
            yield Problem(place, f"{claim.name}: at {case}: {found}")
            return
        costs.append(found)
    undecided = [(case, each.reason) for case, each in zip(cases, costs, strict=True)
                 if each.reason and claim.expect is not Verdict.INCONCLUSIVE]
    if undecided:
        case, reason = undecided[0]
        yield Doubt(place, f"{claim.name}: {len(undecided)} of {len(cases)} cases may not be "
                    f"decided, such as {case}: {reason}")
    yield Note(place, f"{claim.name}: {_sums(costs)}; a chunk takes up to {peak:.3g} MiB")


def _calculations(claim: Claim) -> Note:
    cases, started = claim.cases(), time.perf_counter()
    outcome(cases[-1], 0, 1)  # the first is in caches by now
    seconds = (time.perf_counter() - started) * len(cases)
    return Note(place_of(claim), f"{claim.name}: calculations: {len(cases)}, about {seconds:.2g} s "
                                 "in all")


def _sums(costs: list[Cost]) -> str:
    each = [found.seconds for found in costs]
    blocks = [int(found.blocks) for found in costs]
    total = sum(found.seconds * found.blocks for found in costs)
    return (f"cases: {len(costs)}, expected blocks each: {_between(blocks, 'd')}, seconds a block: "
            f"{_between(each, '.2g')}, about {total:.2g} s in all on one core")


def _between(values: list[float] | list[int], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def _peak(case: Case) -> float:
    """The memory that one chunk of a case takes, in MiB."""
    tracemalloc.start()
    try:
        outcome(case, 0, first_chunk(case))
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _cost(case: Case) -> Cost | str:
    chunk, tables = first_chunk(case), list[Array]()
    started = time.perf_counter()
    while True:
        table = outcome(case, len(tables) * chunk, chunk)
        if isinstance(table, str):
            return table
        tables.append(table)
        blocks, seconds = len(tables) * chunk, time.perf_counter() - started
        if blocks >= BLOCKS or (seconds > PATIENCE and blocks >= 2):
            break
    try:
        return _foreseen(case, np.concatenate(tables), seconds / blocks)
    except ValueError as error:
        return describe(error)


def _foreseen(case: Case, table: Array, seconds: float) -> Cost:
    last = looks()[-1][1]
    while last * table[0].size > MAX_TABLE and last > looks()[0][1]:
        last //= 2
    if reason := missing_moments(case):
        return Cost(seconds, 0, reason)
    needed, reason = _needed(case, table)
    stop = next((stop for _, stop in looks() if stop >= needed), math.inf)
    if not reason and needed > FAR * last:
        reason = (f"about {needed:.2g} blocks would be needed and {last} are the most; widen the "
                  "margin, or return more values a block")
    return Cost(seconds, min(stop, last), reason)


def _needed(case: Case, table: Array) -> tuple[float, str]:
    """Blocks until the measured interval is as narrow as the claimed one asks, or why never."""
    statistic, (low, high) = case.claim.statistic, case.claimed
    found = statistic.estimate(table, ROUGH)
    if math.isnan(found.value):
        raise ValueError(f"the {statistic.name} of these values is not a number")
    if statistic.name != proportion.name and not found.stderr > MIN_SPREAD * abs(found.value):
        return math.inf, (f"the values are the same in {len(table)} blocks, and while they are "
                          "nothing is decided; for a share or an identity use the statistic "
                          "proportion")
    if not math.isfinite(found.stderr):
        return 0.0, ""  # not foreseen from so few blocks
    truth = found.value
    if case.expected is Verdict.CONFIRMED and math.isfinite(high - low):
        # The middle of what is claimed, as far as the draws allow.
        noise = 3 * found.stderr
        truth = min(max((low + high) / 2, truth - noise), truth + noise)
    edges = [edge for edge in (low, high) if math.isfinite(edge)]
    if statistic.name == proportion.name:
        return max(_coin_blocks(truth, edge, len(table)) for edge in edges), ""
    distance = max(min(abs(truth - edge) for edge in edges), found.stderr * (len(edges) < 2))
    t = -float(ndtri(RATE / 2))
    spread = found.stderr * math.sqrt(len(table))
    blocks = (t * spread / distance) ** 2 if distance else math.inf
    return max(blocks, _trusted(statistic, table, t)), ""


def _coin_blocks(share: float, edge: float, blocks: int) -> float:
    """Blocks until Chernoff's bound parts a share from an edge, at least as far as it is seen."""
    apart = float(rel_entr(share, edge) + rel_entr(1 - share, 1 - edge)) if 0 < edge < 1 else (
        math.inf)
    return math.log(2 / RATE) / max(apart, 1 / (2 * blocks))


def _trusted(statistic: Statistic, table: Array, t: float) -> float:
    """Blocks from which the studentised interval is trusted, as skew as the block values look."""
    if statistic.interval is not None:
        return 0.0
    values = statistic.influence(table)[1]
    spread = float(np.mean(values**2))
    skewness = float(np.mean(values**3)) / spread**1.5 if spread else 0.0
    lean = 0.0 if statistic.lean is None else statistic.lean(table)
    first = max(first_order(skewness, t), lean * t * t)  # of δ, times the root of the blocks
    return max(statistic.caution * t * t, (first / MAX_DELTA) ** 2)
