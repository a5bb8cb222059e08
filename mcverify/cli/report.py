"""The tables and texts in which findings and claims are shown."""

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from mcverify.cli.terminal import console, show
from mcverify.declare.claim import Claim
from mcverify.declare.origins import origin, source
from mcverify.declare.text import printable
from mcverify.judge.finding import (
    Finding,
    contradictions,
    run_command,
    without_controls,
)
from mcverify.results.compare import Comparison
from mcverify.results.folder import Results
from mcverify.results.origins import namesakes
from mcverify.statistic import Basis
from mcverify.verdict import COLOURS, ERROR, Terms, Verdict, budget, overall

if TYPE_CHECKING:
    import pandas as pd


def print_table(
    header: Sequence[str], rows: Iterable[tuple[Sequence[str], str | None]],
    right: Collection[str] = ("cases",), no_wrap: bool = False,
) -> None:
    """Print rows with their styles; some of the columns are set right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in header:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=no_wrap)
    for cells, style in rows:
        table.add_row(*map(printable, cells), style=style)
    console().print(table)


def run_table(
    judged: Mapping[Claim, list[Finding]], terms: Terms, seconds: float, out: Path
) -> None:
    """Print a row a claim, the report of each case that is not as declared, and the sums."""
    print_table(["verdict", "cases", "claim", "sentence"],
                (_claim_row(*each) for each in judged.items()))
    findings = [*chain.from_iterable(judged.values())]
    wrong = [*chain.from_iterable(map(contradictions, judged.values()))]
    made = [f"{name.replace('_', ' ')} {value}" for name, value in terms.told.items()]
    for line in ([f"\n{finding}" for finding in wrong]
                 + ["", *_sums(findings, wrong), budget(len(findings), terms.error_rate),
                    f"{', '.join(made)}, {seconds:.0f} s; tables in {out}"]):
        show(line)


def _claim_row(claim: Claim, findings: list[Finding]) -> tuple[list[str], str | None]:
    cases = [finding for finding in findings if not finding.case.control]
    right = sum(finding.as_declared for finding in cases)
    verdict = ERROR if any(f.broken for f in cases) else str(
        overall([finding.verdict for finding in cases]))
    count = str(right) if right == len(cases) else f"{right}/{len(cases)}"
    style = "bold red" if right < len(cases) else (
        None if verdict == Verdict.CONFIRMED else COLOURS[verdict])
    return [verdict, count, claim.name, claim.sentence], style


def _sums(findings: list[Finding], wrong: list[Finding]) -> list[str]:
    controls = [finding for finding in findings if finding.case.control]
    claims = {finding.case.claim for finding in findings}
    passed = [str(finding.case) for finding in controls if not finding.as_declared]
    lines = [f"claims {len(claims)}, cases {len(findings) - len(controls)}, not as declared "
             f"{sum(not f.case.control for f in wrong)}; controls {len(controls)}, refuted "
             f"{len(controls) - len(passed)}", _bases(findings)]
    if passed:
        lines.append(f"controls that are not refuted: {', '.join(passed)}")
    if unshown := ", ".join(without_controls(claims)):
        lines.append(f"no control shows that these can be refuted: {unshown}; name one with "
                     "controls=")
    return lines


def _bases(findings: list[Finding]) -> str:
    """How many verdicts on cases rest on a theorem, and on which."""
    counts = Counter(finding.basis for finding in findings
                     if not (finding.case.control or finding.broken))
    theorems = {str(basis): counts[basis] for basis in Basis if basis is not Basis.CALIBRATED}
    return (f"on a theorem rest {sum(theorems.values())} of {sum(counts.values())} cases ("
            + ", ".join(f"{name} {count}" for name, count in theorems.items())
            + f"), calibrated are {counts[Basis.CALIBRATED]}")


def differences_table(comparison: Comparison) -> None:
    """Print what differs between two folders, a row each, and what that rests on."""
    rows = [([each.claim, each.case, each.what, each.old or "-", each.new or "-"], None)
            for each in comparison.differences]
    if rows:
        print_table(["claim", "case", "differs", "old", "new"], rows)
        show("")
    kinds = Counter(each.what for each in comparison.differences)
    show(f"compared {comparison.claims} claims and {comparison.cases} cases with near misses; "
         f"differ: verdicts {kinds['verdict']}, declarations {kinds['declared']}, estimates "
         f"{kinds['estimate']}; only in one: {kinds['there']}")
    show("an estimate is told if the measured intervals are disjoint; of one and the same truth "
         f"that happens to any with a probability of at most {comparison.rate:.2g}, as far as the "
         "intervals hold")
    if comparison.same_draws:
        show(f"of one seed are {comparison.same_draws} cases, whose draws are not independent: by "
             f"the same code they have the same digits; of {comparison.moved} they differ")
    if comparison.terms:
        show(f"judged on other terms: {', '.join(comparison.terms)}")


def claims_table(claims: Iterable[Claim]) -> None:
    """Print a row a claim: its origin, what it decides, what it is declared to be, its sentence."""
    header = ["claim", "origin", "decides", "expected", "cases", "sentence"]
    print_table(header, (
        ([claim.name, origin(claim), claim.decides, str(claim.expect), str(len(claim.cases())),
          claim.sentence], None) for claim in claims))


def ledger_table(table: "pd.DataFrame", results: Results) -> None:
    """Print each statement with its judgement, correction and the claims that decide it."""
    verdicts = {row["claim"]: row["verdict"] for row in results.read("verdicts")}
    for row in table.to_dict("records"):
        claims = [f"{name} ({verdicts[name]})" if name in verdicts else name
                  for name in row["claims"].split()]
        show(f"{row['id']:<4}{row['judgement']}", style="bold")
        for label, text in (("says", row["statement"]), ("right", row["correction"]),
                            ("claims", ", ".join(claims))):
            for line in textwrap.wrap(text, 92):
                show(f"    {label:<8}{line}")
                label = ""
    counts = table["judgement"].value_counts()
    if not verdicts:
        show(f"\n{results.folder} holds no verdicts yet: these are the judgements that a run is to "
             "confirm")
    show("\n" + ", ".join(f"{n} {judgement}" for judgement, n in counts.items())
         + "; `mcverify run ID` judges the claims of a statement")


def claim_text(claim: Claim, results: Results) -> str:
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
    if other := namesakes(results, [claim]).get(claim):
        last = [f"    none; the results of this name are of the claim in {other}"]
    return "\n".join(lines + (last or [f"    none yet; `{run_command(claim)}` makes one"]))
