"""From findings and claims to the tables and texts that a terminal shows."""

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from mcverify.declare.claim import Claim
from mcverify.declare.discover import origin, source
from mcverify.judge.finding import (
    ERROR,
    Finding,
    contradictions,
    run_command,
    without_controls,
)
from mcverify.results.folder import Results
from mcverify.verdict import COLOURS, budget, overall


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
    judged: Mapping[Claim, list[Finding]], seed: int, error_rate: float, seconds: float, out: Path
) -> None:
    """Print a row a claim, the report of each case that is not as declared, and the sums."""
    console = _console()
    table = _table("verdict", "cases", "claim", "sentence")
    for claim, findings in judged.items():
        cases = [finding for finding in findings if not finding.case.control]
        right = sum(finding.as_declared for finding in cases)
        verdict = ERROR if any(f.broken for f in cases) else str(
            overall([finding.verdict for finding in cases]))
        count = str(right) if right == len(cases) else f"{right}/{len(cases)}"
        table.add_row(verdict, count, claim.name, claim.sentence,
                      style=_style(verdict) if right == len(cases) else "bold red")
    console.print(table)
    found = [finding for findings in judged.values() for finding in findings]
    wrong = [finding for findings in judged.values() for finding in contradictions(findings)]
    for line in ([f"\n{finding}" for finding in wrong]
                 + ["", *_sums(found, wrong), budget(len(found), error_rate),
                    f"seed {seed}, {seconds:.0f} s; tables in {out}"]):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _style(verdict: str) -> str | None:
    return None if verdict == "CONFIRMED" else COLOURS[verdict]


def _sums(found: list[Finding], wrong: list[Finding]) -> list[str]:
    controls = [finding for finding in found if finding.case.control]
    claims = {finding.case.claim for finding in found}
    right = sum(finding.as_declared for finding in controls)
    lines = [f"claims {len(claims)}, cases {len(found) - len(controls)}, not as declared "
             f"{sum(not f.case.control for f in wrong)}; controls {len(controls)}, refuted {right}"]
    unshown = ", ".join(without_controls(claims))
    return lines + ([f"no control shows that these can be refuted: {unshown}; name one with "
                     "controls="] if unshown else [])


def claims_table(claims: Iterable[Claim]) -> None:
    """Print a row a claim: its origin, what it decides, what it is declared to be, its sentence."""
    table = _table("claim", "origin", "decides", "expected", "cases", "sentence")
    for claim in claims:
        table.add_row(claim.name, origin(claim), claim.decides, str(claim.expect),
                      str(len(claim.cases())), claim.sentence)
    _console().print(table)


def ledger_table(table: pd.DataFrame, results: Results) -> None:
    """Print each statement with its judgement, correction and the claims that decide it."""
    verdicts = {row["claim"]: row["verdict"] for row in results.read("verdicts")}
    console = _console()
    for row in table.to_dict("records"):
        claims = [f"{name} ({verdicts[name]})" if name in verdicts else name
                  for name in row["claims"].split()]
        console.print(f"{row['id']:<4}{row['judgement']}", style="bold", highlight=False)
        for label, text in (("says", row["statement"]), ("right", row["correction"]),
                            ("claims", ", ".join(claims))):
            if text:
                for line in textwrap.wrap(text, 92):
                    console.print(f"    {label:<8}{line}", markup=False, highlight=False)
                    label = ""
    counts = table["judgement"].value_counts()
    console.print("\n" + ", ".join(f"{n} {judgement}" for judgement, n in counts.items())
                  + "; `mcverify run ID` judges the claims of a statement", highlight=False)


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
