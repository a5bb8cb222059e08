"""Read the tables of a results folder, and say in one line what is wrong with a damaged one."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcverify.declare.fault import UsageError
from mcverify.declare.names import COLUMNS
from mcverify.verdict import ERROR, MAX_BLOCKS, OUTCOMES, Terms

NUMBERS = ("seed", "error_rate", "blocks", "estimate", "stderr", "low", "high", "claimed_low",
           "claimed_high", "cases", "confirmed", "refuted", "inconclusive", "errors", "controls",
           "controls_refuted")
CASES = tuple(name for name in COLUMNS if name != "basis")  # which older tables do not have


class DamagedError(UsageError, ValueError):
    """A file of a results folder that is not as it was written: file, what is wrong, repair."""

    def __init__(self, file: Path, what: str, gone: str = "it") -> None:
        super().__init__(f"{file}: {what}; remove {gone}, and make it anew with `mcverify run`")


def read_rows(file: Path, columns: Iterable[str] = ()) -> list[dict[str, str]]:
    """The rows of a table, all cells as texts; none if it is not there.

    DamagedError unless it is whole and has the columns.
    """
    if not file.exists():
        return []
    try:
        text = file.read_bytes().decode("utf-8-sig")
        lines = [*filter(None, csv.reader(io.StringIO(text, newline="")))]
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise DamagedError(file, f"is no table ({error})") from None
    if not lines:
        raise DamagedError(file, "is empty")
    if not text.endswith("\n"):
        raise DamagedError(file, "ends in the middle of a line")
    header = lines.pop(0)
    for name in columns:
        if name not in header:
            raise DamagedError(file, f"has no column {name}")
    for number, line in enumerate(lines, 1):
        if len(line) != len(header):
            raise DamagedError(file, f"has {len(line)} cells in row {number}, and {len(header)} "
                                     "columns")
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    for row in rows:
        for name, value in row.items():
            _check_cell(file, name, value)
    return rows


def check_count(file: Path, rows: int, cases: int) -> None:
    """DamagedError unless a claim's table has as many rows as verdicts.csv tells of."""
    if rows != cases:
        raise DamagedError(file, f"has {rows} rows, and verdicts.csv tells of {cases}")


def outcome_of(row: Mapping[Any, Any]) -> str:
    """The verdict of a claim's row in verdicts.csv; ERROR if a case of it is one."""
    return ERROR if int(row.get("errors", 0)) else str(row["verdict"])


def departure(row: Mapping[Any, Any]) -> str:
    """In what a claim's row in verdicts.csv is not as declared; "" if in nothing.

    >>> departure({"claim": "mine", "expected": "CONFIRMED", "verdict": "REFUTED"})
    'mine is REFUTED, declared CONFIRMED'
    """
    if row["verdict"] != row["expected"]:
        return f"{row['claim']} is {row['verdict']}, declared {row['expected']}"
    if outcome_of(row) == ERROR:
        return f"{row['claim']} has errors: {row['errors']}"
    if row.get("controls") != row.get("controls_refuted"):
        return f"{row['claim']} has a near miss that is not refuted"
    return ""


def _check_cell(file: Path, name: str, value: str) -> None:
    if name in ("verdict", "expected") and value not in OUTCOMES:
        raise DamagedError(file, f"has {value!r} in the column {name}, no verdict")
    if name in NUMBERS:
        try:
            float(value)
        except ValueError:
            raise DamagedError(file, f"has {value!r} in the column {name}, no number") from None


def read_about(file: Path) -> dict[str, Any]:
    """What run.json says; DamagedError unless it holds terms, two of which older files lack."""
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        about |= asdict(Terms(
            int(about["seed"]), float(about["error_rate"]), float(about.get("margin_scale", 1)),
            int(about.get("max_blocks", MAX_BLOCKS))))
    except (ValueError, KeyError, TypeError):
        raise DamagedError(file, "is damaged", "its folder") from None
    return about
