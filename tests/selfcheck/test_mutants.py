"""The self-check can fail: each part of the rules, broken on purpose, turns a row of it red."""

from functools import lru_cache

import pytest
from scipy import special

from mcverify.judge.world import generator
from mcverify.selfcheck.misses import counted, weighed
from mcverify.selfcheck.populations import POPULATIONS
from mcverify.statistic.betting import threshold
from mcverify.statistic.catoni import catoni
from mcverify.statistic.studentised import studentised
from mcverify.verdict import CASE_ERROR_RATE, look_rate

LOOK = look_rate(CASE_ERROR_RATE)
RULE, STUDENTISED = "mcverify.statistic.studentised.", "mcverify.statistic.base.studentised"
NORMAL, SCORES = ("mean", "calibrated", "normal"), ("variance", "calibrated", "scores, d_k 2")


law = lru_cache(lambda key: POPULATIONS[key]())


def rare(key, blocks, replications, rate=LOOK):
    return weighed(law(key), blocks, rate, replications, generator(1, str(key)))


def common(key, blocks, samples):
    return counted(law(key), [blocks], samples, generator(1, str(key)))


def changed(**parts):
    """The studentised interval with other arguments."""
    names = ["value", "influence", "error_rate", "parts", "curvature", "caution", "lean"]

    def rule(*arguments):
        given = dict(zip(names, arguments, strict=True))
        return studentised(**given | {name: part(given[name]) for name, part in parts.items()})
    return rule


def a_third(blocks, error_rate):
    return threshold(blocks, error_rate) / 3


MUTANTS = {  # the name: its place, what stands there instead, and the rows that must turn red
    "a normal quantile": (
        RULE + "quantile_of_t", lambda blocks, rate: -special.ndtri(rate / 2),
        rare, NORMAL, 1024, 400, 1e-26),
    "no first order": (RULE + "first_order", lambda skewness, t: 0.0, rare, SCORES, 512, 400),
    "skewness of the wrong sign": (
        RULE + "first_order", lambda skewness, t: -abs(skewness) * (2 * t * t + 1) / 6,
        rare, SCORES, 512, 200),
    "no second order": (RULE + "second_order", lambda excess, t, blocks: 0.0,
                        rare, ("mean", "calibrated", "skew laplace"), 512, 200),
    "a rate that is not halved": (
        RULE + "quantile_of_t", lambda blocks, rate: -special.stdtrit(blocks - 1, rate),
        rare, NORMAL, 512, 500, 1e-3),
    "half the standard error": (
        STUDENTISED, changed(influence=lambda y: y / 2), common, NORMAL, 128, 1000),
    "no caution": (STUDENTISED, changed(caution=lambda _: 0.0), rare, SCORES, 64, 250),
    "a kurtosis that pays as a mean does": (
        STUDENTISED, changed(caution=lambda _: 8.0, parts=lambda _: None),
        common, ("kurtosis", "calibrated", "normal, four"), 128, 600),
    "no curvature": (STUDENTISED, changed(curvature=lambda _: 0.0),
                     rare, ("variance", "calibrated", "40 % ones"), 512, 200),
    "no lean": (STUDENTISED, changed(lean=lambda _: 0.0),
                rare, ("ratio", "calibrated", "normal"), 512, 200),
    "a third of the bound": ("mcverify.statistic.betting.threshold", a_third,
                             rare, ("mean", "bound", "rademacher"), 16, 40, 1e-3),
    "a third of the order": ("mcverify.statistic.quantiles.threshold", a_third,
                             rare, ("median", "order", "normal"), 32, 50, 1e-3),
    "a quarter of the variance": (
        "mcverify.statistic.base.catoni", lambda x, variance, rate: catoni(x, variance / 4, rate),
        rare, ("mean", "moments", "normal"), 64, 80, 1e-2),
}


# One of each interval, counted and weighed; the others take most of the time.
QUICK = {"half the standard error", "no caution", "a quarter of the variance"}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in MUTANTS])
def test_a_broken_rule_turns_a_row_red_and_the_rule_itself_does_not(name, monkeypatch):
    place, rule, judged, *how = MUTANTS[name]
    assert {row.verdict for row in judged(*how)} <= {"ok", "open", "waits"}
    monkeypatch.setattr(place, rule)
    found = judged(*how)
    assert "high" in {row.verdict for row in found if row.check.startswith("miss")}
    if name == "half the standard error":
        assert found[-1].verdict == "low"  # of the standard error over the scatter
