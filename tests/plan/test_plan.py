"""What a run is foreseen to take, held against formulas and against what runs then take."""

import math
from pathlib import Path

import pandas as pd
import pytest

from mcverify import discover
from mcverify.cli.main import main
from mcverify.judge.run import run
from mcverify.judge.watch import end_of_look
from mcverify.judge.world import world_of
from mcverify.plan import plan
from mcverify.plan.timing import Cost, Stopwatch, sizes
from mcverify.results.folder import Results
from mcverify.verdict import Terms

HEAD = '''
import numpy as np
from mcverify import claim, grid, laws, relative, absolute, Verdict
from mcverify.attention import scores
from mcverify.statistic import mean, variance, proportion, median, exact

WORLD = grid(law=laws.normal, d_k=4, tokens=9)
'''
MEAN = '''
@claim(mean, equals=0, within=absolute(0.1), over=WORLD)
def mean_of_scores(q, k):
    """Scores have mean 0."""
    return scores(q, k)
'''
VARIANCE = '''
@claim(variance, equals=lambda d_k: d_k, within=relative(0.1),
       over=grid(law=[laws.normal, laws.laplace], d_k=[4, 16], tokens=9))
def variance_of_scores(q, k):
    """Scores have a variance of d_k."""
    return scores(q, k)
'''
SHARE = '''
@claim(proportion, at_least=0.4, over=WORLD)
def share_above(q, k):
    """At least 0.4 of the scores are above 0."""
    return scores(q, k) > 0
'''
EDGE = '''
@claim(variance, at_most=4.0, over=WORLD)
def on_the_edge(q, k):
    """The variance is at most 4, which it is."""
    return scores(q, k)
'''
OPEN = '''
@claim(mean, equals=0, within=absolute(0.1), over=grid(law=laws.student_t(2), d_k=4))
def no_moments(q, k):
    """A mean of squares that has no variance."""
    return scores(q, k)**2

@claim(mean, equals=0, within=absolute(0.1), over=WORLD)
def broken(q, k):
    """A body that raises."""
    raise ValueError("no luck")

@claim(mean, equals=0, within=absolute(1e-6), over=WORLD)
def too_tight(q, k):
    """A margin that is too small."""
    return scores(q, k)

@claim(exact, equals=2, within=absolute(1e-9))
def by_hand():
    """1 + 1 = 2."""
    return 1 + 1
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(*parts):
        Path("mine.py").write_text(HEAD + "".join(parts))
        return discover("mine.py")
    return write


def by_name(plans):
    return {claim.name: its for claim, its in plans.items()}


NOTHING = Results(Path("nothing"))


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.1])
def test_blocks_are_those_at_which_catonis_interval_is_as_narrow_as_the_margin(mine, scale):
    """Of scores, the mean of a block's has variance d_k/tokens² · …, which the law knows: with
    independent tokens it is d_k·81/81² of 9 × 9 products, so that ±√(2v·ln(2/α)/n) is the margin
    after n blocks; its controls are off by three margins, two of them away.
    """
    terms = Terms(margin_scale=scale)
    needed = 2 * (4 / 81) * math.log(2 / terms.look_rate()) / (0.1 * scale) ** 2
    ends = [end_of_look(needed * slack / far**2, 0) for far in (1, 2, 2) for slack in (1.0, 1.15)]
    found = by_name(plan(mine(MEAN), terms, NOTHING))["mean_of_scores"]
    assert sum(ends[::2]) <= found.blocks <= sum(ends[1::2])
    assert found.cases == 3
    # Cases of a world look at the same draws, so that the longest one tells how many there are.
    assert max(ends[::2]) <= round(found.numbers / (2 * 9 * 4)) <= max(ends[1::2])
    assert not found.open


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_what_a_run_takes_is_foreseen_from_a_chunk_and_from_results(mine, scale):
    claims = mine(MEAN, VARIANCE, SHARE)
    terms = Terms(margin_scale=scale)
    taken = {claim.name: sum(finding.blocks for finding in run(
        [*claim.cases(), *claim.control_cases()], terms, jobs=1)) for claim in claims}
    assert main(["run", "mine.py", "--jobs", "1"]) in (0, 3)  # at the usual margins
    for results in (NOTHING, Results(Path("results"))):
        foreseen = by_name(plan(claims, terms, results))
        for name, blocks in taken.items():
            assert blocks / 2 <= foreseen[name].blocks <= 2 * blocks, name
            assert foreseen[name].seconds > 0
    if scale == 1:
        assert {name: its.blocks for name, its in foreseen.items()} == taken


def test_draws_are_shared_by_the_claims_of_a_world_and_their_costs_are_not(mine):
    claims = mine(MEAN, SHARE)
    together = by_name(plan(claims, Terms(), NOTHING))
    alone = [by_name(plan([claim], Terms(), NOTHING)) for claim in claims]
    for each in alone:
        [(name, its)] = each.items()
        assert together[name].blocks == its.blocks
        assert together[name].numbers < its.numbers
    drawn = sum(its.numbers for its in together.values())
    assert drawn == pytest.approx(max(its.numbers for each in alone for its in each.values()))


def test_what_no_number_of_blocks_decides_is_told_with_its_reason(mine):
    claims = mine(EDGE, OPEN)
    assert main(["run", "mine.py::on_the_edge", "--jobs", "1", "--max-blocks", "4096"]) == 3
    plans = by_name(plan(claims, Terms(), Results(Path("results"))))
    told = {name: " ".join(its.open.values()) for name, its in plans.items()}
    assert "is at an edge of what is claimed, 4, but for" in told["on_the_edge"]
    assert told["no_moments"].startswith("the interval needs the moment of order 3")
    assert told["broken"].startswith("no luck")
    assert "blocks would be needed, and 1048576 are the most" in told["too_tight"]
    assert told["by_hand"] == ""
    assert (plans["by_hand"].cases, plans["by_hand"].blocks, plans["by_hand"].numbers) == (3, 0, 0)
    assert plans["too_tight"].blocks == 3 * 2**20
    longer = by_name(plan(claims, Terms(max_blocks=2**44), NOTHING))
    assert not longer["too_tight"].open


def test_block_values_are_kept_up_to_a_bound_and_those_of_medians_up_to_another(mine):
    claims = mine(OPEN, EDGE.replace("variance", "median").replace("4.0", "0.0"))
    long = by_name(plan(claims, Terms(max_blocks=2**30), NOTHING))
    assert long["too_tight"].memory == 3 * 2**16 * 8
    assert 0 < long["on_the_edge"].memory <= 2**26


def test_costs_are_told_from_the_laps_of_a_first_a_small_and_a_large_call():
    watch = Stopwatch()
    watch.laps = [5.0, 1.5, 5.0]  # 1 a call, half a block; 3.5 more once
    assert watch.cost([1, 1, 8]) == Cost(3.5, 1.0, 0.5)
    assert watch.cost([1, 1, 8]).of(calls=2, blocks=10) == 3.5 + 2 + 5
    watch.laps = [5.0, 1.5, 1.0]  # noise makes no cost negative
    assert watch.cost([1, 1, 8]) == Cost(3.5, 1.5, 0.0)
    watch.laps = [2.0, 1.0, 1.0]
    assert watch.cost([1, 1, 1]) == Cost(1.0, 0.0, 1.0)


def test_chunks_are_small_and_no_larger_than_those_of_a_run(mine):
    [case] = mine(SHARE)[0].cases()
    world = world_of(case)
    small, again, large = sizes(world)
    assert small == again == large // 8
    assert large <= world.chunk(2**20)
    assert 2**16 <= 2 * large * world.tokens * world.d_k <= 2**17


def test_the_command_prints_a_row_a_claim_and_the_sums(mine, capsys):
    mine(MEAN, SHARE, EDGE)
    assert main(["plan", "mine.py", "--margin-scale", "0.5", "--out", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["cases", "blocks", "numbers", "CPU", "s", "MiB", "open", "claim"]
    assert [line.split()[-1] for line in lines[1:4]] == [
        "mean_of_scores", "share_above", "on_the_edge"]
    assert lines[4].endswith("3 claims in all")
    assert main(["plan", "mine.py", "--csv", "--out", "none"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "claim,cases,blocks,numbers,seconds,bytes,open")
    assert not Path("none").exists()


def test_claims_that_a_run_leaves_out_are_left_out_unless_they_are_named(
        mine, capsys, monkeypatch):
    claims = mine(MEAN, SHARE.replace("over=WORLD", "over=WORLD, needs='plots'"))
    monkeypatch.setattr("mcverify.cli.selection.select", lambda names: (claims, ()))
    for words, found in (([], 1), (["mine.py"], 2)):
        assert main(["plan", *words, "--csv"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1 + found


@pytest.mark.parametrize(("words", "message"), [
    (["--margin-scale", "0"], "margin scale 0: must be above 0"),
    (["--max-blocks", "1"], "must be a whole number of at least 128"),
    (["nobody"], "nobody"),
])
def test_bad_usage_is_told(mine, capsys, words, message):
    mine(MEAN)
    assert main(["plan", *words]) == 2
    assert message in capsys.readouterr().err


def test_damaged_results_are_told(mine, capsys):
    mine(MEAN)
    assert main(["run", "mine.py", "--jobs", "1"]) == 0
    pd.DataFrame({"claim": ["x"]}).to_csv("results/verdicts.csv", index=False)
    assert main(["plan", "mine.py"]) == 2
    assert "results/verdicts.csv: has no column" in capsys.readouterr().err
