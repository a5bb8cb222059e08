"""From the command line to runs, tables and exit statuses."""

import argparse
import math
import re
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mcverify import __version__
from mcverify.cli import new as scaffold
from mcverify.cli import terminal as report
from mcverify.cli.select import select
from mcverify.cli.suite import AS_DECLARED, BAD_USAGE, CONTRADICTED, INTERRUPTED, Suite
from mcverify.declare.prediction import ClaimError, UsageError
from mcverify.diagnose import diagnose, read_arrays, table
from mcverify.results.folder import Results
from mcverify.results.ledger import ledger
from mcverify.results.replay import replay
from mcverify.verdict import CASE_ERROR_RATE


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
    what = "a claim's name, a statement's id such as A7, a Python file or package with claims"

    runs = commands.add_parser("run", help="judge claims and write results")
    runs.add_argument("selection", nargs="*", metavar="NAME", help=f"{what}; default: all claims")
    runs.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                      help="the folder for the CSV files (default: results)")
    runs.add_argument("--seed", type=_seed, default=0, metavar="N",
                      help="all draws descend from it (default: 0); `fresh` takes a new one, which "
                           "is printed and kept in run.json")
    runs.add_argument("--error-rate", type=_rate, default=CASE_ERROR_RATE, metavar="R",
                      help="of a case: how often at most its verdict may be false (default: "
                           f"{CASE_ERROR_RATE:g})")
    runs.add_argument("--jobs", type=_whole(1), default=None, metavar="N",
                      help="processes (default: one a core); results do not depend on it")
    runs.add_argument("--resume", action="store_true",
                      help="go on from the cases that an interrupted run has finished")
    runs.set_defaults(command=_run)

    lists = commands.add_parser("list", help="list claims and their sentences")
    lists.add_argument("selection", nargs="*", metavar="NAME", help=f"{what}; default: all claims")
    lists.set_defaults(command=_list)

    shows = commands.add_parser("show", help="show all there is to know about a claim")
    shows.add_argument("selection", nargs="+", metavar="NAME", help=what)
    shows.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                       help="the folder with the last results (default: results)")
    shows.set_defaults(command=_show)

    ledgers = commands.add_parser("ledger", help="show what the notes say, and how it is judged")
    ledgers.add_argument("selection", nargs="*", metavar="ID",
                         help="a statement's id such as A7; default: all")
    ledgers.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                         help="the folder with the last results (default: results)")
    ledgers.set_defaults(command=_ledger)

    replays = commands.add_parser("replay", help="reproduce the digits of a row of results")
    replays.add_argument("place", metavar="CSV[:ROW]",
                         help="a table of results/claims, and a row of it, from 1 on")
    replays.add_argument("selection", nargs="*", metavar="FILE",
                         help="the Python file of the claim, if it is not one of mcverify's")
    replays.add_argument("--jobs", type=_whole(1), default=None, metavar="N",
                         help="processes (default: one a core)")
    replays.set_defaults(command=_replay)

    diagnoses = commands.add_parser(
        "diagnose", help="hold your own queries and keys against every assumption")
    diagnoses.add_argument("arrays", nargs="+", metavar="FILE",
                           help="q.npy and k.npy (and groups.npy), or one .npz")
    diagnoses.add_argument("--names", nargs="+", metavar="NAME",
                           help="of the arrays in the .npz: queries, keys and, if any, groups")
    diagnoses.add_argument("--error-rate", type=_rate, default=1e-3, metavar="R",
                           help="of the whole table: how often at most any verdict may be false "
                                "(default: 0.001)")
    diagnoses.set_defaults(command=_diagnose)

    checks = commands.add_parser(
        "check-claim", help="tell what is wrong with a claim or a law before anything long runs")
    checks.add_argument("files", nargs="+", metavar="FILE", help="a Python file, or a folder")
    checks.set_defaults(command=_check_claim)

    news = commands.add_parser("new", help="write a file with a claim that runs as it is")
    news.add_argument("name", metavar="NAME", help="of the claim and its file, e.g. my_claim")
    news.add_argument("--law", action="store_true", help="a law, with a claim on it")
    news.add_argument("--folder", type=Path, default=Path(), metavar="DIR",
                      help="where to write it (default: here)")
    news.set_defaults(command=_new)

    selfchecks = commands.add_parser(
        "selfcheck", help="judge the statistics by truths that are known")
    selfchecks.add_argument("--short", action="store_true",
                            help="seconds instead of minutes, into selfcheck_short.csv")
    selfchecks.add_argument("--seed", type=_seed, default=0, metavar="N",
                            help="all draws descend from it (default: 0)")
    selfchecks.add_argument("--jobs", type=_whole(1), default=None, metavar="N",
                            help="processes (default: one a core)")
    selfchecks.add_argument("--out", type=Path, default=Path("results"), metavar="DIR",
                            help="the folder for selfcheck.csv (default: results)")
    selfchecks.set_defaults(command=_selfcheck)

    plots = commands.add_parser("plot", help="draw the last results (needs mcverify[plot])")
    plots.add_argument("selection", nargs="*", metavar="NAME",
                       help=f"{what}; default: all verdicts on a page, and how softmax saturates")
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


def _seed(text: str) -> int:
    return secrets.randbits(32) if text == "fresh" else _whole(0)(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number between 0 and 1, e.g. 1e-10")
    return rate


def _run(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    suite = Suite(claims, Results(options.out), options.seed, options.error_rate, options.jobs,
                  part=bool(options.selection))
    _tell(faults)
    try:
        code = suite.run(options.resume)
    except OSError as error:
        raise UsageError(f"--out {options.out}: cannot be written to ({error.strerror}); choose "
                         "another folder") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    return BAD_USAGE if faults and code != INTERRUPTED else code


def _list(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection, everywhere=True)
    report.claims_table(claims)
    return _tell(faults)


def _show(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    for claim in claims:
        print(report.about(claim, Results(options.out)))
    return _tell(faults)


def _ledger(options: argparse.Namespace) -> int:
    claims, _ = select(())
    statements = ledger(claims)
    unknown = [word for word in options.selection if word not in set(statements["id"])]
    if unknown:
        raise UsageError(f"{unknown[0]}: no statement has this id; they are A1 to A23, B1 to B37 "
                         "and C1 to C7")
    chosen = (statements[statements["id"].isin(options.selection)] if options.selection
              else statements)
    report.ledger_table(chosen, Results(options.out))
    return AS_DECLARED


def _replay(options: argparse.Namespace) -> int:
    claims, faults = select(options.selection)
    try:
        found = list(replay(options.place, claims, options.jobs))
    except ValueError as error:
        raise UsageError(str(error)) from None
    for each in found:
        print(each)
    _tell(faults)
    return CONTRADICTED if any(each.differences for each in found) else AS_DECLARED


def _diagnose(options: argparse.Namespace) -> int:
    try:
        q, k, groups = read_arrays(options.arrays, options.names)
        frame = diagnose(q, k, groups, options.error_rate)
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(table(frame))
    return AS_DECLARED


def _check_claim(options: argparse.Namespace) -> int:
    from mcverify import conformance  # here, since only this command needs it

    remarks = conformance.inspect(*options.files)
    print(conformance.report(remarks))
    return AS_DECLARED if conformance.ok(remarks) else BAD_USAGE


def _new(options: argparse.Namespace) -> int:
    try:
        file = scaffold.new(options.name, options.folder, options.law)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    print(scaffold.advice(file, options.law))
    return AS_DECLARED


def _selfcheck(options: argparse.Namespace) -> int:
    from mcverify import selfcheck  # here, since only this command needs it

    results = Results(options.out)
    try:
        with results.held():
            frame = selfcheck.selfcheck(options.short, options.seed, options.jobs)
            file = results.folder / f"selfcheck{'_short' if options.short else ''}.csv"
            results.write_table(file, frame)
    except OSError as error:
        raise UsageError(f"--out {options.out}: cannot be written to ({error.strerror}); choose "
                         "another folder") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(f"{selfcheck.report(frame)}\nseed {options.seed}; the table is in {file}")
    return AS_DECLARED if selfcheck.passed(frame) else CONTRADICTED


def _plot(options: argparse.Namespace) -> int:
    from mcverify import plot  # here, since it belongs to an extra that no other command needs

    results = Results(options.out)
    # A table says all that its picture shows: a claim of one's own needs no file by now.
    names = [word for word in options.selection if results.read(word)]
    words = [word for word in options.selection if word not in names]
    claims, faults = select(words) if words else ([], ())
    names += [claim.name for claim in claims if claim.name not in names]
    files = (plot.draw_claims(names, results, options.to) if options.selection
             else plot.draw_all(results, options.to))
    for file in files:
        print(f"wrote {file}")
    return _tell(faults)


def _tell(faults: Sequence[str]) -> int:
    for fault in faults:
        print(f"mcverify: {fault}", file=sys.stderr)
    return BAD_USAGE if faults else AS_DECLARED
