"""Calibration, measured: how often an interval misses the truth, over how often it may."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize, special, stats

from mcverify import laws
from mcverify.attention import scores
from mcverify.statistic import (
    Statistic,
    kurtosis,
    mean,
    median,
    proportion,
    quantile,
    ratio,
    slope,
    variance,
)
from mcverify.verdict import CASE_ERROR_RATE, LOOKS, Verdict, judge, looks

# A "miss ratio" is P(the interval lies beyond the truth on one side) over error_rate / 2. The two
# directions are judged apart: each kind of false verdict needs a miss on one side only.
LOW, HIGH = -1, +1  # the estimate is too low, too high
ALLOWED = 2.6  # what the design grants: the first-order correction for skewness leaves a remainder
LOOK_RATE = CASE_ERROR_RATE / LOOKS  # 6.7e-12: where the suite's verdicts are made
SIDES = pytest.mark.parametrize("side", [LOW, HIGH], ids=["low", "high"])


def generator(*key):
    """A stream of its own for each test, the same in every run."""
    spawn = [part if isinstance(part, int) else int.from_bytes(str(part).encode()) for part in key]
    return np.random.default_rng(np.random.SeedSequence([20240607, *spawn]))


def bounds(estimate, blocks, rate, plain):
    """The rule's interval, or the plain t interval that it replaces."""
    if not plain:
        return estimate.low, estimate.high
    half = -special.stdtrit(blocks - 1, rate / 2) * estimate.stderr
    return estimate.value - half, estimate.value + half


def missed(interval, truth, side):
    return truth < interval[0] if side == HIGH else interval[1] < truth


# --- exactly, by enumeration: values that take two values, and quantiles ---------------------


def two_point_misses(statistic, p, blocks, rate):
    """Both exact miss ratios for block values of 0 and 1: sums over the number of ones."""
    totals = {LOW: 0.0, HIGH: 0.0}
    chances = stats.binom.pmf(np.arange(blocks + 1), blocks, p) / (rate / 2)
    for ones, chance in enumerate(chances):
        found = statistic.estimate((np.arange(blocks) < ones).astype(float)[:, None], rate)
        for side in totals:
            totals[side] += chance * missed((found.low, found.high), p, side)
    return totals


@pytest.mark.parametrize("rate", [1e-3, 1e-9, LOOK_RATE], ids="{:.1e}".format)
@pytest.mark.parametrize("blocks", [64, 256])
@pytest.mark.parametrize("p", [0.003, 0.1, 0.5])
def test_proportion_never_exceeds_its_rate(p, blocks, rate):
    misses = two_point_misses(proportion, p, blocks, rate)
    assert max(misses.values()) <= 1  # Chernoff's bound leaves no remainder


@SIDES
@pytest.mark.parametrize("rate", [1e-3, 1e-6, 1e-9, LOOK_RATE], ids="{:.1e}".format)
@pytest.mark.parametrize("blocks", [64, 256, 1024])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_quantiles_miss_no_more_than_allowed(level, blocks, rate, side):
    # With one value a block the interval runs between two order statistics whatever the law, so
    # its miss is a binomial tail: one call of the rule gives the exact answer.
    found = quantile(level).estimate(np.arange(float(blocks))[:, None], rate)
    tail = (stats.binom.cdf(found.low, blocks, level) if side == HIGH
            else stats.binom.sf(found.high, blocks, level))
    assert tail <= ALLOWED * rate / 2


@pytest.mark.parametrize("rate", [1e-3, 1e-6, 1e-9], ids="{:.0e}".format)
@pytest.mark.parametrize("blocks", [64, 256, 1024])
def test_mean_of_signs_misses_no_more_than_allowed(blocks, rate):
    assert max(two_point_misses(mean, 0.5, blocks, rate).values()) <= ALLOWED


# --- by brute force at 1e-3 ------------------------------------------------------------------

RATE = 1e-3
REPLICATIONS = 10_000  # 5 misses a side expected, 29 or more fail: the rule is caught
# for sure at some 10 times too many; the importance sampler below sees a factor of 1.5
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


def brute(question, law, blocks, plain=False, replications=REPLICATIONS):
    """How many replications miss low, and high."""
    counts = {LOW: 0, HIGH: 0}
    rng, truth = generator(str(question), law, blocks), question.truth(law)
    for _ in range(replications // 1000):
        for x in law.sample(rng, (1000, blocks, TOKENS)):
            statistic = question.statistic
            found = statistic.estimate(statistic.reduce(question.values(x)), RATE)
            interval = bounds(found, blocks, RATE, plain)
            for side in counts:
                counts[side] += missed(interval, truth, side)
    return counts


def surely_above(count, replications=REPLICATIONS):
    """The miss ratio that the count proves: Clopper-Pearson's lower bound at 99.99 %."""
    lowest = special.betaincinv(count, replications - count + 1, 1e-4) if count else 0.0
    return lowest / (RATE / 2)


@pytest.mark.parametrize(("question", "law", "blocks"), [
    (MEAN, laws.normal, 64), (MEAN, laws.laplace, 64), (MEAN, laws.exponential, 64),
    (VARIANCE, laws.laplace, 64), (VARIANCE, laws.rademacher, 64), (VARIANCE, laws.exponential, 64),
    (RATIO, laws.normal, 64), (RATIO, laws.exponential, 64), (KURTOSIS, laws.uniform, 64),
    (SLOPE, laws.exponential, 64), (MEAN, laws.exponential, 256),
], ids=str)
def test_brute_force_finds_no_excess(question, law, blocks):
    counts = brute(question, law, blocks)
    assert max(map(surely_above, counts.values())) <= ALLOWED, counts


def test_brute_force_would_find_the_plain_t_interval_out():
    one = Question(mean, lambda x: x[:, :1], lambda law: 0.0)
    counts = brute(one, laws.exponential, 64, plain=True)
    assert surely_above(counts[LOW]) > ALLOWED


@pytest.mark.parametrize("law", [laws.normal, laws.exponential], ids=str)
def test_brute_force_finds_kurtosis_missing_too_often(law):
    # The true state, not the wished one: too low some 30 and 270 times too often (13 % of all
    # intervals for the exponential law). Without its rare large values a sample of x⁴ − 6x² looks
    # neither wide nor skew, so δ is small when it should be large. Once mended, move both up.
    count = brute(KURTOSIS, law, 64, replications=2000)[LOW]
    assert surely_above(count, 2000) > ALLOWED


def test_brute_force_on_the_median_of_several_values_a_block():
    # The median's interval costs a millisecond, and it cannot miss where the share of values
    # below the truth is within two standard errors of 1/2: only the others are asked.
    x = laws.exponential.sample(generator("median"), (REPLICATIONS, 64, TOKENS))
    truth = math.log(2) - 1
    below = (x <= truth).mean(axis=2)
    far = np.abs(below.mean(axis=1) - 0.5) > 2 * below.std(axis=1) / 8
    found = [median.estimate(table, RATE) for table in x[far]]
    for side in (LOW, HIGH):
        count = sum(missed((e.low, e.high), truth, side) for e in found)
        assert surely_above(count) <= ALLOWED


# --- in the far tail, by importance sampling -------------------------------------------------
#
# The law of a block is cut into equally likely cells; cells are drawn with tilted probabilities,
# a block within its cell by the law itself. So the weight of a replication, the product over its
# blocks of (1/cells)/(tilted probability), is exact, whatever the tilt. A poor tilt shows as a
# large relative error, which every test here bounds; that no region is overlooked is what Student's
# exact t for normal values and brute force at 1e-3 are there to show.

CELLS = 1024
POPULATION = 4096


@dataclass(frozen=True, eq=False)  # by identity: it holds an array
class Population:
    """Blocks in equally likely cells, with the influence that stands for each cell."""

    name: str
    statistic: Statistic
    truth: float
    influence: np.ndarray
    draw: Callable  # (rng, cells) -> table

    def __str__(self):
        return self.name


def continuous(name, quantiles):
    """The mean of block values of mean 0, given by their quantile function; a cell is 1/1024."""
    middle = quantiles((np.arange(CELLS) + 0.5) / CELLS)
    return Population(name, mean, 0.0, middle, lambda rng, cells: quantiles(
        (cells + rng.random(cells.shape)) / CELLS)[..., None])


def resampled(name, statistic, values):
    """Blocks resampled from a table, as laws.measured does: that table is the law, exactly."""
    table = statistic.reduce(values)
    truth, influence = statistic.influence(table)
    if statistic is variance:  # of the law itself: without the correction for a sample's bias
        truth = table[:, 1].mean() + table[:, 0].var()
    return Population(name, statistic, truth, influence, lambda rng, cells: table[cells])


def gamma(shape):
    return continuous(f"gamma-{shape}", lambda u: special.gammaincinv(shape, u) - shape)


def scores_of(law, d_k, tokens):
    return scores(*law.draw(generator("scores", law, d_k), POPULATION, tokens, d_k))


def noisy_ratio():
    top, bottom = generator("ratio").standard_exponential((2, POPULATION, 4))
    return resampled("ratio-exponential", ratio, (top, bottom))


NORMAL = continuous("normal", special.ndtri)
LAPLACE = continuous("laplace", lambda u: np.where(
    u < 0.5, np.log(2 * np.minimum(u, 0.5)), -np.log(2 * (1 - np.maximum(u, 0.5)))))
EXPONENTIAL = continuous("exponential", lambda u: -np.log1p(-u) - 1)
GAMMA_4, GAMMA_02 = gamma(4), gamma(0.2)  # skewness 1 and 4.5
CHI_SQUARE = continuous("chi-square", lambda u: special.ndtri((1 + u) / 2) ** 2 - 1)  # 2.8
LAPLACE_SCORES = resampled("var-laplace-d_k:1", variance, scores_of(laws.laplace, 1, 11))
NORMAL_SCORES = resampled("var-normal-d_k:1", variance, scores_of(laws.normal, 1, 11))
WIDER_SCORES = resampled("var-normal-d_k:8", variance, scores_of(laws.normal, 8, 31))
KURTOSIS_SCORES = resampled("kurt-normal-d_k:8", kurtosis, scores_of(laws.normal, 8, 31))
NOISY_RATIO = noisy_ratio()


def room(q, y, blocks, t, per_skewness):
    """How far beyond a miss the law q of y stands, and how far from being too skew: both >= 0."""
    centre = q @ y
    spread = math.sqrt(q @ (y - centre) ** 2 + 1e-12)
    delta = per_skewness * abs(q @ (y - centre) ** 3) / spread**3
    return [centre * math.sqrt(blocks) / spread - t - delta, 0.5 - delta]


def tilted(y, blocks, rate, side, plain):
    """Log probabilities of the cells: the nearest law under which a miss on that side is typical.

    Nearest in relative entropy, among the exponential families in y, y² and y³: a miss needs a
    mean on one side, a spread too small for it, and a skewness that lets the interval stand.
    """
    y = side * (y - y.mean()) / y.std()
    t = -special.stdtrit(blocks - 1, rate / 2)
    per_skewness = 0 if plain else (2 * t * t + 1) / (6 * math.sqrt(blocks))
    basis = np.stack([y, y**2, y**3])
    basis /= basis.std(axis=1, keepdims=True)

    def log_q(theta):
        return special.log_softmax(theta @ basis)

    def entropy(theta):
        found = log_q(theta)
        return 10 * float(np.exp(found) @ (found + math.log(len(y))))  # 10: for the stopping rule

    def beyond(theta):
        return room(np.exp(log_q(theta)), y, blocks, t, per_skewness)

    tries = [optimize.minimize(entropy, start, method="SLSQP", options={"maxiter": 200},
                               constraints={"type": "ineq", "fun": beyond})
             for start in ([0.3, -0.1, 0.0], [1.0, -0.5, -0.3])]
    return log_q(min((x for x in tries if min(beyond(x.x)) > -0.02), key=lambda x: x.fun).x)


def miss_ratio(population, blocks, rate, side, plain=False, replications=800):
    """The miss ratio and its standard error."""
    rng = generator(str(population), blocks, f"{rate:.1e}", f"{side} {plain}")
    log_q = tilted(population.influence, blocks, rate, side, plain)
    weight, steps = -log_q - math.log(len(log_q)), np.cumsum(np.exp(log_q))
    weights = np.zeros(replications)
    for i in range(replications):
        cells = np.searchsorted(steps, rng.random(blocks) * steps[-1], side="right")
        found = population.statistic.estimate(population.draw(rng, cells), rate)
        if missed(bounds(found, blocks, rate, plain), population.truth, side):
            weights[i] = math.exp(weight[cells].sum())
    weights /= rate / 2
    return weights.mean(), weights.std() / math.sqrt(replications)


@SIDES
@pytest.mark.parametrize("rate", [1e-6, 1e-9], ids="{:.0e}".format)
def test_the_sampler_finds_students_t_exact_for_normal_values(rate, side):
    found, error = miss_ratio(NORMAL, 64, rate, side, plain=True, replications=3000)
    assert error < 0.05
    assert abs(found - 1) < 4 * error


def test_the_sampler_agrees_with_brute_force():
    found, error = miss_ratio(EXPONENTIAL, 64, RATE, LOW, plain=True, replications=3000)
    x = laws.exponential.sample(generator("agree"), (100_000, 64))
    count = (x.mean(axis=1) / x.std(axis=1, ddof=1) * 8 < special.stdtrit(63, RATE / 2)).sum()
    expected = count / 100_000 / (RATE / 2)
    assert abs(found - expected) < 4 * math.hypot(error, expected / math.sqrt(count))


# All block values here are symmetric or skew to the right: too low is the dangerous side.
WITHIN = [
    (NORMAL, 64, 1e-6, LOW), (NORMAL, 64, 1e-9, HIGH), (NORMAL, 256, LOOK_RATE, LOW),
    (LAPLACE, 256, 1e-6, HIGH), (LAPLACE, 256, 1e-9, LOW),
    (EXPONENTIAL, 64, 1e-6, LOW), (EXPONENTIAL, 256, 1e-9, LOW), (EXPONENTIAL, 1024, 1e-6, LOW),
    (EXPONENTIAL, 1024, 1e-6, HIGH), (EXPONENTIAL, 4096, 1e-9, LOW),
    (GAMMA_4, 256, 1e-6, LOW), (GAMMA_4, 256, 1e-9, LOW), (GAMMA_4, 512, LOOK_RATE, LOW),
    (CHI_SQUARE, 256, 1e-6, LOW), (CHI_SQUARE, 2048, 1e-6, LOW),
    (LAPLACE_SCORES, 256, 1e-9, LOW), (LAPLACE_SCORES, 1024, 1e-6, LOW),
    (NORMAL_SCORES, 256, LOOK_RATE, LOW), (WIDER_SCORES, 256, 1e-9, LOW),
    (WIDER_SCORES, 256, 1e-9, HIGH), (WIDER_SCORES, 512, LOOK_RATE, LOW),
]


def readable(value):
    if isinstance(value, float):
        return f"{value:.1e}"
    return {LOW: "low", HIGH: "high"}.get(value, str(value))


@pytest.mark.parametrize(("population", "blocks", "rate", "side"), WITHIN, ids=readable)
def test_far_misses_stay_within_what_is_allowed(population, blocks, rate, side):
    found, error = miss_ratio(population, blocks, rate, side)
    assert error < 0.15 * found
    assert found + 3 * error <= ALLOWED


@pytest.mark.parametrize(("population", "blocks", "rate", "times"), [
    (EXPONENTIAL, 256, 1e-9, 500), (GAMMA_4, 256, 1e-9, 25), (GAMMA_02, 256, 1e-9, 5e4),
    (CHI_SQUARE, 256, 1e-9, 4000), (LAPLACE_SCORES, 256, 1e-9, 4000),
    (NORMAL_SCORES, 256, LOOK_RATE, 1000),
], ids=readable)
def test_plain_t_misses_far_more_often(population, blocks, rate, times):
    found, error = miss_ratio(population, blocks, rate, LOW, plain=True, replications=500)
    assert error < 0.15 * found
    assert found - 3 * error > times


@pytest.mark.parametrize(("population", "blocks", "rate"), [
    (GAMMA_4, 64, 1e-6), (GAMMA_4, 64, 1e-9), (GAMMA_4, 64, LOOK_RATE), (GAMMA_4, 128, LOOK_RATE),
    (NORMAL_SCORES, 64, LOOK_RATE), (LAPLACE_SCORES, 64, LOOK_RATE),
    (KURTOSIS_SCORES, 256, LOOK_RATE), (KURTOSIS_SCORES, 1024, LOOK_RATE),
    (NOISY_RATIO, 1024, LOOK_RATE),
], ids=readable)
def test_where_the_rule_misses_more_often_than_allowed(population, blocks, rate):
    # The true state, not the wished one. Means and variances: first order is not enough while t²
    # is more than about blocks/8, whatever δ says, for a sample that misses so far does not show
    # its skewness. Ratios and kurtosis: their curvature is not in the influence's skewness. The
    # rows of a cause that is mended belong in WITHIN.
    found, error = miss_ratio(population, blocks, rate, LOW)
    assert error < 0.15 * found
    assert found - 3 * error > ALLOWED


# --- looks in sequence -----------------------------------------------------------------------

CASE_RATE = 1e-2
SEQUENCES = 4000
PEEKS = [stop for _, stop in looks()[:5]]  # 64 to 1024 blocks
DRAWS = {"normal": laws.normal, "exponential": laws.exponential}
CLAIMED = {
    "inside": ((-0.02, 0.02), Verdict.REFUTED),
    "at-the-edge": ((0.0, 0.5), Verdict.REFUTED),
    "nothing-but-the-truth": ((0.0, 0.0), Verdict.REFUTED),
    "just-missing-the-truth": ((1e-9, 0.5), Verdict.CONFIRMED),
}


def false_verdicts(name, rate_a_look, sequences=SEQUENCES):
    """How many sequences of looks at a mean of 0 end in each false verdict."""
    rng, counts = generator("looks", name), dict.fromkeys(CLAIMED, 0)
    for _ in range(sequences):
        table = DRAWS[name].sample(rng, (PEEKS[-1], 1))
        seen = [mean.estimate(table[:stop], rate_a_look) for stop in PEEKS]
        for claim, (claimed, false) in CLAIMED.items():
            verdicts = (judge((found.low, found.high), claimed) for found in seen)
            decided = next((v for v in verdicts if v != Verdict.INCONCLUSIVE), None)
            counts[claim] += decided == false
    return counts


@pytest.mark.parametrize("name", DRAWS)
def test_peeking_costs_no_more_than_the_case_allows(name):
    for claim, count in false_verdicts(name, CASE_RATE / LOOKS).items():
        highest = special.betaincinv(count + 1, SEQUENCES - count, 0.9999)  # Clopper-Pearson
        assert highest <= CASE_RATE, (claim, count)


def test_peeking_at_the_full_rate_exceeds_it():
    count = false_verdicts("normal", CASE_RATE, 1500)["nothing-but-the-truth"]
    assert special.betaincinv(count, 1500 - count + 1, 1e-4) > CASE_RATE, count
