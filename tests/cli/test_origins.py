"""Results know where a claim comes from: namesakes are refused, and renamed claims pruned."""

import pytest

from mcverify.cli.main import main
from mcverify.results.folder import Results

CLAIM = '''
@claim(mean, equals=0, within=absolute(0.2), over=grid(law=laws.normal, d_k=4))
def {name}(q):
    """Coordinates are 0 in the mean."""
    return q
'''
HEAD = "from mcverify import absolute, claim, grid, laws\nfrom mcverify.statistic import mean\n"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(*names, file="mine.py"):
        (tmp_path / file).write_text(HEAD + "".join(CLAIM.format(name=name) for name in names))
        return file

    return write


def test_a_claim_of_ones_own_does_not_replace_one_of_the_suite_s(mine, capsys, tmp_path):
    assert main(["run", "hand_slope"]) == 0
    before = Results(tmp_path / "results").read("hand_slope")
    mine("hand_slope")
    assert main(["run", "mine.py"]) == 2
    assert ("hand_slope: results holds the results of the claim of this name in mcverify"
            in capsys.readouterr().err)
    assert main(["show", "mine.py::hand_slope"]) == 0
    assert "the results of this name are of the claim in mcverify" in capsys.readouterr().out
    assert Results(tmp_path / "results").read("hand_slope") == before


def test_rows_of_a_renamed_claim_are_told_and_pruned(mine, capsys, tmp_path):
    results = Results(tmp_path / "results")
    assert main(["run", mine("first", "second")]) == 0
    assert main(["run", mine("first", "third")]) == 0
    assert "keeps results of second" in capsys.readouterr().err
    assert main(["run", mine("first", "third") + "::first"]) == 0
    assert "keeps results of second" in capsys.readouterr().err
    assert main(["prune", "mine.py"]) == 0
    assert "removed second" in capsys.readouterr().out
    assert [row["claim"] for row in results.read("verdicts")] == ["first", "third"]
    assert {row["claim"] for row in results.read("controls")} == {"first", "third"}
    assert results.read("second") == []
    assert main(["prune", "mine.py"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
