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


def test_commands_that_read_results_tell_a_namesake_s_from_their_own(mine, capsys):
    assert main(["run", mine("hand_slope")]) == 0
    assert main(["replay", "results/claims/hand_slope.csv"]) == 2
    assert ("hand_slope.csv: holds the results of the claim of this name in mine.py; name that file"
            in capsys.readouterr().err)
    assert main(["replay", "results/claims/hand_slope.csv", "mine.py"]) == 0
    capsys.readouterr()
    assert main(["list", "hand_slope", "--verdict", "CONFIRMED"]) == 0
    assert "hand_slope" not in capsys.readouterr().out
    assert main(["list", "mine.py", "--verdict", "CONFIRMED"]) == 0
    assert "hand_slope" in capsys.readouterr().out


def test_last_outcomes_are_chosen_by_of_claims_of_ones_own_as_well(mine, capsys, tmp_path):
    file = mine("good", "bad")
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(text[::-1].replace("0=slauqe", "9=slauqe", 1)[::-1])
    assert main(["run", file, "hand_slope"]) == 1
    for command, status in (("list", 0), ("run", 1)):
        capsys.readouterr()
        assert main([command, "--failed"]) == status
        out = capsys.readouterr().out
        assert "bad" in out
        assert "good" not in out
        assert "hand_slope" not in out
    (tmp_path / file).write_text(text)
    assert main(["run", "--failed"]) == 0
    capsys.readouterr()
    assert main(["run", "--failed"]) == 0
    assert "nothing to run: every claim was judged as declared" in capsys.readouterr().out


def test_files_of_one_name_in_two_folders_are_two_origins(mine, capsys, tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        mine("same", file=f"{folder}/mine.py")
    assert main(["run", "one/mine.py"]) == 0
    assert main(["run", "two/mine.py"]) == 2
    assert "the claim of this name in one/mine.py; rename" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path / "one")  # from where the file has another way
    assert main(["run", "mine.py", "--out", "../results"]) == 0


def test_a_claim_that_got_the_name_of_a_suite_s_is_pruned_without_naming_its_file(mine, capsys):
    assert main(["run", mine("hand_slope", "other")]) == 0
    assert main(["run", mine("other")]) == 0
    assert "keeps results of hand_slope" in capsys.readouterr().err
    assert main(["prune"]) == 0
    assert capsys.readouterr().out == "removed hand_slope\n"
    assert main(["prune"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


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
