"""From findings to the rows of tables, and to their text."""

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mcverify.declare.claim import Case, Claim
from mcverify.declare.grid import shown
from mcverify.declare.names import COLUMNS
from mcverify.declare.origins import origin, packages
from mcverify.judge.finding import Finding
from mcverify.verdict import Verdict, overall

Row = Mapping[str, str]
VERDICT_COLUMNS = ("claim", "sentence", "decides", "expected", "verdict", "cases", "confirmed",
                   "refuted", "inconclusive", "errors", "blocks", "detects", "controls",
                   "controls_refuted", "basis", "origin")
NEWER = ("basis", "origin")  # columns that older tables do not have
SOURCE_COLUMNS = ("claim", "source", "imports", "laws", "theory", "attention", "statistic", "judge",
                  "packages")
CONTROL_COLUMNS = ("claim", "case", *(name for name in COLUMNS if name != "expected"))
TABLES = {"verdicts": VERDICT_COLUMNS, "controls": CONTROL_COLUMNS, "sources": SOURCE_COLUMNS}


def case_row(finding: Finding) -> dict[str, str]:
    """A case's row: its claim's settings, then its result, numbers with six significant digits.

    Six digits absorb the last bits in which the linear algebra of two machines may differ. A
    setting that only other cases of the claim have is left empty. The error rate has all its
    digits, since a replay depends on it.
    """
    return settings_row(finding.case) | _written(finding)


def _written(finding: Finding) -> dict[str, str]:
    row = finding.row()
    return {name: repr(row[name]) if name == "error_rate" else cell(row[name])
            for name in COLUMNS}


def settings_row(case: Case) -> dict[str, str]:
    """The part of a case's row that says which case it is."""
    own = dict(case.settings)
    names = dict.fromkeys(name for other in case.claim.cases() for name, _ in other.settings)
    return {name: cell(own[name]) if name in own else "" for name in names}


def row_of(case: Case, rows: Iterable[Row]) -> Row | None:
    """The row of a case in its claim's table or, of a near miss, in controls.csv."""
    identity = ({"case": cell(case)} if case.control else settings_row(case)).items()
    return next((row for row in rows if identity <= row.items()), None)


def cell(value: Any) -> str:
    """A value as tables hold it; an apostrophe keeps spreadsheets from running a text.

    >>> cell("=cmd()"), cell(-1.5), cell(-math.inf)
    ("'=cmd()", '-1.5', '-inf')
    """
    text = shown(value)
    if text.startswith(("=", "+", "-", "@")):
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return text


def verdict_row(claim: Claim, findings: list[Finding], home: Path) -> dict[str, str]:
    """A claim's row in verdicts.csv. An error is no verdict, so it is not among the inconclusive.

    ``detects`` is the worst case's; empty if nothing was drawn. ``basis`` are those of all cases,
    ``origin`` is the package that offers the claim, or its file, seen from ``home``.
    """
    cases = [finding for finding in findings if not finding.case.control]
    controls = [finding for finding in findings if finding.case.control]
    verdicts = [finding.verdict for finding in cases if not finding.broken]
    detects = [finding.detects for finding in cases if not math.isnan(finding.detects)]
    row: dict[str, Any] = {
        "claim": claim.name,
        "sentence": claim.sentence,
        "decides": claim.decides,
        "expected": claim.expect,
        "verdict": overall([finding.verdict for finding in cases]),
        "cases": len(cases),
        "confirmed": verdicts.count(Verdict.CONFIRMED),
        "refuted": verdicts.count(Verdict.REFUTED),
        "inconclusive": verdicts.count(Verdict.INCONCLUSIVE),
        "errors": len(cases) - len(verdicts),
        "blocks": sum(finding.blocks for finding in cases),
        "detects": f"{max(detects):.2g}" if detects else "",
        "controls": len(controls),
        "controls_refuted": sum(finding.as_declared for finding in controls),
        "basis": " ".join(sorted({finding.basis for finding in cases if finding.basis})),
        "origin": origin_from(claim, home),
    }
    return {name: cell(row[name]) for name in VERDICT_COLUMNS}


def origin_from(claim: Claim, home: Path) -> str:
    """The package that offers a claim, or the way to its file from ``home``."""
    named = origin(claim)
    return named if named in packages() else Path(os.path.relpath(named, home)).as_posix()


def control_row(finding: Finding) -> dict[str, str]:
    """A near miss's row in controls.csv; the case's name says what was changed."""
    row = {"claim": finding.case.claim.name, "case": cell(finding.case), **_written(finding)}
    return {name: row[name] for name in CONTROL_COLUMNS}


def csv_text(rows: list[dict[str, str]], columns: Iterable[str] | None = None) -> str:
    """Rows as the text of a table; the columns are those of all rows, if none are named."""
    text = io.StringIO()
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    # A carriage return ends a line for some readers, and not every version would quote it.
    returns = any("\r" in value for row in rows for value in row.values())
    writer = csv.DictWriter(
        text, names, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
