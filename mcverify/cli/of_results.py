"""The commands about results, which import what they need as they run."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from mcverify.cli import options as to
from mcverify.cli import terminal
from mcverify.cli.exits import Exit, refused, report_faults, writing_to
from mcverify.declare.fault import UsageError


def ledger(statements: to.Statements = None, out: to.Last = to.RESULTS) -> Exit:
    """Show what the notes say, and how it is judged."""
    from mcverify.cli.report import ledger_table
    from mcverify.cli.selection import select
    from mcverify.results.ledger import as_declared, ledger

    claims, faults = select()
    table = ledger(out.read("verdicts") or as_declared(claims))
    if unknown := set(statements or []) - set(table["id"]):
        raise UsageError(f"{min(unknown)}: no statement has this id; `mcverify ledger` lists them")
    ledger_table(table[table["id"].isin(statements)] if statements else table, out)
    return report_faults(faults)


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

    claims, faults = select(files)
    with refused(), patient() as watch:
        rows = list(replay(place, claims, jobs, watch))
    for row in rows:
        terminal.show(row)
    report_faults(faults)
    return Exit.CONTRADICTED if any(row.differences for row in rows) else Exit.AS_DECLARED


def prune(files: to.SomeFiles = None, out: to.Kept = to.RESULTS) -> Exit:
    """Remove the results of claims that their files no longer have."""
    from mcverify.cli.selection import behind
    from mcverify.results.origins import stale

    claims, faults = behind(out, files or ())
    if faults:
        return report_faults(faults)  # a claim of a broken file may be there after all
    with writing_to(out.folder), out.held():
        gone = stale(out, claims)
        out.forget(gone)
    terminal.show(f"removed {', '.join(gone)}" if gone else "nothing to remove")
    return Exit.AS_DECLARED


def compare(
    old: Annotated[Path, Argument(metavar="OLD", help="a folder of results")],
    new: Annotated[Path, Argument(metavar="NEW", help="another one")],
) -> Exit:
    """List what differs between two results folders by more than chance."""
    from mcverify.cli.report import differences_table
    from mcverify.results.compare import compare

    with refused():
        comparison = compare(to.results(old), to.results(new))
    differences_table(comparison)
    return Exit.CONTRADICTED if comparison.differences else Exit.AS_DECLARED
