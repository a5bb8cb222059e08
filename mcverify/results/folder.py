"""From findings to the CSV files of a results folder; only `mcverify run` writes there."""

import json
import os
import platform
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from mcverify.declare.claim import Claim
from mcverify.declare.names import ATLAS, RESERVED
from mcverify.judge.finding import Finding
from mcverify.results.reader import CASES, check_count, read_about, read_rows
from mcverify.results.rows import (
    NEWER,
    TABLES,
    case_row,
    cell,
    control_row,
    csv_text,
    verdict_row,
)
from mcverify.verdict import Terms

if TYPE_CHECKING:  # it takes most of a second, and a run of one claim needs no frames
    import pandas as pd


class Results:
    """A results folder. Every file in it is replaced whole, never half written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claims = folder / "claims"
        self.run_file = folder / "run.json"
        self.home = folder.resolve().parent  # from where claims' files are told

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside it the folder is this process's alone, made if need be, and can be written to.

        Raises OSError before anything is drawn if it cannot, ValueError if another run holds it.
        """
        self.claims.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise ValueError(f"{self.folder}: another run is writing there; wait for its end, or "
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
        self._write(self.file(claim.name), csv_text(rows))

    def write_table(self, file: Path, frame: "pd.DataFrame") -> None:
        """A table that belongs to no single claim, numbers as in a case's row."""
        self._write(file, csv_text([{column: cell(value) for column, value in row.items()}
                                    for row in frame.to_dict("records")], list(frame.columns)))

    def write_verdicts(
        self, judged: Mapping[Claim, list[Finding]], sources: Iterable[dict[str, str]] = ()
    ) -> None:
        """verdicts.csv, a row a claim, controls.csv, a row a near miss, sorted by name; what they
        were judged by in sources.csv.

        The rows of claims that are not judged now are kept.
        """
        self._replace({claim.name for claim in judged}, {
            "verdicts": [verdict_row(claim, findings, self.home)
                         for claim, findings in judged.items()],
            "controls": [control_row(finding) for findings in judged.values()
                         for finding in findings if finding.case.control],
            "sources": [*sources]})

    def _replace(
        self, names: Collection[str], fresh: Mapping[str, Collection[dict[str, str]]]
    ) -> None:
        """Write the tables of all claims with fresh rows instead of those of these names."""
        for table, columns in TABLES.items():
            rows = fresh.get(table, ())
            gone = {*names, *(row["claim"] for row in rows)}
            rows = [*rows, *(row for row in self.read(table) if row["claim"] not in gone)]
            rows.sort(key=lambda row: (row["claim"], row.get("case", "")))
            self._write(self.file(table), csv_text(rows, columns))

    def write_run(
        self, terms: Terms, seconds: float, cases: int, needs: Iterable[str] = ()
    ) -> None:
        """run.json: how the folder was made; the only file that changes when nothing else did.

        The versions of packages that claims need stay there until they are judged again.
        """
        packages = ("mcverify", "numpy", "scipy", "pandas", *needs)
        about = {
            **asdict(terms),
            "cases": cases,
            "seconds": round(seconds, 1),
            "python": platform.python_version(),
            **{name: release for name in packages if (release := version_of(name))},
        }
        self._write(self.run_file, json.dumps(self.about() | about, indent=2) + "\n")

    def about(self) -> dict[str, Any]:
        """What run.json says, {} if it is not there; DamagedError if it is damaged."""
        return read_about(self.run_file) if self.run_file.exists() else {}

    def terms(self) -> Terms | None:
        """The terms that run.json tells of; None if it is not there."""
        about = self.about()
        return Terms(**{each.name: about[each.name] for each in fields(Terms)}) if about else None

    def prune(self, names: Iterable[str]) -> list[Path]:
        """Remove what there is of claims that stand in verdicts.csv and are not among ``names``.

        Returns the files of theirs that are gone.
        """
        gone = {row["claim"] for row in self.read("verdicts")} - set(names)
        stale = [file for name in sorted(gone) if (file := self.file(name)).exists()]
        if gone:
            self.forget(gone)
        return stale

    def forget(self, names: Collection[str]) -> None:
        """Remove the rows and the files of claims of these names."""
        self._replace(names, {})
        for name in names:
            self.file(name).unlink(missing_ok=True)

    def file(self, table: str) -> Path:
        """Where a table stands or, by a claim's name, its file."""
        folder = self.folder if table in RESERVED and table != ATLAS else self.claims
        return folder / f"{table}.csv"

    def read(self, table: str, columns: Iterable[str] = ()) -> list[dict[str, str]]:
        """The rows of a table or, by a claim's name, of its file; none if it is not there.

        DamagedError if it is not whole, lacks one of these columns or of those that every such
        table has, or has not as many cases as verdicts.csv tells of.
        """
        file = self.file(table)
        usual = TABLES.get(table, () if table in RESERVED else CASES)
        rows = read_rows(file, [*(name for name in usual if name not in NEWER), *columns])
        if table not in RESERVED:
            for row in self.read("verdicts"):
                if row["claim"] == table:
                    check_count(file, len(rows), int(row["cases"]))
        return rows

    def made_with(self) -> Terms | None:
        """The terms that the folder keeps to; None for a new folder.

        Raises ValueError if run.json is missing where tables are, DamagedError if it is damaged.
        """
        if made := self.terms():
            return made
        if strange := next((each for folder in (self.folder, self.claims)
                            for each in sorted(folder.glob("*.csv"))
                            if not each.name.startswith("selfcheck")), None):
            raise ValueError(f"{strange}: is not of a run, which {self.run_file} would tell; "
                             "choose another --out, or remove it")
        return None

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


@cache
def version_of(package: str) -> str:
    """That of an installed package; "" for a module of another name than its package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
