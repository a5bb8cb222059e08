"""Variances that claims state of their block values, held against draws."""

from dataclasses import replace

import pytest

from mcverify import discover, grid
from mcverify.declare.claim import NO_CONTROLS
from mcverify.judge.sample import sample
from mcverify.judge.world import world_of
from mcverify.statistic.betting import log_wealth, threshold

BLOCKS, FALSE_ALARM = 1024, 1e-6


def size(case):
    return world_of(case).tokens * world_of(case).d_k


def small(case):
    """The same with fewer tokens, if there are many coordinates: what is stated follows tokens."""
    if size(case) <= 2**14:
        return case
    few = grid(**dict(case.settings), tokens=32)
    return replace(case.claim, over=few, controls=NO_CONTROLS).cases()[0]


CASES = {claim.name: small(min(claim.cases(), key=size))
         for claim in discover() if claim.statistic.known}


def departs(case, share=1.0, blocks=BLOCKS):
    """Whether block values vary more than that share of what is stated: a theorem for any law.

    Half the square of the difference of two values has their variance as its mean. If that is no
    more than what is stated, nobody gets rich by betting that it is more.
    """
    statistic, table = sample(case, blocks)
    variance, mean = statistic.known
    values = statistic.about(table, mean)
    squares = (values[::2] - values[1::2])[: len(values) // 2] ** 2 / 2
    return log_wealth(squares / (share * variance) - 1, 0.0, 1.0) > threshold(
        len(squares), FALSE_ALARM)


@pytest.mark.parametrize("name", CASES)
def test_block_values_vary_no_more_than_is_stated(name):
    assert not departs(CASES[name])


def test_a_variance_that_is_too_small_is_found():
    assert departs(CASES["three_terms"], share=0.5)
    assert departs(CASES["normal_mean_size"], share=0.7, blocks=2 * BLOCKS)
