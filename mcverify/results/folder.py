"""From findings to the CSV files of a results folder; only `mcverify run` writes there."""

import csv
import io
import json
import math
import os
import platform
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import origin, packages
from mcverify.declare.grid import shown
from mcverify.declare.rules import ATLAS, COLUMNS, RESERVED
from mcverify.judge.finding import Finding
from mcverify.results.reader import CASES, check_count, read_about, read_rows, read_terms
from mcverify.verdict import Terms, Verdict, overall

if TYPE_CHECKING:  # it takes most of a second, and a run of one claim needs no frames
    import pandas as pd

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
        "origin": _origin(claim, home),
    }
    return {name: cell(row[name]) for name in VERDICT_COLUMNS}


def _origin(claim: Claim, home: Path) -> str:
    """The package that offers a claim, or the way to its file from ``home``."""
    named = origin(claim)
    return named if named in packages() else Path(os.path.relpath(named, home)).as_posix()


def control_row(finding: Finding) -> dict[str, str]:
    """A near miss's row in controls.csv; the case's name says what was changed."""
    row = {"claim": finding.case.claim.name, "case": cell(finding.case), **_written(finding)}
    return {name: row[name] for name in CONTROL_COLUMNS}


class BusyError(ValueError):
    """The results folder belongs to another run at the moment."""


class Results:
    """A results folder. Every file in it is replaced whole, never half written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claims = folder / "claims"
        self.home = folder.resolve().parent  # from where claims' files are told

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside it the folder is this process's alone, made if need be, and can be written to.

        Raises OSError before anything is drawn if it cannot, BusyError if another run holds it.
        """
        self.claims.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise BusyError(f"{self.folder}: another run is writing there; wait for its end, or "
                            "choose another --out") from None
        try:
            for pattern in (".*.csv.*", ".run.json.*"):  # half written by a run that was killed
                for left in self.folder.glob(pattern):
                    left.unlink()
            yield
        finally:
            lock.release()

    def write_claim(self, claim: Claim, findings: list[Finding]) -> None:
        """claims/<claim>.csv: a row a case, in the grid's order."""
        place = {case: index for index, case in enumerate(claim.cases())}
        rows = [case_row(f) for f in sorted(findings, key=lambda f: place.get(f.case, -1))
                if not f.case.control]
        self._write(self.claims / f"{claim.name}.csv", _csv(rows))

    def write_table(self, file: Path, frame: "pd.DataFrame") -> None:
        """A table that belongs to no single claim, numbers as in a case's row."""
        self._write(file, _csv([{column: cell(value) for column, value in row.items()}
                                for row in frame.to_dict("records")], list(frame.columns)))

    def write_verdicts(
        self, judged: Mapping[Claim, list[Finding]], sources: Iterable[dict[str, str]] = ()
    ) -> None:
        """verdicts.csv, a row a claim, controls.csv, a row a near miss, sorted by name; what they
        were judged by in sources.csv.

        The rows of claims that are not judged now are kept.
        """
        names, sources = {claim.name for claim in judged}, [*sources]
        verdicts = [verdict_row(claim, findings, self.home)
                    for claim, findings in judged.items()]
        controls = [control_row(finding) for findings in judged.values()
                    for finding in findings if finding.case.control]
        for table, rows, columns in (("verdicts", verdicts, VERDICT_COLUMNS),
                                     ("controls", controls, CONTROL_COLUMNS),
                                     ("sources", sources, SOURCE_COLUMNS)):
            gone = names | {row["claim"] for row in rows}
            rows += [row for row in self.read(table) if row["claim"] not in gone]
            rows.sort(key=lambda row: (row["claim"], row.get("case", "")))
            self._write(self.folder / f"{table}.csv", _csv(rows, columns))

    def write_run(
        self, terms: Terms, seconds: float, cases: int, needs: Iterable[str] = ()
    ) -> None:
        """run.json: how the folder was made; the only file that changes when nothing else did.

        The versions of packages that claims need stay there until they are judged again.
        """
        file = self.folder / "run.json"
        before = read_about(file) if file.exists() else {}
        packages = ("mcverify", "numpy", "scipy", "pandas", *needs)
        about = {
            **asdict(terms),
            "cases": cases,
            "seconds": round(seconds, 1),
            "python": platform.python_version(),
            **{name: told for name in packages for told in _version(name)},
        }
        self._write(file, json.dumps(before | about, indent=2) + "\n")

    def prune(self, names: Iterable[str]) -> list[Path]:
        """Remove what there is of claims that stand in verdicts.csv and are not among ``names``.

        Returns the files of theirs that are gone.
        """
        gone = {row["claim"] for row in self.read("verdicts")} - set(names)
        stale = [file for name in sorted(gone) if (file := self.claims / f"{name}.csv").exists()]
        if gone:
            self.forget(gone)
        return stale

    def forget(self, names: Collection[str]) -> None:
        """Remove the rows and the files of claims of these names."""
        for table, columns in TABLES.items():
            rows = [row for row in self.read(table) if row["claim"] not in names]
            self._write(self.folder / f"{table}.csv", _csv(rows, columns))
        for name in names:
            (self.claims / f"{name}.csv").unlink(missing_ok=True)

    def file(self, table: str) -> Path:
        """Where a table stands or, by a claim's name, its file."""
        folder = self.folder if table in RESERVED and table != ATLAS else self.claims
        return folder / f"{table}.csv"

    def read(self, table: str) -> list[dict[str, str]]:
        """The rows of a table or, by a claim's name, of its file; none if it is not there.

        DamagedError if it is not whole, or has not as many cases as verdicts.csv tells of.
        """
        file = self.file(table)
        columns = TABLES.get(table, () if table in RESERVED else CASES)
        rows = read_rows(file, [name for name in columns if name not in NEWER]
                         ) if file.exists() else []
        if table not in RESERVED:
            for row in self.read("verdicts"):
                if row["claim"] == table:
                    check_count(file, len(rows), int(row["cases"]))
        return rows

    def check(self, claims: Iterable[Claim]) -> None:
        """Raise ValueError if these claims may not be judged into the folder.

        So it is if a table that is read again is damaged (DamagedError), or holds the results of
        another claim of one of their names.
        """
        self.read("controls")
        for claim, other in self.namesakes(claims).items():
            if other:
                raise ValueError(f"{claim.name}: {self.folder} holds the results of the claim of "
                                 f"this name in {other}; rename one, or choose another --out")

    def namesakes(self, claims: Iterable[Claim]) -> dict[Claim, str]:
        """Where another claim comes from that results of a claim's name are of; "" if none."""
        known = self._origins()
        return {claim: other if other != _origin(claim, self.home) else ""
                for claim in claims for other in [known.get(claim.name, "")]}

    def _origins(self) -> dict[str, str]:
        """Where the claims in verdicts.csv come from, by their names."""
        return {row["claim"]: row.get("origin", "") for row in self.read("verdicts")}

    def claim_files(self) -> list[Path]:
        """The files outside of packages that claims in verdicts.csv come from and that exist."""
        files = {self.home / origin for origin in self._origins().values()
                 if origin.endswith(".py")}
        return sorted(file for file in files if file.is_file())

    def stale(self, claims: Iterable[Claim]) -> list[str]:
        """The names in verdicts.csv that the origins of these claims no longer have."""
        names: dict[str, set[str]] = {}
        for claim in claims:
            names.setdefault(_origin(claim, self.home), set()).add(claim.name)
        return [name for name, origin in self._origins().items()
                if name not in names.get(origin, {name})]

    def made_with(self) -> Terms | None:
        """The terms that the folder keeps to; None for a new folder.

        Raises ValueError if run.json is missing where tables are, DamagedError if it is damaged.
        """
        file = self.folder / "run.json"
        if not file.exists():
            if strange := next((each for folder in (self.folder, self.claims)
                                for each in sorted(folder.glob("*.csv"))
                                if not each.name.startswith("selfcheck")), None):
                raise ValueError(f"{strange}: is not of a run, which {file} would tell; choose "
                                 "another --out, or remove it")
            return None
        return read_terms(file)

    def _write(self, file: Path, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
            os.chmod(name, 0o644)  # mkstemp makes files that only their owner can read
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise


def _version(name: str) -> list[str]:
    """That of an installed package; nothing for a module of another name than its package."""
    try:
        return [version(name)]
    except PackageNotFoundError:
        return []


def _csv(rows: list[dict[str, str]], columns: Iterable[str] | None = None) -> str:
    text = io.StringIO()
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    # A carriage return ends a line for some readers, and not every version would quote it.
    returns = any("\r" in value for row in rows for value in row.values())
    writer = csv.DictWriter(
        text, names, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
