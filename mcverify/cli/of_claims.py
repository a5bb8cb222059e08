"""The commands that judge claims and show them, which import what they need as they run."""

from typing import Annotated

from typer import Option

from mcverify.cli import options as to
from mcverify.cli import terminal
from mcverify.cli.exits import Exit, refused, report_faults
from mcverify.judge.worker import warm_up
from mcverify.verdict import CASE_ERROR_RATE, MAX_BLOCKS, Terms


def run(
    names: to.Names = None,
    out: to.Out = to.RESULTS,
    seed: to.Seed = 0,
    error_rate: Annotated[float, to.rate_of("the verdict on a case")] = CASE_ERROR_RATE,
    margin_scale: to.Scale = 1.0,
    max_blocks: to.Blocks = MAX_BLOCKS,
    jobs: to.Jobs = None,
    resume: Annotated[bool, Option("--resume", help=(
        "go on from the cases that an interrupted run has finished"))] = False,
    time_limit: to.TimeLimit = None,
    verdict: to.Outcome = None,
    failed: to.Failed = False,
    changed: Annotated[bool, Option("--changed", help=(
        "only claims whose source, or what their results depend on, has changed since those"))] = (
            False),
    body_limit: to.BodyLimit = None,
    scheduler: to.Scheduler = None,
) -> Exit:
    """Judge claims and write results."""
    # A few names may be of calculations, which take no processes.
    if jobs != 1 and not names and not scheduler:
        warm_up([] if changed else ["mcverify.judge.everything"])
    from mcverify.cli.selection import chosen, only_changed
    from mcverify.cli.suite import Suite, spread_over
    from mcverify.results.folder import Results

    results = Results(out)
    claims, faults = chosen(names, results, verdict, failed)
    if (verdict or failed) and not claims:
        terminal.show("nothing to run: " + (f"no claim was judged {verdict}" if verdict else
                                            "every claim was judged as declared"))
        return report_faults(faults)
    if report_faults(faults) and not claims:
        return Exit.BAD_USAGE
    part = bool(names or verdict or failed)
    if not part and (slow := [claim for claim in claims if claim.slow]):
        terminal.show(f"left out: {len(slow)} claims that take long or need more packages, whose "
                      "results stay as they are; name them to judge them", stderr=True)
    kept = None
    if changed:
        slow = [claim for claim in claims if claim.slow and not part]
        again, kept = only_changed([claim for claim in claims if claim not in slow], results)
        claims = [*again, *slow]
    terms = Terms(seed, error_rate, margin_scale, max_blocks)
    with spread_over(jobs, scheduler, claims) as spread:
        suite = Suite(claims, results, terms, spread, part, body_limit, time_limit, kept)
        status = suite.run(resume)
    return Exit.BAD_USAGE if faults and status is not Exit.INTERRUPTED else status


def plan(
    names: to.Names = None,
    out: to.Last = to.RESULTS,
    error_rate: Annotated[float, to.rate_of("the verdict on a case")] = CASE_ERROR_RATE,
    margin_scale: to.Scale = 1.0,
    max_blocks: to.Blocks = MAX_BLOCKS,
    csv: Annotated[bool, Option("--csv", help="print a row a claim as CSV")] = False,
) -> Exit:
    """Tell what a run would take: blocks, numbers drawn, time, memory, what stays open."""
    from mcverify.cli.planning import plan_csv, plan_table
    from mcverify.cli.selection import select
    from mcverify.cli.waiting import patient
    from mcverify.plan import plan

    claims, faults = select(names)
    if report_faults(faults) and not claims:
        return Exit.BAD_USAGE
    if not names:  # as a run does
        claims = [claim for claim in claims if not claim.slow]
    terms = Terms(0, error_rate, margin_scale, max_blocks)
    with refused(), patient() as watch:
        plans = plan(claims, terms, out, watch)
    if csv:
        terminal.show(plan_csv(plans))
    else:
        plan_table(plans)
    return Exit.BAD_USAGE if faults else Exit.AS_DECLARED


def list_(
    names: to.Names = None, out: to.Last = to.RESULTS, verdict: to.Outcome = None,
    failed: to.Failed = False,
) -> Exit:
    """List claims and their sentences."""
    from mcverify.cli.report import claims_table
    from mcverify.cli.selection import chosen

    claims, faults = chosen(names, out, verdict, failed, everywhere=True)
    claims_table(claims)
    return report_faults(faults)


def show(names: to.SomeNames, out: to.Last = to.RESULTS) -> Exit:
    """Show all there is to know about claims."""
    from mcverify.cli.report import claim_text
    from mcverify.cli.selection import select

    claims, faults = select(names)
    for claim in claims:
        terminal.show(claim_text(claim, out))
    return report_faults(faults)
