"""From the command line to runs, tables and exit statuses."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mcverify import __version__, report
from mcverify.atlas import atlas
from mcverify.declare import Case, Claim
from mcverify.finding import Finding
from mcverify.ledger import ledger
from mcverify.prediction import ClaimError
from mcverify.results import Results
from mcverify.rules import ATLAS
from mcverify.run import run
from mcverify.select import UsageError, select
from mcverify.verdict import CASE_ERROR_RATE, Verdict, check_budget

AS_DECLARED, CONTRADICTED, BAD_USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (UsageError, ClaimError) as error:
        print(f"mcverify: {error}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # e.g. `mcverify list | head`
        sys.stderr.close()
        return AS_DECLARED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcverify",
        description="Judge claims about dot-product attention by drawing queries and keys.",
        epilog="Exit status: 0 every verdict as declared, 1 a verdict contradicts its declaration, "
               "2 bad usage or a broken claim file, 3 none contradicts but some are inconclusive "
               "or errors, 130 interrupted (what was finished is kept).",
    )
    parser.add_argument("--version", action="version", version=f"mcverify {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    what = "a claim's name, a statement's id such as A7, or a Python file with claims"

    runs = commands.add_parser("run", help="judge claims and write results")
    runs.add_argument("selection", nargs="*", metavar="NAME", help=f"{what}; default: all claims")
    runs.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                      help="the folder for the CSV files (default: results)")
    runs.add_argument("--seed", type=_whole(0), default=0, metavar="N",
                      help="all draws descend from it (default: 0)")
    runs.add_argument("--jobs", type=_whole(1), default=None, metavar="N",
                      help="processes (default: one a core); results do not depend on it")
    runs.set_defaults(command=_run)

    lists = commands.add_parser("list", help="list claims and their sentences")
    lists.add_argument("selection", nargs="*", metavar="NAME", help=f"{what}; default: all claims")
    lists.set_defaults(command=_list)

    shows = commands.add_parser("show", help="show all there is to know about a claim")
    shows.add_argument("selection", nargs="+", metavar="NAME", help=what)
    shows.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                       help="the folder with the last results (default: results)")
    shows.set_defaults(command=_show)

    plots = commands.add_parser("plot", help="draw the last results (needs mcverify[plot])")
    plots.add_argument("selection", nargs="*", metavar="NAME",
                       help=f"{what}; default: how softmax saturates, over d_k and keys")
    plots.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                       help="the folder with the last results (default: results)")
    plots.add_argument("--to", type=Path, default=Path("pictures"), metavar="DIR",
                       help="the folder for the PNG files (default: pictures)")
    plots.set_defaults(command=_plot)
    return parser


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d+", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least {least}")
        return int(text)

    return parse


def _run(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    results = Results(options.out)
    part = bool(options.selection)
    cases = [case for claim in claims for case in claim.cases()]
    try:
        seed = results.seed()
        if seed not in (None, options.seed):
            raise UsageError(f"--seed {options.seed}: {options.out} holds results of seed "
                             f"{seed}, and a folder keeps to one seed; choose another "
                             "--out, or remove it")
        check_budget(len(cases))
        results.prepare()
        if seed is None:  # so that an interrupted run is known by its seed, too
            results.write_run(options.seed, CASE_ERROR_RATE, 0.0, len(cases))
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"--out {options.out}: cannot be written to ({error.strerror}); choose "
                         "another folder") from None
    _tell(faults)
    started = time.monotonic()
    judged, interrupted = _judge(claims, cases, options, results)
    whole = not (part or interrupted)
    if whole:
        for file in results.prune(claim.name for claim in claims):
            print(f"removed {file}, whose claim is gone", file=sys.stderr)
    results.write_verdicts(judged, keep=not whole)
    if whole:
        with Console(stderr=True).status("saturation atlas"):
            table = atlas(options.seed, options.jobs)
        results.write_table(results.claims / f"{ATLAS}.csv", table)
        results.write_table(results.folder / "ledger.csv", ledger(claims))
    if not interrupted:
        results.write_run(options.seed, CASE_ERROR_RATE, time.monotonic() - started, len(cases))
    findings = [finding for found in judged.values() for finding in found]
    report.run_table(judged, len(cases), options.seed, time.monotonic() - started, options.out)
    if interrupted:
        print(f"interrupted: {len(judged)} of {len(claims)} claims are finished and kept",
              file=sys.stderr)
        return INTERRUPTED
    return BAD_USAGE if faults else status(findings)


def _judge(
    claims: list[Claim], cases: list[Case], options: argparse.Namespace, results: Results
) -> tuple[dict[Claim, list[Finding]], bool]:
    """The findings of each finished claim, written as it finishes; and whether any is missing."""
    found: dict[Claim, list[Finding]] = {claim: [] for claim in claims}
    done: set[Claim] = set()
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal,
                  transient=True) as progress:
        bar = progress.add_task("cases", total=len(cases))
        try:
            for finding in run(cases, options.seed, jobs=options.jobs):
                claim = finding.case.claim
                found[claim].append(finding)
                progress.advance(bar)
                if len(found[claim]) == len(claim.cases()):
                    results.write_claim(claim, found[claim])
                    done.add(claim)
        except KeyboardInterrupt:
            pass
    judged = {claim: findings for claim, findings in found.items() if claim in done}
    return judged, len(done) < len(claims)


def status(findings: Sequence[Finding]) -> int:
    """The exit status that a run's findings deserve."""
    decided = [finding for finding in findings if not finding.as_declared]
    if any(f.verdict is not Verdict.INCONCLUSIVE and not f.broken for f in decided):
        return CONTRADICTED
    return UNDECIDED if decided else AS_DECLARED


def _list(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    report.claims_table(claims)
    return _tell(faults)


def _show(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    for claim in claims:
        print(report.about(claim, Results(options.out)))
    return _tell(faults)


def _plot(options: argparse.Namespace) -> int:
    from mcverify import plot  # here, since it belongs to an extra that no other command needs

    results = Results(options.out)
    # A table says all that its picture shows: a claim of one's own needs no file by now.
    names = [word for word in options.selection if results.read(word)]
    words = [word for word in options.selection if word not in names]
    claims, faults = select(words) if words else ([], ())
    names += [claim.name for claim in claims if claim.name not in names]
    files = (plot.draw_claims(names, results, options.to) if options.selection
             else plot.draw_saturation(results, options.to))
    for file in files:
        print(f"wrote {file}")
    return _tell(faults)


def _tell(faults: Sequence[str]) -> int:
    for fault in faults:
        print(f"mcverify: {fault}", file=sys.stderr)
    return BAD_USAGE if faults else AS_DECLARED
