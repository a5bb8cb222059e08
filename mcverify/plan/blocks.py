"""How many blocks a case will take, by results of it or by a few blocks, and what stays open."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcverify.arrays import Array
from mcverify.declare.claim import Case
from mcverify.judge.known import known_values
from mcverify.judge.trial import Trial
from mcverify.judge.watch import end_of_look
from mcverify.plan.timing import Stopwatch, Timed
from mcverify.results.rows import Row
from mcverify.statistic import Basis, Estimate
from mcverify.statistic.studentised import CALIBRATED_FROM
from mcverify.verdict import FIRST_LOOK, Verdict

REPEATED = (CALIBRATED_FROM, 2**12, 2**14)  # rows that a chunk's are repeated to, for an interval
MEASURED = 2**10  # rows at most, of which an interval is timed
LIKELY = 3.0  # standard errors by which a true claim's estimate may be off its middle
AT_AN_EDGE = 2.0  # standard errors


class Expected(NamedTuple):
    """Blocks that a case takes, and why they will not decide it; "" if they will."""

    blocks: int
    reason: str = ""


def expected(trial: Trial, timed: Timed, row: Row | None, same: bool) -> Expected:
    """By the row of results, if there is one with an interval; else by a chunk's block values.

    ``trial`` has said what needs no draws. ``same`` is whether the row was judged on its terms.
    """
    if trial.statistic.learns:
        trial.statistic = trial.statistic.informed(known_values(
            trial.world, timed.made, trial.statistic.power))
    ends = trial.bearable(timed.table[0].size) or [FIRST_LOOK]
    if row is not None and math.isfinite(float(row["low"]) - float(row["high"])):
        drawn, decided = int(row["blocks"]), row["verdict"] in ("CONFIRMED", "REFUTED")
        if same and decided:
            return Expected(drawn)
        value, stderr, low, high = (float(row[name]) for name in
                                    ("estimate", "stderr", "low", "high"))
        estimate = Estimate(value, stderr, low, high)
        # With tighter margins none but a claim that is wrong is decided any sooner.
        sooner = trial.case.expected is not Verdict.CONFIRMED and not trial.case.control
        return _by(trial, estimate, drawn, drawn, 0 if sooner or not decided else drawn, ends)
    estimate, rows = _repeated(trial, timed)
    if estimate.reason:
        return Expected(ends[-1], estimate.reason)
    least = trial.statistic.blocks_needed(timed.table, trial.terms.look_rate())
    return _by(trial, estimate, rows, len(timed.table), least, ends)


def _repeated(trial: Trial, timed: Timed) -> tuple[Estimate, int]:
    """The interval of a look that has drawn a chunk's block values over and over."""
    for least in REPEATED:
        rows = max(least, len(timed.table))
        table = np.resize(timed.table, (rows, *timed.table.shape[1:]))
        estimate = trial.statistic.estimate(table, trial.rate)
        if estimate.final or math.isfinite(estimate.high - estimate.low):
            break
    return estimate, rows


def of_intervals(trial: Trial, table: Array, blocks: int) -> float:
    """The CPU seconds of a case's intervals: at the first look and, if it goes on, at two more."""
    rows, watch = blocks // trial.merged(blocks), Stopwatch()
    drawn = [FIRST_LOOK, FIRST_LOOK, min(rows, MEASURED)]
    with suppress(Exception):  # few blocks repeated may allow none where more do
        for each in drawn if rows > FIRST_LOOK else drawn[:1]:
            repeated = np.resize(table, (each, *table.shape[1:]))
            with watch:
                trial.statistic.estimate(repeated, trial.rate)
    if len(watch.laps) < len(drawn):
        return sum(watch.laps)
    return watch.cost(drawn).of(3, FIRST_LOOK + 2 * rows)


def _by(
    trial: Trial, estimate: Estimate, blocks: int, few: int, least: float, ends: list[int]
) -> Expected:
    """By an interval after so many blocks, few of which were drawn and the others repeat them.

    A claim that is declared CONFIRMED is taken to be true in its middle, also under a control that
    only predicts another value. Where there is no middle, or the estimate tells otherwise, edges
    are taken to be a standard error farther off, as near ones are so by chance.
    """
    error, middle = estimate.stderr * math.sqrt(blocks / few), _middle(trial)
    low, high = trial.statistic.support or (0.0, 0.0)  # of which few blocks may show one value
    centred = abs(estimate.value - middle) <= LIKELY * max(error, (high - low) / few)
    moved = middle - estimate.value if centred else 0.0
    estimate = replace(estimate, value=estimate.value + moved, low=estimate.low + moved,
                       high=estimate.high + moved)
    farther = 0.0 if centred else error
    if trial.statistic.rests_on is Basis.CALIBRATED:
        least = max(least, CALIBRATED_FROM)
    needed = max(trial.needed(estimate, blocks, farther), least)
    edge = min(trial.claimed, key=lambda edge: abs(estimate.value - edge))
    at_edge = not centred and abs(estimate.value - edge) < AT_AN_EDGE * error
    if needed <= ends[-1] and not (at_edge and few == blocks):  # drawn by a run
        return Expected(end_of_look(needed, 0, ends[-1]))
    if at_edge:
        return Expected(ends[-1], f"its estimate, {estimate.value:.6g}, is at an edge of what is "
                                  f"claimed, {edge:.6g}, but for {error:.2g}")
    return Expected(ends[-1], f"about {needed:.2g} blocks would be needed, and {ends[-1]} are the "
                              "most")


def _middle(trial: Trial) -> float:
    """Of what a claim that is declared CONFIRMED says of these draws; nan if it has none."""
    case = trial.case
    if case.control and [name for name, _ in case.control] != ["equals"]:
        return math.nan
    if case.claim.expect is not Verdict.CONFIRMED:
        return math.nan
    middle = sum(Case(case.claim, case.settings).claimed_at(trial.terms.margin_scale)) / 2
    return middle if math.isfinite(middle) else math.nan
