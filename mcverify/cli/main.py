"""The commands of `mcverify`; each imports what it needs, so that help comes at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mcverify import __version__
from mcverify.cli import options as to
from mcverify.cli import terminal
from mcverify.cli.exits import (
    MEANING,
    Exit,
    check_docstrings,
    end_at_sigterm_as_at_ctrl_c,
    own_fault,
    refuse,
    refused,
    told,
    writing_to,
)
from mcverify.declare.fault import ClaimError, UsageError
from mcverify.judge.processes import warm_up
from mcverify.verdict import CASE_ERROR_RATE

app = typer.Typer(
    help="Judge claims about dot-product attention by drawing queries and keys.", epilog=MEANING,
    rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    terminal.escape_what_cannot_be_encoded()
    end_at_sigterm_as_at_ctrl_c()
    try:
        check_docstrings()
        command = typer.main.get_command(app)
        return int(command.main(arguments, "mcverify", standalone_mode=False) or Exit.AS_DECLARED)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "mcverify"
        return refuse(f"{error.format_message()} (`{path} --help` tells all)")
    except (UsageError, ClaimError) as error:
        return refuse(str(error))
    except OSError as error:
        if error.filename is None:
            return own_fault()
        return refuse(f"{error.filename}: {error.strerror}; choose another")
    except Exception:
        return own_fault()


def _print_version(wanted: bool) -> None:
    if wanted:
        terminal.show(f"mcverify {__version__}")
        raise typer.Exit


@app.callback()
def _before_the_command(version: Annotated[bool, typer.Option(
    "--version", is_eager=True, callback=_print_version, help="show the version and exit",
)] = False) -> None: ...


@app.command()
def run(
    names: to.Names = None,
    out: to.Out = to.RESULTS,
    seed: to.Seed = 0,
    error_rate: Annotated[float, to.rate_of("the verdict on a case")] = CASE_ERROR_RATE,
    jobs: to.Jobs = None,
    resume: Annotated[bool, typer.Option("--resume", help=(
        "go on from the cases that an interrupted run has finished"))] = False,
    verdict: to.Outcome = None,
    failed: to.Failed = False,
) -> Exit:
    """Judge claims and write results."""
    if jobs != 1:
        warm_up()
    from mcverify.cli.selection import as_last_judged, select
    from mcverify.cli.suite import Suite
    from mcverify.results.folder import Results

    claims, faults = select(names or [])
    if verdict or failed:
        claims = as_last_judged(claims, Results(out), verdict, failed)
        if not claims:
            terminal.show("nothing to run: " + (f"no claim was judged {verdict}" if verdict else
                                                "every claim was judged as declared"))
            return told(faults)
    told(faults)
    part = bool(names or verdict or failed)
    status = Suite(claims, Results(out), seed, error_rate, jobs, part).run(resume)
    return Exit.BAD_USAGE if faults and status is not Exit.INTERRUPTED else status


@app.command("list")
def list_(
    names: to.Names = None, out: to.Last = to.RESULTS, verdict: to.Outcome = None,
    failed: to.Failed = False,
) -> Exit:
    """List claims and their sentences."""
    from mcverify.cli.report import claims_table
    from mcverify.cli.selection import as_last_judged, select
    from mcverify.results.folder import Results

    claims, faults = select(names or [], everywhere=True)
    if verdict or failed:
        claims = as_last_judged(claims, Results(out), verdict, failed)
    claims_table(claims)
    return told(faults)


@app.command()
def show(names: to.SomeNames, out: to.Last = to.RESULTS) -> Exit:
    """Show all there is to know about claims."""
    from mcverify.cli.report import about
    from mcverify.cli.selection import select
    from mcverify.results.folder import Results

    claims, faults = select(names)
    for claim in claims:
        terminal.show(about(claim, Results(out)))
    return told(faults)


@app.command()
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
        raise UsageError(f"{min(unknown)}: no statement has this id; they are A1 to A23, B1 to B37 "
                         "and C1 to C7")
    ledger_table(table[table["id"].isin(statements)] if statements else table, results)
    return told(faults)


@app.command()
def prune(files: to.SomeFiles = None, out: to.Out = to.RESULTS) -> Exit:
    """Remove the results of claims that their files no longer have."""
    from mcverify.cli.selection import select
    from mcverify.results.folder import Results

    results = Results(out)
    claims, faults = select([])
    if files:
        mine, faults = select(files)
        claims += mine
    if faults:
        return told(faults)  # a claim of a broken file may be there after all
    with writing_to(out), results.held():
        stale = results.stale(claims)
        results.forget(stale)
    terminal.show(f"removed {', '.join(stale)}" if stale else "nothing to remove")
    return Exit.AS_DECLARED


@app.command()
def replay(
    place: Annotated[str, typer.Argument(metavar="CSV[:ROW]", help=(
        "a table of results/claims, and a row of it, from 1 on"))],
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE", show_default=False, help=(
        "the Python file of the claim, if it is not one of mcverify's"))] = None,
    jobs: to.Jobs = None,
) -> Exit:
    """Reproduce the digits of rows of results."""
    from mcverify.cli.selection import select
    from mcverify.results.replay import replay

    claims, faults = select(files or [])
    with refused():
        rows = list(replay(place, claims, jobs))
    for row in rows:
        terminal.show(row)
    told(faults)
    return Exit.CONTRADICTED if any(row.differences for row in rows) else Exit.AS_DECLARED


@app.command()
def diagnose(
    arrays: Annotated[list[str], typer.Argument(metavar="FILE", help=(
        "q.npy and k.npy (and groups.npy), or one .npz, of (tokens, d_k), (blocks, tokens, d_k) "
        "or (batch, heads, tokens, d_k)"))],
    names: Annotated[tuple[str, str] | None, typer.Option(metavar="Q K", show_default=False, help=(
        "the names of queries and keys in the .npz"))] = None,
    groups: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help=(
        "the name of the groups in the .npz, if any"))] = None,
    error_rate: Annotated[float, to.rate_of("any verdict of the table")] = 1e-3,
    csv: Annotated[bool, typer.Option("--csv", help=(
        "print all that is known as CSV, formulas and standard errors as well"))] = False,
) -> Exit:
    """Hold your own queries and keys against every assumption; of many heads, each by itself."""
    from mcverify.diagnose import diagnose, read_arrays, table

    if groups and not names:
        raise UsageError(f"--groups {groups}: needs --names, those of the queries and keys")
    with refused():
        found = read_arrays(arrays, [*names, *filter(None, [groups])] if names else None)
        frame = diagnose(*found, error_rate)
    terminal.show(frame.to_csv(index=False, float_format="%.6g").rstrip() if csv else table(frame))
    return Exit.AS_DECLARED


@app.command()
def check_claim(files: to.Files) -> Exit:
    """Tell what is wrong with a claim or a law, in seconds."""
    from mcverify.conformance import inspect, ok, report

    remarks = inspect(*files)
    terminal.show(report(remarks))
    return Exit.AS_DECLARED if ok(remarks) else Exit.BAD_USAGE


@app.command()
def probe(
    target: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help=(
        "attend(q, k, v) of (batch, heads, tokens, width), as module:function or file.py:function"
    ))],
    d_k: to.Size = 64,
    d_v: to.Size = 64,
    heads: to.Size = 1,
    kv_heads: to.MaybeSize = None,
    tokens: to.MaybeSize = None,
    d_model: to.MaybeSize = None,
    padded: to.MaybeSize = None,
    mscale: Annotated[float | None, typer.Option(metavar="X", show_default=False, help=(
        "the factor of a context extension"))] = None,
    declared: Annotated[str | None, typer.Option(metavar="SCALE", show_default=False, help=(
        'what the scale should be: a number or a formula, e.g. "1/sqrt(d_k)"'))] = None,
    dtype: Annotated[str | None, typer.Option(metavar="TYPE", show_default=False, help=(
        "what attend is handed, e.g. float32 or torch.bfloat16; default: NumPy's float64"))] = None,
    seed: to.Seed = 0,
) -> Exit:
    """Tell which scale an attention function of your own really uses."""
    from mcverify.probing.command import probe_command

    text, status = probe_command(
        target, dtype, d_k=d_k, d_v=d_v, heads=heads, kv_heads=kv_heads, tokens=tokens,
        d_model=d_model, padded=padded, mscale=mscale, declared=declared, seed=seed)
    terminal.show(text)
    return Exit(status)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help=(
        "of the claim and its file, e.g. my_claim"))],
    law: Annotated[bool, typer.Option("--law", help="a law, with a claim on it")] = False,
    folder: Annotated[Path, to.folder_of("where to write it", "--folder")] = Path(),
) -> Exit:
    """Write a file with a claim that runs as it is."""
    from mcverify.cli.new import advice, new

    terminal.show(advice(new(name, folder, law), law))
    return Exit.AS_DECLARED


@app.command()
def selfcheck(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE", show_default=False, help=(
        "claims whose statistics are judged instead, on the blocks of their first cases"))] = None,
    short: Annotated[bool, typer.Option("--short", help=(
        "seconds instead of minutes, into selfcheck_short.csv"))] = False,
    seed: to.Seed = 0,
    jobs: to.Jobs = None,
    out: to.Out = to.RESULTS,
) -> Exit:
    """Judge the statistics by truths that are known."""
    from mcverify.results.folder import Results
    from mcverify.selfcheck import passed, report, selfcheck

    results = Results(out)
    file = results.folder / f"selfcheck{'_own' if files else '_short' if short else ''}.csv"
    with writing_to(out), refused(), results.held():
        frame = selfcheck(short, seed, jobs, files or ())
        results.write_table(file, frame)
    terminal.show(f"{report(frame)}\nseed {seed}; the table is in {file}")
    return Exit.AS_DECLARED if passed(frame) else Exit.CONTRADICTED


@app.command()
def plot(
    names: Annotated[list[str] | None, to.names_of(
        f"{to.WHAT}; default: all verdicts on a page, and how softmax saturates")] = None,
    out: to.Last = to.RESULTS,
    pictures: to.Pictures = Path("pictures"),
) -> Exit:
    """Draw the last results (needs mcverify[plot])."""
    from mcverify.cli.selection import select
    from mcverify.plot import draw_all, draw_claims
    from mcverify.results.folder import Results

    results = Results(out)
    # A table says all that its picture shows: a claim of one's own needs no file by now.
    kept = [word for word in names or [] if results.file(word).exists()]
    words = [word for word in names or [] if word not in kept]
    claims, faults = select(words) if words else ([], ())
    kept += [claim.name for claim in claims if claim.name not in kept]
    for file in draw_claims(kept, results, pictures) if names else draw_all(results, pictures):
        terminal.show(f"wrote {file}")
    return told(faults)
