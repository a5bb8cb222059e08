"""A row of results is reproduced digit by digit, and what was changed in it is told."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from mcverify.cli.main import main

FILE = '''
from mcverify import claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import variance

@claim(variance, equals=lambda d_k: d_k, within=relative(0.2),
       over=grid(law=[laws.normal, laws.laplace], d_k=[1, 4])
       + grid(law=laws.normal, d_k=4, tokens=9))
def mine(q, k):
    """Var(q·k) = d_k."""
    return scores(q, k)
'''
TABLE = "results/claims/mine.csv"


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    assert main(["run", "mine.py", "--jobs", "1", "--seed", "7", "--error-rate", "1e-9"]) == 0


def replayed(capsys, *arguments):
    capsys.readouterr()
    code = main(["replay", *arguments, "--jobs", "1"])
    return code, capsys.readouterr()


def test_every_row_and_any_row_are_reproduced(results, capsys):
    code, told = replayed(capsys, TABLE, "mine.py")
    assert code == 0
    assert told.out.count("every digit is reproduced") == 5
    assert "row 5, mine-normal-d_k:4-tokens:9: " in told.out
    shutil.move("results/claims/mine.csv", "mine.csv")  # the table alone will do
    code, told = replayed(capsys, "mine.csv:3", "mine.py")
    assert (code, told.out) == (0, "row 3, mine-laplace-d_k:1: every digit is reproduced\n")


def test_near_misses_and_error_rates_of_many_digits_are_reproduced(results, capsys):
    code, told = replayed(capsys, "results/controls.csv", "mine.py")
    assert code == 0
    assert told.out.count("every digit is reproduced") == len(pd.read_csv("results/controls.csv"))
    assert main(["run", "mine.py", "--jobs", "1", "--error-rate", "1.23456789e-9", "--out",
                 "other"]) == 0
    assert pd.read_csv("other/claims/mine.csv", dtype=str)["error_rate"][0] == "1.23456789e-09"
    code, told = replayed(capsys, "other/claims/mine.csv:1", "mine.py")
    assert code == 0


def test_a_digit_that_was_changed_is_told(results, capsys):
    table = pd.read_csv(TABLE, dtype=str, keep_default_na=False)
    right = table.loc[1, "estimate"]
    table.loc[1, "estimate"] = "9.99999"
    table.to_csv(TABLE, index=False)
    code, told = replayed(capsys, TABLE, "mine.py")
    assert code == 1
    assert f"row 2, mine-normal-d_k:4: estimate: written 9.99999, now {right}" in told.out


@pytest.mark.parametrize(("place", "files", "message"), [
    ("results/claims/mine.csv:9", ["mine.py"], "has rows 1 to 5"),
    ("results/claims/mine.csv:0", ["mine.py"], "has rows 1 to 5"),
    ("results/claims/gone.csv", ["mine.py"], "no such table"),
    ("results/claims/mine.csv", [], "no known claim is named mine"),
    ("results/claims", ["mine.py"], "no such table"),
])
def test_what_cannot_be_replayed_is_told_in_one_line(results, capsys, place, files, message):
    code, told = replayed(capsys, place, *files)
    assert code == 2
    assert message in told.err
    assert told.err.count("\n") == 1


def test_a_row_that_the_grid_no_longer_has_is_told(results, capsys):
    Path("mine.py").write_text(FILE.replace("d_k=[1, 4]", "d_k=[2, 4]"))
    code, told = replayed(capsys, f"{TABLE}:1", "mine.py")
    assert code == 2
    assert "its grid has no case with the settings of the row" in told.err
