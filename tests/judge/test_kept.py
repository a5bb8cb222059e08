"""What a case keeps in a long run: little, and the same whatever it came in."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify import grid, laws, verdict
from mcverify.declare.claim import Claim
from mcverify.judge.kept import Kept
from mcverify.judge.measure import Measured, measure
from mcverify.judge.run import run
from mcverify.judge.schedule import Schedule
from mcverify.judge.trial import Trial
from mcverify.judge.watch import Watch
from mcverify.statistic import difference_of, mean, median, variance
from mcverify.verdict import Terms

LONG = Terms(margin_scale=0.5, max_blocks=2**14)


@pytest.fixture
def few_rows(monkeypatch):
    monkeypatch.setattr(verdict, "ROWS", 2**9)


def never_decided(statistic=mean, **prediction):
    """A claim whose edge is the truth."""
    return Claim("edge", "On the edge.", statistic, lambda q, k: q * k,
                 over=grid(law=laws.normal, d_k=1, tokens=2),
                 **(prediction or dict(at_most=0.0)))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(0, 4), st.randoms())
def test_rows_depend_on_what_is_drawn_and_not_on_how_it_came(sizes, merged, random):
    """Chunks of any size, rows that become larger at any time: a pairwise tree over all blocks."""
    blocks = [16, *(2**size for size in sizes)]
    steps = sorted(random.choices(range(merged + 1), k=3))
    drawn = np.random.default_rng(0).standard_normal((sum(blocks), 2)) + 1
    kept, first = Kept(variance.merge), 0
    for size in blocks:
        if first and steps and first % 2**steps[0] == 0:
            kept.coarsen(2**steps.pop(0))
        kept.add(drawn[first:first + size])
        first += size
    expected = drawn
    for _ in range(kept.merged.bit_length() - 1):
        expected = variance.merge(expected[:len(expected) // 2 * 2])
    assert kept.blocks == len(drawn)
    np.testing.assert_array_equal(kept.table, expected[:len(kept.table)])
    assert len(kept.table) == kept.blocks // kept.merged


def test_a_long_run_merges_as_its_looks_go_on_and_a_usual_one_does_not(few_rows):
    assert [LONG.merged(blocks) for blocks in (512, 768, 1024, 1536, 2**14)] == [1, 2, 2, 4, 32]
    assert Terms().merged(2**20) == Terms(max_blocks=2**19).merged(2**19) == 1
    assert Terms(max_blocks=2**21).merged(2**20) > 1


def test_chunks_count_in_the_order_of_their_blocks_and_none_is_kept(few_rows):
    [case] = never_decided().cases()
    rng, trials = np.random.default_rng(1), [Trial(case, LONG) for _ in range(2)]
    for start, stop in LONG.looks:
        chunks = [(first, rng.standard_normal((64, 1))) for first in range(start, stop, 64)]
        for trial, order in zip(trials, (chunks, rng.permutation(len(chunks))), strict=True):
            for each in order:
                first, table = each if order is chunks else chunks[each]
                trial.take(first, Measured(table, None), stop)
            trial._check_in(stop)
            assert (len(trial.arrived), trial.kept.blocks) == (0, stop)
            assert trial.kept.table.size <= 2 * 2**9  # means and variances
        np.testing.assert_array_equal(trials[0].kept.table, trials[1].kept.table)


@pytest.mark.parametrize("statistic", [mean, variance, mean.with_variance(0.5),
                                       mean.within(-99, 99)],
                         ids=lambda each: f"{each.name}-{each.rests_on}")
def test_findings_are_the_same_in_one_process_and_in_two_and_merged_or_not(
        few_rows, statistic, monkeypatch):
    cases = [case for at in (0.0, 1.0, 0.01) for case in never_decided(
        statistic, between=(at - 1.0, at)).cases()]
    cases = cases[:1 + (statistic is not variance)]
    one, two = (list(run(cases, LONG, jobs=jobs)) for jobs in (1, 2))
    assert sorted(map(str, one)) == sorted(map(str, two))
    monkeypatch.setattr(verdict, "ROWS", 2**20)
    whole = list(run(cases, LONG, jobs=1))
    for merged, apart in zip(one, whole, strict=True):
        assert (merged.verdict, merged.blocks) == (apart.verdict, apart.blocks)
        assert merged.estimate == pytest.approx(apart.estimate, rel=1e-5, abs=1e-12)
        assert merged.stderr == pytest.approx(apart.stderr, rel=0.2)


def test_a_median_keeps_few_blocks_of_a_long_run_and_all_of_a_usual_one(few_rows):
    cases = never_decided(median, between=(0.0, 1.0)).cases()
    kept = {}
    for terms in (LONG, Terms(max_blocks=LONG.max_blocks)):
        trial, rng = Trial(cases[0], terms), np.random.default_rng(2)
        trial.claimed = cases[0].claimed
        for start, stop in terms.looks:
            trial.take(start, Measured(rng.standard_normal((stop - start, 2)), None), stop)
            finding = trial.judged(stop)
        kept[terms] = trial.kept.table.size
        assert finding.blocks == 2**14
        assert finding.verdict == "INCONCLUSIVE"
    assert kept[Terms(max_blocks=LONG.max_blocks)] == 2 * 2**14
    assert kept[LONG] < 2 * 2**14 / 4


def test_what_cannot_be_merged_is_kept_as_far_as_it_may_be(few_rows, monkeypatch):
    monkeypatch.setattr("mcverify.judge.trial.MAX_TABLE", 2**12)
    of_both = replace(never_decided(difference_of(median, mean)), body=lambda q, k: (q, k))
    [finding] = run(of_both.cases(), LONG, jobs=1)
    assert finding.blocks < 2**11
    assert finding.reason.startswith("one more look would keep over 4096 numbers")
    [finding] = run(never_decided(mean).cases(), LONG, jobs=1)
    assert finding.blocks == 2**14


def test_looks_go_as_far_as_asked_where_rows_are_merged_and_as_far_as_they_fit_elsewhere():
    long = Terms(max_blocks=2**30)
    [case], [of_medians] = never_decided().cases(), never_decided(median).cases()
    [of_both] = never_decided(difference_of(median, mean)).cases()
    assert Trial(case, long).bearable(2)[-1] == Trial(of_medians, long).bearable(2)[-1] == 2**30
    assert Trial(of_medians, long).bearable(2**10)[-1] < 2**20
    assert Trial(of_both, long).bearable(2)[-1] == 2**22
    assert Trial(case, Terms()).bearable(16)[-1] == 2**19


def test_chunks_do_not_run_ahead_of_one_that_is_late(monkeypatch):
    """All but the first chunk come back: no more than may wait, and all once it is there."""
    monkeypatch.setattr("mcverify.judge.schedule.HELD", 2**10)
    monkeypatch.setattr("mcverify.judge.group.CALL", 0.0)  # a call for each chunk
    claim = replace(never_decided(mean), over=grid(law=laws.normal, d_k=8, tokens=64))
    plan = Schedule([Trial(case, Terms()) for case in claim.cases()], Terms(), Watch())
    results, late, issued = {}, [], 0

    def settle(index):
        list(plan.settle(index, results.pop(index)))

    for index, call in enumerate(plan):
        plan.begun(index, lambda: (-1, 0.0))
        results[index], issued = measure(*call), issued + 1
        first = call[2][0][0]
        if first == 2**12 and not late:
            late.append(index)
        else:
            settle(index)
        if late and issued > 1000:
            break
    [trial] = plan.issued[late[0]].trials
    assert 2**10 < trial.held <= 2**10 + 512
    assert next(plan, None) is None
    settle(late[0])
    assert trial.held == 0
    assert next(plan, None) is not None
