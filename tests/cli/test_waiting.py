"""What is said while a run takes its time."""

import math
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import mcverify.selfcheck as package
from mcverify import discover
from mcverify.cli import waiting
from mcverify.cli.main import main
from mcverify.cli.terminal import console
from mcverify.cli.waiting import Waiting
from mcverify.judge import watch
from mcverify.judge.run import run
from mcverify.judge.watch import Watch

CLAIM = '''
import time
from pathlib import Path
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

def wait_until_told():
    for _ in range(6000):  # a minute
        if Path("told").exists():
            break
        time.sleep(0.01)

@claim(mean, equals=0, within=absolute(MARGIN), over=grid(law=laws.normal, d_k=[2, 4]))
def NAME(q, d_k):
    """The mean is 0."""
    if d_k == SLOW:
        wait_until_told()
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


@pytest.fixture
def quick(monkeypatch):
    """Nobody waits for long, and the body that waits goes on once it has been named."""
    def noted(self):
        line = told(self)
        if re.search("at (sleepy-normal-d_k:2|the predictions of sleepy)", line):
            Path("told").touch()
        return line

    told = Waiting.__str__
    monkeypatch.setattr(Waiting, "__str__", noted)
    monkeypatch.setattr(waiting, "PATIENCE", 0.02)
    monkeypatch.setattr(waiting, "TICK", 0.01)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_pipe_is_told_which_case_nothing_has_finished_beside(mine, quick, capsys, jobs):
    assert main(["run", mine("sleepy", slow=2), "--jobs", jobs]) == 0
    err = capsys.readouterr().err
    assert re.search(r"^\d of 4 cases;.* at .*\bsleepy-normal-d_k:2", err, re.MULTILINE), err


@pytest.mark.parametrize("command", [
    ["check-claim", "mine.py"], ["replay", "results/claims/sleepy.csv", "mine.py", "--jobs", "1"],
    ["selfcheck", "mine.py", "--short", "--jobs", "1"]])
def test_other_commands_tell_what_they_are_at(mine, quick, monkeypatch, capsys, command):
    mine("sleepy", slow=2)
    if command[0] == "replay":
        Path("told").touch()
        assert main(["run", "mine.py", "--jobs", "1"]) == 0
        Path("told").unlink()
    monkeypatch.setattr(package, "SHORT", package.Effort((128,), 1000, (), 0))
    capsys.readouterr()
    assert main(command) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "at sleepy-normal-d_k:2" in lines
    assert all(re.fullmatch(r"(at|about) .+", line) for line in lines), lines


def test_a_prediction_that_takes_long_is_named(mine, quick, capsys):
    file = mine("sleepy")
    Path(file).write_text(Path(file).read_text().replace(
        "equals=0", "equals=lambda d_k: wait_until_told() or 0"))
    assert main(["run", file, "--jobs", "1"]) == 0
    assert "at the predictions of sleepy" in capsys.readouterr().err.splitlines()


def test_a_terminal_gets_a_bar_with_the_cases_at_work(mine, quick, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes a pipe for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    assert console(stderr=True).is_terminal
    assert main(["run", mine("sleepy", slow=2), "--jobs", "1"]) == 0
    err = capsys.readouterr().err
    assert "at sleepy-normal-d_k:2" in err
    assert re.search("[0-3]/4", err)
    assert " blocks a second" in err


def test_a_pipe_gets_a_line_a_minute_and_sooner_when_nothing_moves(monkeypatch):
    """By a clock that goes on when somebody waits for it."""
    now, lines, told = [1000.0], [], Waiting(4, 0)
    told.last = told.watch.started = now[0]

    def finished():
        told.finished, told.last = told.finished + 1, now[0]
        told.watch.ended(1, 0.0, 51200)
        told.watch.at_work = {2: lambda: ("second", 1020.0)}

    happens = {1020.0: finished, 1195.0: finished}

    def wait(seconds):
        now[0] += seconds
        happens.get(now[0], lambda: None)()
        return now[0] > 1240

    for module in (waiting, watch):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(waiting, "show", lambda line, stderr: lines.append((now[0], line)))
    told.watch.at(1, "first")
    told._say(SimpleNamespace(wait=wait))
    assert lines == [
        (1010.0, "0 of 4 cases; at first"),
        (1030.0, "1 of 4 cases; 1,707 blocks a second; at second"),
        (1090.0, "1 of 4 cases; 569 blocks a second; at second"),
        (1150.0, "1 of 4 cases; 341 blocks a second; at second"),
        (1210.0, "2 of 4 cases; 488 blocks a second; at second"),
    ]


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
    seen, foreseen = Watch(), []
    assert math.isnan(seen.seconds_left)
    for _ in run([case for claim in claims for case in claim.cases()], jobs=1, watch=seen):
        foreseen.append(seen.foreseen * (1 + seen.unseen / seen.first))
    assert seen.done > 4 * seen.first  # so that there was something to foresee
    assert seen.done / 2 <= foreseen[0] <= 2 * seen.done  # a look doubles what there was
    assert seen.unseen == 0
    assert foreseen[-1] == seen.done
    assert seen.seconds_left == 0
    assert not seen.at_work
