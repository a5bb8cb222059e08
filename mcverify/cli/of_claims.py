"""The commands about claims and their results, which import what they need as they run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mcverify.cli import options as to
from mcverify.cli import terminal
from mcverify.cli.exits import Exit, refused, told, writing_to
from mcverify.declare.fault import UsageError
from mcverify.judge.processes import Spread
from mcverify.judge.worker import warm_up
from mcverify.verdict import CASE_ERROR_RATE, MAX_BLOCKS, Terms

if TYPE_CHECKING:  # NumPy takes longer than all that a command needs to tell its help
    from mcverify.declare.claim import Claim


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
    from mcverify.cli.selection import last_judged, only_changed, select
    from mcverify.cli.suite import Suite
    from mcverify.results.folder import Results

    results = Results(out)
    if verdict or failed:
        claims, faults = last_judged(names or [], results, verdict, failed)
        if not claims:
            terminal.show("nothing to run: " + (f"no claim was judged {verdict}" if verdict else
                                                "every claim was judged as declared"))
            return told(faults)
    else:
        claims, faults = select(names or [])
    if told(faults) and not claims:
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
    with _spread(jobs, scheduler, claims) as spread:
        suite = Suite(claims, results, terms, spread, part, body_limit, time_limit, kept)
        status = suite.run(resume)
    return Exit.BAD_USAGE if faults and status is not Exit.INTERRUPTED else status


@contextmanager
def _spread(
    jobs: int | None, scheduler: str | None, claims: "Sequence[Claim]"
) -> Iterator[int | Spread | None]:
    """The processes here, or the workers of a cluster."""
    if scheduler is None:
        yield jobs
        return
    if jobs is not None:
        raise UsageError(f"--jobs {jobs}: with --scheduler it is the workers of the cluster that "
                         "say how many calls are made at once; leave one of the two out")
    from mcverify.judge.cluster import cluster

    def tell(line: str) -> None:
        terminal.show(f"mcverify: {line}", stderr=True)

    with cluster(scheduler, claims, tell) as spread:
        yield spread


def list_(
    names: to.Names = None, out: to.Last = to.RESULTS, verdict: to.Outcome = None,
    failed: to.Failed = False,
) -> Exit:
    """List claims and their sentences."""
    from mcverify.cli.report import claims_table
    from mcverify.cli.selection import last_judged, select
    from mcverify.results.folder import Results

    if verdict or failed:
        claims, faults = last_judged(names or [], Results(out), verdict, failed)
    else:
        claims, faults = select(names or [], everywhere=True)
    claims_table(claims)
    return told(faults)


def show(names: to.SomeNames, out: to.Last = to.RESULTS) -> Exit:
    """Show all there is to know about claims."""
    from mcverify.cli.report import about
    from mcverify.cli.selection import select
    from mcverify.results.folder import Results

    claims, faults = select(names)
    for claim in claims:
        terminal.show(about(claim, Results(out)))
    return told(faults)


def ledger(statements: to.Statements = None, out: to.Last = to.RESULTS) -> Exit:
    """Show what the notes say, and how it is judged."""
    from mcverify.cli.report import ledger_table
    from mcverify.cli.selection import select
    from mcverify.results.folder import Results
    from mcverify.results.ledger import as_declared, ledger

    claims, faults = select([])
    results = Results(out)
    table = ledger(results.read("verdicts") or as_declared(claims))
    if unknown := set(statements or []) - set(table["id"]):
        raise UsageError(f"{min(unknown)}: no statement has this id; `mcverify ledger` lists them")
    ledger_table(table[table["id"].isin(statements)] if statements else table, results)
    return told(faults)


def prune(files: to.SomeFiles = None, out: to.Out = to.RESULTS) -> Exit:
    """Remove the results of claims that their files no longer have."""
    from mcverify.cli.selection import behind
    from mcverify.results.folder import Results

    results = Results(out)
    claims, faults = behind(results, files or ())
    if faults:
        return told(faults)  # a claim of a broken file may be there after all
    with writing_to(out), results.held():
        stale = results.stale(claims)
        results.forget(stale)
    terminal.show(f"removed {', '.join(stale)}" if stale else "nothing to remove")
    return Exit.AS_DECLARED


def replay(
    place: Annotated[str, Argument(metavar="CSV[:ROW]", help=(
        "a table of results/claims, and a row of it, from 1 on"))],
    files: Annotated[list[str] | None, Argument(metavar="FILE", show_default=False, help=(
        "the Python file of the claim, if it is not one of mcverify's"))] = None,
    jobs: to.Jobs = None,
) -> Exit:
    """Reproduce the digits of rows of results."""
    from mcverify.cli.selection import select
    from mcverify.cli.waiting import patient
    from mcverify.results.replay import replay

    claims, faults = select(files or [])
    with refused(), patient() as watch:
        rows = list(replay(place, claims, jobs, watch))
    for row in rows:
        terminal.show(row)
    told(faults)
    return Exit.CONTRADICTED if any(row.differences for row in rows) else Exit.AS_DECLARED


def compare(
    old: Annotated[Path, Argument(metavar="OLD", help="a folder of results")],
    new: Annotated[Path, Argument(metavar="NEW", help="another one")],
) -> Exit:
    """List what differs between two results folders by more than chance."""
    from mcverify.cli.report import differences_table
    from mcverify.results.compare import compare
    from mcverify.results.folder import Results

    with refused():
        found = compare(Results(old), Results(new))
    differences_table(found)
    return Exit.CONTRADICTED if found.differences else Exit.AS_DECLARED
