"""The self-check against exact rates; its rows, its report, and statistics of one's own."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcverify.selfcheck as package
from mcverify import statistic
from mcverify.cli.main import main
from mcverify.judge.world import generator
from mcverify.selfcheck import Effort, passed, report, selfcheck
from mcverify.selfcheck.misses import weighed
from mcverify.selfcheck.populations import CONTAMINATED, POPULATIONS, Population
from mcverify.selfcheck.rows import COUNTED, WEIGHED, Row, miss_row, missed
from mcverify.statistic import Basis, mean

LAW = Population("a law", mean, np.arange(3.0)[:, None])


@pytest.mark.parametrize(("low", "high", "given", "verdict"), [
    (0.09, 0.11, 1, "ok"), (0.21, 0.3, 1, "high"), (0.01, 0.04, 1, "low"), (0.1, 0.21, 1, "open"),
    (0.04, 0.1, 1, "open"), (0.0, 1.0, 1, "open"), (0.0, 0.0, 0, "waits"), (0.3, 0.4, 0, "high"),
])
def test_a_row_is_judged_by_what_is_sure(low, high, given, verdict):
    row = Row("mean", "calibrated", "", False, 512, "", COUNTED, 0.1, (low + high) / 2, low,
              high, 0.5, 2.0, given, 100, 10)
    assert row.verdict == replace(row, contaminated=True, basis="bound").verdict == verdict
    known = replace(row, contaminated=True).verdict
    assert known == ("known to fail" if verdict == "high" else verdict)


def test_weights_that_few_replications_carry_are_not_trusted():
    found = [mean.estimate(np.arange(3.0)[:, None], 0.5)]
    steady, one, none = (miss_row(LAW, 512, 1.0, "", weights, found, WEIGHED)
                         for weights in (np.ones(100), np.eye(100)[0] * 100, np.zeros(100)))
    assert (steady.high, steady.effective) == (1, pytest.approx(100))
    assert (one.measured, one.effective, one.high) == (1, 1, math.inf)
    assert (none.measured, none.high) == (0, math.inf)


@pytest.mark.parametrize(("statistic", "share", "blocks", "rate"), [
    (mean, 0.5, 512, 1e-10), (mean.within(0, 1), 0.3, 64, 1e-6),
], ids=["calibrated", "bound"])
def test_weights_find_the_exact_rates_of_zeros_and_ones(statistic, share, blocks, rate):
    found = [statistic.estimate((np.arange(blocks) < ones).astype(float)[:, None], rate)
             for ones in range(blocks + 1)]

    class Coin(Population):
        def estimate(self, sample, error_rate):
            return found[int(sample.sum())]

    law = Coin("coin", statistic, (np.arange(1000) < 1000 * share).astype(float)[:, None])
    wrong = [missed(each, law.truth) for each in found]
    chances = stats.binom.pmf(np.arange(blocks + 1), blocks, share)
    for row in weighed(law, blocks, rate, 400, generator(3, "coin")):
        exact = chances @ [f"miss {side} at" in row.check for side in wrong]
        assert 0 < row.low <= exact <= row.high < 2 * exact


@pytest.fixture(scope="module")
def small():
    keys = {("mean", "calibrated", "1 % at 40"), ("mean", "moments", "1 % at 40")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "SHORT", Effort((128,), 1200, ((64, None),), 0, frozenset(keys)))
        return selfcheck(short=True, jobs=1)


def test_what_is_known_to_fail_is_told_and_no_failure(small):
    assert passed(small), report(small)
    known = small[small["verdict"] == "known to fail"]
    assert (set(known["basis"]), known["ratio"].max() > 100) == ({"calibrated"}, True)
    assert {1e-2 / 2, 1e-3 / 2} <= set(known["nominal"])
    assert f"known to fail: {len(known)} checks" in report(small)
    assert report(small).splitlines()[-1].startswith("passed: ")


@pytest.mark.parametrize("verdict", ["high", "low"])
def test_a_failing_row_fails_and_is_reported(small, verdict):
    broken = small.copy()
    broken.loc[3, "verdict"] = verdict
    assert not passed(broken)
    assert f"too {verdict}: mean (calibrated)" in report(broken)
    assert report(broken).splitlines()[-1].startswith("failed: ")


@pytest.mark.slow
def test_the_short_check_passes_in_any_number_of_processes():
    one, two, other = (selfcheck(True, seed, jobs) for seed, jobs in ((0, 1), (0, 2), (1, 2)))
    assert passed(one), report(one)
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


def test_every_statistic_is_judged_and_each_basis_on_all_that_is_contaminated():
    judged = {(name, basis) for name, basis, _ in POPULATIONS}
    kinds = {name.replace("_", " ") for name in statistic.__all__ if name[0].islower()}
    assert {kind for kind in kinds for name, _ in judged if f"{name} ".startswith(f"{kind} ")} == (
        kinds - {"exact"})
    informed = {name for name, basis in judged if basis in ("bound", "moments")}
    assert informed - {name for name, basis in judged if basis == "calibrated"} == {
        "proportion", "difference of proportion and proportion"}  # which have no other interval
    assert {(basis, law) for _, basis, law in POPULATIONS} >= {
        (basis, law) for law in CONTAMINATED for basis in Basis if basis is not Basis.EXACT}


OWN = '''
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import Statistic

own = Statistic("own", lambda values: values.mean(axis=(1, 2)),
                lambda t: (float(t.mean()), INFLUENCE), moments=3)

@claim(own, equals=3, within=absolute(1), over=grid(law=laws.normal, d_k=1, tokens=4))
def mean_of_q(q):
    """The mean of queries moved by 3 is 3."""
    return q + 3
'''


@pytest.mark.parametrize(("influence", "status"), [
    ("t - t.mean()", 0), ("(t - t.mean()) / 1000", 1), ("t", 1),
], ids=["right", "unit", "centring"])
def test_a_statistic_of_ones_own_is_judged_on_the_blocks_of_its_claim(
    influence, status, tmp_path, monkeypatch, capsys,
):
    monkeypatch.setattr(package, "LONG", Effort((128,), 300, (), 0))
    (tmp_path / "own.py").write_text(OWN.replace("INFLUENCE", influence))
    out = ["--jobs", "1", "--out", str(tmp_path)]
    assert main(["selfcheck", str(tmp_path / "own.py"), *out]) == status, capsys.readouterr().out
    frame = pd.read_csv(tmp_path / "selfcheck_own.csv")
    assert set(frame["data"]) == {"mean_of_q-normal-d_k:1-tokens:4"}
