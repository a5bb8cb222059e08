"""The ledger: every statement once, every claim with a statement, judgements and verdicts agree."""

import pandas as pd
import pytest
from committed import RESULTS

from mcverify import Verdict, discover
from mcverify.cli.main import main
from mcverify.declare.claim import statement_ids
from mcverify.results.folder import Results
from mcverify.results.ledger import JUDGEMENTS, OPEN, ledger, statements

CLAIMS = discover()
VERDICTS = Results(RESULTS).read("verdicts")
TABLE = ledger(VERDICTS).set_index("id")


def test_every_statement_has_one_row():
    counts = statements().groupby("note", sort=False).size()
    ids = [f"{letter}{i + 1}" for letter, count in zip("ABC", counts, strict=True)
           for i in range(count)]
    assert list(statements()["id"]) == ids
    assert list(counts.index) == ["A", "B", "beyond"]
    assert (counts >= [23, 37, 7]).all()
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
    pd.testing.assert_frame_equal(committed, ledger(VERDICTS))


def test_the_command_prints_statements_and_who_decides_them(capsys):
    assert main(["ledger", "A7", "B26", "B36", "--out", str(RESULTS)]) == 0
    out = capsys.readouterr().out
    assert "A7  holds" in out
    assert "scaled_variance (CONFIRMED)" in out
    assert "geometric_mean_of_widths (REFUTED)" in out
    assert "B36 not testable here" in out
    out = " ".join(out.split("\n"))
    assert "1 holds, 1 false, 1 not testable here; `mcverify run ID` judges" in out
    assert main(["ledger", "--out", "nowhere"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name:<4}" in f"\n{out}" for name in TABLE.index)
    assert OPEN not in {line.split()[-1] for line in out.splitlines() if line[:1] in "ABC" and line}


def test_an_unknown_statement_is_told(capsys):
    assert main(["ledger", "A99"]) == 2
    assert "A99: no statement has this id" in capsys.readouterr().err


@pytest.mark.parametrize(("changes", "why"), [
    ({"verdict": "REFUTED"}, "wrong is REFUTED, declared CONFIRMED"),
    ({"verdict": "INCONCLUSIVE"}, "wrong is INCONCLUSIVE, declared CONFIRMED"),
    ({"errors": "2"}, "wrong has errors: 2"),
    ({"controls_refuted": "1"}, "wrong has a near miss that is not refuted")])
def test_a_statement_is_open_while_a_claim_that_names_it_is_not_as_declared(changes, why):
    wrong = VERDICTS[0] | {"claim": "wrong", "decides": "A5", "expected": "CONFIRMED",
                           "verdict": "CONFIRMED", "errors": "0", "controls": "3",
                           "controls_refuted": "3"}
    table = ledger([*VERDICTS, wrong]).set_index("id")
    assert table.loc["A5", "judgement"] == "holds"
    table = ledger([*VERDICTS, wrong | changes]).set_index("id")
    assert table.loc["A5", ["judgement", "correction"]].to_list() == [OPEN, why]
    assert (table.drop("A5")["judgement"] == TABLE.drop("A5")["judgement"]).all()


def test_no_statement_is_left_open():
    assert set(TABLE["judgement"]) <= set(JUDGEMENTS)
