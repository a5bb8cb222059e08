"""Calls on a dask cluster: the numbers of a run here, whatever becomes of its workers."""

import dataclasses
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cloudpickle
import pytest

from mcverify import discover
from mcverify.cli.main import main
from mcverify.declare.fault import UsageError
from mcverify.judge.cluster import cluster
from mcverify.judge.flight import calls_there
from mcverify.judge.measure import measure
from mcverify.judge.reference import refer, resolve
from mcverify.judge.remote import Luggage, Place, luggage
from mcverify.judge.run import run
from mcverify.judge.worker import Killed

pytest.importorskip("distributed")

CLAIMS = '''
import os, signal
from multiprocessing import parent_process
from mcverify import absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean, variance
from beside import FACTOR

WORLD = grid(law=laws.normal, d_k=[2, 8])

@claim(variance, equals=lambda d_k: FACTOR * d_k, within=relative(0.1), over=WORLD)
def good_claim(q, k):
    """Var(q·k) = d_k."""
    return scores(q, k)

@claim(mean, equals=0, within=absolute(0.01), over=grid(law=laws.normal, d_k=[1, 2, 16], tokens=8))
def narrow(q, rng):
    """A narrow margin."""
    return q + rng.standard_normal(q.shape)
'''
LEAVER = '''
@claim(mean, equals=0, within=absolute(0.5), over=WORLD)
def leaver(q, d_k):
    """At d_k = 8 it ends its process, or more."""
    if d_k == 8:
        HOW
    return q
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write a file of claims, and one beside it that it imports."""
    monkeypatch.chdir(tmp_path)

    def write(*parts):
        Path("claims").mkdir(exist_ok=True)
        Path("claims/beside.py").write_text("FACTOR = 1\n")
        Path("claims/mine.py").write_text(CLAIMS + "".join(parts))
        return "claims/mine.py"
    return write


def cases_of(claims):
    return [case for claim in claims for case in (*claim.cases(), *claim.control_cases())]


def by_name(findings):
    """Each with all its digits."""
    return {str(finding.case): str(finding.row()) for finding in findings}


# --- without a cluster --------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_claims_are_measured_where_their_files_are_not(mine, elsewhere):
    claims = discover(mine())
    call = [refer(claims[0].cases()[0])], 0, [(0, 128)]
    taken, there = luggage(claims), Path("/not/on/this/machine")
    if elsewhere:
        here = Path.cwd()
        taken = Luggage(taken.versions, taken.homes,
                        {there / file.relative_to(here): text
                         for file, text in taken.files.items()}, [there])
        call = [(there / call[0][0][0].relative_to(here), *call[0][0][1:])], *call[1:]
    place = Place(taken)
    try:
        [(kind, made)], _ = place.make([cloudpickle.dumps((measure, call))], None)
        assert bool(place.unpacked) == elsewhere
    finally:
        place.close()
    assert kind == "result"
    [made] = made
    [expected] = measure([refer(claims[0].cases()[0])], 0, [(0, 128)])
    assert made.digest == expected.digest
    assert made.outcomes[0].table.tobytes() == expected.outcomes[0].table.tobytes()
    assert not (place.unpacked and place.unpacked.exists())


def test_what_numbers_depend_on_must_be_the_same(mine):
    claims = discover(mine())
    taken = luggage([*claims, dataclasses.replace(claims[0], needs="rich")])
    assert list(taken.versions) == ["Python", "NumPy", "SciPy", "the source of mcverify", "rich"]
    assert not Place(taken).fault
    versions = {**taken.versions, "NumPy": "1.0", "the source of mcverify": "0"}
    fault = Place(Luggage(versions, {}, {}, [])).fault
    assert "NumPy is " in fault
    assert " there and 1.0 here; the source of mcverify is " in fault
    assert "SciPy" not in fault


def test_dask_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (pytest.raises(UsageError, match=r"pip install 'mcverify\[dask\]'"),
          cluster("tcp://127.0.0.1:1")):
        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "no/such/file.json"])
def test_an_address_where_nobody_answers_is_bad_usage(mine, address, capsys, monkeypatch):
    monkeypatch.setattr("mcverify.judge.cluster.PATIENCE", 1.0)
    assert main(["run", mine(), "--scheduler", address]) == 2
    assert f"--scheduler {address}: no dask scheduler answers there" in capsys.readouterr().err
    assert not Path("results").exists()


def test_a_cluster_takes_no_number_of_jobs(mine, capsys):
    assert main(["run", mine(), "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"]) == 2
    assert "--jobs 2: with --scheduler" in capsys.readouterr().err


class Future:
    """What a cluster gives for a lot: what it gives in the end, or that its workers were lost."""

    def __init__(self, value):
        self.value, self.status = value, "error" if isinstance(value, Exception) else "finished"

    def exception(self):
        return self.value

    def add_done_callback(self, call):
        call(self)

    def release(self):
        """Nothing is held."""


class Loser:
    """A client of four threads that loses a worker, with all it has, when a call says so."""

    status = "running"

    def __init__(self):
        self.lots = []

    def nthreads(self):
        return {"one": 2, "other": 2}

    def map(self, task, lots, **_):
        calls = [[cloudpickle.loads(call) for call in lot] for lot in lots]
        self.lots += calls
        lost = any(argument == "lose" for lot in calls for _, (argument,) in lot)
        from distributed import KilledWorker
        return [Future(KilledWorker("call", None, 3) if lost else
                       ("", [("result", function(*call)) for function, call in lot], 0.01))
                for lot in calls]

    def gather(self, futures):
        return [future.value for future in futures]

    def cancel(self, futures):
        """They are done already."""


def test_one_call_that_loses_its_workers_is_found_among_those_that_are_lost_with_it():
    calls = [(n,) if n % 40 else ("lose",) for n in range(200)]
    found = dict(calls_there(Loser(), "run", None, None, str, calls))
    assert found == {n: str(n) if n % 40 else Killed("workers lost with it: 4", None)
                     for n in range(200)}


def test_calls_that_an_unfit_worker_would_not_make_are_made_by_others():
    class Mixed(Loser):
        def map(self, task, lots, workers=("one", "other"), **_):
            if "other" in workers:
                return [Future(("other: NumPy is old", [], 0.0)) for _ in lots]
            return super().map(task, lots)

    told = []
    found = dict(calls_there(Mixed(), "run", None, told.append, str, [(n,) for n in range(20)]))
    assert found == {n: str(n) for n in range(20)}
    assert told == ["a worker is left out: other: NumPy is old"]


@pytest.mark.parametrize("what", ["nthreads", "map", "gather"])
def test_a_scheduler_that_is_gone_ends_the_run_with_a_word(what, monkeypatch):
    def gone(*_, **__):
        raise OSError("connection lost")

    client = Loser()
    monkeypatch.setattr(client, what, gone)
    with pytest.raises(UsageError, match="the scheduler of the cluster is gone; what was"):
        list(calls_there(client, "run", None, None, str, [(1,), (2,)]))


def test_of_cases_that_share_a_lost_call_each_is_measured_alone(mine):
    claims = discover(mine(LEAVER.replace("HOW", "raise SystemExit")))
    cases, shared = [case for claim in claims for case in claim.cases()], []

    def spread(function, calls, on_begin, limit):
        for index, call in enumerate(calls):
            on_begin(index, lambda: (math.nan, 0.0))
            names = [str(resolve(reference)) for reference in call[0]]
            if "leaver-normal-d_k:8" in names:
                shared.append(names)
                yield index, Killed("workers lost with it: 4", None)
            else:
                yield index, function(*call)

    found = by_name(run(cases, jobs=spread))
    assert shared == [["good_claim-normal-d_k:8", "leaver-normal-d_k:8"], ["leaver-normal-d_k:8"]]
    assert "its process was killed (workers lost with it: 4)" in found.pop("leaver-normal-d_k:8")
    assert found == by_name(run([case for case in cases if str(case) in found], jobs=1))


# --- with one -----------------------------------------------------------------------------------


def workers_here(count):
    from distributed import LocalCluster

    return LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")


@pytest.fixture(scope="module")
def local():
    """A cluster of two worker processes."""
    with workers_here(2) as made:
        yield made


@pytest.mark.slow
def test_a_killed_worker_costs_no_case_and_no_digit(mine):
    claims = discover(mine())
    cases, found = cases_of(claims), []
    with workers_here(2) as local, local.get_client() as client:
        processes = client.run(os.getpid)
        with cluster(local.scheduler_address, claims) as spread:
            for finding in run(cases, jobs=spread):
                if not found:
                    os.kill(next(iter(processes.values())), signal.SIGKILL)
                found.append(finding)
    assert by_name(found) == by_name(run(cases, jobs=1))


@pytest.mark.slow
def test_claims_travel_with_their_files(mine, local, monkeypatch):
    claims = discover(mine())
    cases, taken = cases_of(claims), luggage(claims)
    expected = by_name(run(cases, jobs=1))
    monkeypatch.setattr("mcverify.judge.cluster.luggage", lambda claims: taken)
    for file in taken.files:
        file.unlink()
    with cluster(local.scheduler_address, claims) as spread:
        assert by_name(run(cases, jobs=spread)) == expected


@pytest.mark.slow
def test_tables_are_those_of_a_run_here(mine, local):
    file = mine(LEAVER.replace("HOW", "os.kill(os.getpid(), signal.SIGKILL)"))
    for arguments in (["--jobs", "2", "--out", "here"],
                      ["--scheduler", local.scheduler_address, "--out", "there"]):
        assert main(["run", file, "hand_dot_product", "cosine_variance", *arguments]) == 3
    tables = sorted(Path("here").rglob("*.csv"))
    assert len(tables) >= 5
    for table in tables:
        assert table.read_bytes() == (Path("there") / table.relative_to("here")).read_bytes()
    assert "its process was killed (SIGKILL(-9))" in Path("there/claims/leaver.csv").read_text()


@pytest.mark.slow
def test_a_body_that_never_returns_is_an_error_of_its_case(mine, local):
    claims = discover(mine(LEAVER.replace("HOW", "while True: pass")))
    with cluster(local.scheduler_address, claims) as spread:
        found = by_name(run(cases_of(claims), jobs=spread, limit=5.0))
    ended = {name for name, row in found.items() if "a body or a law took over 5 s" in row}
    assert ended == {name for name in found if name.startswith("leaver-normal-d_k:8")}


@pytest.mark.slow
def test_a_worker_with_other_versions_is_left_out_or_refused(mine, local, tmp_path):
    other = tmp_path / "other" / "numpy-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n")
    claims = discover(mine())
    cases, found, told, joined = cases_of(claims), [], [], None
    command = [sys.executable, "-m", "distributed.cli.dask_worker", local.scheduler_address,
               "--no-nanny", "--no-dashboard", "--nthreads", "4"]
    try:
        with cluster(local.scheduler_address, claims, told.append) as spread:
            for finding in run(cases, jobs=spread):
                if not joined:
                    joined = subprocess.Popen(command, env={**os.environ,
                                                            "PYTHONPATH": str(other.parent)})
                    wait_until(lambda: len(local.scheduler.workers) == 3)
                found.append(finding)
        assert by_name(found) == by_name(run(cases, jobs=1))
        assert len(told) <= 1
        assert all("NumPy is 0.1 there" in line for line in told), told
        with (pytest.raises(UsageError, match=r"NumPy is 0\.1 there and .* here"),
              cluster(local.scheduler_address, claims)):
            pass
    finally:
        if joined:
            joined.kill()
            joined.wait()
    wait_until(lambda: len(local.scheduler.workers) == 2)


def wait_until(true):
    deadline = time.monotonic() + 120
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert true()


@pytest.mark.slow
def test_a_run_waits_for_the_first_worker(mine):
    claims, told = discover(mine()), []
    cases = claims[0].cases()
    with workers_here(0) as empty:
        def tell(line):
            told.append(line)
            empty.scale(1)

        with cluster(empty.scheduler_address, claims, tell) as spread:
            assert by_name(run(cases, jobs=spread)) == by_name(run(cases, jobs=1))
    assert told == ["the cluster has no workers yet; waiting for some"]


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_resume_goes_on(mine, local):
    file = mine()
    where = ["--scheduler", local.scheduler_address]
    assert main(["run", file, "--jobs", "1", "--out", "whole"]) == 0
    command = [sys.executable, "-m", "mcverify", "run", file, *where, "--out", "cut"]
    begun = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    journal = Path("cut/.journal")
    wait_until(lambda: journal.exists() and journal.read_text().count("\n"))
    os.killpg(begun.pid, signal.SIGINT)
    _, err = begun.communicate(timeout=120)
    assert begun.returncode == 130, err
    assert "with --resume goes on" in err
    wait_until(lambda: not local.scheduler.tasks)
    assert main(["run", file, *where, "--out", "cut", "--resume"]) == 0
    for table in Path("whole").rglob("*.csv"):
        assert table.read_bytes() == (Path("cut") / table.relative_to("whole")).read_bytes()
