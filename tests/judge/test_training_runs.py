"""Claims whose blocks are training runs: seeds, company, workers, progress, a module that lacks."""

import dataclasses
import importlib.util

import numpy as np
import pytest

from mcverify import Verdict, check, claim, discover, grid, laws
from mcverify.declare.fault import ClaimError
from mcverify.judge.run import run
from mcverify.judge.schedule import Schedule
from mcverify.judge.trial import Trial
from mcverify.judge.watch import Watch
from mcverify.judge.world import MOST_RUNS, RUNS, world_of
from mcverify.statistic import median, proportion
from mcverify.verdict import Terms

FILE = '''
import numpy as np
from mcverify import claim, grid
from mcverify.statistic import median, proportion

def descended(seeds, rate):
    """Sizes of four weights after twenty steps of gradient descent on w²."""
    w = np.stack([np.random.default_rng(seed).standard_normal(4) for seed in seeds])
    return np.abs(w * (1 - 2 * rate) ** 20).max(axis=1)

@claim(proportion, at_least=0.8, over=grid(rate=[0.1, 0.4]), controls=grid(rate=1.5))
def converges(seeds, rate):
    """Gradient descent on w² converges at rates below 1."""
    return descended(seeds, rate) < 1

@claim(median, at_most=0.1, over=grid(rate=[0.1, 0.4]), controls=grid(rate=0.999))
def ends_near_zero(seeds, rate):
    """Gradient descent on w² ends below 0.1 more often than not."""
    return descended(seeds, rate)
'''


@pytest.fixture
def claims(tmp_path):
    (tmp_path / "runs.py").write_text(FILE)
    return discover(tmp_path / "runs.py")


def cases_of(claims):
    return [case for claim in claims for case in (*claim.cases(), *claim.control_cases())]


def by_name(findings):
    return {str(finding.case): dataclasses.replace(finding, case=None) for finding in findings}


def of_seeds(body, needs="", **settings):
    return claim(proportion, at_least=0.5, over=grid(**settings), needs=needs)(body)


def test_a_claim_on_seeds_has_no_law_and_no_width_but_those_of_its_grid(claims):
    assert [dict(case.settings) for case in claims[0].cases()] == [{"rate": 0.1}, {"rate": 0.4}]
    assert all(claim.slow and claim.draws and not claim.of_world for claim in claims)
    body = lambda seeds, d_k: seeds > d_k  # noqa: E731
    body.__doc__ = "A width is a setting as others are."
    assert [str(case) for case in of_seeds(body, d_k=[8, 64]).cases()] == [
        "<lambda>-d_k:8", "<lambda>-d_k:64"]


def test_verdicts_rest_on_the_first_look_and_do_not_depend_on_workers(claims):
    one = by_name(run(cases_of(claims), jobs=1))
    assert all(finding.as_declared for finding in run(cases_of(claims), jobs=1))
    assert {finding.blocks for finding in one.values()} == {128}
    assert {finding.basis for finding in one.values()} == {"bound", "order"}
    assert by_name(run(reversed(cases_of(claims)), jobs=2)) == one


def test_seeds_are_whole_numbers_all_different_and_the_same_at_all_settings():
    seen = {}

    def body(seeds, rate):
        """Seeds are noted."""
        seen.setdefault(rate, []).extend(seeds.tolist())
        assert seeds.dtype == np.int64
        assert len(seeds) <= RUNS
        return np.ones(len(seeds))

    made = of_seeds(body, rate=[1, 2])
    assert all(finding.verdict is Verdict.CONFIRMED for finding in check(made))
    assert seen[1] == seen[2]
    assert len(seen[1]) == 128 + 2  # two runs are made again, beside each other
    assert len(set(seen[1])) == 128
    assert check(made.cases()[0], seed=1).verdict is Verdict.CONFIRMED
    assert not {*seen[2]} & {*seen[1][130:]}


def test_cases_at_the_same_settings_look_at_the_same_chunks(claims):
    worlds = {world_of(case) for case in cases_of(claims)}
    assert len(worlds) == 4  # two rates, and one for each claim's control
    schedule = Schedule([Trial(case, Terms()) for case in cases_of(claims)], Terms(), Watch())
    calls = [call for call in schedule]
    assert len(calls) == 4 * 128 // RUNS
    assert sorted(len(references) for references, *_ in calls)[-1] == 2


def test_a_run_that_depends_on_its_company_is_an_error():
    def body(seeds, rate):
        """A run is compared with the others."""
        return seeds / seeds.max()

    finding = check(of_seeds(body, rate=1).cases()[0])
    assert finding.broken
    assert "other values when other blocks stand beside it" in finding.reason


def test_a_case_that_runs_do_not_decide_is_left_open():
    def body(seeds):
        """Seeds are even as often as not."""
        return seeds % 2

    finding = check(of_seeds(body).cases()[0])
    assert (finding.verdict, finding.blocks) == (Verdict.INCONCLUSIVE, MOST_RUNS)
    assert "still crosses an edge" in finding.reason


def test_how_far_a_training_is_can_be_told_and_seen():
    def body(seeds, rate, progress):
        """It tells."""
        progress(0.25)
        told.extend(text for text, _ in watch.now())
        progress(7)

        told.extend(text for text, _ in watch.now())
        return np.ones(len(seeds))

    case, told, watch = of_seeds(body, rate=1).cases()[0], [], Watch()
    list(run([case], jobs=1, watch=watch))
    assert told[:2] == [f"{case} (25%)", f"{case} (99%)"]


def test_a_missing_module_leaves_a_case_open_without_running_its_body():
    def body(seeds):
        """Nobody runs it."""
        raise AssertionError

    finding = check(of_seeds(body, needs="nowhere").cases()[0])
    assert (finding.verdict, finding.reason, finding.blocks) == (
        Verdict.INCONCLUSIVE, "needs nowhere", 0)
    assert not finding.broken
    assert finding.claimed_low == 0.5


def test_an_extra_of_mcverify_is_named_as_one_installs_it(monkeypatch):
    def body(seeds):
        """Nobody runs it."""

    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec",
                        lambda name: None if name == "torch" else find(name))
    assert check(of_seeds(body, needs="torch").cases()[0]).reason == "needs mcverify[torch]"


@pytest.mark.parametrize(("body", "needs", "why"), [
    (lambda seeds, q: seeds, "", "leave out q, k and rng"),
    (lambda q, progress: q, "", "progress is for a body that names seeds"),
    (lambda seeds, d_k: seeds, "", "asks for d_k, which its grid does not name"),
    (lambda seeds: seeds, "a module", "is no name of a module")])
def test_what_a_claim_on_seeds_may_not_ask_for_is_told(body, needs, why):
    body.__doc__ = "A sentence."
    with pytest.raises(ClaimError, match=why):
        claim(proportion, at_least=0.5, needs=needs)(body)


def test_only_a_claim_of_a_world_is_quick():
    def body(q):
        """Coordinates are positive more often than not."""
        return q > 0

    made = claim(median, at_least=0.5, over=grid(law=laws.normal, d_k=2))(body)
    assert made.of_world
    assert not made.slow
    assert dataclasses.replace(made, needs="nowhere").slow
