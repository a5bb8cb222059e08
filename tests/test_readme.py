"""The README tells the truth: its code runs, its output is what comes out, its table is current.

Run this file to write the table of verdicts anew.
"""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from mcverify import claims as package
from mcverify.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MARKS = ("<!-- verdicts -->\n", "<!-- /verdicts -->")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
OUTPUT = [text for language, text in BLOCKS if language == "text"]


def verdict_table():
    rows = pd.read_csv(ROOT / "results" / "verdicts.csv", keep_default_na=False)
    lines = ["| verdict | cases | claim | sentence |", "|---|--:|---|---|"]
    lines += [f"| {row.verdict} | {row.cases} | {row.claim} | {row.sentence} |"
              for row in rows.itertuples()]
    return "\n".join(lines) + "\n"


def test_the_table_of_verdicts_is_that_of_results():
    table = README.split(MARKS[0])[1].split(MARKS[1])[0]
    assert table == verdict_table(), "stale; run `python tests/test_readme.py`"


def test_the_claim_shown_is_the_claim_that_runs():
    text = "".join(file.read_text() for file in Path(package.__file__).parent.glob("*.py"))
    assert PYTHON[0] in text


def test_its_output_is_what_comes_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["run", "dot_variance"])
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed[:-1] == OUTPUT[0].splitlines()
    assert printed[-1].startswith("seed 0, ")


def test_the_claim_of_ones_own_runs_and_is_refuted_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my_claims.py").write_text(PYTHON[1])
    assert main(["run", "my_claims.py", "--jobs", "1"]) == 1
    assert OUTPUT[1] in capsys.readouterr().out


def test_the_exact_values_shown_are_those_that_come_out(capsys):
    exec(PYTHON[3], {})
    assert capsys.readouterr().out == OUTPUT[2]


def test_the_python_session_runs(capsys):
    exec(PYTHON[2], {})
    assert capsys.readouterr().out.startswith("CONFIRMED: dot_variance-normal-d_k:1: ")


@pytest.mark.parametrize("command", re.findall(r"`(?:\.venv/bin/)?mcverify ([^`]+)`", README))
def test_commands_named_in_the_text_exist(command, capsys):
    words = shlex.split(command)
    with pytest.raises(SystemExit) as caught:
        main([*words[:1], "--help"])
    assert caught.value.code == 0


if __name__ == "__main__":
    before, rest = README.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    (ROOT / "README.md").write_text(
        before + MARKS[0] + verdict_table() + MARKS[1] + after, encoding="utf-8")
