"""How the words after a command are read, and what a shell completes."""

import csv
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from mcverify.cli.terminal import show
from mcverify.judge.processes import cores
from mcverify.verdict import FIRST_LOOK, OUTCOMES, check_rate, check_scale

if TYPE_CHECKING:
    from mcverify.results.folder import Results as Results
else:
    Results = Any  # whose NumPy takes longer than all that a command needs to tell its help

RESULTS: Any = Path("results")  # as it is typed, until it is parsed

CLAIMS = Path(__file__).parents[1] / "claims"
WHAT = "claims' names or patterns of them, statements' ids such as A7, Python files or packages"


def statement_ids(incomplete: str = "") -> list[str]:
    """The ids of the statements of the notes that begin so.

    >>> statement_ids("C")[:2]
    ['C1', 'C2']
    """
    with (CLAIMS / "statements.csv").open(encoding="utf-8", newline="") as stream:
        return [row["id"] for row in csv.DictReader(stream) if row["id"].startswith(incomplete)]


def claim_files() -> dict[str, Path]:
    """By the names of mcverify's own claims, the files that they stand in.

    They are read from the text of the files, since to import them all takes most of a second.

    >>> claim_files()["dot_variance"].name
    'variance.py'
    """
    return {name: file for file in sorted(CLAIMS.rglob("*.py")) for name in re.findall(
        r"^@claim\(.*?^def (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)}


def claims_and_statements(incomplete: str = "") -> list[str]:
    """The names of mcverify's own claims and the ids of statements that begin so.

    >>> claims_and_statements("dot_vari")
    ['dot_variance']
    """
    return [name for name in claim_files() if name.startswith(incomplete)] + (
        statement_ids(incomplete))


def _whole(least: int) -> Callable[[Any], int]:
    def parse(text: Any) -> int:
        if not re.fullmatch(r"\d+", str(text)) or int(text) < least:
            raise BadParameter(f"{text!r} must be a whole number of at least {least}")
        return int(text)

    return parse


def _seed(text: Any) -> int:
    return secrets.randbits(32) if text == "fresh" else _whole(0)(text)


def _number(example: str, check: Callable[[float], None]) -> Callable[[Any], float]:
    def parse(text: Any) -> float:
        try:
            number = float(text)
        except ValueError:
            raise BadParameter(f"{text!r} must be a number {example}") from None
        try:
            check(number)
        except ValueError as error:
            raise BadParameter(str(error)) from None
        return number

    return parse


_rate = _number("between 0 and 1, e.g. 1e-10", check_rate)
_scale = _number("above 0, and at most 1; use e.g. 0.05", check_scale)


def duration(text: Any) -> float:
    """The seconds that a text such as 90s, 10m, 1.5h or 1h30m means.

    >>> duration("90s"), duration("1h30m")
    (90.0, 5400.0)
    """
    parts = re.fullmatch(r"(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s)?", str(text))
    try:
        seconds = sum(float(part) * unit for part, unit in
                      zip(parts.groups() if parts else (), (3600, 60, 1), strict=False) if part)
    except ValueError:  # of two points
        seconds = 0.0
    if not seconds > 0:
        raise BadParameter(f"{text!r} must be a time of more than 0, e.g. 90s, 10m, 1h or 1h30m")
    return seconds


def _folder(text: Any) -> Path:
    if not str(text).strip():
        raise BadParameter(f"{str(text)!r} is no folder; write . for the one you are in")
    return Path(text)


def _at_most_one_a_core(jobs: int | None) -> int | None:
    """As many processes as cores can run, and two on a single one: a body may kill its own."""
    most = max(2, cores())
    if jobs and jobs > most:
        show(f"mcverify: --jobs {jobs}: cores: {cores()}, and more processes would only share "
             f"them; {most} are started", stderr=True)
    return jobs and min(jobs, most)


def _outcome(text: str) -> str:
    if text.upper() not in OUTCOMES:
        raise BadParameter(f"{text!r} must be one of {', '.join(OUTCOMES)}")
    return text.upper()


def names_of(
    what: str, complete: Callable[[str], list[str]] = claims_and_statements
) -> Any:
    """The words after a command, which a shell completes."""
    return Argument(metavar="NAME", autocompletion=complete, show_default=False, help=what)


def folder_of(
    what: str, name: str = "--out", parser: Callable[[Any], Any] = _folder
) -> Any:
    """An option that names a folder."""
    return Option(name, metavar="DIR", parser=parser, help=what)


def results(text: Any) -> "Results":
    """The folder of results that is named."""
    from mcverify.results.folder import Results

    return Results(_folder(text))


def results_in(what: str, name: str = "--out") -> Any:
    """An option that names a folder of results."""
    return folder_of(what, name, results)


Names = Annotated[list[str] | None, names_of(f"{WHAT}; default: all claims")]
SomeNames = Annotated[list[str], names_of(WHAT)]
Statements = Annotated[list[str] | None, names_of("statements' ids; default: all", statement_ids)]
Files = Annotated[list[str], Argument(metavar="FILE", help="Python files, or folders of them")]
SomeFiles = Annotated[list[str] | None, Argument(metavar="FILE", help=(
    "Python files of claims, besides mcverify's own and those that results are from"))]
Out = Annotated[Path, folder_of("the folder for the tables")]
Kept = Annotated[Results, results_in("the folder for the tables")]
Last = Annotated[Results, results_in("the folder with the last results")]
Pictures = Annotated[Path, folder_of("the folder for the PNG files", "--to")]
Outcome = Annotated[str | None, Option("--verdict", metavar="V", parser=_outcome, help=(
    f"only claims whose last verdict is {', '.join(OUTCOMES[:-1])} or {OUTCOMES[-1]}"))]
Failed = Annotated[bool, Option("--failed", help=(
    "only claims that were not as declared in the last results"))]
Seed = Annotated[int, Option(metavar="N", parser=_seed, help=(
    "all draws descend from it; `fresh` takes a new one, which is printed and kept"))]
Jobs = Annotated[int | None, Option(
    metavar="N", parser=_whole(1), callback=_at_most_one_a_core, show_default=False,
    help="processes, on whose number no result depends; default: one a core")]
Scheduler = Annotated[str | None, Option(
    "--scheduler", metavar="ADDRESS", show_default=False, help=(
        "the dask scheduler, e.g. tcp://10.0.0.1:8786, whose workers measure instead of processes "
        "here; needs mcverify[dask]"))]
BodyLimit = Annotated[float | None, Option(
    "--body-limit", metavar="TIME", parser=duration, show_default=False, help=(
        "the most that a body may take for a chunk of draws, e.g. 60s; a case that takes longer is "
        "an error, and the others go on (default: no limit)"))]
Scale = Annotated[float, Option("--margin-scale", metavar="S", parser=_scale, help=(
    "judge every margin so many times as wide, e.g. 0.05 for 20 times tighter"))]
Blocks = Annotated[int, Option("--max-blocks", metavar="N", parser=_whole(FIRST_LOOK), help=(
    "no look takes more blocks than so many"))]
TimeLimit = Annotated[float | None, Option(
    metavar="TIME", parser=duration, show_default=False, help=(
        "end after so long, e.g. 90s, 10m or 1h, and keep what is finished; --resume goes on"))]


Size = Annotated[int, Option(metavar="N", parser=_whole(1))]
MaybeSize = Annotated[int | None, Option(metavar="N", parser=_whole(1), show_default=False)]


def rate_of(what: str) -> Any:
    """The option --error-rate of a case or of a table."""
    return Option(metavar="R", parser=_rate, help=f"how often at most {what} may be false")
