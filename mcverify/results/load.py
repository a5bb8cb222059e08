"""From a results folder to tidy tables."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mcverify.declare.rules import COLUMNS
from mcverify.judge.finding import ERROR
from mcverify.results.folder import Results
from mcverify.verdict import Verdict


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
    """Read a results folder; verdicts are categoricals: mcverify.Verdict, then ERROR.

    Raises ValueError if the folder holds no results.
    """
    results = Results(Path(folder))
    verdicts = _table(results.folder / "verdicts.csv")
    if verdicts.empty:
        raise ValueError(f"{folder}: holds no verdicts.csv; make one with `mcverify run --out "
                         f"{folder}`")
    of_claims = {name: _table(results.claims / f"{name}.csv") for name in verdicts["claim"]}
    cases = [frame.assign(claim=name) for name, frame in of_claims.items() if not frame.empty]
    settings = dict.fromkeys(column for frame in cases for column in frame.columns
                             if column not in (*COLUMNS, "claim"))
    together = pd.concat(cases, ignore_index=True)[["claim", *settings, *COLUMNS]]
    file = results.folder / "run.json"
    return Tables(verdicts, _categorical(together), _table(results.folder / "controls.csv"),
                  _table(results.folder / "ledger.csv"),
                  json.loads(file.read_text()) if file.exists() else {})


def _table(file: Path) -> pd.DataFrame:
    if not file.exists():
        return pd.DataFrame()
    # Empty texts stay texts: a reason that is "" is no missing number.
    return _categorical(pd.read_csv(file, keep_default_na=False, na_values=["nan"]))


def _categorical(frame: pd.DataFrame) -> pd.DataFrame:
    order = pd.CategoricalDtype([*map(str, Verdict), ERROR], ordered=False)
    columns = [name for name in ("verdict", "expected") if name in frame]
    return frame.astype({name: order for name in columns})
