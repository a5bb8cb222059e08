"""What goes wrong around a claim: killed processes, interruptions, two runs, global randomness."""

import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcverify import Verdict, check, discover, grid, laws
from mcverify.cli.main import main
from mcverify.cli.suite import status
from mcverify.judge import processes, worker
from mcverify.judge.detectable import reach_of
from mcverify.judge.finding import contradictions
from mcverify.judge.limit import limited
from mcverify.judge.run import run
from mcverify.results.journal import Journal
from mcverify.statistic import mean
from mcverify.verdict import Terms, look_rate

HEAD = '''
import os, random, signal
import numpy as np
from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean, proportion, variance

WORLD = grid(law=laws.normal, d_k=[2, 8])
'''
GOOD = '''
@claim(variance, equals=lambda d_k: d_k, within=relative(0.1), over=WORLD)
def good_claim(q, k):
    """Var(q·k) = d_k."""
    return scores(q, k)
'''
KILLER = '''
@claim(mean, equals=0, within=absolute(0.5), over=WORLD)
def killer(q, k, d_k):
    """At d_k = 8 its process is killed."""
    if d_k == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return q
'''
LEAVER = '''
@claim(mean, equals=0, within=absolute(0.5), over=WORLD)
def leaver(q, d_k):
    """At d_k = 8 it ends its process, or seems to."""
    if d_k == 8:
        HOW
    return q
'''
SEEDER = '''
@claim(mean, equals=0, within=absolute(0.5), over=WORLD)
def seeder(q):
    """Sets a global state."""
    np.random.seed(0)
    return q
'''
READER = '''
@claim(mean, equals=0, within=absolute(0.5), over=WORLD)
def reader(q):
    """Reads a global state."""
    return q + 0.01 * random.random()
'''
SLOW = '''
@claim(mean, equals=0, within=absolute(0.016),
       over=grid(law=laws.normal, d_k=[1, 2, 16, 32], tokens=8))
def slow_claim(q, rng):
    """A narrow margin."""
    return q + rng.standard_normal(q.shape)
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(*parts):
        Path("mine.py").write_text(HEAD + "".join(parts))
        return "mine.py"
    return write


def by_name(findings):
    return {str(finding.case): finding for finding in findings}


@pytest.mark.parametrize("method", ["forkserver", "fork"])
@pytest.mark.filterwarnings("ignore:`fork` start method")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_killed_worker_costs_one_case_which_is_not_measured_again(mine, monkeypatch, method):
    monkeypatch.setattr(worker, "START_METHOD", method)
    cases = [case for claim in discover(mine(GOOD, KILLER)) for case in claim.cases()]
    found = by_name(run(cases, jobs=2))
    assert len(found) == 4
    bad = found.pop("killer-normal-d_k:8")
    assert bad.broken
    assert not bad.as_declared
    assert bad.reason.startswith("its process was killed (SIGKILL(-9)) (seed 0, chunk at ")
    assert all(finding.verdict is Verdict.CONFIRMED for finding in found.values())
    alone = by_name(run([case for case in cases if str(case) != "killer-normal-d_k:8"], jobs=1))
    assert found == alone


@pytest.mark.parametrize(("how", "jobs", "reason"), [
    ("raise SystemExit(0)", 1, "SystemExit: 0"), ("raise SystemExit(0)", 2, "SystemExit: 0"),
    ("raise KeyboardInterrupt", 2, "KeyboardInterrupt: "),
    ("os._exit(0)", 2, "its process was killed ("),
    ("class Mute(Exception):\n            __str__ = None\n        raise Mute", 1, "Mute: "),
])
def test_a_body_that_ends_its_process_is_an_error_of_its_own(mine, how, jobs, reason, capsys):
    file = mine(GOOD, LEAVER.replace("HOW", how))
    assert main(["run", file, "--jobs", str(jobs)]) == 3
    found = pd.read_csv("results/claims/leaver.csv", keep_default_na=False)
    assert found["verdict"].tolist() == ["CONFIRMED", "ERROR"]
    assert found["reason"][1].startswith(reason)
    good = pd.read_csv("results/claims/good_claim.csv")
    assert good["verdict"].tolist() == ["CONFIRMED", "CONFIRMED"]


ALONE = '''
@claim(STATISTIC, PREDICTION)
def alone():
    """A calculation."""
    BODY
'''


@pytest.mark.parametrize(("body", "prediction", "reason"), [
    ("raise SystemExit(0)", "equals=0, within=absolute(1)", "SystemExit: 0"),
    ("np.random.seed(0); return np.random.random()", "equals=0.5, within=absolute(1)",
     "the body used the global random state"),
    ("return 0.5", "equals=lambda: np.random.random(), within=absolute(2)",
     "the prediction used the global random state"),
])
def test_a_calculation_is_held_to_the_same_rules(mine, body, prediction, reason):
    text = ALONE.replace("BODY", body).replace("PREDICTION", prediction)
    file = mine(GOOD, "from mcverify.statistic import exact", text.replace("STATISTIC", "exact"))
    claims = discover(file)
    then = np.random.get_state()[1].tolist()  # noqa: NPY002
    found = by_name(run([case for claim in claims for case in claim.cases()], jobs=1))
    assert np.random.get_state()[1].tolist() == then  # noqa: NPY002
    assert found.pop("alone").reason.startswith(reason)
    assert {finding.verdict for finding in found.values()} == {Verdict.CONFIRMED}


@pytest.mark.parametrize("text", [SEEDER, READER])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_claim_that_touches_a_global_state_is_named_and_harms_no_other(mine, text, jobs):
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    cases = [case for claim in discover(mine(text, GOOD)) for case in claim.cases()]
    found = by_name(run(cases, jobs=jobs))
    for name, finding in found.items():
        assert finding.broken == (not name.startswith("good_claim"))
        if finding.broken:
            assert "the body used the global random state" in finding.reason
    good = by_name(run([case for case in cases if case.claim.name == "good_claim"], jobs=1))
    assert good.items() <= found.items()
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


def test_setting_a_global_state_around_a_run_changes_nothing(mine):
    case = discover(mine(GOOD))[0].cases()[0]
    first = check(case)
    np.random.seed(1)  # noqa: NPY002
    assert check(case) == first


# No test waits for a limit: a body that has looped for an hour says so, or has its alarm ring.

LOOPER = '''
import time
from mcverify.judge import worker

@claim(mean, equals=0, within=absolute(0.5), over=WORLD)
def looper(q, d_k):
    """At d_k = 8 it does not return, and has been at it for an hour."""
    if d_k == 8:
        worker._noted[1] -= 3600
        time.sleep(60)
    return q
'''
NEVER = '''
import signal

def never():
    while signal.getitimer(signal.ITIMER_REAL)[0] > 0:  # there is a limit
        signal.raise_signal(signal.SIGALRM)
    return 0
'''


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_body_that_never_returns_is_an_error_of_its_case(mine, monkeypatch, jobs, capsys):
    monkeypatch.setattr(processes, "TICK", 0.01)
    assert main(["run", mine(GOOD, LOOPER), "--jobs", str(jobs), "--body-limit", "30m"]) == 3
    found = pd.read_csv("results/claims/looper.csv", keep_default_na=False)
    assert found["verdict"].tolist() == ["CONFIRMED", "ERROR"]
    assert ("a body or a law took over 1800 s, the most that is allowed; mend an endless loop, or "
            "allow more with --body-limit") in found["reason"][1]
    good = pd.read_csv("results/claims/good_claim.csv")
    assert good["verdict"].tolist() == ["CONFIRMED", "CONFIRMED"]


@pytest.mark.parametrize(("body", "prediction", "who"), [
    ("return never()", "equals=0, within=absolute(1)", "the body"),
    ("return 0.5", "equals=never, within=absolute(2)", "the prediction")])
def test_so_is_a_calculation_or_a_prediction_that_never_ends(mine, body, prediction, who, capsys):
    text = ALONE.replace("BODY", body).replace("PREDICTION", prediction)
    file = mine(GOOD, NEVER, "from mcverify.statistic import exact",
                text.replace("STATISTIC", "exact"))
    assert main(["run", file, "--jobs", "1", "--body-limit", "30m"]) == 3
    found = pd.read_csv("results/claims/alone.csv", keep_default_na=False)
    assert found["reason"][0].startswith(f"{who} took over 1800 s, the most that is allowed")


def test_who_catches_the_end_of_a_limit_is_ended_again():
    caught = []

    def stubborn():
        for _ in range(2):
            try:
                time.sleep(30)
            except ValueError as error:
                caught.append(error)
        time.sleep(30)

    with pytest.raises(ValueError, match=r"the body took over 0\.01 s"), limited(0.01, "the body"):
        stubborn()
    assert len(caught) == 2
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


# --- interruption -----------------------------------------------------------------------------


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(Path(folder).rglob("*"))
            if file.is_file() and file.name not in ("run.json", ".lock")}


def begin(*arguments):
    return subprocess.Popen([sys.executable, "-m", "mcverify", "run", *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def finished(folder):
    journal = Path(folder) / ".journal"
    return journal.read_text().count("\n") if journal.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_resume_ends_with_the_bytes_of_an_uninterrupted_run(mine, how, capsys):
    file = mine(GOOD, SLOW)
    assert main(["run", file, "--jobs", "1", "--out", "whole"]) == 0
    process = begin(file, "--jobs", "1", "--out", "cut")
    deadline = time.monotonic() + 60
    while not finished("cut") and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, how)
    process.communicate(timeout=60)
    kept = finished("cut")
    assert 0 < kept < 8
    for table in Path("cut").rglob("*.csv"):  # what is there is whole
        assert table.read_bytes() == (Path("whole") / table.relative_to("cut")).read_bytes() or (
            table.parent.name == "cut")
    with (Path("cut") / ".journal").open("a") as stream:
        stream.write('{"key": "half a l')
    assert main(["run", file, "--jobs", "1", "--out", "cut", "--resume"]) == 0
    assert f"resumed: {kept} of " in capsys.readouterr().err
    assert contents("cut") == contents("whole")


def test_findings_of_a_changed_file_are_not_taken_up_again(mine, tmp_path):
    claim = discover(mine(GOOD))[0]
    journal = Journal(tmp_path)
    cases = claim.cases()
    assert len(list(journal.keep(run(cases, jobs=1)))) == 2
    assert journal.finished(cases, Terms()) == list(run(cases, jobs=1))
    for terms in (Terms(seed=1), Terms(error_rate=1e-9), Terms(margin_scale=0.5),
                  Terms(max_blocks=2**21)):
        assert journal.finished(cases, terms) == []
    time.sleep(0.01)
    changed = discover(mine(GOOD, "\n# changed\n"))[0]
    from mcverify.results.journal import _digest, _key

    def in_another_process():
        _digest.cache_clear()
        _key.cache_clear()

    in_another_process()
    assert journal.finished(changed.cases(), Terms()) == []
    claim = discover(mine(GOOD))[0]
    in_another_process()
    assert len(journal.finished(claim.cases(), Terms())) == 2
    Path("helper.py").write_text("FACTOR = 9\n")  # it may be what the claim is made of
    in_another_process()
    assert journal.finished(claim.cases(), Terms()) == []


def descendants(pid):
    """Of a process that is, by /proc: the fork server, and the workers that it forks."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # it has just ended
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid and text.rpartition(")")[2][1] != "Z":
            child = int(stat.parent.name)
            found += [child, *descendants(child)]
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-m", "mcverify", "run", "--jobs", "2"],
                               cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(descendants(process.pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(5)  # until they are at work
    workers = descendants(process.pid)
    process.kill()
    process.wait()
    assert len(workers) >= 4  # a fork server, its tracker of resources and two workers
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


@pytest.mark.slow
def test_a_second_run_into_the_same_folder_says_so_and_changes_nothing(mine, capsys):
    file = mine(GOOD, SLOW.replace("0.016", "1e-5"))
    process = begin(file, "--jobs", "1", "--out", "out")
    deadline = time.monotonic() + 60
    while not finished("out") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert main(["run", file, "--out", "out"]) == 2
    assert "another run is writing there" in capsys.readouterr().err
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted: " in err
    assert finished("out")


def test_half_written_files_of_a_killed_run_are_removed_by_the_next(mine):
    Path("out").mkdir()
    Path("out/.verdicts.csv.abcd").write_text("half")
    assert main(["run", mine(GOOD), "--jobs", "1", "--out", "out"]) == 0
    assert not Path("out/.verdicts.csv.abcd").exists()


# --- seeds and rates --------------------------------------------------------------------------


def test_a_fresh_seed_is_printed_and_kept(mine, capsys):
    file = mine(GOOD)
    seeds = []
    for out in ("one", "two"):
        assert main(["run", file, "--jobs", "1", "--seed", "fresh", "--out", out]) == 0
        seed = json.loads(Path(out, "run.json").read_text())["seed"]
        assert f"seed {seed}, " in capsys.readouterr().out
        seeds.append(seed)
    assert seeds[0] != seeds[1]


@pytest.mark.parametrize("rate", ["0", "1", "-1", "nan", "often"])
def test_a_bad_error_rate_is_bad_usage(mine, rate, capsys):
    assert main(["run", mine(GOOD), "--error-rate", rate]) == 2
    assert re.search("between 0 and 1[,;] .*1e-10", capsys.readouterr().err)


def test_an_error_rate_that_the_budget_does_not_pay_for_is_refused(mine, capsys):
    assert main(["run", mine(GOOD), "--error-rate", "1e-3"]) == 2
    assert "more than the suite's 1e-06" in capsys.readouterr().err
    assert main(["run", mine(GOOD), "--error-rate", "1e-8", "--jobs", "1"]) == 0
    assert "4 cases at 1e-08 spend 4e-08 of 1e-06, 9.6e-07 is left" in capsys.readouterr().out
    assert main(["run", mine(GOOD), "--jobs", "1"]) == 2
    assert "holds results of error rate 1e-08" in capsys.readouterr().err


# --- controls ---------------------------------------------------------------------------------

BOUND = '''
@claim(proportion, at_least=0.9, over=WORLD, controls={controls})
def bounded(q, k, limit=60.0):
    """Nearly all scores are below a limit."""
    return scores(q, k) < limit
'''


def test_controls_change_the_draws_and_the_body_and_leave_the_prediction(mine):
    text = BOUND.format(controls="grid(limit=1.0) + grid(law=lambda law: laws.shifted(law, 9.0))")
    claim = discover(mine(text))[0]
    names = [str(case) for case in claim.control_cases()]
    assert names == ["bounded-normal-d_k:8-control-limit:1",
                     "bounded-normal-d_k:8-control-law:shifted[normal-9]"]
    assert {f.verdict for f in run(claim.cases(), jobs=1)} == {Verdict.CONFIRMED}
    assert {f.verdict for f in run(claim.control_cases(), jobs=1)} == {Verdict.REFUTED}


def test_a_control_that_is_not_refuted_fails_the_run(mine, capsys):
    assert main(["run", mine(BOUND.format(controls="grid(limit=59.0)")), "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "CONFIRMED, a control, which must be REFUTED: bounded-normal-d_k:8-control-lim" in out
    assert "controls 1, refuted 0" in out


def test_a_bound_without_controls_is_named(mine, capsys):
    assert main(["run", mine(BOUND.format(controls="grid()")), "--jobs", "1"]) == 2
    assert "has a control that changes nothing" in capsys.readouterr().err
    text = BOUND.replace(", controls={controls}", "")
    assert main(["run", mine(text), "--jobs", "1"]) == 3
    assert ("no control shows that these can be refuted: bounded; name one with controls="
            in capsys.readouterr().out)


def test_a_claim_that_is_wrong_is_not_told_about_its_controls(mine):
    claim = discover(mine(GOOD.replace("d_k: d_k", "d_k: 1.06 * d_k").replace("0.1", "0.02")))[0]
    findings = list(run(claim.cases() + claim.control_cases(), jobs=1))
    assert {f.verdict for f in findings[:2]} == {Verdict.REFUTED}
    assert all(not finding.case.control for finding in contradictions(findings))
    assert status({claim: findings}) == 1


@pytest.mark.parametrize(("controls", "message"), [
    (grid(wrong=3), "the control 'wrong' is neither a setting nor a parameter of the body"),
    (grid(at_least=3), "the control 'at_least' is neither"),
    (5, "controls=5 is no grid"),
])
def test_controls_that_name_nothing_are_refused(mine, controls, message):
    claim = discover(mine(GOOD))[0]
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(claim, controls=controls)
    with pytest.raises(ValueError, match="is itself not declared CONFIRMED"):
        dataclasses.replace(claim, controls=grid(law=laws.laplace), expect=Verdict.REFUTED)


@pytest.mark.parametrize("statistic", [
    mean, mean.within(-2, 2), mean.with_variance(1.5)], ids=lambda each: each.rests_on)
def test_what_a_claim_detects_follows_from_how_far_its_interval_reaches(statistic):
    rate = look_rate(1e-10, statistic.at_all_looks)
    values = np.random.default_rng(0).uniform(-2, 2, (2**15, 1))
    estimate = statistic.estimate(statistic.reduce(values), rate)
    reach = (estimate.high - estimate.low) / estimate.stderr / 2
    assert reach_of(statistic, estimate, len(values), rate) == pytest.approx(reach, rel=0.02)


@pytest.mark.slow
def test_what_a_claim_detects_is_refuted(mine):
    claim = discover(mine(GOOD.replace("WORLD", "grid(law=laws.normal, d_k=8, tokens=1)")))[0]
    finding = check(claim.cases()[0])
    assert 0.1 < finding.detects < 0.2
    for seed, sign in enumerate([1, -1, 1, -1]):  # the truth is 8, so much from the prediction
        off = dataclasses.replace(claim, equals=8 / (1 + sign * finding.detects))
        assert check(off.cases()[0], seed).verdict is Verdict.REFUTED
