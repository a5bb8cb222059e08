"""Read the tables of a results folder, and say in one line what is wrong with a damaged one."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from mcverify.declare.fault import UsageError
from mcverify.declare.rules import COLUMNS
from mcverify.judge.finding import ERROR
from mcverify.verdict import Verdict

OUTCOMES = {*map(str, Verdict), ERROR}
NUMBERS = ("seed", "error_rate", "blocks", "estimate", "stderr", "low", "high", "claimed_low",
           "claimed_high", "cases", "confirmed", "refuted", "inconclusive", "errors", "controls",
           "controls_refuted")
CASES = tuple(name for name in COLUMNS if name != "basis")  # which older tables do not have


class DamagedError(UsageError, ValueError):
    """A file of a results folder that is not as it was written: file, what is wrong, repair."""

    def __init__(self, file: Path, what: str) -> None:
        super().__init__(f"{file}: {what}; remove it, and make it anew with `mcverify run`")


def read_table(file: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """A table with all its cells as texts; DamagedError unless it is whole and has the columns."""
    try:
        text = file.read_bytes().decode()
        if text and not text.endswith("\n"):
            raise DamagedError(file, "ends in the middle of a line")
        frame = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DamagedError(file, f"is no table ({str(error).splitlines()[0]})") from None
    for name in columns:
        if name not in frame:
            raise DamagedError(file, f"has no column {name}")
    for name in {"verdict", "expected"} & set(frame):
        for value in set(frame[name]) - OUTCOMES:
            raise DamagedError(file, f"has {value!r} in the column {name}, no verdict")
    for name in set(NUMBERS) & set(frame):
        bad = frame[name][pd.to_numeric(frame[name], errors="coerce").isna()
                          & (frame[name] != "nan")]
        if len(bad):
            raise DamagedError(file, f"has {bad.iloc[0]!r} in the column {name}, no number")
    return frame


def read_rows(file: Path, columns: Iterable[str] = ()) -> list[dict[str, str]]:
    """The rows of a table as they were written; DamagedError as above."""
    rows: list[dict[str, str]] = read_table(file, columns).to_dict("records")
    return rows


def read_about(file: Path) -> dict[str, Any]:
    """What run.json says; DamagedError unless it holds a seed and an error rate."""
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        about["seed"], about["error_rate"] = int(about["seed"]), float(about["error_rate"])
    except (ValueError, KeyError, TypeError):
        raise DamagedError(file, "is damaged") from None
    return about
