"""Foresee from a few blocks whether controls are refuted, what a run takes, and what stays open."""

import math
import time
import tracemalloc
from collections.abc import Iterator

from scipy.special import ndtri

from mcverify.arrays import Array
from mcverify.check_claim.remarks import NOTE, PROBLEM, WARNING, Remark, about
from mcverify.check_claim.values import BLOCKS, FEW, SECONDS
from mcverify.declare.claim import Case, Claim
from mcverify.judge.raised import described
from mcverify.judge.sample import sample
from mcverify.judge.trial import MAX_TABLE
from mcverify.judge.watch import Watch, blocks_until
from mcverify.judge.world import world_of
from mcverify.statistic import Estimate, Statistic
from mcverify.statistic.betting import threshold
from mcverify.verdict import CASE_ERROR_RATE, FIRST_LOOK, Verdict, judge, look_rate, looks

ERROR_RATE = 1e-3  # of one look at a control: a first impression, not a verdict
ENOUGH = 1.0  # seconds spent on a claim's cases; those left are taken to cost as the last one
ROUGH = 0.3  # an error rate at which a few blocks give a standard error
DOUBTED_BEYOND = 4  # times the last look: a forecast from few blocks may be wrong by as much


def controls(claim: Claim, watch: Watch) -> Iterator[Remark]:
    """What the controls of a claim that is declared CONFIRMED tell on a first look."""
    cases, left_open = claim.control_cases(), ""
    if claim.expect is Verdict.CONFIRMED and not cases:
        yield about(claim, PROBLEM, "no control shows that anything can refute it; name a near "
                    "miss with controls=grid(…): other settings for the draws and the body, under "
                    "which the prediction must be REFUTED")
    for case in [*(Case(claim, case.settings) for case in cases[:1]), *cases]:
        watch.at(0, str(case))
        verdict, text = _first_look(case)
        if not case.control and verdict is Verdict.REFUTED:
            yield about(claim, WARNING, f"declared CONFIRMED, but a first look at {case} {text}")
            return
        if case.control and verdict is None:
            yield about(claim, PROBLEM, f"the control {case} is broken: {text}; mend it")
        elif case.control and verdict is Verdict.CONFIRMED:
            yield about(claim, PROBLEM, f"the control {case} must be REFUTED, but a first look "
                        f"{text}; move it away")
        elif case.control and verdict is Verdict.INCONCLUSIVE:
            left_open = left_open or f"a first look leaves the control {case} open: {text}"
    if left_open:
        yield about(claim, WARNING, f"{left_open}; a run will look longer, and at all of them")


def _first_look(case: Case) -> tuple[Verdict | None, str]:
    """The verdict so far, None of a broken case, and what it is read from."""
    try:
        (statistic, table), (low, high) = sample(case, BLOCKS, seconds=SECONDS), case.claimed
        estimate = statistic.estimate(table, ERROR_RATE)
    except Exception as error:
        return None, described(error)
    return judge((estimate.low, estimate.high), (low, high)), estimate.reason or (
        f"has it in [{estimate.low:.4g}, {estimate.high:.4g}], where [{low:.4g}, {high:.4g}] is "
        "claimed")


def costs(claim: Claim, cases: list[Case], watch: Watch) -> Iterator[Remark]:
    """What a run of the claim takes, cases that are broken, and cases that may stay open."""
    blocks, seconds, left_open = list[int](), list[float](), list[str]()
    case, started = cases[-1], time.perf_counter()
    try:
        tracemalloc.start()
        sample(case, FIRST_LOOK, seconds=SECONDS)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        for case in reversed(cases):
            watch.at(0, str(case))
            began = time.perf_counter()
            statistic, table = sample(case, FEW, start=FIRST_LOOK, seconds=SECONDS)
            each = (time.perf_counter() - began) / len(table)
            needed, reason = foreseen(case, statistic, table)
            blocks.append(needed)
            seconds.append(needed * each)
            left_open += [f"such as {case}: {reason}"] if reason else []
            if time.perf_counter() - started > ENOUGH:
                break
    except Exception as error:
        yield about(claim, PROBLEM, f"at {case}: {described(error)}")
        return
    finally:
        tracemalloc.stop()
    if left_open and claim.expect is not Verdict.INCONCLUSIVE:
        yield about(claim, WARNING, f"{len(left_open)} of {len(cases)} cases may not be decided, "
                    f"{left_open[0]}")
    total = sum(seconds) + seconds[-1] * (len(cases) - len(seconds))
    yield about(claim, NOTE, f"cases: {len(cases)}, expected blocks each: {min(blocks)} to "
                f"{max(blocks)}, about {total:.2g} s in all on one core; a chunk takes up to "
                f"{peak:.3g} MiB")


def foreseen(case: Case, statistic: Statistic, table: Array) -> tuple[int, str]:
    """Blocks that a case takes whose block values are like these, and why it may stay open.

    After n blocks an interval reaches t·spread/√n to either side, in a stated range ln(1/rate)·
    range/n more. What is declared CONFIRMED is taken to be true in its middle, all else to be a
    standard error farther off.
    """
    reason = statistic.missing_moments(world_of(case).law) if case.claim.draws else ""
    if reason or not case.claim.draws:
        return 1 - bool(reason), reason
    rate, estimate = look_rate(CASE_ERROR_RATE, statistic.anytime), statistic.estimate(table, ROUGH)
    if estimate.stderr == 0 and not statistic.support:
        return FIRST_LOOK, (f"the values are the same in {len(table)} blocks, and while they are "
                            "nothing is decided; for an identity use the statistic proportion")
    middle, reach = sum(case.claimed) / 2, -float(ndtri(rate / 2)) * estimate.stderr
    low, high = statistic.support or (0.0, 0.0)
    more = threshold(FIRST_LOOK, rate) * (high - low) / len(table)
    centred = case.expected is Verdict.CONFIRMED and math.isfinite(middle)
    value, farther = (middle, 0.0) if centred else (estimate.value, estimate.stderr)
    likely = Estimate(value, estimate.stderr, value - reach - more, value + reach + more)
    needed = max(statistic.blocks_needed(table, rate),
                 blocks_until(likely, case.claimed, len(table), reach, farther))
    stops = [stop for _, stop in looks() if stop * table[0].size <= MAX_TABLE] or [FIRST_LOOK]
    if needed > DOUBTED_BEYOND * stops[-1]:
        reason = (f"about {needed:.2g} blocks would be needed, and {stops[-1]} are the most; widen "
                  "the margin, or return more values a block")
    return next((stop for stop in stops if stop >= needed), stops[-1]), reason
