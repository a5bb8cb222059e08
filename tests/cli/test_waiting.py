"""What is said while a run takes its time."""

import math
import re
import time
from pathlib import Path

import pytest

import mcverify.selfcheck as package
from mcverify import discover
from mcverify.cli import waiting
from mcverify.cli.main import main
from mcverify.cli.terminal import console
from mcverify.cli.waiting import Waiting
from mcverify.judge.run import run
from mcverify.judge.watch import Watch

CLAIM = '''
import time
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

slept = []

@claim(mean, equals=0, within=absolute(MARGIN), over=grid(law=laws.normal, d_k=[2, 4]))
def NAME(q, d_k):
    """The mean is 0."""
    if d_k == SLOW and len(slept) < 3:
        slept.append(d_k)
        time.sleep(0.6)
    return q
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(*names, slow=0, margin=0.5):
        Path("mine.py").write_text("".join(
            CLAIM.replace("NAME", name).replace("SLOW", str(slow)).replace("MARGIN", str(margin))
            for name in names))
        return "mine.py"
    return write


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_pipe_is_told_which_case_nothing_has_finished_beside(mine, monkeypatch, capsys, jobs):
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    monkeypatch.setattr(waiting, "TICK", 0.05)
    started = time.monotonic()
    assert main(["run", mine("sleepy", slow=4), "--jobs", jobs]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any(re.fullmatch(r"\d of 4 cases;.* at .*sleepy-normal-d_k:4(-control.*)?", line)
               for line in lines), lines
    # one for each time that nothing moved
    assert len(lines) <= 2 + (time.monotonic() - started) / waiting.PATIENCE


@pytest.mark.parametrize("command", [
    ["check-claim", "mine.py"], ["replay", "results/claims/sleepy.csv", "mine.py", "--jobs", "1"],
    ["selfcheck", "mine.py", "--short", "--jobs", "1"]])
def test_other_commands_tell_what_they_are_at(mine, monkeypatch, capsys, command):
    mine("sleepy", slow=2)
    if command[0] == "replay":
        assert main(["run", "mine.py", "--jobs", "1"]) == 0
        mine("sleepy", slow=2)  # loaded anew, it sleeps again
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    monkeypatch.setattr(waiting, "TICK", 0.05)
    monkeypatch.setattr(package, "SHORT", package.Effort((128,), 1000, (), 0))
    capsys.readouterr()
    assert main(command) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "at sleepy-normal-d_k:2" in lines
    assert all(re.fullmatch(r"(at|about) .+", line) for line in lines), lines


def test_a_prediction_that_takes_long_is_named(mine, monkeypatch, capsys):
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    monkeypatch.setattr(waiting, "TICK", 0.05)
    file = mine("slow_to_tell")
    Path(file).write_text(Path(file).read_text().replace(
        "equals=0", "equals=lambda d_k: time.sleep(0.3) or 0"))
    assert main(["run", file, "--jobs", "1"]) == 0
    assert "at the predictions of slow_to_tell" in capsys.readouterr().err.splitlines()


def test_a_pipe_gets_a_line_a_minute(mine, monkeypatch, capsys):
    monkeypatch.setattr(waiting, "MINUTE", 0.2)
    monkeypatch.setattr(waiting, "TICK", 0.05)
    started = time.monotonic()
    assert main(["run", mine("sleepy", slow=4), "--jobs", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 2 + (time.monotonic() - started) / waiting.MINUTE
    each = r"\d of 4 cases(; [\d.,]+ blocks a second)?(; about \d+ s left)?"
    assert all(re.fullmatch(each, line) for line in lines), lines
    assert any("blocks a second" in line for line in lines), lines


def test_a_terminal_gets_a_bar_with_the_cases_at_work(mine, monkeypatch, capsys):
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes a pipe for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    assert console(stderr=True).is_terminal
    assert main(["run", mine("sleepy", slow=4), "--jobs", "1"]) == 0
    err = capsys.readouterr().err
    assert "at sleepy-normal-d_k:4" in err
    assert "0/4" in err
    assert " blocks a second" in err


def test_what_is_at_work_is_named_up_to_three_and_without_markup():
    told = Waiting(9, 2)
    for index in range(5):
        told.watch.at(index, f"[b]\x1b{index}")
    told.last -= waiting.PATIENCE
    assert str(told) == "at [b]\\x1b0, [b]\\x1b1, [b]\\x1b2 and 2 more"
    told.last = time.monotonic()
    assert str(told) == ""
    told.watch.done, told.watch.first, told.watch.foreseen = 512.0, 512.0, 1024.0
    told.watch.started = time.monotonic() - 10
    assert str(told) == "about 10 s left"
    told.watch.ended(0, 0.0, 51200)
    assert re.fullmatch(r"5,\d{3} blocks a second; about 10 s left", str(told))
    told.watch.blocks = 15
    assert re.fullmatch(r"1\.[45] blocks a second; about 10 s left", str(told))
    told.watch.blocks = 0
    told.watch.unseen = 2 * 512.0 * 25  # cases of which nothing is known yet cost like the others
    assert str(told) == "about 17 min left"


def test_the_time_left_is_foreseen_from_the_first_look_on(mine):
    claims = discover(mine("quick", "narrow", margin=0.02))
    watch, foreseen = Watch(), []
    assert math.isnan(watch.seconds_left)
    for _ in run([case for claim in claims for case in claim.cases()], jobs=1, watch=watch):
        foreseen.append(watch.foreseen * (1 + watch.unseen / watch.first))
    assert watch.done > 4 * watch.first  # so that there was something to foresee
    assert watch.done / 2 <= foreseen[0] <= 2 * watch.done  # a look doubles what there was
    assert watch.unseen == 0
    assert foreseen[-1] == watch.done
    assert watch.seconds_left == 0
    assert not watch.at_work
