"""The self-check against exact rates, and against rules that are known to be worse."""

import itertools
import math
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from worse_intervals import first_order, plain_t, plain_z, too_sure

import mcverify.selfcheck as package
from mcverify.selfcheck import COLUMNS, LONG, count, far, passed, report, selfcheck
from mcverify.selfcheck.data import COINS, LAWS, POPULATIONS, QUANTILES, population
from mcverify.selfcheck.exactly import Coin, Order, binomial, miss_rates
from mcverify.selfcheck.limits import ALLOWED, LOOK_RATE, most, quantile_of_t, uneven
from mcverify.selfcheck.population import Population, of_shares, of_values
from mcverify.selfcheck.row import Row, counted, scatter, weighed
from mcverify.selfcheck.sight import straight
from mcverify.selfcheck.stream import stream
from mcverify.selfcheck.tilt import HIGH, LOW, SIDES, missed, weights
from mcverify.statistic import (
    Statistic,
    mean,
    median,
    proportion,
    quantile,
)
from mcverify.verdict import Verdict

SURE = 5.5  # standard errors: 4e-8
BOTH = pytest.mark.parametrize("side", [LOW, HIGH], ids=["low", "high"])


def checks(rows, verdict):
    return {row.check for row in rows if row.verdict == verdict}


# --- what a row may be -----------------------------------------------------------------------


def row(low, high, nominal=0.1, least=0.5, most=2.0):
    return Row("mean", "normal", 512, "", nominal, (low + high) / 2, 0, low, high, least, most, "")


@pytest.mark.parametrize(("low", "high", "verdict"), [
    (0.09, 0.11, "ok"), (0.21, 0.3, "high"), (0.01, 0.04, "low"), (0.1, 0.21, "open"),
    (0.04, 0.1, "open"), (0.0, 1.0, "open"),
])
def test_a_row_is_judged_by_what_is_sure(low, high, verdict):
    assert row(low, high).verdict == verdict


def test_a_share_without_a_nominal_value_is_noted():
    assert row(0, 1, nominal=math.nan).verdict == "noted"


@given(st.integers(0, 50), st.integers(50, 1000))
def test_counted_bounds_are_clopper_and_pearsons(found, samples):
    interval = stats.binomtest(found, samples).proportion_ci(1 - 2 * special.ndtr(-3))
    at = {"statistic": "", "data": "", "blocks": 1, "check": ""}
    row = counted(at, 0.1, found, samples, 1.0)
    assert (row.low, row.high) == pytest.approx(tuple(interval), rel=1e-6, abs=1e-15)


def test_weights_that_few_replications_carry_are_not_trusted():
    at = {"statistic": "", "data": "", "blocks": 1, "check": ""}
    steady = weighed(at, 1.0, np.ones(100), 1.5)
    assert (steady.verdict, steady.effective, steady.mc_error) == ("ok", 100, 0)
    one = weighed(at, 1.0, np.eye(100)[0] * 100, 1.5)
    assert (one.measured, one.effective, one.verdict) == (1, 1, "open")
    none = weighed(at, 1.0, np.zeros(100), 1.5)
    assert ("no tilted" in none.note, none.verdict) == (True, "open")


def test_scatter_error_is_that_of_replications():
    rng = np.random.default_rng(1)
    at = {"statistic": "", "data": "", "blocks": 1, "check": ""}
    found = [scatter(at, rng.standard_normal(400), np.ones(400), 0.05) for _ in range(600)]
    spread = np.std([row.measured for row in found])
    assert np.mean([row.mc_error for row in found]) == pytest.approx(spread, rel=0.16)
    assert spread == pytest.approx(1 / math.sqrt(2 * 400), rel=0.16)


# --- how far an interval may be off ----------------------------------------------------------


@pytest.mark.slow
def test_the_second_order_is_what_the_first_order_rule_misses():
    blocks = 4096
    # Skewness 14/5^1.5 and excess kurtosis 177/25 − 3, by the moments of exponential values.
    law = first_order(population("mean", "skew_laplace"))
    found = weights(law, [blocks], LOOK_RATE, LOW, 1500, stream(1))[:, 0]
    ratio, error = found.mean() / LOOK_RATE * 2, found.std() / math.sqrt(1500) / LOOK_RATE * 2
    t = quantile_of_t(LOOK_RATE, blocks)
    predicted = math.exp(t**4 / blocks * ((177 / 25 - 3) / 4 - 2 / 9 * 196 / 125))
    third = t**5 / blocks**1.5
    assert abs(ratio / predicted - 1) < SURE * error / predicted + 2 * third
    assert error < 0.08 * ratio


def test_limits_grow_with_what_is_hard():
    assert ALLOWED == 2.0
    assert most(1e-3, 8) == ALLOWED  # of orders that do not fall off nothing is known
    t = quantile_of_t(1e-3, 512)
    assert most(1e-3, 512) == pytest.approx(1.3 * math.exp(0.3 * t**5 / 512**1.5))
    assert most(1e-3, 512, 0.1) / most(1e-3, 512) == pytest.approx(math.exp(t / 20))
    assert 1.3 < most(1e-3, 512) < most(1e-4, 512) < most(LOOK_RATE, 512) == ALLOWED
    assert 1.3 < most(LOOK_RATE, 2**14) < most(LOOK_RATE, 2**10) < ALLOWED
    assert uneven(0.01, 512, 2.0) > uneven(0.05, 512, 2.0) > uneven(0.05, 4096, 2.0)


# --- data whose truth is known ---------------------------------------------------------------


@pytest.mark.parametrize("name", QUANTILES)
def test_quantile_functions_are_those_of_the_laws(name):
    # By the midpoint rule in v, u = Φ(v), where the powers of the quantile function are tame.
    v, step = np.linspace(-8, 8, 40_000, endpoint=False, retstep=True)
    v += step / 2
    x, weight = QUANTILES[name](special.ndtr(v)), step * stats.norm.pdf(v)
    fourth = LAWS[name].fourth_moment if name in LAWS else 177 / 25
    assert [weight @ x**k for k in (1, 2, 4)] == pytest.approx([0, 1, fourth], abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_blocks_of_all_cells_are_draws_of_the_law(name):
    drawn = of_values(name, mean, 0.0, QUANTILES[name]).sample(stream(2, name), 20_000)[:, 0]
    u = drawn + 1e-9 * stream(3, name).standard_normal(len(drawn))  # coins are tied
    law = np.sort(LAWS[name].sample(stream(4, name), (20_000,)))
    assert stats.ks_2samp(u, law + 1e-9 * stream(5, name).standard_normal(len(law))).pvalue > 1e-7


@pytest.mark.parametrize("key", [
    key for key in POPULATIONS if key[0] in ("mean", "ratio", "slope of mean")], ids=" ".join)
def test_the_first_feature_is_the_influence_and_the_truth_the_mean(key):
    law = population(*key)
    table = law.sample(stream(6, *key), 100_000)
    value, influence = law.statistic.influence(table)
    assert abs(value - law.truth) < SURE * influence.std() / math.sqrt(len(table))
    error, y, _, lean = law.seen(law.base)
    assert abs(error) < 1e-3
    assert law.base @ y**3 / (law.base @ y**2) ** 1.5 == pytest.approx(
        stats.skew(influence), abs=0.15, rel=0.2)  # cells cut the tails
    expected = law.statistic.lean(table) if law.statistic.lean else 0.0
    assert lean == pytest.approx(expected, abs=0.01)
    kept = law.features[0] @ y / np.linalg.norm(law.features[0]) / np.linalg.norm(y)
    assert kept == pytest.approx(1)


def test_a_quantiles_interval_sees_the_order_of_the_values_alone():
    u = stream(7).random((512, 4))
    for level in (0.5, 0.9):
        one, other = (quantile(level).estimate(x, 1e-6) for x in (u, QUANTILES["exponential"](u)))
        assert QUANTILES["exponential"](np.array([one.low, one.high])).tolist() == [
            other.low, other.high]


# --- exact rates -----------------------------------------------------------------------------


@given(st.integers(1, 300), st.floats(0.01, 0.99))
def test_binomial(n, p):
    assert binomial(n, p) == pytest.approx(stats.binom.pmf(np.arange(n + 1), n, p), rel=1e-9)


@BOTH
@pytest.mark.parametrize("p", [0.3, 0.5])
def test_rates_of_any_look_are_sums_over_all_sequences(p, side):
    stops, rate, coin = [2, 4, 7], 0.8, Coin("coin", proportion, p, p)
    each, ever = np.zeros(3), 0.0
    for sequence in itertools.product([0.0, 1.0], repeat=7):
        values = np.array(sequence)[:, None]
        wrong = [missed(proportion.estimate(values[:stop], rate), p, side) for stop in stops]
        chance = p ** sum(sequence) * (1 - p) ** (7 - sum(sequence))
        each += chance * np.array(wrong)
        ever += chance * any(wrong)
    assert ever >= each.max()
    assert (ever > each.max()) == ((p, side) != (0.3, LOW))
    assert miss_rates(coin, stops, rate, side) == pytest.approx([*each, ever], rel=1e-12)


@BOTH
def test_a_share_within_its_bound_never_errs_more_often(side):
    for rate in (1e-2, LOOK_RATE):
        assert 0 < miss_rates(COINS["proportion", "normal"], [512], rate, side)[0] <= rate / 2


# --- tilted replications against exact rates -------------------------------------------------


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(("tilted", "exact", "stops"), [
    (of_values("rademacher", mean, 0.0, QUANTILES["rademacher"]), COINS["mean", "rademacher"],
     [512, 1024, 2048]),
    (of_shares(0.5, 1, median), Order(0.5), [512, 1024]),
    (of_shares(0.9, 1, quantile(0.9)), Order(0.9), [512]),
], ids=["mean", "median", "quantile"])
def test_weights_find_exact_rates_far_out_and_in_sequence(tilted, exact, stops, side):
    many = 800 if tilted.statistic is mean else 150
    found = weights(tilted, stops, LOOK_RATE, side, many, stream(8, str(tilted), f"{side}"))
    error = found.std(axis=0) / math.sqrt(many)
    expected = np.array(miss_rates(exact, stops, LOOK_RATE, side))
    assert (np.abs(found.mean(axis=0) - expected) < SURE * error).all()
    assert error[-1] < 0.4 * expected[-1]


def test_counting_and_weighing_agree():
    law = population("mean", "exponential")
    rows = [*count.rows(law, 2000, [512, 1024], stream(9)),
            *far.rows(law, LOW, 400, 200, 2, stream(10))]
    one, other = (row for row in rows if (row.check, row.blocks) == ("miss low at 0.001", 512))
    assert {one.method, other.method} == {"counted", "weighed"}
    assert abs(one.measured - other.measured) < SURE * math.hypot(one.mc_error, other.mc_error)


def test_no_tilt_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="ask for more blocks"):
        weights(population("kurtosis", "normal"), [512], LOOK_RATE, LOW, 1, stream(0))


@pytest.mark.parametrize(("key", "blocks"), [
    (("mean", "skew_laplace"), 1024), (("variance", "scores, d_k 2"), 512),
    (("ratio", "normal"), 1024), (("slope of variance", "rademacher"), 1024),
], ids=str)
def test_no_region_is_overlooked_that_another_tilt_finds(key, blocks, monkeypatch):
    law = population(*key)
    one = weights(law, [blocks], 1e-6, LOW, 600, stream(20, *key))[:, 0]

    def by_influence(law, blocks, rate, side):
        y = law.seen(law.base)[1]
        spread = math.sqrt(law.base @ y**2)
        shift = side * quantile_of_t(rate, blocks) / math.sqrt(blocks) / spread
        return special.log_softmax(shift * y + np.log(law.base))

    monkeypatch.setattr("mcverify.selfcheck.tilt.tilted", by_influence)
    other = weights(law, [blocks], 1e-6, LOW, 600, stream(21, *key))[:, 0]
    error = math.hypot(one.std(), other.std()) / math.sqrt(600)
    assert abs(one.mean() - other.mean()) < SURE * error
    assert error < 0.25 * one.mean()


# --- what is left out cannot miss ------------------------------------------------------------


@given(st.integers(0, 2**32), st.sampled_from(
    [("mean", "exponential"), ("variance", "laplace"), ("ratio", "normal"), ("median", "four"),
     ("quantile 0.9", "four"), ("slope of variance", "rademacher")]), st.sampled_from([0.3, 0.01]))
def test_intervals_that_are_not_worked_out_hold_the_truth(seed, key, rate):
    law = population(*key)
    table = law.sample(np.random.default_rng(seed), 128)
    found = law.statistic.estimate(table, rate)
    if any(missed(found, law.own_truth, side) for side in SIDES):
        assert abs(law.pivot(table)) > law.inside(rate, 128)


@pytest.mark.parametrize("rate", [1e-2, 1e-3])
def test_misses_are_those_of_the_rule_itself(rate):
    law, rng = population("variance", "laplace"), stream(11)
    tables = np.split(law.sample(rng, 64 * 4000), 4000)
    counts = count._misses(law, tables, [law.pivot(table) for table in tables])
    for side in SIDES:
        found = sum(missed(law.statistic.estimate(table, rate), law.truth, side)
                    for table in tables)
        assert counts[rate, side] == found


# --- worse rules are found out ---------------------------------------------------------------


def test_plain_t_at_64_blocks_is_found_out():
    law = plain_t(population("mean", "exponential"))
    rows = count.rows(law, 1500, [64, 128], stream(12))
    assert {"miss low at 0.01", "miss low at 0.001"} <= checks(rows, "high")


def test_a_z_interval_is_found_out():
    law = plain_z(population("mean", "normal"))
    rows = count.rows(law, 2500, [8, 16], stream(13))
    assert {"miss low at 0.001", "miss high at 0.001"} <= checks(rows, "high")


def test_an_interval_off_by_a_factor_of_two_is_found_out_at_1e_3():
    law = population("mean", "normal")
    for judged, verdict in ((law, "ok"), (too_sure(law), "high")):
        rows = far._looks(judged, [512], 1e-3, HIGH, 1500, stream(14))
        assert checks(rows, verdict) == {"miss high at 0.001"}


@pytest.mark.slow
@pytest.mark.parametrize("key", [
    ("mean", "exponential"), ("variance", "laplace"), ("std", "normal"), ("ratio", "normal"),
    ("slope of mean", "normal"), ("slope of variance", "rademacher"),
    ("kurtosis", "scores, d_k 8"), ("median", "four"), ("quantile 0.9", "four"),
], ids=" ".join)
def test_the_long_check_sees_a_factor_of_two_in_every_statistic(key):
    law = population(*key)
    many = package.replications(key[0], LONG)
    for rate in far.RATES:
        stop = far.given_from(law, rate)
        rows = far._looks(too_sure(law), [stop], rate, LOW, many, stream(22, *key))
        honest = far._looks(law, [stop], rate, LOW, many, stream(23, *key))
        assert honest[0].verdict in ("ok", "open")
        assert rows[0].mc_error / rows[0].measured < 0.11
        # An interval that errs less than it may must err so much less to go unseen.
        assert rows[0].verdict == "high" or honest[0].ratio < 0.9


def test_a_rule_of_first_order_is_found_out_where_the_second_order_says_so():
    law = first_order(population("mean", "skew_laplace"))
    rows = far._looks(law, [512, 1024], LOOK_RATE, LOW, 1000, stream(15))
    assert "miss low at any of 2 looks, 8.3e-12 each" in checks(rows, "high")


def tokens_as_blocks(table):
    return float(table.mean()), table.ravel() - table.mean()


def blocks_of_tokens(name, influence):
    """Four tokens a block that are nearly the same, as scores of one query are."""
    law = of_values(name, mean, 0.0, QUANTILES["normal"])

    def draw(rng, cells):
        return law.draw(rng, cells) + 0.1 * rng.standard_normal((len(cells), 4))

    statistic = Statistic(name, lambda x: x, influence, moments=3)
    return Population(name, statistic, 0.0, *straight(law.features[0]), draw)


def test_tokens_that_count_as_independent_are_found_out_by_the_scatter():
    def honest(table):
        return mean.influence(table.mean(axis=1, keepdims=True))

    for influence, verdict in ((honest, "ok"), (tokens_as_blocks, "low")):
        law = blocks_of_tokens("tokens", influence)
        rows = count.scatter_rows(law, 64, 5000, stream(16))
        assert "standard error over scatter" in checks(rows, verdict)


@lru_cache
def false_alarms(looks, level):
    """P(abs(z) > its quantile at any look), for normal sums with equal steps: by recursion."""
    edge = -special.ndtri(level / 2)
    x, h = np.linspace(-1, 1, 401, retstep=True)
    weight = np.where(np.abs(x) < 1, h, h / 2)  # of the trapezoidal rule
    alive, previous = np.ones(1), np.zeros(1)
    for look in range(1, looks + 1):
        reach = edge * math.sqrt(look)
        step = np.exp(-((reach * x[:, None] - previous) ** 2) / 2) / math.sqrt(2 * math.pi)
        alive, previous = step @ alive * weight * reach, reach * x
    return 1 - alive.sum()


def test_peeking_a_hundred_times_at_five_per_cent_gives_38_per_cent_false_alarms():
    assert [round(false_alarms(n, 0.05), 3) for n in (1, 2, 5, 10)] == [
        0.05, 0.083, 0.142, 0.193]  # Armitage, McPherson and Rowe 1969, table 2
    sums = stream(17).standard_normal((20_000, 100)).cumsum(axis=1)
    alarms = (np.abs(sums) > -special.ndtri(0.025) * np.sqrt(np.arange(1, 101))).any(axis=1)
    assert alarms.mean() == pytest.approx(0.38, abs=0.02)
    assert alarms.mean() == pytest.approx(false_alarms(100, 0.05),
                                          abs=SURE * alarms.std() / math.sqrt(20_000))
    at = {"statistic": "", "data": "", "blocks": 100, "check": ""}
    assert counted(at, 0.05, int(alarms.sum()), 20_000, ALLOWED).verdict == "high"


def test_peeking_at_the_full_rate_is_found_out_by_its_false_verdicts():
    law, stops, found = plain_z(population("mean", "normal")), range(64, 1300, 64), 0
    for table in np.split(law.sample(stream(18), 1280 * 400), 400):
        found += bool(count.false_verdicts(law, table, stops, 0.05, {
            "refuted": ((-1e-9, 1e-9), Verdict.REFUTED, 1.0)}))
    at = {"statistic": "", "data": "", "blocks": 1280, "check": ""}
    assert counted(at, 0.05, found, 400, ALLOWED).verdict == "high"
    assert found / 400 == pytest.approx(false_alarms(20, 0.05), abs=SURE * 0.022)


# --- the whole -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short():
    return selfcheck(short=True, jobs=1)


def test_the_short_check_passes(short):
    assert list(short.columns) == [*COLUMNS, "seed"]
    assert passed(short), report(short)
    assert set(short["verdict"]) <= {"ok", "open", "noted"}
    assert (short["verdict"] == "ok").mean() > 0.5
    assert {"exact", "counted", "weighed"} == set(short["method"])
    assert "passed: " in report(short).splitlines()[-1]


def test_every_statistic_with_an_error_is_judged():
    judged = {name for name, _ in [*POPULATIONS, *COINS]}
    assert judged == {"mean", "variance", "std", "kurtosis", "ratio", "slope of mean",
                      "slope of variance", "median", "quantile 0.9", "proportion"}


@pytest.mark.parametrize("verdict", ["high", "low"])
def test_a_failing_row_fails_and_is_reported(short, verdict):
    broken = short.copy()
    broken.loc[3, "verdict"] = verdict
    assert not passed(broken)
    assert f"too {verdict}: {broken.loc[3, 'statistic']} of" in report(broken)
    assert report(broken).splitlines()[-1].startswith("failed: ")


@pytest.mark.slow
def test_the_table_does_not_depend_on_the_number_of_processes(monkeypatch):
    tiny = package.Effort(50, 50, 20, 20, 2, frozenset({("mean", "normal"), ("median", "one")}))
    monkeypatch.setattr(package, "SHORT", tiny)
    one, two, other = (selfcheck(short=True, seed=seed, jobs=jobs)
                       for seed, jobs in ((0, 1), (0, 2), (1, 1)))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


@pytest.mark.parametrize("seed", [-1, 0.5, "0"])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match="whole number"):
        selfcheck(short=True, seed=seed)


def test_no_population_is_too_skew_for_its_statistic(monkeypatch):
    for key in POPULATIONS:
        if key[0] != "kurtosis":  # their tables take a second each
            assert far.given_from(population(*key), LOOK_RATE) <= 2**15
    monkeypatch.setattr("mcverify.selfcheck.far.MAX_DELTA", 1e-4)
    with pytest.raises(ValueError, match="use more values a block"):
        far.given_from(population("mean", "exponential"), 1e-9)
