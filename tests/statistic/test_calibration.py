"""Calibration, measured: how often an interval misses the truth, over how often it may."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import pytest
from scipy import special, stats
from worse_intervals import plain_t, unmended

from mcverify import laws
from mcverify.attention import scores
from mcverify.selfcheck.count import false_verdicts
from mcverify.selfcheck.data import QUANTILES
from mcverify.selfcheck.exactly import Coin, Order, miss_rates
from mcverify.selfcheck.limits import ALLOWED, LOOK_RATE
from mcverify.selfcheck.population import of_values, resampled
from mcverify.selfcheck.stream import stream
from mcverify.selfcheck.tilt import HIGH, LOW, missed, weights
from mcverify.statistic import (
    Statistic,
    kurtosis,
    mean,
    median,
    proportion,
    ratio,
    slope,
    variance,
)
from mcverify.statistic.studentised import studentised
from mcverify.verdict import FIRST_LOOK, LOOKS, Verdict, judge, looks

pytestmark = pytest.mark.slow

# A "miss ratio" is P(the interval lies beyond the truth on one side) over error_rate / 2. The two
# directions are judged apart: each kind of false verdict needs a miss on one side only.
SIDES = pytest.mark.parametrize("side", [LOW, HIGH], ids=["low", "high"])

generator = partial(stream, 20240607)  # a stream of its own for each test, the same in every run


# --- exactly, by enumeration: values that take two values, and quantiles ---------------------


def two_point_misses(statistic, p, blocks, rate, truth=None):
    """Both exact miss ratios for block values of 0 and 1, whose mean is the truth by default."""
    coin = Coin("coin", statistic, p, p if truth is None else truth)
    return {side: miss_rates(coin, [blocks], rate, side)[0] / (rate / 2) for side in (LOW, HIGH)}


@pytest.mark.parametrize("rate", [1e-3, 1e-9, LOOK_RATE], ids="{:.1e}".format)
@pytest.mark.parametrize("blocks", [16, 64])
@pytest.mark.parametrize("p", [0.003, 0.1, 0.5])
def test_proportion_never_exceeds_its_rate(p, blocks, rate):
    misses = two_point_misses(proportion, p, blocks, rate)
    assert max(misses.values()) <= 1  # Chernoff's bound leaves no remainder


@SIDES
@pytest.mark.parametrize("rate", [1e-3, 1e-6, 1e-9, LOOK_RATE], ids="{:.1e}".format)
@pytest.mark.parametrize(("level", "blocks"), [
    (0.5, 128), (0.5, 512), (0.9, 512), (0.9, 1024),  # Chernoff's bound serves where t's waits
])
def test_quantiles_miss_no_more_than_allowed(level, blocks, rate, side):
    # With one value a block the interval runs between two order statistics whatever the law, so
    # its miss is a binomial tail: one call of the rule gives the exact answer.
    subject = Order(level)
    found = subject.statistic.estimate(np.arange(float(blocks))[:, None], rate)
    tail = (stats.binom.cdf(found.low, blocks, level) if side == HIGH
            else stats.binom.sf(found.high, blocks, level))
    assert miss_rates(subject, [blocks], rate, side)[0] == pytest.approx(tail, rel=1e-9)
    assert 0 < tail <= ALLOWED * rate / 2


@pytest.mark.parametrize(("blocks", "rate"), [
    (128, 1e-3), (256, 1e-6), (512, 1e-9), (512, LOOK_RATE), (1024, LOOK_RATE),
], ids="{:g}".format)
@pytest.mark.parametrize("p", [0.35, 0.5])
def test_mean_of_zeros_and_ones_misses_no_more_than_allowed(p, blocks, rate):
    assert 0 < max(two_point_misses(mean, p, blocks, rate).values()) <= ALLOWED


@pytest.mark.parametrize(("p", "blocks", "rate"), [
    (0.5, 256, 1e-3), (0.4, 512, LOOK_RATE), (0.3, 512, LOOK_RATE), (0.5, 1024, LOOK_RATE),
], ids="{:.3g}".format)
def test_variance_of_zeros_and_ones_misses_no_more_than_allowed(p, blocks, rate):
    # When the share of ones comes out next to 1/2, by chance or in truth, p·(1 − p) is flat there,
    # and the standard error next to 0: without the curvature up to 1e10 times too often.
    misses = [two_point_misses(statistic, p, blocks, rate, truth=p * (1 - p))
              for statistic in (variance, replace(variance, curvature=None))]
    assert max(misses[0].values()) <= ALLOWED
    assert misses[1][HIGH] > 10


# --- exactly: how many blocks an interval waits for ------------------------------------------


def enough(caution, rate):
    """The numbers of blocks from 2 on, and whether each is at least caution·t²."""
    blocks = np.arange(2, 4097)
    return blocks, blocks >= caution * stats.t.isf(rate / 2, blocks - 1) ** 2


@pytest.mark.parametrize(("rate", "first"), [
    (1e-3, 93), (1e-6, 204), (1e-9, 318), (LOOK_RATE, 397),
], ids="{:.3g}".format)
def test_no_interval_below_eight_t_squared_blocks(rate, first):
    blocks, allowed = enough(8, rate)
    signs = np.where(np.arange(4096) % 2, 1.0, -1.0)  # nothing but their number speaks against them
    given = [studentised(0.0, signs[:n], rate).reason == "" for n in blocks]
    assert given == allowed.tolist()
    assert blocks[allowed][0] == first
    assert first <= FIRST_LOOK  # or the first look would be drawn in vain


@pytest.mark.parametrize(("statistic", "caution"), [
    (mean, 8), (variance, 8), (ratio, 8), (slope(mean), 8), (kurtosis, 64), (slope(kurtosis), 64),
], ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("rate", [1e-3, LOOK_RATE], ids="{:.1e}".format)
def test_every_statistic_waits_for_its_blocks(statistic, caution, rate):
    blocks, allowed = enough(caution, rate)
    first = int(blocks[allowed][0])
    x = generator("waits").choice([3.0, 5.0, 7.0], p=[0.1, 0.8, 0.1], size=(first, 32))
    values = {"ratio": (x[:, :16], x[:, 16:])}.get(statistic.name, x)
    if statistic.name.startswith("slope"):
        values = [(1, x[:, :16]), (2, x[:, 16:])]
    table = statistic.reduce(values)
    assert statistic.estimate(table, rate).reason == ""
    for n in (first - 1, first // 2, first // 8):
        found = statistic.estimate(table[:n], rate)
        assert (found.low, found.high) == (-math.inf, math.inf)
        assert found.reason == f"{n} blocks are too few at this error rate"


# --- by brute force at 1e-3 ------------------------------------------------------------------

RATE = 1e-3
REPLICATIONS = 2000  # 1 miss a side expected, 11 or more fail: the rule is caught
# for sure at some 21 times too many; the importance sampler below sees a factor of 1.5
TOKENS = 4


@dataclass(frozen=True)
class Question:
    """A statistic with values whose truth is known for every law of mean 0 and variance 1."""

    statistic: Statistic
    values: Callable
    truth: Callable

    def __str__(self):
        return self.statistic.name.replace(" ", "_")


MEAN = Question(mean, lambda x: x, lambda law: 0.0)
VARIANCE = Question(variance, lambda x: x, lambda law: 1.0)
KURTOSIS = Question(kurtosis, lambda x: x, lambda law: law.fourth_moment - 3)
RATIO = Question(ratio, lambda x: (x[:, :2] + 3, x[:, 2:] + 3), lambda law: 1.0)
SLOPE = Question(slope(mean), lambda x: [(d, d * (x[:, i] + 3)) for i, d in enumerate((1, 2, 4))],
                 lambda law: 1.0)


def brute(question, law, blocks, replications=REPLICATIONS):
    """How many replications miss low, and high."""
    counts = {LOW: 0, HIGH: 0}
    rng, truth = generator(str(question), law, blocks), question.truth(law)
    for _ in range(replications // 1000):
        for x in law.sample(rng, (1000, blocks, TOKENS)):
            statistic = question.statistic
            found = statistic.estimate(statistic.reduce(question.values(x)), RATE)
            for side in counts:
                counts[side] += missed(found, truth, side)
    return counts


def surely_above(count, replications=REPLICATIONS):
    """The miss ratio that the count proves: Clopper-Pearson's lower bound at 99.99 %."""
    lowest = special.betaincinv(count, replications - count + 1, 1e-4) if count else 0.0
    return lowest / (RATE / 2)


@pytest.mark.parametrize(("question", "law", "blocks"), [
    (MEAN, laws.laplace, 128), (MEAN, laws.exponential, 128), (VARIANCE, laws.laplace, 128),
    (VARIANCE, laws.exponential, 256),
    (RATIO, laws.exponential, 256), (SLOPE, laws.exponential, 128),
], ids=str)
def test_brute_force_finds_no_excess(question, law, blocks):
    counts = brute(question, law, blocks)
    assert max(map(surely_above, counts.values())) <= ALLOWED, counts


def test_brute_force_would_find_the_plain_t_interval_out():
    one = Question(plain_t(EXPONENTIAL).statistic, lambda x: x[:, :1], lambda law: 0.0)
    counts = brute(one, laws.exponential, 64, replications=10_000)
    assert surely_above(counts[LOW], 10_000) > ALLOWED


@pytest.mark.parametrize("law", [laws.normal, laws.exponential], ids=str)
def test_brute_force_found_kurtosis_missing_too_often_at_64_blocks(law):
    # Too low some 30 and 270 times too often (13 % of all intervals for the exponential law).
    # Without its rare large values a sample of x⁴ − 6x² looks neither wide nor skew.
    before = replace(KURTOSIS, statistic=unmended(KURTOSIS_8).statistic)
    assert surely_above(brute(before, law, 64, replications=1000)[LOW], 1000) > ALLOWED
    assert not any(brute(KURTOSIS, law, 64, replications=1000).values())  # waits for 699 blocks


def test_brute_force_finds_no_excess_for_kurtosis_any_more():
    counts = brute(KURTOSIS, laws.normal, 1024, replications=1000)
    assert max(surely_above(count, 1000) for count in counts.values()) <= ALLOWED, counts


def test_brute_force_on_the_median_of_several_values_a_block():
    # The median's interval costs a millisecond, and it cannot miss where the share of values
    # below the truth is within t = 3.4 standard errors of 1/2: only those beyond 2.5 are asked.
    x = laws.exponential.sample(generator("median"), (REPLICATIONS, 128, TOKENS))
    truth = math.log(2) - 1
    below = (x <= truth).mean(axis=2)
    far = np.abs(below.mean(axis=1) - 0.5) > 2.5 * below.std(axis=1) / math.sqrt(128)
    found = [median.estimate(table, RATE) for table in x[far]]
    for side in (LOW, HIGH):
        count = sum(missed(e, truth, side) for e in found)
        assert surely_above(count) <= ALLOWED


# --- in the far tail, by importance sampling -------------------------------------------------
#
# How the weights are made, selfcheck.tilt says. A poor tilt shows as a large relative error, which
# every test here bounds; that no region is overlooked is what Student's exact t for normal values
# and brute force at 1e-3 are there to show.

POPULATION = 4096


def continuous(name, quantiles):
    return of_values(name, mean, 0.0, quantiles)


def gamma(shape):
    return continuous(f"gamma-{shape}", lambda u: special.gammaincinv(shape, u) - shape)


def lognormal(sigma):
    return continuous(f"lognormal-{sigma}",
                      lambda u: np.exp(sigma * special.ndtri(u)) - math.exp(sigma**2 / 2))


@lru_cache
def scores_of(law, d_k, tokens):
    return scores(*law.draw(generator("scores", law, d_k), POPULATION, tokens, d_k))


def noisy_ratio(values):
    top, bottom = generator("ratio").standard_exponential((2, POPULATION, values))
    return resampled(f"ratio-exponential-{values}", ratio, (top, bottom))


def kurtosis_of(d_k):
    return resampled(f"kurt-normal-d_k:{d_k}", kurtosis, scores_of(laws.normal, d_k, 31))


NORMAL, LAPLACE, EXPONENTIAL = (
    continuous(name, QUANTILES[name]) for name in ("normal", "laplace", "exponential"))
GAMMA_02, GAMMA_4 = gamma(0.2), gamma(4)  # skewness 4.5 and 1
LOGNORMAL = lognormal(0.25)  # skewness 0.78: of gamma's and lognormal's the most often missed
LAPLACE_SCORES = resampled("var-laplace-d_k:1", variance, scores_of(laws.laplace, 1, 11))
NORMAL_SCORES = resampled("var-normal-d_k:1", variance, scores_of(laws.normal, 1, 11))
WIDE_SCORES = resampled("var-normal-d_k:2", variance, scores_of(laws.normal, 2, 31))
WIDER_SCORES = resampled("var-normal-d_k:8", variance, scores_of(laws.normal, 8, 31))
KURTOSIS_2, KURTOSIS_8 = kurtosis_of(2), kurtosis_of(8)
RATIO_4, RATIO_8 = map(noisy_ratio, (4, 8))


def miss_ratio(population, blocks, rate, side, replications=800):
    """The miss ratio and its standard error."""
    rng = generator(str(population), blocks, f"{rate:.1e}", f"{side} {not population.corrected}")
    found = weights(population, [blocks], rate, side, replications, rng)[:, 0] / (rate / 2)
    return found.mean(), found.std() / math.sqrt(replications)


@pytest.mark.parametrize(("rate", "side"), [(1e-6, LOW), (1e-9, HIGH)])
def test_the_sampler_finds_students_t_exact_for_normal_values(rate, side):
    found, error = miss_ratio(plain_t(NORMAL), 64, rate, side, replications=3000)
    assert error < 0.05
    assert abs(found - 1) < 4 * error


def test_the_sampler_agrees_with_brute_force():
    found, error = miss_ratio(plain_t(EXPONENTIAL), 64, RATE, LOW, replications=3000)
    x = laws.exponential.sample(generator("agree"), (100_000, 64))
    count = (x.mean(axis=1) / x.std(axis=1, ddof=1) * 8 < special.stdtrit(63, RATE / 2)).sum()
    expected = count / 100_000 / (RATE / 2)
    assert abs(found - expected) < 4 * math.hypot(error, expected / math.sqrt(count))


# All block values here are symmetric or skew to the right: too low is the dangerous side. The
# replications, last, are as many as the estimate and 3 standard errors need to fit below ALLOWED.
WITHIN = [
    (NORMAL, 512, LOOK_RATE, LOW, 500), (LAPLACE, 256, 1e-6, HIGH, 500),
    (LAPLACE, 512, LOOK_RATE, LOW, 1000), (EXPONENTIAL, 1024, 1e-6, LOW, 600),
    (GAMMA_4, 128, RATE, LOW, 500),
    (GAMMA_4, 256, 1e-6, LOW, 600), (GAMMA_4, 512, LOOK_RATE, LOW, 700),
    (LOGNORMAL, 512, LOOK_RATE, LOW, 4000), (LAPLACE_SCORES, 1024, 1e-6, LOW, 600),
    (WIDE_SCORES, 512, LOOK_RATE, LOW, 3000), (WIDER_SCORES, 512, 1e-9, HIGH, 500),
    (WIDER_SCORES, 512, LOOK_RATE, LOW, 500), (RATIO_8, 512, 1e-9, LOW, 2000),
    (RATIO_4, 1024, 1e-9, LOW, 2000), (RATIO_4, 4096, LOOK_RATE, LOW, 400),
]  # of a kurtosis, which takes long: `mcverify selfcheck`


def readable(value):
    if isinstance(value, float):
        return f"{value:.1e}"
    return {LOW: "low", HIGH: "high"}.get(value, str(value))


@pytest.mark.parametrize(("population", "blocks", "rate", "side", "replications"), WITHIN,
                         ids=readable)
def test_far_misses_stay_within_what_is_allowed(population, blocks, rate, side, replications):
    found, error = miss_ratio(population, blocks, rate, side, replications=replications)
    assert error < 0.15 * found
    assert found + 3 * error <= ALLOWED


@pytest.mark.parametrize(("population", "blocks", "rate", "times"), [
    (GAMMA_4, 512, LOOK_RATE, 25), (GAMMA_02, 256, 1e-9, 5e4), (LAPLACE_SCORES, 256, 1e-9, 4000),
    (NORMAL_SCORES, 512, LOOK_RATE, 200), (RATIO_4, 512, LOOK_RATE, 25),
], ids=readable)
def test_plain_t_misses_far_more_often(population, blocks, rate, times):
    found, error = miss_ratio(plain_t(population), blocks, rate, LOW, replications=500)
    assert error < 0.15 * found
    assert found - 3 * error > times


@pytest.mark.parametrize(("population", "blocks", "rate", "times"), [
    (GAMMA_4, 64, LOOK_RATE, 50), (GAMMA_4, 128, LOOK_RATE, 5),
    (NORMAL_SCORES, 64, LOOK_RATE, 100), (LAPLACE_SCORES, 64, LOOK_RATE, 100),
    (KURTOSIS_8, 1024, LOOK_RATE, 2.6),
], ids=readable)
def test_where_the_unmended_rule_missed_too_often_the_rule_waits(population, blocks, rate, times):
    # First order is not enough while t² is more than about blocks/8, whatever δ says, for a sample
    # that misses so far does not show its skewness.
    found, error = miss_ratio(unmended(population), blocks, rate, LOW, replications=500)
    assert error < 0.15 * found
    assert found - 3 * error > times
    rng = generator("waits", str(population))
    table = population.draw(rng, rng.integers(population.features.shape[1], size=blocks))
    assert "too few" in population.statistic.estimate(table, rate).reason


def test_a_ratio_that_does_not_pay_for_its_lean_misses_too_often():
    # The skewness of its influence does not tell of it: the same case is one of WITHIN.
    found, error = miss_ratio(unmended(RATIO_4), 1024, LOOK_RATE, LOW, replications=1000)
    assert error < 0.15 * found
    assert found - 3 * error > ALLOWED


def test_kurtosis_of_scores_at_d_k_2_is_within_what_is_allowed():
    # The influence has skewness 3.8, its parts less, and a sample without the largest blocks shows
    # neither: what is left misses some 1.3 times too often.
    found, error = miss_ratio(KURTOSIS_2, 4096, LOOK_RATE, LOW, replications=1000)
    assert error < 0.15 * found
    assert found + 3 * error <= ALLOWED


# --- looks in sequence -----------------------------------------------------------------------

CASE_RATE = 1e-2
SEQUENCES = 2500
PEEKS = [stop for _, stop in looks()[:3]]  # 512 to 2048 blocks
EARLY_PEEKS = [64, 128, 256, 512, 1024]  # the full CASE_RATE allows 57 blocks
DRAWS = {"normal": laws.normal, "exponential": laws.exponential}
CLAIMED = {
    "inside": ((-0.02, 0.02), Verdict.REFUTED, 1.0),
    "at-the-edge": ((0.0, 0.5), Verdict.REFUTED, 0.5),
    "nothing-but-the-truth": ((0.0, 0.0), Verdict.REFUTED, 1.0),
    "just-missing-the-truth": ((1e-9, 0.5), Verdict.CONFIRMED, 0.5),
}


def peeking(population, rate_a_look, peeks, sequences):
    """How many sequences of looks at a mean of 0 end in each false verdict."""
    rng, counts = generator("looks", str(population)), dict.fromkeys(CLAIMED, 0)
    for _ in range(sequences):
        table = DRAWS[str(population)].sample(rng, (peeks[-1], 1))
        for claim in false_verdicts(population, table, peeks, rate_a_look, CLAIMED):
            counts[claim] += 1
    return counts


@pytest.mark.parametrize("population", [NORMAL, EXPONENTIAL], ids=str)
def test_peeking_costs_no_more_than_the_case_allows(population):
    counts = peeking(population, CASE_RATE / LOOKS, PEEKS, SEQUENCES)
    for claim, count in counts.items():
        highest = special.betaincinv(count + 1, SEQUENCES - count, 0.9999)  # Clopper-Pearson
        assert highest <= CASE_RATE, (claim, count)
    assert counts["nothing-but-the-truth"] > 0  # at this rate false verdicts do happen


def test_a_suite_of_honest_tests_fails_at_five_per_cent_and_not_at_a_cases_rate():
    tables = generator("honest").standard_exponential((1000, 512, 1)) - 1
    alarms = 0
    for table in tables:
        found = mean.estimate(table, LOOK_RATE)
        alarms += abs(found.value) > special.stdtrit(511, 0.975) * found.stderr
        assert judge((found.low, found.high), (-1e-9, 1e-9)) is Verdict.INCONCLUSIVE
    assert 25 < alarms < 90  # of 1000 honest tests


def test_peeking_at_the_full_rate_exceeds_it():
    count = peeking(NORMAL, CASE_RATE, EARLY_PEEKS, 1500)["nothing-but-the-truth"]
    assert special.betaincinv(count, 1500 - count + 1, 1e-4) > CASE_RATE, count
