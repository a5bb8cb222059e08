"""Claims as tests of pytest: every session here is a process of its own, in a folder of its own."""

import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from mcverify import check, discover
from mcverify.cli.main import main

HEAD = '''
import dataclasses
from mcverify import Verdict, absolute, claim, grid, laws
from mcverify.statistic import mean
'''


def text_of(name, says, law="laws.normal", d_k=2, body="return q"):
    """The text of a claim about the mean of q."""
    return f'''
@claim(mean, {says}, over=grid(law={law}, d_k={d_k}))
def {name}(q):
    """Coordinates are so in the mean."""
    {body}
'''


TRUE = text_of("true_claim", "equals=0, within=absolute(0.2)", "[laws.normal, laws.laplace]",
               [2, 4])
FALSE = text_of("false_claim", "at_least=1")
OPEN = text_of("open_claim", "at_least=-1", "laws.student_t(2)")
RAISING = text_of("raising_claim", "at_least=-1", body='raise KeyError("gone")')
BROKEN = text_of("broken_claim", "equals=0")
# Two claims about one world, whose draws leave a line each.
LOGGED = '''
@dataclasses.dataclass(frozen=True)
class Logged:
    coupled: bool = False
    finite_moments: float = float("inf")
    def __str__(self): return "logged"
    def moments(self, d_k): return laws.normal.moments(d_k)
    def draw(self, rng, blocks, tokens, d_k):
        with open("draws.log", "a") as log:
            log.write(f"{blocks if tokens > 2 else 0}\\n")
        return laws.normal.draw(rng, blocks, tokens, d_k)
''' + text_of("logged_claim", "at_least=-1", "Logged()") + text_of(
    "other_claim", "at_most=1", "Logged()")
# One whose first draw does not end while a test looks on.
ENDLESS = LOGGED.replace("        return", "        while True: time.sleep(1)\n        return")

PLUGIN = ["-p", "mcverify.pytest_plugin"]
XDIST = ["-p", "xdist"]
# A process that has imported what is slow to import, and forks one for each session.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([
    *(name for name in sys.modules if name.startswith("_pytest.")), "scipy.sparse",
    "mcverify.cli.suite", "mcverify.cli.main"])


class Session(NamedTuple):
    """How a session ended and what it printed."""

    code: int
    output: str

    def outcomes(self):
        """By the test's id, what -rA says of it."""
        lines = re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", self.output, re.MULTILINE)
        return {name: outcome for outcome, name in lines}


def _session(folder, arguments, alone):
    # The process that it is a fork of may have been started by workers, which leave Ctrl-C alone.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    gc.freeze()  # of what was imported before: collecting it took half of a session's time
    os.chdir(folder)
    with open("output.txt", "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]
    if alone:  # so that it does not matter whether the plugin is installed
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.exit(pytest.main(list(arguments)))


class Folder:
    """A folder with files, in which sessions are run."""

    def __init__(self, path):
        self.path = path
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name, *parts):
        file = self.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(parts))
        return file

    def start(self, *arguments, alone=True):
        process = PROCESSES.Process(target=_session, args=(self.path, arguments, alone))
        process.start()
        return process

    def pytest(self, *arguments, plugin=PLUGIN, alone=True):
        process = self.start(*plugin, "--mcverify-jobs=1", *arguments, alone=alone)
        process.join(60)
        return Session(process.exitcode, (self.path / "output.txt").read_text())

    def ids(self, *arguments):
        """The tests that are collected."""
        collected = self.pytest("--collect-only", "-q", *arguments).output
        return [line for line in collected.splitlines() if "::" in line]

    def draws(self):
        """How often 512 blocks were drawn, of all tokens; pieces of two check the law."""
        log = self.path / "draws.log"
        return sum(map(int, log.read_text().split())) / 512 if log.exists() else 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def tables(out):
    """The files of a results folder, but for the one that may change when nothing else did."""
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*"))
            if file.is_file() and not file.name.startswith(".") and file.name != "run.json"}


# --- which tests there are -------------------------------------------------------------------


def test_every_case_and_control_is_a_test_whose_id_reads(folder):
    folder.write("claim_mine.py", HEAD, TRUE, FALSE)
    assert folder.ids() == folder.ids("claim_mine.py") == [
        "claim_mine.py::true_claim[normal-d_k:2]",
        "claim_mine.py::true_claim[normal-d_k:4]",
        "claim_mine.py::true_claim[laplace-d_k:2]",
        "claim_mine.py::true_claim[laplace-d_k:4]",
        "claim_mine.py::true_claim[normal-d_k:2-control-equals:-0.6]",
        "claim_mine.py::true_claim[normal-d_k:2-control-equals:0.6]",
        "claim_mine.py::false_claim[normal-d_k:2]",
    ]


@pytest.mark.parametrize(("words", "left"), [
    (["-k", "true_claim-normal-d_k:4"], ["true_claim[normal-d_k:4]"]),  # as the reports name it
    (["-k", "laplace and not d_k:2 or control and 0.6 and not -0.6"],
     ["true_claim[laplace-d_k:4]", "true_claim[normal-d_k:2-control-equals:0.6]"]),
    (["claim_mine.py::true_claim[laplace-d_k:2]", "claim_mine.py::false_claim"],
     ["true_claim[laplace-d_k:2]", "false_claim[normal-d_k:2]"]),
])
def test_tests_are_selected_as_any_others(folder, words, left):
    folder.write("claim_mine.py", HEAD, TRUE, FALSE)
    assert folder.ids(*words) == [f"claim_mine.py::{name}" for name in left]


def test_a_claim_that_trains_is_judged_where_slow_tests_are_asked_for(folder):
    folder.write("claim_mine.py", HEAD, """
@claim(mean.within(0, 1), at_least=0.5, over=grid(rate=1), controls=grid(rate=0))
def trains(seeds, rate):
    '''It trains.'''
    return (seeds >= 0) * rate
""")
    skipped = folder.pytest("-rs").output
    assert skipped.count("2 skipped") == 1
    assert "slow: judged by `pytest -m slow`" in skipped
    session = folder.pytest("-m", "slow")
    assert session.code == 0
    assert "cases 1 (CONFIRMED 1), not as declared 0; controls 1, refuted 1" in session.output


def test_a_module_of_tests_has_its_own_claims_and_none_that_it_imports(folder):
    own = text_of("own", "equals=0, within=absolute(0.2)")
    folder.write("claim_mine.py", HEAD, TRUE)
    folder.write("test_mine.py", HEAD, "from claim_mine import true_claim\n", own, '''
changed = dataclasses.replace(own, name="changed", at_least=-1, equals=None, within=None)
same = own
def test_plain(): pass
''')
    folder.write("test_more.py", "from test_mine import changed, own\ndef test_more(): pass\n")
    assert folder.ids("test_mine.py", "test_more.py") == [
        "test_mine.py::own[normal-d_k:2]",
        "test_mine.py::own[normal-d_k:2-control-equals:-0.6]",
        "test_mine.py::own[normal-d_k:2-control-equals:0.6]",
        "test_mine.py::changed[normal-d_k:2]",
        "test_mine.py::test_plain",
        "test_more.py::test_more",
    ]
    assert set(folder.pytest("-rA", "test_mine.py").outcomes().values()) == {"PASSED"}


def test_a_changed_claim_of_mcverifys_own_is_the_files(folder):
    folder.write("claim_mine.py", HEAD, """
from mcverify.claims.variance import dot_variance
changed = dataclasses.replace(dot_variance, name="changed", equals=None, within=None, at_least=0,
                              over=grid(law=laws.normal, d_k=2))
""")
    outcomes = folder.pytest("-rA", "-k", "not control").outcomes()
    assert outcomes == {"claim_mine.py::changed[normal-d_k:2]": "PASSED"}


def test_files_that_only_look_like_claim_files_are_left_alone(folder):
    folder.write("jwt_claims.py", "raise SystemExit('a program')\n")
    folder.write("claim_helpers.py", HEAD, "LAW = laws.normal\n")
    folder.write("claim_mine.py", HEAD, "from claim_helpers import LAW\n", TRUE)
    session = folder.pytest("-rA")
    assert session.code == 0
    assert len(session.outcomes()) == 6


@pytest.mark.parametrize("name", ["hypothesis_a.py", "my_claims.py"])
def test_any_file_can_be_named_and_keeps_its_tests(folder, name):
    folder.write(name, HEAD, FALSE, "def test_plain(): pass\n")
    assert folder.ids(name) == [f"{name}::false_claim[normal-d_k:2]", f"{name}::test_plain"]


def test_broken_files_are_told_by_a_line_for_each_fault(folder):
    file = folder.write("claim_broken.py", HEAD, BROKEN, TRUE, BROKEN.replace("broken", "wrong"))
    first, _, last = [number for number, line in enumerate(file.read_text().splitlines(), start=1)
                      if line.startswith("@claim")]
    folder.write("claim_syntax.py", "import mcverify\ndef x(:\n")
    folder.write("test_broken.py", HEAD, BROKEN)
    code, output = folder.pytest()
    fault = "has equals without within, but no measurement is exact; add e.g. within=relative(0.02)"
    assert code == pytest.ExitCode.INTERRUPTED
    assert f"\nclaim_broken.py:{first}: broken_claim: {fault}\n" in output
    assert f"\nclaim_broken.py:{last}: wrong_claim: {fault}\n" in output
    assert f"\ntest_broken.py:{first}: broken_claim: {fault}\n" in output
    assert re.search(r"\nclaim_syntax.py:2: SyntaxError: .*; mend the file\n", output)
    assert len(output.splitlines()) < 30  # no traceback


def test_projects_side_by_side_do_not_disturb_each_other(folder):
    folder.write("a/claim_mine.py", HEAD, TRUE)
    folder.write("b/claim_mine.py", HEAD, FALSE.replace("false_claim", "true_claim"))
    outcomes = folder.pytest("-rA", "a", "b").outcomes()
    assert outcomes.pop("b/claim_mine.py::true_claim[normal-d_k:2]") == "FAILED"
    assert set(outcomes.values()) == {"PASSED"}
    assert all(name.startswith("a/claim_mine.py::true_claim") for name in outcomes)


# --- what a session finds --------------------------------------------------------------------


def test_a_case_that_is_not_as_declared_fails_with_its_report(folder):
    file = folder.write(
        "claim_mine.py", HEAD, FALSE, OPEN, RAISING,
        text_of("declared", "at_least=1, expect=Verdict.REFUTED"),
        text_of("known", "at_least=-1, expect=Verdict.INCONCLUSIVE", "laws.student_t(2)"))
    session = folder.pytest("-rA", "--mcverify-seed=5")
    assert session.code == pytest.ExitCode.TESTS_FAILED
    for claim in discover(file):
        case, = claim.cases()
        finding = check(case, seed=5)
        point = str(case).removeprefix(f"{claim.name}-")
        outcome = session.outcomes()[f"claim_mine.py::{claim.name}[{point}]"]
        assert outcome == ("PASSED" if finding.as_declared else "FAILED")
        assert (f"\n{finding}\n" in session.output) is not finding.as_declared
    assert [name for name, outcome in session.outcomes().items() if outcome == "FAILED"] == [
        "claim_mine.py::false_claim[normal-d_k:2]",
        "claim_mine.py::open_claim[student_t-2-d_k:2]",
        "claim_mine.py::raising_claim[normal-d_k:2]",
    ]
    assert "Traceback" not in session.output


def test_the_summary_counts_verdicts_and_what_they_took_of_the_error_budget(folder):
    folder.write("claim_mine.py", HEAD, TRUE, FALSE, OPEN, RAISING)
    output = folder.pytest("--mcverify-error-rate=1e-9", "--mcverify-seed=3").output
    assert ("\ncases 7 (CONFIRMED 4, REFUTED 1, INCONCLUSIVE 1, ERROR 1), not as declared 3; "
            "controls 2, refuted 2; seed 3\n") in output
    assert "\nerror budget: 9 cases at 1e-09 spend 9e-09 of 1e-06, 9.91e-07 is left\n" in output
    assert "mcverify" not in folder.pytest("-k", "nothing").output.partition("collected")[2]


def test_more_cases_than_the_budget_pays_for_are_refused_before_anything_is_drawn(folder):
    folder.write("claim_mine.py", HEAD, LOGGED)
    code, output = folder.pytest("--mcverify-error-rate=6e-7")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "2 cases at an error rate of 6e-07 each cost 1.2e-06, more than the suite's" in output
    assert folder.draws() == 0
    assert folder.pytest("--mcverify-error-rate=6e-7", "-k", "logged_claim").code == 0


@pytest.mark.parametrize(("option", "message"), [
    ("--mcverify-seed=-1", "seed=-1: must be a whole number of at least 0"),
    ("--mcverify-jobs=0", "--mcverify-jobs 0: must be a whole number of at least 1"),
    ("--mcverify-error-rate=1", "error rate 1.0: must be between 0 and 1"),
])
def test_options_are_checked(folder, option, message):
    code, output = folder.pytest(option)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert message in output


def test_cases_are_judged_together_and_by_file_if_the_session_may_stop_early(folder):
    folder.write("claim_a.py", HEAD, FALSE)
    folder.write("claim_b.py", HEAD, LOGGED)
    assert len(folder.pytest("-x", "-rA").outcomes()) == 1
    assert folder.draws() == 0
    assert len(folder.pytest("-rA").outcomes()) == 3
    assert folder.draws() == 1
    folder.pytest("-k", "other_claim")
    assert folder.draws() == 2


def test_a_run_that_breaks_off_is_not_begun_again_by_every_test(folder):
    folder.write("conftest.py", '''
import mcverify.pytest_plugin.items as items
def broken(*arguments):
    raise RuntimeError("broken off")
items.run = broken
''')
    folder.write("claim_mine.py", HEAD, FALSE.replace("least", "most"), LOGGED)
    session = folder.pytest("-rA")
    assert list(session.outcomes().values()) == ["FAILED"] * 3
    assert len(re.findall("^E +RuntimeError: broken off", session.output, re.MULTILINE)) == 1
    assert session.output.count("\nnot judged, since the run that it was part of broke off") == 2


def test_last_failed(folder):
    folder.write("claim_mine.py", HEAD, TRUE, FALSE)
    folder.pytest()
    assert folder.ids("--lf") == ["claim_mine.py::false_claim[normal-d_k:2]"]
    folder.write("claim_mine.py", HEAD, TRUE, FALSE.replace("least", "most"))
    assert folder.pytest("--lf").code == 0
    assert len(folder.ids("--lf")) == 7


def test_ctrl_c_ends_the_session(folder):
    folder.write("claim_mine.py", HEAD, "import time\n", ENDLESS)
    process = folder.start(*PLUGIN, "--mcverify-jobs=1")
    while not folder.draws() and process.is_alive():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == pytest.ExitCode.INTERRUPTED
    output = (folder.path / "output.txt").read_text()
    assert "KeyboardInterrupt" in output
    assert "INTERNALERROR" not in output


# --- tables ----------------------------------------------------------------------------------


@pytest.fixture
def reference(folder, capsys):
    """A file, and the tables that `mcverify run` writes for it."""
    file = folder.write("claim_mine.py", HEAD, TRUE, FALSE, OPEN, RAISING)
    assert main(["run", str(file), "--out", "reference", "--jobs", "1"]) == 1
    found = tables(Path("reference"))
    assert set(found) == {"verdicts.csv", "controls.csv", "sources.csv", *(
        f"claims/{name}_claim.csv" for name in ("true", "false", "open", "raising"))}
    return found


def test_the_tables_are_those_of_mcverify_run(folder, reference):
    session = folder.pytest("--mcverify-out=out")
    assert "\ntables in out\n" in session.output
    assert tables(Path("out")) == reference
    # A part of a claim changes no table; a whole one changes no other's.
    output = folder.pytest("--mcverify-out=out", "-k", "normal").output
    assert "\ntables in out; none of true_claim, of which not every case was judged\n" in output
    assert tables(Path("out")) == reference


def test_a_folder_of_another_seed_is_refused_before_anything_is_drawn(folder):
    folder.write("claim_mine.py", HEAD, LOGGED)
    assert folder.pytest("--mcverify-out=out").code == 0
    assert folder.draws() == 1
    code, output = folder.pytest("--mcverify-out=out", "--mcverify-seed=1")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "--mcverify-out out: holds results of seed 0 and error rate 1e-10" in output
    code, output = folder.pytest("--mcverify-out=pytest.ini")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "--mcverify-out pytest.ini: cannot be written to" in output
    assert folder.draws() == 1


def test_claims_of_one_name_have_no_tables(folder):
    folder.write("a/claim_mine.py", HEAD, TRUE)
    folder.write("b/claim_mine.py", HEAD, TRUE)
    code, output = folder.pytest("--mcverify-out=out")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "true_claim: two of the collected claims have this name; rename one" in output


# --- under xdist -----------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_of_xdist_find_the_same_and_the_controller_writes_it(folder, reference):
    pytest.importorskip("xdist")
    alone = folder.pytest("-rA")
    session = folder.pytest("-rA", "-n2", "--mcverify-out=out", plugin=PLUGIN + XDIST)
    assert "2 workers [9 items]" in session.output
    assert session.code == alone.code == pytest.ExitCode.TESTS_FAILED
    assert session.outcomes() == alone.outcomes()
    assert len(session.outcomes()) == 9
    assert tables(Path("out")) == reference
    summary = re.search(r"=+ mcverify =+\n(.*\n.*\n)", alone.output)[1]
    assert f"{summary}tables in out\n" in session.output


# What xdist gives to a worker's configuration, without the second that a worker takes.
WORKER = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config): config.workerinput = dict(mcverify_by_file={})
"""


@pytest.mark.parametrize(("by_file", "draws"), [(True, 1), (False, 2)])
def test_a_worker_shares_draws_if_it_gets_whole_files(folder, by_file, draws):
    folder.write("conftest.py", WORKER.format(by_file))
    folder.write("claim_mine.py", HEAD, LOGGED)
    assert folder.pytest().code == 0
    assert folder.draws() == draws


def test_in_a_worker_too_the_budget_is_kept(folder):
    folder.write("conftest.py", WORKER.format(False))
    folder.write("claim_mine.py", HEAD, LOGGED)
    session = folder.pytest("-rA", "--mcverify-error-rate=6e-7")
    assert list(session.outcomes().values()) == ["FAILED", "FAILED"]
    assert "2 cases at an error rate of 6e-07 each cost 1.2e-06" in session.output
    assert folder.draws() == 0


@pytest.mark.parametrize(("dist", "by_file"), [
    ("load", False), ("worksteal", False), ("loadgroup", False), ("loadfile", True),
    ("loadscope", True)])
def test_a_worker_is_told_whether_it_gets_whole_files(dist, by_file):
    from mcverify.pytest_plugin import pytest_configure_node

    node = SimpleNamespace(config=SimpleNamespace(getoption={"dist": dist}.get), workerinput={})
    pytest_configure_node(node)
    assert node.workerinput == {"mcverify_by_file": by_file}


# --- what it costs those who have no claims --------------------------------------------------

HEAVY = {"numpy", "scipy", "pandas", "rich", "cloudpickle", "mcverify.declare.claim",
         "mcverify.pytest_plugin.items"}


def test_a_session_without_claims_imports_nothing_heavy(folder):
    folder.write("conftest.py", '''
def pytest_unconfigure(): import sys; print("imported:", *sys.modules)
''')
    folder.write("test_plain.py", "def test_plain(): pass\n")
    folder.write("jwt_claims.py", "x = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, "-q", "-p", "no:cacheprovider"], text=True,
        capture_output=True, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert "1 passed" in done.stdout
    imported = set(done.stdout.partition("imported:")[2].split())
    assert "mcverify.pytest_plugin" in imported
    assert not imported & HEAVY


def test_once_installed_the_plugin_needs_no_option(folder):
    if not entry_points(group="pytest11", name="mcverify"):
        pytest.skip("the distribution was installed before it had the entry point")
    folder.write("claim_mine.py", HEAD, FALSE)
    session = folder.pytest("claim_mine.py", "-rA", plugin=[], alone=False)
    assert session.outcomes() == {"claim_mine.py::false_claim[normal-d_k:2]": "FAILED"}


def test_a_file_of_tests_may_look_at_claims_of_others(folder):
    folder.write("test_mine.py", "from mcverify import discover\n"
                 "from mcverify.declare.discover import BUILT_IN\n"
                 "found, = [each for each in discover(BUILT_IN / 'hand.py')\n"
                 "          if each.name == 'hand_slope']\n"
                 "def test_of_it(): assert found.sentence\n")
    session = folder.pytest("-rA", "test_mine.py")
    assert session.outcomes() == {"test_mine.py::test_of_it": "PASSED"}
