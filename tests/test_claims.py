"""The living proof: every case of every claim is judged, and compared with its committed row."""

import pandas as pd
import pytest
from conftest import RESULTS, committed_rows

from mcverify import discover
from mcverify.results import case_row

CLAIMS = discover()
CASES = [case for claim in CLAIMS for case in claim.cases()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_claim(case, findings):
    finding = findings[str(case)]
    if not finding.as_declared:
        pytest.fail(str(finding), pytrace=False)
    row, committed = case_row(finding), committed_rows(case.claim).get(str(case))
    if committed is None or not same(row, committed):
        pytest.fail(f"results/claims/{case.claim.name}.csv is stale: it says {committed}, and the "
                    f"draws say {row}; make it anew with `mcverify run`", pytrace=False)


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


def test_results_hold_these_claims_and_no_others():
    table = pd.read_csv(RESULTS / "verdicts.csv", keep_default_na=False)
    assert sorted(table["claim"]) == sorted(claim.name for claim in CLAIMS)
    assert {file.stem for file in (RESULTS / "claims").glob("*.csv")} == set(table["claim"])
    sentences = dict(zip(table["claim"], table["sentence"], strict=True))
    assert sentences == {claim.name: claim.sentence for claim in CLAIMS}
