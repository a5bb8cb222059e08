"""The ledger: every statement once, every claim with a statement, judgements and verdicts agree."""

import pandas as pd
import pytest
from conftest import RESULTS

from mcverify import Verdict, discover
from mcverify.declare import statement_ids
from mcverify.ledger import JUDGEMENTS, OPEN, ledger, statements

CLAIMS = discover()
TABLE = ledger(CLAIMS).set_index("id")


def test_every_statement_has_one_row():
    ids = [f"A{i}" for i in range(1, 24)] + [f"B{i}" for i in range(1, 38)] + [
        f"C{i}" for i in range(1, 8)]
    assert list(statements()["id"]) == ids
    assert set(statements()["judgement"]) <= set(JUDGEMENTS)
    assert (statements()["statement"] != "").all()


def test_every_claim_names_a_statement():
    for claim in CLAIMS:
        names = statement_ids(claim.decides)
        assert names, claim.name
        assert set(names) <= set(TABLE.index), claim.name


@pytest.mark.parametrize("name", TABLE.index)
def test_judgements_have_the_claims_they_need(name):
    row = TABLE.loc[name]
    verdicts = {claim.expect for claim in CLAIMS if name in statement_ids(claim.decides)}
    if row["judgement"] == OPEN:
        assert not verdicts
    elif row["judgement"] == "false":
        assert {Verdict.REFUTED, Verdict.CONFIRMED} <= verdicts
    elif row["judgement"] != "not testable here":
        assert Verdict.CONFIRMED in verdicts


def test_the_committed_ledger_is_current():
    committed = pd.read_csv(RESULTS / "ledger.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(committed, ledger(CLAIMS))
