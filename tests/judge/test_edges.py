"""Numbers and streams at the edge: nothing is CONFIRMED by accident, nothing crashes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify import Verdict, absolute, check, discover, laws
from mcverify.declare.fault import ClaimError
from mcverify.judge.measure import measure
from mcverify.judge.processes import workers
from mcverify.judge.reference import refer
from mcverify.judge.world import World
from mcverify.statistic import (
    kurtosis,
    mean,
    median,
    proportion,
    ratio,
    slope,
    std,
    variance,
)

ONE_ARRAY = [mean, variance, std, kurtosis, median, proportion]


def found(statistic, function, **prediction):
    """The finding on what the function makes of coins, one a block."""
    most = 0.999 if statistic is proportion else 1.7e308  # a claim of every share is refused
    return check(function, statistic=statistic, law=laws.rademacher, d_k=1, tokens=1,
                 **(prediction or {"between": (-1.7e308, most)}))


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=8, max_size=64), st.integers(1, 7))
def test_a_variance_does_not_lose_its_digits_far_from_0_for_any_chunking(values, size):
    near = np.array(values)[:, None] * np.ones(3) + [0.0, 1.0, 2.0]
    tables = [variance.reduce(near[i:i + size] + 1e9) for i in range(0, len(near), size)]
    far = variance.estimate(np.concatenate(tables), 0.01)
    assert far.value == pytest.approx(variance.estimate(variance.reduce(near), 0.01).value,
                                      rel=1e-6, abs=1e-12)
    within, between = 2 / 3, np.var(values, ddof=1)  # of {0, 1, 2}, and of the blocks' means
    assert far.value == pytest.approx(within + between, rel=1e-6)


@pytest.mark.parametrize("statistic", ONE_ARRAY, ids=lambda statistic: statistic.name)
@pytest.mark.parametrize("value", [0.0, 1.0, 5e-324, 1e-300])
def test_constant_data_are_never_evidence_of_spread(statistic, value):
    finding = found(statistic, lambda q: np.full(len(q), value))
    exempt = statistic in (proportion, median)  # their intervals hold without spread
    assert finding.broken or finding.reason or exempt
    if exempt:
        assert finding.low <= value <= finding.high
    else:
        assert finding.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("statistic", ONE_ARRAY, ids=lambda statistic: statistic.name)
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e308])
def test_extreme_sizes_end_in_a_verdict_or_a_reason(statistic, scale):
    finding = found(statistic, lambda q, rng: scale * rng.random((len(q), 4)))
    assert finding.verdict is not Verdict.REFUTED  # everything finite is in what is claimed
    if finding.verdict is Verdict.CONFIRMED:
        assert math.isfinite(finding.low)
        assert math.isfinite(finding.high)
    else:
        assert finding.reason


@pytest.mark.parametrize("statistic", [*ONE_ARRAY, ratio, slope(mean)],
                         ids=lambda statistic: statistic.name)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_an_error_with_its_seed(statistic, bad):
    def body(q):
        x = np.ones((len(q), 2))
        x[3, 1] = bad
        return {"ratio": (x, x), "slope of mean": [(1, x), (2, x)]}.get(statistic.name, x)

    finding = found(statistic, body)
    assert finding.broken
    assert "seed 0" in finding.reason


@pytest.mark.parametrize("statistic", ONE_ARRAY, ids=lambda statistic: statistic.name)
def test_one_block_gives_no_verdict(statistic):
    estimate = statistic.estimate(statistic.reduce(np.array([[0.2, 0.9, 0.4]])), 1e-3)
    width = estimate.high - estimate.low
    assert estimate.reason or statistic is proportion
    assert width == math.inf or (statistic is proportion and width > 0.9)


def test_single_coins():
    # q·k of coins at d_k = 1 is ±1: its variance is 1, and its square does not vary at all.
    assert found(variance, lambda q, k: q * k, at_least=0.9).verdict is Verdict.CONFIRMED
    assert found(mean.of_degree(2), lambda q, k: (q * k) ** 2).verdict is Verdict.INCONCLUSIVE
    assert found(kurtosis, lambda q, k: q * k, at_most=0.0).verdict is not Verdict.REFUTED


# --- streams ----------------------------------------------------------------------------------


def test_neighbouring_seeds_and_chunks_share_no_numbers():
    world = World(laws.normal, 2, 3)
    drawn = [x for seed in range(12) for first in (0, 512, 1024)
             for array in world.draw(seed, first, 8) for x in array.ravel()]
    assert len(set(drawn)) == len(drawn) == 12 * 3 * 2 * 8 * 2 * 3


def test_worlds_that_differ_in_anything_share_no_numbers():
    worlds = [World(laws.normal, 2, 3), World(laws.normal, 3, 3), World(laws.normal, 2, 4),
              World(laws.shifted(laws.normal, 0.0), 2, 3),
              World(laws.layer_norm(laws.normal), 2, 3)]
    drawn = [frozenset(world.draw(0, 0, 8)[0].ravel()) for world in worlds]
    assert all(not a & b for i, a in enumerate(drawn) for b in drawn[:i])


def test_forked_workers_do_not_repeat_each_other():
    case = next(claim for claim in discover() if claim.name == "product_mean").cases()[0]
    calls = [([refer(case)], 0, [(first, 512)]) for first in range(0, 8 * 512, 512)]
    with workers(2) as spread:
        forked = dict(spread(measure, calls))
    here = [measure(*call) for call in calls]
    assert all(np.array_equal(forked[i][0].outcomes[0].table, here[i][0].outcomes[0].table)
               for i in range(len(calls)))
    means = np.concatenate([made.outcomes[0].table.ravel() for [made] in here])
    assert len(set(means)) == len(means)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, 1e-300])
@pytest.mark.parametrize("statistic", [kurtosis, slope(kurtosis)], ids=lambda s: s.name)
def test_the_kurtosis_of_a_constant_is_not_that_of_its_rounding(statistic, value):
    def body(q):
        x = np.full((len(q), 7), value)
        return [(1, x), (2, x)] if statistic is not kurtosis else x

    finding = found(statistic, body, between=(-10, 10))
    assert finding.broken


def test_a_slope_pays_for_the_curvature_of_a_variance():
    # Of coins a variance is flat at 1, so that its error is all curvature.
    signs = np.random.default_rng(4).choice([-1.0, 1.0], (4096, 1))
    growing = slope(variance).estimate(
        slope(variance).reduce([(1, signs * [1, -1]), (4, 2 * signs)]), 1e-6)
    of_one = variance.estimate(variance.reduce(signs), 1e-6)
    assert growing.low < 1 < growing.high
    # d log(4v)/d log 4 = d log v/ln 4, and it is v's curvature that widens the interval.
    t = stats.t(4095).isf(5e-7)
    curvature = signs.var() * t**2 / 4096 / of_one.value / math.log(4)
    assert growing.high - growing.value > curvature
    narrow = slope(std).estimate(slope(std).reduce([(1, signs * [1, -1]), (4, 2 * signs)]), 1e-6)
    assert narrow.high - narrow.value == pytest.approx((growing.high - growing.value) / 2, rel=1e-3)


@pytest.mark.parametrize("claimed", [{"equals": 0.5, "within": absolute(0.6)}, {"at_least": 0},
                                     {"at_most": 1}, {"between": lambda d_k: (-d_k, 2)}])
def test_a_claim_of_every_share_there_is_is_refused(claimed):
    with pytest.raises(ClaimError, match=r"all of them lie in .*narrow it"):
        found(proportion, lambda q: q > 0, **claimed)
