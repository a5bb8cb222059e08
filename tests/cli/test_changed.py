"""`mcverify run --changed` judges what has changed, and keeps the rest as it is."""

import re
from pathlib import Path

import pytest

from mcverify.cli.main import main
from mcverify.judge import run as running
from mcverify.judge.measure import measure

CLAIMS = '''
from helpers import middle
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

@claim(mean, equals=0, within=absolute(0.5), over=grid(law=laws.normal, d_k=2))
def by_hand(q):
    """The mean is 0."""
    return q

@claim(mean, equals=0, within=absolute(0.5), over=grid(law=laws.normal, d_k=2))
def by_helper(q):
    """The mean is 0, by a helper."""
    return middle(q)
'''
HELPERS = '''
def middle(q):
    return q.mean(axis=-1)

def unused(q):
    return q
'''
OPTIONS = ["--jobs", "1", "--changed"]


@pytest.fixture
def judged(tmp_path, monkeypatch, capsys):
    """The names of the claims that a run measures, in mine.py, with --changed; and what it says."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CLAIMS)
    Path("helpers.py").write_text(HELPERS)
    names = set()

    def noted(references, *call):
        names.update(name for _, name, _ in references)
        return measure(references, *call)

    monkeypatch.setattr(running, "measure", noted)

    def run(*arguments, status=0):
        names.clear()
        assert main(["run", *(arguments or ["mine.py"]), *OPTIONS]) == status
        return set(names), next(iter(re.findall("changed: .*", capsys.readouterr().err)), "")

    assert main(["run", "mine.py", "--jobs", "1"]) == 0
    return run


def edit(file, old, new):
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new))


def test_nothing_is_judged_again_if_nothing_has_changed(judged):
    before = {file: file.read_bytes() for file in Path("results").rglob("*.csv")}
    assert judged() == (set(), "changed: 0 of 2 claims are judged, 2 are kept")
    assert {file: file.read_bytes() for file in Path("results").rglob("*.csv")} == before


@pytest.mark.parametrize(("file", "old", "new", "expected", "why"), [
    ("mine.py", "return q\n", "return 1 * q\n", {"by_hand"}, "their own text"),
    ("mine.py", '"""The mean is 0."""', '"""The mean is 0, or so."""', {"by_hand"},
     "their own text"),
    ("helpers.py", "return q.mean", "return 1 * q.mean", {"by_helper"}, "what they import"),
    ("helpers.py", "return q\n", "return 2 * q\n", set(), ""),
    ("mine.py", "return q\n", "return q  # as it is\n", {"by_hand"}, "their own text"),
    ("mine.py", "return q\n", "# as it is\n    return q\n", set(), ""),
])
def test_what_has_changed_is_judged_again(judged, file, old, new, expected, why):
    edit(file, old, new)
    said = f" (1 for {why})" if why else ""
    assert judged() == (expected, f"changed: {len(expected)} of 2 claims are judged{said}, "
                                  f"{2 - len(expected)} are kept")
    assert judged()[0] == set()
    assert main(["run", "mine.py", "--jobs", "1", "--out", "at_once"]) == 0
    for table in ("verdicts.csv", "controls.csv", "sources.csv", "claims/by_hand.csv",
                  "claims/by_helper.csv"):
        assert Path("results", table).read_bytes() == Path("at_once", table).read_bytes()


def test_a_selection_is_kept_to(judged):
    edit("mine.py", "return q\n", "return 1 * q\n")
    assert judged("mine.py::by_helper") == (set(), "changed: 0 of 1 claims are judged, 1 are kept")
    assert judged()[0] == {"by_hand"}


def test_results_that_tell_no_source_count_as_changed(judged):
    Path("results/sources.csv").unlink()
    assert judged() == ({"by_hand", "by_helper"}, "changed: 2 of 2 claims are judged (2 for want "
                        "of results that tell their source), 0 are kept")


def test_a_table_that_is_gone_is_made_again(judged):
    Path("results/claims/by_hand.csv").unlink()
    assert judged()[0] == {"by_hand"}
    assert Path("results/claims/by_hand.csv").exists()


def test_what_is_not_as_declared_is_judged_again(judged):
    edit("mine.py", "equals=0", "equals=9")
    judged(status=1)
    names, said = judged(status=1)
    assert names == {"by_hand", "by_helper"}
    assert "(2 for results not as declared)" in said


def test_another_seed_is_refused(judged, capsys):
    judged("mine.py", "--seed", "1", status=2)


def test_a_damaged_table_of_sources_is_refused(judged, capsys):
    edit("results/sources.csv", "by_hand", "by_hand,x")
    judged(status=2)
