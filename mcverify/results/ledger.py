"""From what the notes say, statement by statement, to who decides it and how."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from mcverify.declare.claim import Claim, statement_ids

STATEMENTS = Path(__file__).parents[1] / "claims" / "statements.csv"
JUDGEMENTS = ("holds", "holds if", "false", "not testable here")
OPEN = "open"  # no claim decides the statement yet


def statements() -> pd.DataFrame:
    """What the notes say: id, note, statement, judgement, correction, one row a statement.

    >>> statements().set_index("id").loc["A1", "judgement"]
    'holds'
    """
    return pd.read_csv(STATEMENTS, dtype=str, keep_default_na=False)


def ledger(claims: Iterable[Claim]) -> pd.DataFrame:
    """Each statement with the claims that decide it; judged open while there is none.

    A statement that is not testable here needs no claim.
    """
    table = statements()
    deciding: dict[str, list[str]] = {}
    for claim in claims:
        for name in statement_ids(claim.decides):
            deciding.setdefault(name, []).append(claim.name)
    table["claims"] = [" ".join(sorted(deciding.get(name, []))) for name in table["id"]]
    undecided = (table["claims"] == "") & (table["judgement"] != "not testable here")
    table.loc[undecided, ["judgement", "correction"]] = [OPEN, ""]
    return table
