"""From findings and claims to the tables and texts that a terminal shows."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mcverify.declare import Claim
from mcverify.discover import source
from mcverify.finding import Finding, run_command
from mcverify.results import Results
from mcverify.verdict import CASE_ERROR_RATE, SUITE_ERROR_RATE, overall

COLOURS = {"REFUTED": "yellow", "INCONCLUSIVE": "cyan"}


def _console() -> Console:
    console = Console()
    # A pipe has no width: let nothing be folded there, so that a line stays a line for grep.
    return console if console.is_terminal else Console(width=400)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column == "cases" else "left")
    return table


def run_table(
    judged: Mapping[Claim, list[Finding]], cases: int, seed: int, seconds: float, out: Path
) -> None:
    """Print a row a claim, the report of each case that is not as declared, and the sums."""
    console = _console()
    table = _table("verdict", "cases", "claim", "sentence")
    for claim, findings in judged.items():
        right = sum(finding.as_declared for finding in findings)
        verdict = "ERROR" if any(f.broken for f in findings) else str(
            overall([finding.verdict for finding in findings]))
        count = str(right) if right == len(findings) else f"{right}/{len(findings)}"
        table.add_row(verdict, count, claim.name, claim.sentence,
                      style=COLOURS.get(verdict) if right == len(findings) else "bold red")
    console.print(table)
    found = [finding for findings in judged.values() for finding in findings]
    wrong = [finding for finding in found if not finding.as_declared]
    spent = cases * CASE_ERROR_RATE
    lines = [f"\n{finding}" for finding in wrong] + [
        f"\nclaims: {len(judged)}, cases: {len(found)}, as declared: {len(found) - len(wrong)}, "
        f"not: {len(wrong)}; seed {seed}, {seconds:.0f} s. The chance of any false verdict is at "
        f"most {spent:.2g} ({cases} times {CASE_ERROR_RATE:g}; the budget is "
        f"{SUITE_ERROR_RATE:g}). Tables: {out}"]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def claims_table(claims: Iterable[Claim]) -> None:
    """Print a row a claim: what it decides, what it is declared to be, its sentence."""
    table = _table("claim", "decides", "expected", "cases", "sentence")
    for claim in claims:
        table.add_row(claim.name, claim.decides, str(claim.expect), str(len(claim.cases())),
                      claim.sentence)
    _console().print(table)


def about(claim: Claim, results: Results) -> str:
    """All there is to know about a claim: where it stands, what it says, its last result."""
    settings: dict[str, list[str]] = {}
    for case in claim.cases():
        for name, value in case.settings:
            if str(value) not in settings.setdefault(name, []):
                settings[name].append(str(value))
    kind, prediction = claim.prediction
    predicted = "a function of the settings" if callable(prediction) else str(prediction)
    parts = {
        "source": f"{source(claim)}:{claim.body.__code__.co_firstlineno}",
        "decides": claim.decides or "no statement",
        "statistic": claim.statistic.name,
        "predicted": f"{kind.replace('_', ' ')} {predicted}"
                     + (f", within {claim.within}" if claim.within else ""),
        "expected": str(claim.expect),
        **{name: ", ".join(values) for name, values in settings.items()},
        "last result": str(results.claims / f"{claim.name}.csv"),
    }
    lines = [f"{claim.name}: {claim.sentence}"]
    lines += [f"  {name:<11} {text}" for name, text in parts.items()]
    last = [f"    {row['verdict']:<12} "
            f"{' '.join(row.get(name, '-') for name in settings)}: claimed "
            f"[{row['claimed_low']}, {row['claimed_high']}], measured {row['estimate']} in "
            f"[{row['low']}, {row['high']}], {row['blocks']} blocks {row['reason']}".rstrip()
            for row in results.read(claim.name)]
    return "\n".join(lines + (last or [f"    none yet; `{run_command(claim)}` makes one"]))
