"""The command line as a user meets it: tables, files, exit statuses, mistakes, Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from mcverify import __version__, discover
from mcverify.cli.main import main
from mcverify.results.folder import Results
from mcverify.results.rows import VERDICT_COLUMNS

HEAD = '''
from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean, variance
'''
TRUE = '''
@claim(variance, equals=lambda d_k: d_k, within=relative(0.05), decides="A5",
       over=grid(law=[laws.normal, laws.laplace], d_k=[2, 16]))
def true_claim(q, k):
    """Var(q·k) = d_k, "as they say", and so on."""
    return scores(q, k)
'''
FALSE = '''
@claim(mean, at_least=1, over=grid(law=laws.normal, d_k=2), decides="A7")
def false_claim(q):
    """Coordinates are above 1 in the mean."""
    return q
'''
OPEN = '''
@claim(variance, equals=2, within=relative(0.05), over=grid(law=laws.student_t(3), d_k=2))
def open_claim(q, k):
    """The variance of heavy tails is 2."""
    return scores(q, k)
'''
BROKEN = '''
@claim(mean, equals=0, over=grid(law=laws.normal))
def broken_claim(q):
    """A claim without a margin."""
    return q
'''
FAILING = '''
@claim(mean, equals=0, within=absolute(1), over=grid(law=laws.normal, d_k=2))
def failing_claim(q):
    """A body that raises."""
    raise KeyError("gone")
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Writes mine.py of the parts given, and stands in its folder."""
    monkeypatch.chdir(tmp_path)

    def write(*parts):
        (tmp_path / "mine.py").write_text(HEAD + "".join(parts))
        return "mine.py"
    return write


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(Path(folder).rglob("*")) if file.is_file()
            and file.name != "run.json" and not file.name.startswith(".")}


@pytest.mark.parametrize(("parts", "status"), [
    ((TRUE,), 0), ((TRUE, FALSE), 1), ((TRUE, OPEN), 3), ((FALSE, OPEN), 1), ((TRUE, FAILING), 3),
    ((TRUE, BROKEN), 2),
])
def test_exit_status_says_how_it_went_and_good_claims_finish(mine, capsys, parts, status):
    assert main(["run", mine(*parts), "--jobs", "1"]) == status
    out, err = capsys.readouterr()
    if TRUE in parts:
        table = pd.read_csv("results/verdicts.csv")
        row = table[table["claim"] == "true_claim"].iloc[0]
        assert (row["verdict"], row["cases"], row["confirmed"]) == ("CONFIRMED", 4, 4)
    assert ("broken_claim: has equals without within" in err) == (BROKEN in parts)
    assert ("nothing: KeyError: 'gone' (mine.py, line " in out) == (FAILING in parts)
    assert ("REFUTED, declared CONFIRMED: false_claim-normal-d_k:2" in out) == (FALSE in parts)


def test_files_are_the_same_for_any_number_of_jobs_and_any_selection(mine):
    file = mine(TRUE, FALSE, OPEN)
    main(["run", file, "--jobs", "1", "--out", "one"])
    main(["run", file, "--jobs", "2", "--out", "two"])
    for part in (FALSE, OPEN, TRUE):
        main(["run", mine(part), "--jobs", "1", "--out", "apart"])
    assert contents("one") == contents("two") == contents("apart")
    assert set(contents("one")) == {
        "verdicts.csv", "controls.csv", "sources.csv", "claims/true_claim.csv",
        "claims/false_claim.csv", "claims/open_claim.csv"}
    assert json.loads(Path("one/run.json").read_text())["seed"] == 0


def test_csv_columns_and_quoting(mine):
    main(["run", mine(TRUE), "--jobs", "1"])
    verdicts = pd.read_csv("results/verdicts.csv")
    assert list(verdicts) == ["claim", "sentence", "decides", "expected", "verdict", "cases",
                              "confirmed", "refuted", "inconclusive", "errors", "blocks", "detects",
                              "controls", "controls_refuted", "basis", "origin"]
    assert verdicts["sentence"][0] == 'Var(q·k) = d_k, "as they say", and so on.'
    cases = pd.read_csv("results/claims/true_claim.csv")
    assert list(cases) == ["law", "d_k", "seed", "error_rate", "blocks", "estimate", "stderr",
                           "low", "high", "claimed_low", "claimed_high", "verdict", "expected",
                           "basis", "reason"]
    assert list(cases["law"]) == ["normal", "normal", "laplace", "laplace"]
    assert (cases["low"] < cases["estimate"]).all()
    assert ((cases["claimed_low"] <= cases["low"]) & (cases["high"] <= cases["claimed_high"])).all()


def test_settings_that_only_some_cases_have_are_columns_that_others_leave_empty(mine):
    ragged = TRUE.replace("d_k=[2, 16])", "d_k=2) + grid(law=laws.normal, d_k=2, tokens=5)")
    main(["run", mine(ragged), "--jobs", "1"])
    cases = pd.read_csv("results/claims/true_claim.csv", dtype=str, keep_default_na=False)
    assert list(cases)[:4] == ["law", "d_k", "tokens", "seed"]
    assert list(cases["tokens"]) == ["", "", "5"]


def test_own_claims_run_by_name_by_statement_and_in_any_mixture(tmp_path, capsys):
    out = ["--out", str(tmp_path), "--jobs", "1"]
    assert main(["run", "hand_slope", *out]) == 0
    assert main(["run", "A1", "hand_slope", *out]) == 0
    assert set(pd.read_csv(tmp_path / "verdicts.csv")["claim"]) == {"hand_dot_product",
                                                                    "hand_slope"}
    near = sum(len(claim.control_cases()) for claim in discover()
               if claim.name in ("hand_dot_product", "hand_slope"))
    assert (f"claims 2, cases 4, not as declared 0; controls {near}, refuted {near}\n"
            in capsys.readouterr().out)


def test_one_claim_of_a_file_goes_by_its_name(mine, capsys):
    file = mine(TRUE, FALSE)
    assert main(["run", f"{file}::true_claim", "--jobs", "1"]) == 0
    assert "claims 1, " in capsys.readouterr().out
    assert main(["run", f"{file}::gone"]) == 2
    err = capsys.readouterr().err
    assert "mine.py::gone: mine.py has no claim of this name; it has true_claim, " in err
    assert err.count("\n") == 1


def test_a_folder_with_tables_of_others_is_not_touched(mine, capsys):
    Path("results/claims").mkdir(parents=True)
    Path("results/claims/good.csv").write_text("my,own\n1,2\n")
    assert main(["run", mine(TRUE), "--jobs", "1"]) == 2
    assert "good.csv: is not of a run, which results/run.json would tell" in capsys.readouterr().err
    assert contents("results") == {"claims/good.csv": b"my,own\n1,2\n"}


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", "dot_varianc"], "no claim or statement has this name; did you mean dot_variance"),
    (["run", "Z99"], "Z99: no claim or statement has this name"),
    (["run", "none.py"], "none.py: no such Python file or folder"),
    (["show", "nothing_like_it_at_all"], "see `mcverify list`"),
])
def test_unknown_names_are_refused_in_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["run", "--seed", "-1"], ["run", "--jobs", "0"],
                                       ["run", "--seed", "x"], ["walk"], []])
def test_bad_usage_exits_with_2(capsys, arguments):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("mcverify: ")


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_runs(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["run", "hand_slope", "--out", str(tmp_path / "file" / "x")]) == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_a_folder_keeps_to_one_seed(mine, capsys):
    assert main(["run", mine(TRUE), "--jobs", "1"]) == 0
    before = contents("results")
    assert main(["run", mine(TRUE), "--jobs", "1", "--seed", "1"]) == 2
    assert "holds results of seed 0" in capsys.readouterr().err
    assert contents("results") == before
    assert main(["run", mine(TRUE), "--jobs", "1", "--seed", "1", "--out", "other"]) == 0
    assert contents("other") != before


def test_damaged_results_are_refused_in_one_line(mine, capsys):
    Path("results").mkdir()
    Path("results/run.json").write_text("{")
    assert main(["run", mine(TRUE)]) == 2
    assert "run.json: is damaged; remove its folder, and make it anew" in capsys.readouterr().err


def test_pruning_leaves_files_that_no_run_wrote(tmp_path):
    results = Results(tmp_path)
    results.claims.mkdir()
    (tmp_path / "claims" / "my_data.csv").write_text("a\n1\n")
    (tmp_path / "claims" / "old_claim.csv").write_text("a\n1\n")
    row = {"claim": "old_claim", "verdict": "CONFIRMED", "expected": "CONFIRMED"}
    pd.DataFrame([dict.fromkeys(VERDICT_COLUMNS, "0") | row]).to_csv(
        tmp_path / "verdicts.csv", index=False)
    assert [file.name for file in results.prune(["dot_variance"])] == ["old_claim.csv"]
    assert (tmp_path / "claims" / "my_data.csv").exists()


def test_more_cases_than_the_budget_pays_for_are_refused(mine, capsys):
    many = TRUE.replace("d_k=[2, 16]", "d_k=range(1, 260)")
    file = mine(many, many.replace("true_claim", "another"))
    assert main(["run", file, "--error-rate", "1e-9"]) == 2
    assert "1040 cases at an error rate of 1e-09 each cost" in capsys.readouterr().err
    assert main(["run", mine(TRUE.replace("d_k=[2, 16]", "d_k=range(1, 6000)"))]) == 2
    out, err = capsys.readouterr()
    assert "mine.py:6: true_claim: its grid has 11998 cases" in err
    assert out == ""
    assert not Path("results").exists()


def test_two_claims_of_one_name_are_not_run_together(mine, capsys):
    mine(TRUE)
    Path("other.py").write_text(HEAD + TRUE)
    assert main(["run", "mine.py", "other.py", "--jobs", "1"]) == 2
    assert "two claims are named true_claim" in capsys.readouterr().err


def test_list_and_show(mine, capsys):
    assert main(["list"]) == 0
    assert "dot_variance " in capsys.readouterr().out
    assert main(["list", mine(TRUE)]) == 0
    out = capsys.readouterr().out
    assert "A5       CONFIRMED      4" in out
    assert main(["show", "mine.py"]) == 0
    out = capsys.readouterr().out
    for word in ("mine.py:6", "variance", "within 5 %", "normal, laplace", "2, 16",
                 "none yet; `mcverify run mine.py::true_claim` makes one", "decides     A5"):
        assert word in out, word
    main(["run", "mine.py", "--jobs", "1"])
    capsys.readouterr()
    assert main(["show", "mine.py"]) == 0
    assert "CONFIRMED    laplace 16: claimed [15.2, 16.8], measured" in capsys.readouterr().out


def test_version_and_help(capsys):
    for flag, text in (("--version", f"mcverify {__version__}"), ("--help", "Exit status: 0")):
        assert main([flag]) == 0
        assert text in " ".join(capsys.readouterr().out.split())


def test_a_pipe_gets_plain_text_without_progress(mine, capsys):
    assert main(["run", mine(TRUE), "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert "claims 1, cases 4, not as declared 0; controls 2, refuted 2" in out


SLOW = '''
@claim(mean, equals=0, within=absolute(1e-7), over=grid(law=laws.normal, d_k=64))
def slow_claim(q):
    """A margin that needs more draws than there are."""
    return q
'''


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_what_was_finished(mine, jobs):
    command = [sys.executable, "-m", "mcverify", "run", mine(TRUE, SLOW), "--jobs", jobs]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    done = Path("results/claims/true_claim.csv")
    deadline = time.monotonic() + 60
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert re.search(r"interrupted: 1 of 2 claims are finished, and [678] of 9 cases are kept", err)
    assert "Traceback" not in err
    assert set(contents("results")) == {"verdicts.csv", "controls.csv", "sources.csv",
                                        "claims/true_claim.csv"}
    assert list(pd.read_csv("results/verdicts.csv")["claim"]) == ["true_claim"]
