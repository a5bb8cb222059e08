"""From findings to the CSV files of a results folder; only `mcverify run` writes there."""

import json
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from mcverify.declare import Claim
from mcverify.finding import Finding
from mcverify.grid import shown
from mcverify.rules import COLUMNS
from mcverify.verdict import Verdict, overall

VERDICT_COLUMNS = ("claim", "sentence", "decides", "expected", "verdict", "cases", "confirmed",
                   "refuted", "inconclusive", "blocks")


def case_row(finding: Finding) -> dict[str, str]:
    """A case's row: its claim's settings, then its result, numbers with six significant digits.

    Six digits absorb the last bits in which the linear algebra of two machines may differ. A
    setting that only other cases of the claim have is left empty.
    """
    claim, own = finding.case.claim, dict(finding.case.settings)
    names = dict.fromkeys(name for case in claim.cases() for name, _ in case.settings)
    settings = {name: shown(own[name]) if name in own else "" for name in names}
    return settings | {name: shown(getattr(finding, name)) for name in COLUMNS}


def verdict_row(claim: Claim, findings: list[Finding]) -> dict[str, str]:
    """A claim's row in verdicts.csv."""
    verdicts = [finding.verdict for finding in findings]
    row: dict[str, Any] = {
        "claim": claim.name,
        "sentence": claim.sentence,
        "decides": claim.decides,
        "expected": claim.expect,
        "verdict": overall(verdicts),
        "cases": len(findings),
        "confirmed": verdicts.count(Verdict.CONFIRMED),
        "refuted": verdicts.count(Verdict.REFUTED),
        "inconclusive": verdicts.count(Verdict.INCONCLUSIVE),
        "blocks": sum(finding.blocks for finding in findings),
    }
    return {name: str(row[name]) for name in VERDICT_COLUMNS}


class Results:
    """A results folder. Every file in it is replaced whole, never half written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claims = folder / "claims"

    def prepare(self) -> None:
        """Make the folder; OSError, before anything is drawn, when it cannot be written to."""
        self.claims.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.claims):
            pass

    def write_claim(self, claim: Claim, findings: list[Finding]) -> None:
        """claims/<claim>.csv: a row a case, in the grid's order."""
        place = {case: index for index, case in enumerate(claim.cases())}
        rows = [case_row(f) for f in sorted(findings, key=lambda f: place[f.case])]
        self._write(self.claims / f"{claim.name}.csv", _csv(rows))

    def write_table(self, file: Path, frame: pd.DataFrame) -> None:
        """A table that belongs to no single claim, numbers as in a case's row."""
        self._write(file, _csv([{column: shown(value) for column, value in row.items()}
                                for row in frame.to_dict("records")], frame.columns))

    def write_verdicts(self, judged: Mapping[Claim, list[Finding]], keep: bool) -> None:
        """verdicts.csv: a row a claim, sorted by name; ``keep`` those of claims not judged now."""
        rows = {claim.name: verdict_row(claim, findings) for claim, findings in judged.items()}
        if keep:
            old = {row["claim"]: row for row in self.read("verdicts")}
            rows = old | rows
        self._write(self.folder / "verdicts.csv",
                    _csv([rows[name] for name in sorted(rows)], VERDICT_COLUMNS))

    def write_run(self, seed: int, error_rate: float, seconds: float, cases: int) -> None:
        """run.json: how the folder was made; the only file that changes when nothing else did."""
        packages = ("mcverify", "numpy", "scipy", "pandas", "joblib")
        about = {
            "seed": seed,
            "error_rate": error_rate,
            "cases": cases,
            "seconds": round(seconds, 1),
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        }
        self._write(self.folder / "run.json", json.dumps(about, indent=2) + "\n")

    def prune(self, names: Iterable[str]) -> list[Path]:
        """Remove the files of claims that stood in verdicts.csv and are not among ``names``."""
        gone = {row["claim"] for row in self.read("verdicts")} - set(names)
        stale = [file for name in sorted(gone) if (file := self.claims / f"{name}.csv").exists()]
        for file in stale:
            file.unlink()
        return stale

    def read(self, table: str) -> list[dict[str, str]]:
        """The rows of verdicts.csv or, by a claim's name, of its file; none if it is not there."""
        file = self.folder / f"{table}.csv" if table == "verdicts" else self.claims / f"{table}.csv"
        if not file.exists():
            return []
        frame = pd.read_csv(file, dtype=str, keep_default_na=False)
        rows: list[dict[str, str]] = frame.to_dict("records")
        return rows

    def seed(self) -> int | None:
        """The seed that the folder was made with, None for a new folder; ValueError if damaged."""
        file = self.folder / "run.json"
        try:
            return int(json.loads(file.read_text())["seed"]) if file.exists() else None
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{file}: is damaged; remove it, or choose another --out") from None

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


def _csv(rows: list[dict[str, str]], columns: Iterable[str] | None = None) -> str:
    frame = pd.DataFrame(rows, columns=None if columns is None else list(columns))
    return str(frame.to_csv(index=False, lineterminator="\n"))
