"""The living proof: every case of every claim is judged, and compared with its committed row.

Of claims that train models the committed rows are looked at, and judged by `mcverify run training`.
"""

import pandas as pd
import pytest
from committed import RESULTS, committed_rows

from mcverify import Verdict, discover
from mcverify.declare.names import ATLAS
from mcverify.judge.atlas import atlas
from mcverify.results.rows import case_row, settings_row

CLAIMS = discover()
QUICK = [claim for claim in CLAIMS if not claim.slow]
CASES = [case for claim in QUICK for case in claim.cases()]
CONTROLS = [case for claim in QUICK for case in claim.control_cases()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_claim(case, findings):
    finding = findings[str(case)]
    if not finding.as_declared:
        pytest.fail(str(finding), pytrace=False)
    row, committed = case_row(finding), committed_rows(case.claim).get(str(case))
    if committed is None or not same(row, committed):
        pytest.fail(f"results/claims/{case.claim.name}.csv is stale: it says {committed}, and the "
                    f"draws say {row}; make it anew with `mcverify run`", pytrace=False)


@pytest.mark.parametrize("case", CONTROLS, ids=str)
def test_control(case, findings):
    """Near misses are refuted: no claim is there that cannot fail."""
    finding = findings[str(case)]
    if not finding.as_declared:
        pytest.fail(str(finding), pytrace=False)


def test_every_claim_that_is_confirmed_has_a_control():
    confirmed = [claim for claim in CLAIMS if claim.expect is Verdict.CONFIRMED]
    assert [claim.name for claim in confirmed if not claim.control_cases()] == []


def test_committed_controls_are_those_of_the_claims_and_all_refuted():
    table = pd.read_csv(RESULTS / "controls.csv", keep_default_na=False)
    controls = [str(case) for claim in CLAIMS for case in claim.control_cases()]
    assert sorted(table["case"]) == sorted(controls)
    assert set(table["verdict"]) == {"REFUTED"}


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.slow], ids=repr)
def test_committed_rows_of_slow_claims_are_as_declared(claim):
    rows = committed_rows(claim)
    assert list(rows) == [str(case) for case in claim.cases()]
    for case, row in zip(claim.cases(), rows.values(), strict=True):
        assert row["verdict"] == row["expected"] == claim.expect, str(case)
        assert {name: row[name] for name in settings_row(case)} == settings_row(case)


def same(row, committed):
    """Whether two rows agree; the last of six digits may differ from machine to machine."""
    numbers = ["estimate", "stderr", "low", "high", "claimed_low", "claimed_high"]
    texts = [name for name in row if name not in numbers]
    scale = max(abs(float(row["estimate"])), float(row["stderr"]))
    return (row.keys() == committed.keys()
            and all(row[name] == committed[name] for name in texts)
            and all(float(row[name]) == pytest.approx(float(committed[name]), rel=2e-5,
                                                      abs=2e-5 * scale, nan_ok=True)
                    for name in numbers))


def test_the_atlas_is_current():
    table = pd.read_csv(RESULTS / "claims" / f"{ATLAS}.csv")
    part = atlas(seed=0, jobs=2, widths=[4, 64], keys=[2, 128])
    found = part.merge(table, on=["d_k", "keys", "scale"], suffixes=("", "_committed"))
    assert len(found) == len(part) == 12
    for name in part.columns.drop("scale"):
        committed = found[name if name in ("d_k", "keys") else f"{name}_committed"]
        assert found[name].to_numpy() == pytest.approx(committed.to_numpy(), rel=2e-5, abs=1e-12)


@pytest.mark.parametrize("number", ["entropy_share", "max_weight"])
def test_the_atlas_agrees_with_quadrature_at_every_point(number):
    table = pd.read_csv(RESULTS / "claims" / f"{ATLAS}.csv")
    assert len(table) == 396
    difference, stderr = table[number] - table[f"exact_{number}"], table[f"{number}_stderr"]
    assert (difference.abs() <= 6 * stderr + 1e-6 * table[number]).all()  # six digits are kept
    z = (difference / stderr)[stderr > 1e-5 * table[number]]
    assert len(z) > 250
    assert 0.7 < z.std() < 1.3


def test_results_hold_these_claims_and_no_others():
    table = pd.read_csv(RESULTS / "verdicts.csv", keep_default_na=False)
    assert sorted(table["claim"]) == sorted(claim.name for claim in CLAIMS)
    files = {file.stem for file in (RESULTS / "claims").glob("*.csv")}
    assert files == {ATLAS, *table["claim"]}
    sentences = dict(zip(table["claim"], table["sentence"], strict=True))
    assert sentences == {claim.name: claim.sentence for claim in CLAIMS}
