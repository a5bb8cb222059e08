"""Results read back as tidy tables, digit by digit."""

import pandas as pd
import pytest
from committed import RESULTS
from hypothesis import given
from hypothesis import strategies as st

import mcverify
from mcverify.cli.main import main
from mcverify.results.reader import read_rows
from mcverify.results.rows import csv_text

FILE = '''
from mcverify import Verdict, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import variance

@claim(variance, equals=lambda d_k: d_k, within=relative(0.2),
       over=grid(law=laws.normal, d_k=[1, 4]))
def first(q, k):
    """Var(q·k), "as they say",
    on two lines, is d_k."""
    return scores(q, k)

@claim(variance, equals=9, within=relative(0.2), expect=Verdict.REFUTED,
       over=grid(law=laws.normal, d_k=4, text='a "b", c\\nd'))
def second(q, k, text):
    """Var(q·k) is 9, or: commas, "quotes", and no more."""
    return scores(q, k)
'''


def test_commas_quotes_and_line_ends_survive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    assert main(["run", "mine.py", "--jobs", "1"]) == 0
    tables = mcverify.load("results")
    assert list(tables.verdicts["claim"]) == ["first", "second"]
    assert tables.verdicts["sentence"][1] == 'Var(q·k) is 9, or: commas, "quotes", and no more.'
    assert list(tables.cases.columns[:5]) == ["claim", "law", "d_k", "text", "seed"]
    assert tables.cases["text"][2] == 'a "b", c\nd'
    assert str(tables.cases["verdict"].dtype) == "category"
    assert list(tables.cases["verdict"]) == ["CONFIRMED", "CONFIRMED", "REFUTED"]
    assert tables.cases["reason"].tolist() == ["", "", ""]
    assert len(tables.controls) == 2
    assert tables.run["seed"] == 0


@given(st.lists(st.tuples(st.text(max_size=6), st.text("\r\n,\"' \\a\t", max_size=8)),
                min_size=1, max_size=4))
def test_tables_round_trip_whatever_their_texts(tmp_path_factory, cells):
    cells = [tuple(text.encode("utf-8", "ignore").decode().replace("\0", "") for text in row)
             for row in cells]
    rows = [{"one": one, "two": two} for one, two in cells]
    file = tmp_path_factory.mktemp("round") / "table.csv"
    file.write_text(csv_text(rows), encoding="utf-8", newline="")
    assert read_rows(file) == rows


def test_one_column_of_texts_round_trips(tmp_path):
    rows = [{"one": "a"}, {"one": ""}, {"one": "b"}]
    (tmp_path / "table.csv").write_text(csv_text(rows), newline="")
    assert read_rows(tmp_path / "table.csv") == rows


def test_the_committed_results_load():
    tables = mcverify.load(RESULTS)
    assert len(tables.cases) == tables.verdicts["cases"].sum()
    assert tables.cases["estimate"].dtype == float
    assert set(tables.verdicts["verdict"].cat.categories) == set(mcverify.Verdict)
    assert not tables.ledger.empty
    raw = pd.read_csv(RESULTS / "claims" / "dot_variance.csv", dtype=str)
    mine = tables.cases[tables.cases["claim"] == "dot_variance"]
    assert [f"{x:.6g}" for x in mine["estimate"]] == list(raw["estimate"])


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no verdicts\.csv; make one with `mcverify run"):
        mcverify.load(tmp_path)
