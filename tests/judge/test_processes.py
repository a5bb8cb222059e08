"""Calls in processes: what a dead one leaves, what is told on the way, what is left behind."""

import os
import signal
import sys
import threading
import time
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mcverify.judge import processes, worker
from mcverify.judge.processes import cores, workers
from mcverify.judge.worker import Killed, in_worker, note_step


def in_steps(end, how):
    for step in range(end):
        note_step(step)
    how()
    return end


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def grow_older(seconds):
    """Be at the noted step for so much longer, without a wait for it."""
    worker._noted[1] -= seconds


def for_ever():
    grow_older(3600)
    time.sleep(60)


def draw_for_ever():
    note_step(-1)
    for_ever()


def slow_steps():
    """Longer than the limit, but not at one step."""
    for step in range(5):
        note_step(step)
        grow_older(1000)
        time.sleep(0.02)


def step_by_step(folder):
    for step in range(3):
        note_step(step)
        while not (folder / str(step)).exists():
            time.sleep(0.001)
    return 3


def leave():
    os._exit(0)


def close_everything_and_leave():
    os.closerange(3, 100)
    os._exit(3)


def nothing():
    pass


def fail():
    raise LookupError("gone")


def my_id():
    return os.getpid()


def threads_of_blas():
    np.ones((64, 64)) @ np.ones((64, 64))
    return [library["num_threads"] for library in threadpool_info()]


def alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize(("how", "told"), [
    (kill, "SIGKILL(-9)"), (leave, "EXIT(0)"), (close_everything_and_leave, "EXIT(3)")])
def test_a_dead_process_costs_its_call_alone_and_tells_how_far_it_came(how, told):
    calls = [(2, nothing), (3, how), (4, nothing), (0, how), (5, nothing)]
    with workers(2) as spread:
        found = dict(spread(in_steps, calls))
    assert found == {0: 2, 1: Killed(told, 2), 2: 4, 3: Killed(told, -1), 4: 5}


def test_without_a_fork_server_a_process_is_spawned(monkeypatch):
    monkeypatch.setattr(worker, "START_METHOD", "spawn")
    with workers(2) as spread:  # of a built-in function, so that the processes import little
        found = dict(spread(exec, [("",), ("import os; os._exit(3)",), ("",)]))
    assert found == {0: None, 1: Killed("EXIT(3)", -1), 2: None}


@pytest.mark.parametrize("jobs", [1, 2])
def test_how_far_a_call_is_can_be_asked_while_it_is_under_way(jobs, tmp_path):
    """It goes on with a step when a file says that the one before has been seen."""
    seen, before = [], time.monotonic()

    def watch(progress):
        while len(seen) < 3:
            step, since = progress()
            if step == len(seen) and before <= since <= time.monotonic():
                seen.append(step)
                (tmp_path / str(int(step))).touch()
            time.sleep(0.001)

    def begun(index, progress):
        assert index == 0
        threading.Thread(target=watch, args=[progress], daemon=True).start()

    with workers(jobs) as spread:
        assert dict(spread(step_by_step, [(tmp_path,)], on_begin=begun)) == {0: 3}
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_call_that_is_at_one_step_for_too_long_is_killed_and_the_others_go_on(
        jobs, monkeypatch):
    monkeypatch.setattr(processes, "TICK", 0.005)
    calls = [(3, nothing), (2, for_ever), (4, slow_steps), (0, draw_for_ever)]
    with workers(jobs) as spread:
        found = dict(spread(in_steps, calls, limit=1800.0))
    assert {found[0], found[2]} == {3, 4}
    assert [found[1].step, found[3].step] == [1, -1]
    assert "a body or a law took over 1800 s, the most" in found[1].how


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_a_call_is_raised_here_and_the_others_can_be_made(jobs):
    with workers(jobs) as spread:
        with pytest.raises(LookupError, match="gone") as caught:
            list(spread(fail, [()]))
        if jobs > 1:
            assert 'raise LookupError("gone")' in caught.value.__notes__[0]
        assert list(spread(pow, [(2, 3)])) == [(0, 8)]


def test_there_are_no_more_processes_than_calls_or_jobs():
    with workers(1000) as spread:
        found = dict(spread(my_id, [()] * 3))
    assert len(set(found.values())) <= 3
    with workers(2) as spread:
        found = dict(spread(my_id, [()] * 20))
        again = dict(spread(my_id, [()] * 20))
    assert len(set(found.values()) | set(again.values())) == 2
    assert os.getpid() not in found.values()


def test_results_that_nobody_waits_for_are_not_taken_for_those_of_the_next_calls():
    with workers(2) as spread:
        for _ in spread(pow, [(2, power) for power in range(10)]):
            break
        assert dict(spread(pow, [(3, 1), (3, 2)])) == {0: 3, 1: 9}


def test_a_process_that_dies_idle_is_replaced():
    with workers(2) as spread:
        for number in dict(spread(my_id, [(), ()])).values():
            os.kill(number, signal.SIGKILL)
            wait_for(lambda number=number: not alive(number))
        assert dict(spread(pow, [(3, 1), (3, 2)])) == {0: 3, 1: 9}


def test_functions_that_no_module_holds_can_be_called_and_linear_algebra_is_not_spread():
    with workers(2) as spread:
        assert dict(spread(lambda x: (x, in_worker()), [(1,)])) == {0: (1, True)}
        assert set(dict(spread(threads_of_blas, [()]))[0]) == {1}
    assert not in_worker()


def test_a_script_is_not_run_again_by_its_processes(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(  # without `if __name__ == "__main__"`
        "from pathlib import Path; Path(__file__).with_name('again').touch()")
    script = ModuleType("__main__")
    script.__file__ = str(tmp_path / "script.py")
    monkeypatch.setitem(sys.modules, "__main__", script)
    with workers(2) as spread:
        assert dict(spread(pow, [(2, 3), (3, 2)])) == {0: 8, 1: 9}
    assert not (tmp_path / "again").exists()
    assert sys.modules["__main__"] is script


def test_cores_are_those_that_this_process_may_use():
    assert 1 <= cores() <= os.cpu_count()
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            assert cores() == 1
        finally:
            os.sched_setaffinity(0, allowed)
