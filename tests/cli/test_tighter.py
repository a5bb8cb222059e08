"""Runs with scaled margins and looks that go further, from the command to the replay."""

import json
from pathlib import Path

import pandas as pd
import pytest

from mcverify.cli.main import main

FILE = '''
from mcverify import claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean

@claim(mean, equals=lambda d_k: 1.05 * d_k, within=relative(0.1),
       over=grid(law=laws.normal, d_k=8, tokens=9))
def nearly(q, k):
    """The mean of s² is about 1.05·d_k, as is right to 5 %."""
    return scores(q, k)**2
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)


def ran(capsys, *options):
    status = main(["run", "mine.py", "--jobs", "1", *options])
    return status, capsys.readouterr()


def test_what_is_right_only_nearly_is_refuted_by_a_tighter_run(mine, capsys):
    assert ran(capsys, "--out", "usual")[0] == 0
    status, told = ran(capsys, "--margin-scale", "0.1", "--max-blocks", "2000000")
    assert status == 1
    assert "claimed   [8.316, 8.484]" in told.out
    assert "mine.py::nearly --seed 0 --margin-scale 0.1 --max-blocks 2000000\n" in told.out
    assert "seed 0, margin scale 0.1, max blocks 2000000, " in told.out
    about = json.loads(Path("results/run.json").read_text())
    assert (about["margin_scale"], about["max_blocks"]) == (0.1, 2000000)
    controls = pd.read_csv("results/controls.csv")
    assert list(controls["verdict"]) == ["REFUTED"] * 2
    assert [*controls["case"]] == [*pd.read_csv("usual/controls.csv")["case"]]  # ids stay
    columns = ["claimed_low", "claimed_high"]
    assert (controls[columns] != pd.read_csv("usual/controls.csv")[columns]).all(axis=None)


def test_a_folder_keeps_to_one_scale_and_its_rows_are_reproduced_with_it(mine, capsys):
    assert ran(capsys, "--margin-scale", "0.8", "--max-blocks", "100000")[0] == 0
    for table in ("results/claims/nearly.csv", "results/controls.csv"):
        assert main(["replay", table, "mine.py", "--jobs", "1"]) == 0
        assert "every digit" in capsys.readouterr().out
    for options, message in [
            ((), "--margin-scale 1.0: results holds results of margin scale 0.8, and a folder"),
            (("--margin-scale", "0.8"), "--max-blocks 1048576: results holds results of max "
                                        "blocks 100000, and a folder keeps to one")]:
        status, told = ran(capsys, *options)
        assert status == 2
        assert message in told.err


@pytest.mark.parametrize(("option", "value", "message"), [
    ("--margin-scale", "0", "margin scale 0: must be above 0 and at most 1"),
    ("--margin-scale", "-1", "margin scale -1: must be above 0"),
    ("--margin-scale", "nan", "margin scale nan: must be above 0"),
    ("--margin-scale", "2", "must be above 0 and at most 1, for margins only get tighter"),
    ("--margin-scale", "much", "'much' must be a number above 0"),
    ("--max-blocks", "127", "'127' must be a whole number of at least 128"),
    ("--max-blocks", "many", "'many' must be a whole number of at least 128"),
])
def test_a_wrong_scale_or_number_of_blocks_is_told(mine, capsys, option, value, message):
    status, told = ran(capsys, option, value)
    assert status == 2
    assert message in told.err
    assert not Path("results").exists()
