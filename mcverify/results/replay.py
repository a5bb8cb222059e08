"""From a row of a results table back to the draws that it came from, digit by digit."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcverify.declare.claim import Case, Claim
from mcverify.declare.names import COLUMNS
from mcverify.judge.finding import Finding
from mcverify.judge.run import run
from mcverify.judge.watch import Watch
from mcverify.results.folder import Results
from mcverify.results.origins import namesakes
from mcverify.results.reader import CASES, read_rows
from mcverify.results.rows import case_row, control_row, row_of
from mcverify.verdict import Terms


@dataclass(frozen=True)
class Replay:
    """A row as it was written, and what the same draws say now."""

    row: int
    written: dict[str, str]
    finding: Finding

    @property
    def differences(self) -> list[str]:
        """The columns that differ, with both values; none if every digit is reproduced."""
        now = (control_row if self.finding.case.control else case_row)(self.finding)
        return [f"{name}: written {self.written.get(name)}, now {now.get(name)}"
                for name in {**self.written, **now} if self.written.get(name) != now.get(name)]

    def __str__(self) -> str:
        text = "; ".join(self.differences) or "every digit is reproduced"
        return f"row {self.row}, {self.finding.case}: {text}"


def replay(
    place: str, claims: Iterable[Claim], jobs: int | None = None, watch: Watch | None = None,
) -> Iterator[Replay]:
    """Judge anew the rows of ``place``, a file ``….csv`` or a row of it, ``….csv:3``, from 1 on.

    Settings, seed and error rate are the row's, the other terms those of its folder; the claim is
    the one of the file's name or, in ``controls.csv``, of the row. Raises ValueError for a file or
    a row that is not there, or that belongs to none of the claims.
    """
    match = re.fullmatch(r"(.*\.csv)(?::(\d+))?", place)
    if not match or not Path(match[1]).is_file():
        raise ValueError(f"{place}: no such table; name a file of results/claims and, if you "
                         "like, a row, e.g. results/claims/dot_variance.csv:3")
    file = Path(match[1])
    known = {claim.name: claim for claim in claims}
    rows = read_rows(file, CASES if file.stem != "controls" else ())
    wanted = [int(match[2])] if match[2] else range(1, len(rows) + 1)
    for number in wanted:
        if not 1 <= number <= len(rows):
            raise ValueError(f"{place}: the table has rows 1 to {len(rows)}")
    written = {number: rows[number - 1] for number in wanted}
    cases = {number: _case(file, known, row) for number, row in written.items()}
    usual = _home(file).terms() or Terms()
    lots: dict[Terms, list[int]] = {}
    for number, row in written.items():
        terms = replace(usual, seed=int(row["seed"]), error_rate=float(row["error_rate"]))
        lots.setdefault(terms, []).append(number)
    for terms, numbers in lots.items():
        findings = {finding.case: finding
                    for finding in run([cases[n] for n in numbers], terms, jobs, watch)}
        for number in numbers:
            yield Replay(number, written[number], findings[cases[number]])


def _home(file: Path) -> Results:
    """The folder that a table stands in."""
    return Results(file.parent if file.stem == "controls" else file.parent.parent)


def _case(file: Path, known: Mapping[str, Claim], row: dict[str, str]) -> Case:
    """The case, or the control, that the row is of."""
    controls = file.stem == "controls"
    name = row["claim"] if controls else file.stem
    if name not in known:
        raise ValueError(f"{file}: no known claim is named {name}; name the Python file that it "
                         "stands in as well")
    claim = known[name]
    if other := namesakes(_home(file), [claim]).get(claim):
        raise ValueError(f"{file}: holds the results of the claim of this name in {other}; name "
                         "that file as well")
    for case in claim.control_cases() if controls else claim.cases():
        if row_of(case, [row]):
            return case
    settings = {name: value for name, value in row.items() if name not in COLUMNS}
    raise ValueError(f"{claim.name}: its grid has no case with the settings of the row "
                     f"{settings}; the claim has changed since")
