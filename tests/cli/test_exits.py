"""How a command ends that cannot go on: bad usage, a fault of mcverify, a signal."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcverify.cli import options, suite
from mcverify.cli.main import main
from mcverify.judge.run import run

CLAIM = '''
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

@claim(mean, equals=0, within=absolute(MARGIN), over=grid(law=laws.normal, d_k=[2, 64]))
def NAME(q):
    """The mean is 0."""
    return q
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name="centred", margin="0.5"):
        Path("mine.py").write_text(CLAIM.replace("NAME", name).replace("MARGIN", margin))
        return "mine.py"
    return write


@pytest.mark.parametrize("error", [KeyError("gone"), ValueError("of our own"),
                                   RuntimeError("[/tag]")])
def test_a_fault_of_mcverify_has_a_status_of_its_own(mine, monkeypatch, capsys, error):
    def broken(*_):
        yield from ()
        raise error

    monkeypatch.setattr(suite, "run", broken)
    assert main(["run", mine()]) == 70
    err = capsys.readouterr().err
    assert err.startswith("mcverify: this is a fault of mcverify itself, not of a claim; ")
    assert "Traceback (most recent call last):" in err
    assert err.endswith(f"{type(error).__name__}: {error}\n")


def test_verdicts_are_said_though_their_tables_cannot_be_written(mine, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(suite.Results, "write_verdicts", full)
    assert main(["run", mine(), "--jobs", "1"]) == 2
    out, err = capsys.readouterr()
    assert "CONFIRMED      2  centred" in out
    assert err == ("mcverify: --out results: cannot be written to (No space left on device); "
                   "choose another folder\n")


@pytest.mark.parametrize(("arguments", "message"), [
    (["walk"], "mcverify: No such command 'walk'."),
    ([], "mcverify: Missing command. (`mcverify --help` tells all)"),
    (["show"], "mcverify: Missing argument 'NAME'. (`mcverify show --help` tells all)"),
    (["run", "--out", ""], "'' is no folder; write . for the one you are in"),
    (["plot", "--to="], "'' is no folder"),
    (["run", "--jobs", "1.5"], "'1.5' must be a whole number of at least 1"),
    (["run", "--seed", "-1"], "'-1' must be a whole number of at least 0"),
    (["run", "--error-rate", "1e-300"],
     "error rate 1e-300: the smallest that can be decided is 3e-39, for 1048576 blocks would do for"
     " less, but their draws come from one of 2^128 states of the random generator; ask for 3e-39 "
     "or more"),
    (["run", "--error-rate", "much"], "'much' must be a number between 0 and 1, e.g. 1e-10"),
    (["run", "--wrong"], "mcverify: No such option: --wrong"),
    (["diagnose", "--groups", "g", "x.npz"], "mcverify: --groups g: needs --names"),
    (["ledger", "Z1"], "mcverify: Z1: no statement has this id"),
    (["replay", "none.csv:1"], "mcverify: none.csv:1: no such table"),
    (["new", "my_claim", "--folder", "nowhere"], "mcverify: nowhere: is no folder; make it"),
])
def test_bad_usage_is_one_line_and_writes_nothing(
        tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("mcverify: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_more_processes_than_cores_are_told_and_not_started(mine, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(suite, "run", lambda cases, terms, jobs, watch, limit, memory: (
        asked.append(jobs), run(cases, terms, 1, watch, limit))[1])
    for cores, jobs, most in ((1, "1000", 2), (4, "5", 4), (4, "4", 4), (4, "1", 1)):
        monkeypatch.setattr(options, "cores", lambda cores=cores: cores)
        assert main(["run", mine(), "--jobs", jobs]) == 0
        told = f"mcverify: --jobs {jobs}: cores: {cores}, and more processes would only share"
        assert (told in capsys.readouterr().err) == (most < int(jobs))
        assert asked.pop() == most


def test_the_smallest_rate_that_is_allowed_can_be_decided(mine, capsys):
    assert main(["run", mine(), "--error-rate", "3e-39", "--jobs", "1"]) == 0
    assert "4 cases at 3e-39 spend 1.2e-38" in capsys.readouterr().out


def test_a_long_name_is_not_blamed_on_the_folder(mine, capsys):
    assert main(["run", mine("x" * 300)]) == 2
    err = capsys.readouterr().err
    assert "the name has 300 letters, and a file is named after it; use at most 200" in err
    assert "--out" not in err
    assert not Path("results").exists()


def test_a_name_as_long_as_is_allowed_has_its_file(mine):
    assert main(["run", mine("x" * 200), "--jobs", "1"]) == 0
    assert Path(f"results/claims/{'x' * 200}.csv").exists()


def test_without_docstrings_it_says_why_nothing_is_found(mine):
    ran = subprocess.run([sys.executable, "-OO", "-m", "mcverify", "run", "dot_variance"],
                         capture_output=True, text=True)
    assert ran.returncode == 2
    assert "Python runs without docstrings (-OO, PYTHONOPTIMIZE=2)" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_sigterm_ends_a_run_as_ctrl_c_does(mine, jobs, capsys):
    """Which comes while a body is at work, here or in another process."""
    file = Path(mine())
    file.write_text(file.read_text().replace("    return q", f"""
    import os, signal, time
    os.kill({os.getpid()}, signal.SIGTERM)
    time.sleep(20)"""))
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert main(["run", "mine.py", "--jobs", jobs]) == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == (
        "interrupted: 0 of 1 claims are finished, and 0 of 4 cases are kept; the same command "
        "with --resume goes on\n")
