"""From a results folder to tidy tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mcverify.declare.names import COLUMNS
from mcverify.results.folder import Results
from mcverify.results.reader import CASES, check_count, read_rows
from mcverify.results.rows import VERDICT_COLUMNS
from mcverify.verdict import ERROR, Verdict


class Tables(NamedTuple):
    """What `mcverify run` wrote, as DataFrames; a table that is not there is empty.

    Attributes
    ----------
    verdicts : a row a claim.
    cases : a row a case of any claim: ``claim``, the settings of all claims (missing where a claim
        has no such setting), then the result.
    controls : a row a near miss.
    ledger : a row a statement.
    run : how the folder was made: seed, error rate, versions.
    """

    verdicts: pd.DataFrame
    cases: pd.DataFrame
    controls: pd.DataFrame
    ledger: pd.DataFrame
    run: dict[str, Any]


def load(folder: str | Path = "results") -> Tables:
    """Read a results folder; verdicts are categoricals: mcverify.Verdict, and ERROR if one is.

    Raises ValueError if the folder holds no results, DamagedError if a table is not whole.
    """
    results = Results(Path(folder))
    verdicts = _table(results.file("verdicts"), VERDICT_COLUMNS)
    if verdicts.empty:
        raise ValueError(f"{folder}: holds no verdicts.csv; make one with `mcverify run --out "
                         f"{folder}`")
    frames = []
    for name, count in zip(verdicts["claim"], verdicts["cases"], strict=True):
        file = results.file(name)
        frame = _read(file, CASES)
        check_count(file, len(frame), count)
        frames.append(frame.assign(claim=name))
    cases = pd.concat(frames, ignore_index=True)
    settings = [column for column in cases if column not in (*COLUMNS, "claim")]
    kept = ["claim", *settings, *(column for column in COLUMNS if column in cases)]
    return Tables(verdicts, _categorical(cases[kept]),
                  _table(results.file("controls"), ()), _table(results.file("ledger"), ()),
                  results.about())


def _table(file: Path, columns: Iterable[str]) -> pd.DataFrame:
    return _categorical(_read(file, columns))


def _read(file: Path, columns: Iterable[str]) -> pd.DataFrame:
    if not file.exists():
        return pd.DataFrame()
    read_rows(file, columns)
    # Empty texts stay texts: a reason that is "" is no missing number.
    return pd.read_csv(file, keep_default_na=False, na_values=["nan"])


def _categorical(frame: pd.DataFrame) -> pd.DataFrame:
    for name in {"verdict", "expected"} & set(frame):
        errors = [ERROR] if (frame[name] == ERROR).any() else []
        frame = frame.astype({name: pd.CategoricalDtype([*map(str, Verdict), *errors])})
    return frame
