"""What chunks gave is taken up again as it was, or not at all."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mcverify import discover
from mcverify.attention.chunk import Scores, Vectors
from mcverify.cli.main import main
from mcverify.judge import run as running
from mcverify.judge.measure import Measured, measure
from mcverify.judge.processes import workers
from mcverify.results import chunks, journal
from mcverify.results.chunks import Chunks

CASE, OTHER, *_ = next(claim for claim in discover() if claim.name == "dot_variance").cases()
TABLE = np.random.default_rng(0).standard_normal((64, 3))
OUTCOMES = [
    Measured(TABLE, None), Measured(TABLE[:, :0], Scores("all", 0.1, 0)),
    Measured(TABLE, (Vectors("q"), Scores("other", 1 / 3, 8))), Measured(TABLE * 1e300, None),
    "KeyError: 'gone' (mine.py, line 3)",
]


def opened(folder):
    return Chunks(folder / "kept", lambda case: str(case).encode())


def same(a, b):
    if isinstance(a, str):
        return a == b
    return a.made == b.made and a.table.dtype == b.table.dtype and np.array_equal(a.table, b.table)


def note(folder, outcome=OUTCOMES[0], case=CASE, first=64):
    kept = opened(folder)
    with kept.kept([CASE, OTHER]):
        kept.note(b"digest", first, 64, [(case, outcome)], 0.0)
    return folder / "kept"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcomes_come_back_to_the_last_bit(tmp_path, outcome):
    note(tmp_path, outcome)
    kept = opened(tmp_path)
    with kept.kept([CASE]):
        digest, found = kept.recall(CASE, 64, 64)
        assert digest == b"digest"
        assert same(outcome, found)
        for case, first, blocks in ((OTHER, 64, 64), (CASE, 0, 64), (CASE, 64, 32)):
            assert kept.recall(case, first, blocks) is None


def test_what_is_decided_or_of_no_case_of_the_run_goes(tmp_path):
    for first in (0, 64):
        note(tmp_path, first=first)
        note(tmp_path, case=OTHER, first=first)
    kept = opened(tmp_path)
    with kept.kept([CASE, OTHER]):
        kept.drop(OTHER)
    with kept.kept([CASE]):
        assert kept.recall(CASE, 0, 64)
        assert kept.recall(OTHER, 0, 64) is None
    with kept.kept([OTHER]):
        pass
    with kept.kept([CASE, OTHER]):
        assert kept.recall(CASE, 0, 64) is None


def test_what_is_decided_before_it_is_written_is_never_written(tmp_path):
    kept = opened(tmp_path)
    with kept.kept([CASE]):
        kept.note(b"", 0, 64, [(CASE, OUTCOMES[0])], chunks.SPAN / 2)
        kept.save_in_time()
        kept.drop(CASE)
    assert not kept.file.exists()
    kept.note(b"", 0, 64, [(CASE, OUTCOMES[0])], chunks.SPAN)
    kept.save_in_time()
    assert kept.file.exists()


@pytest.mark.parametrize("change", [
    "numbers = zeroblob(1536)", "digest = x'00'", "shape = '[32, 6]'", "about = '{}'", "sum = 0",
    "shape = 'x'", "numbers = NULL"])
def test_a_damaged_row_is_drawn_again(tmp_path, change):
    file = note(tmp_path)
    with closing(sqlite3.connect(file)) as database, database:
        assert database.execute(f"UPDATE chunk SET {change}").rowcount == 1
    kept = opened(tmp_path)
    with kept.kept([CASE]):
        assert kept.recall(CASE, 64, 64) is None


@pytest.mark.parametrize("damage", [
    lambda text: text[:chunks.PAGE + 100], lambda text: b"", lambda text: b"no database" * 1000,
    lambda text: text[:chunks.PAGE] + bytes(len(text) - chunks.PAGE)])
def test_a_damaged_file_is_begun_anew(tmp_path, damage):
    file = note(tmp_path)
    for first in range(128, 4096, 64):
        note(tmp_path, first=first)
    file.write_bytes(damage(file.read_bytes()))
    kept = opened(tmp_path)
    with kept.kept([CASE]):
        kept.recall(CASE, 64, 64)
        kept.note(b"", 0, 64, [(CASE, OUTCOMES[0])], chunks.SPAN)
        kept.save_in_time()


def test_there_is_an_end_to_what_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "MOST", 2**18)
    for first in range(0, 16000, 64):
        note(tmp_path, first=first)
    assert 2**17 < (tmp_path / "kept").stat().st_size <= 2**18
    kept = opened(tmp_path)
    with kept.kept([CASE]):
        assert kept.recall(CASE, 0, 64)
        assert kept.recall(CASE, 15936, 64) is None


# --- a run that goes on -----------------------------------------------------------------------

CLAIMS = '''
from mcverify import absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean, median, variance

HERE = grid(law=laws.normal, d_k=4)

@claim(variance, equals=4, within=relative(0.08), over=HERE)
def wide(q, k):
    """Var(q·k) = d_k."""
    return scores(q, k)

@claim(variance, equals=4, within=relative(0.03), over=HERE)
def narrow(q, k):
    """Var(q·k) = d_k, more or less."""
    return scores(q, k)

@claim(median, equals=0, within=absolute(0.03), over=HERE)
def middle(q, rng):
    """The median is 0."""
    return q + 0 * rng.standard_normal(len(q))[:, None, None]

@claim(mean, equals=0, within=absolute(0.01), over=HERE)
def breaking(q):
    """A body that breaks at last."""
    if q[0, 0, 0] > 2:
        raise KeyError("far out")
    return q
'''
# A call for each chunk, and small ones.
SMALL = [("mcverify.judge.group.CALL", 0.0), ("mcverify.judge.world.CHUNK_NUMBERS", 2**14)]
TABLES = ["verdicts.csv", "controls.csv", *(
    f"claims/{name}.csv" for name in ("wide", "narrow", "middle", "breaking"))]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CLAIMS)
    return ["run", "mine.py", "--jobs", "1"]


@pytest.fixture
def measured(monkeypatch):
    """The (claims, first block) of chunks that are measured; ``stop`` is after how many."""
    class Measured(list):
        stop = None

    found = Measured()

    def counted(references, seed, chunks):
        if len(found) == found.stop:
            raise KeyboardInterrupt
        [(first, _)] = chunks
        result = measure(references, seed, chunks)
        found.append((len(references), first))
        return result

    monkeypatch.setattr(running, "measure", counted)
    for target, value in SMALL:
        monkeypatch.setattr(target, value)
    return found


def contents(folder):
    return [Path(folder, table).read_bytes() for table in TABLES]


@pytest.mark.parametrize("stops", [[1], [5, 1, 2], [60]])
def test_no_finished_chunk_is_measured_again(mine, measured, stops, capsys):
    status = main([*mine, "--out", "at_once"])
    whole = list(measured)
    assert status == 3  # of the body that breaks
    assert len(whole) > 60  # chunks, in several looks of several chunks
    measured.clear()
    done = []
    for index, stop in enumerate(stops):
        measured.stop = stop
        assert main([*mine, *["--resume"] * (index > 0)]) == 130
        done += measured
        measured.clear()
    assert Path("results/.chunks").exists()
    measured.stop = None
    assert main([*mine, "--resume"]) == status
    assert sorted(done + measured) == sorted(whole)
    assert contents("results") == contents("at_once")
    assert not list(Path("results").glob(".chunks*"))


def test_a_run_from_the_start_takes_nothing_up(mine, measured):
    measured.stop = 5
    main(mine)
    measured.stop = None
    measured.clear()
    main(mine)
    again = list(measured)
    measured.clear()
    main([*mine, "--out", "at_once"])
    assert again == measured


def test_a_claim_that_has_changed_is_measured_anew(mine, measured):
    measured.stop = 5
    main(mine)
    Path("mine.py").write_text(CLAIMS.replace("return scores(q, k)", "return 1.0 * scores(q, k)"))
    journal._digest.cache_clear()  # which another process would not have
    measured.stop = None
    measured.clear()
    main([*mine, "--resume"])
    again = list(measured)
    measured.clear()
    main([*mine, "--out", "at_once"])
    assert again == measured


def test_a_kill_costs_what_is_not_written(mine, measured):
    """Here nothing, for every chunk is written; else ten seconds of measuring at most."""
    def run_until_killed(folder, patches):
        def counted(*call):
            if len(calls) == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            calls.append(call)
            return measure(*call)

        calls = []
        os.chdir(folder)
        with pytest.MonkeyPatch.context() as patch:
            for target, value in [*patches, ("mcverify.judge.run.measure", counted)]:
                patch.setattr(target, value)
            main(mine)

    with workers(2) as spread:
        [(_, killed)] = spread(run_until_killed, [
            (Path.cwd(), [*SMALL, ("mcverify.results.chunks.SPAN", 0.0)])])
    assert killed.how == "SIGKILL(-9)"
    status = main([*mine, "--resume"])
    rest = list(measured)
    measured.clear()
    assert main([*mine, "--out", "at_once"]) == status
    assert len(rest) == len(measured) - 7
    assert contents("results") == contents("at_once")


def test_repeated_draws_are_seen_though_the_first_are_recalled(mine, measured, monkeypatch, capsys):
    counted = running.measure
    monkeypatch.setattr(running, "measure", lambda *call: [
        each._replace(digest=b"the same") for each in counted(*call)])
    run = [mine[0], "mine.py::wide", *mine[2:]]
    measured.stop = 1
    assert main(run) == 130
    measured.stop = None
    assert main([*run, "--resume"]) == 3
    assert [claims for claims, _ in measured] == [3, 3]
    assert measured[0] == (3, 0)
    assert "the law draws the same blocks at 0 again" in capsys.readouterr().out
