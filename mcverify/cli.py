"""From the command line to runs, tables and exit statuses."""

import argparse
import difflib
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from joblib import cpu_count
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mcverify import __version__
from mcverify.declare import Case, Claim, statement_ids
from mcverify.discover import source, survey
from mcverify.finding import Finding, run_command
from mcverify.prediction import ClaimError
from mcverify.results import Results
from mcverify.run import run
from mcverify.verdict import CASE_ERROR_RATE, SUITE_ERROR_RATE, Verdict, overall

AS_DECLARED, CONTRADICTED, BAD_USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130


class UsageError(Exception):
    """A command line that cannot be carried out; the message says value, rule and repair."""


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
    return parser


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d+", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least {least}")
        return int(text)

    return parse


# --- what was selected -----------------------------------------------------------------------


def select(selection: Sequence[str]) -> tuple[list[Claim], tuple[str, ...]]:
    """The claims that the words name, each once, and the faults of the files among the words."""
    files = [word for word in selection if word.endswith(".py") or Path(word).is_dir()]
    words = [word for word in selection if word not in files]
    mine = survey(*files) if files else None
    own = survey() if words or not files else None
    known = [claim for found in (mine, own) if found for claim in found.claims]
    chosen = [] if words else known
    if words and mine:
        chosen = list(mine.claims)
    for word in words:
        named = [claim for claim in known
                 if word == claim.name or word in statement_ids(claim.decides)]
        if not named:
            names = [claim.name for claim in known]
            near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
            raise UsageError(f"{word}: no claim or statement has this name; " + (
                f"did you mean {' or '.join(near)}?" if near else "see `mcverify list`"))
        chosen += named
    clashes = {claim.name for claim in chosen
               if any(claim.name == other.name and claim is not other for other in chosen)}
    if clashes:
        raise UsageError(f"{', '.join(sorted(clashes))}: two of the chosen claims have this name; "
                         "rename one, as results are kept by name")
    faults = tuple(fault for found in (mine, own) if found for fault in found.faults)
    return list(dict.fromkeys(chosen)), faults


# --- the commands ----------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    results = Results(options.out)
    part = bool(options.selection)
    if part and results.seed() not in (None, options.seed):
        raise UsageError(f"--seed {options.seed}: {options.out} holds results of seed "
                         f"{results.seed()}, and a folder keeps to one seed; choose another --out")
    try:
        results.prepare()
    except OSError as error:
        raise UsageError(f"--out {options.out}: cannot be written to ({error.strerror}); choose "
                         "another folder") from None
    for fault in faults:
        print(f"mcverify: {fault}", file=sys.stderr)
    cases = [case for claim in claims for case in claim.cases()]
    started = time.monotonic()
    judged, interrupted = _judge(claims, cases, options, results)
    results.write_verdicts(judged, keep=part or interrupted)
    if not interrupted:
        if not part:
            for file in results.prune(claim.name for claim in claims):
                print(f"removed {file}, which belongs to no claim", file=sys.stderr)
        results.write_run(options.seed, CASE_ERROR_RATE, time.monotonic() - started, len(cases))
    findings = [finding for found in judged.values() for finding in found]
    _report(judged, len(cases), time.monotonic() - started, options)
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
            for finding in run(cases, options.seed, jobs=options.jobs or cpu_count()):
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


def _report(
    judged: dict[Claim, list[Finding]], cases: int, seconds: float, options: argparse.Namespace
) -> None:
    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("verdict")
    table.add_column("cases", justify="right")
    table.add_column("claim")
    table.add_column("sentence", overflow="fold")
    for claim, findings in judged.items():
        wrong = [finding for finding in findings if not finding.as_declared]
        verdict = str(overall([finding.verdict for finding in findings]))
        if any(finding.broken for finding in findings):
            verdict = "ERROR"
        note = f"{len(findings) - len(wrong)}/{len(findings)}" if wrong else str(len(findings))
        style = "bold red" if wrong else {"REFUTED": "yellow", "INCONCLUSIVE": "cyan"}.get(verdict)
        table.add_row(verdict, note, claim.name, claim.sentence, style=style)
    console.print(table)
    found = [finding for findings in judged.values() for finding in findings]
    for finding in found:
        if not finding.as_declared:
            console.print(f"\n{finding}", markup=False, highlight=False, soft_wrap=True)
    wrong_count = sum(not finding.as_declared for finding in found)
    console.print(
        f"\n{len(judged)} claims, {len(found)} cases, {len(found) - wrong_count} as declared, "
        f"{wrong_count} not; seed {options.seed}, {seconds:.0f} s. The chance of any false verdict "
        f"is at most {cases * CASE_ERROR_RATE:.2g} ({cases} cases at {CASE_ERROR_RATE:g}; the "
        f"budget is {SUITE_ERROR_RATE:g}). Tables: {options.out}",
        markup=False, highlight=False, soft_wrap=True)


def _list(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("claim", "decides", "expected"):
        table.add_column(column)
    table.add_column("cases", justify="right")
    table.add_column("sentence", overflow="fold")
    for claim in claims:
        table.add_row(claim.name, claim.decides, str(claim.expect), str(len(claim.cases())),
                      claim.sentence)
    _console().print(table)
    return _tell(faults)


def _show(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    results = Results(options.out)
    for claim in claims:
        kind, prediction = claim.prediction
        settings: dict[str, list[str]] = {}
        for case in claim.cases():
            for name, value in case.settings:
                if str(value) not in settings.setdefault(name, []):
                    settings[name].append(str(value))
        within = f", within {claim.within}" if claim.within else ""
        print(f"{claim.name}: {claim.sentence}")
        print(f"  source      {source(claim)}:{claim.body.__code__.co_firstlineno}")
        print(f"  decides     {claim.decides or 'no statement'}")
        print(f"  statistic   {claim.statistic.name}")
        print(f"  predicted   {kind.replace('_', ' ')} "
              f"{'(see below)' if callable(prediction) else prediction}{within}")
        print(f"  expected    {claim.expect}")
        for name, values in settings.items():
            print(f"  {name:<11} {', '.join(values)}")
        print(f"  last result ({results.claims / claim.name}.csv)")
        last = results.read(claim.name)
        for row in last:
            point = " ".join(row[name] for name in settings) or "-"
            print(f"    {row['verdict']:<12} {point}: claimed [{row['claimed_low']}, "
                  f"{row['claimed_high']}], measured {row['estimate']} in [{row['low']}, "
                  f"{row['high']}], {row['blocks']} blocks {row['reason']}".rstrip())
        if not last:
            print(f"    none; make one with `{run_command(claim)}`")
    return _tell(faults)


def _tell(faults: Sequence[str]) -> int:
    for fault in faults:
        print(f"mcverify: {fault}", file=sys.stderr)
    return BAD_USAGE if faults else AS_DECLARED


def _console() -> Console:
    console = Console()
    # A pipe has no width: let nothing be folded there, so that a line stays a line for grep.
    return console if console.is_terminal else Console(width=400)


