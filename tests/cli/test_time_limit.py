"""A run with a limit on its time ends as after Ctrl-C, and goes on."""

import threading
import time
from pathlib import Path

import pytest

from mcverify.cli import exits
from mcverify.cli.main import main

CLAIMS = '''
import time
from pathlib import Path
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

@claim(mean, equals=0, within=absolute(0.5), over=grid(law=laws.normal, d_k=64))
def quick(q):
    """The mean is 0."""
    return q

@claim(mean, equals=0, within=absolute(0.5), over=grid(law=laws.normal, d_k=2))
def endless(q):
    """The mean is 0, after a while."""
    while not Path("free").exists():
        time.sleep(0.01)
    return q
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CLAIMS)
    return "mine.py"


class WhenQuickIsThere(threading.Timer):
    """A timer that rings as soon as a claim is finished, however long that takes."""

    def run(self):
        while not Path("results/claims/quick.csv").exists():
            time.sleep(0.01)
        self.function()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_finished_is_kept_what_is_at_work_abandoned_and_resume_goes_on(
        mine, monkeypatch, capsys, jobs):
    run = ["run", mine, "--jobs", jobs]
    with monkeypatch.context() as patched:
        patched.setattr(exits.threading, "Timer", WhenQuickIsThere)
        assert main([*run, "--time-limit", "10m"]) == 130
    out, err = capsys.readouterr()
    assert ("the time is over: 1 of 2 claims are finished, and 3 of 6 cases are kept; the same "
            "command with --resume goes on\n") in err
    assert "claims 1, cases 1, not as declared 0" in out
    Path("free").touch()
    assert main([*run, "--resume", "--time-limit", "10m"]) == 0
    assert "resumed: 3 of 6 cases were finished" in capsys.readouterr().err
    assert main(["run", mine, "--jobs", "1", "--out", "at_once"]) == 0
    for table in ("verdicts.csv", "controls.csv", "claims/quick.csv", "claims/endless.csv"):
        assert Path("results", table).read_bytes() == Path("at_once", table).read_bytes()


def test_the_time_is_that_of_the_clock(mine, capsys):
    started = time.monotonic()
    assert main(["run", f"{mine}::endless", "--jobs", "1", "--time-limit", "0.3s"]) == 130
    assert time.monotonic() - started >= 0.3
    assert "the time is over: 0 of 1 claims are finished" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["10", "m", "0s", "-1s", "10 m", "soon"])
def test_a_time_without_a_unit_is_refused(mine, capsys, text):
    assert main(["run", mine, f"--time-limit={text}"]) == 2
    assert f"{text!r} must be a time" in capsys.readouterr().err
    assert not Path("results").exists()
