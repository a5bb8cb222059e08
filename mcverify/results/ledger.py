"""From what the notes say, statement by statement, to who decides it and how."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mcverify.declare.claim import Claim, statement_ids
from mcverify.results.folder import Results
from mcverify.results.reader import departure
from mcverify.verdict import ERROR

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row", bound=Mapping[Any, Any])
STATEMENTS = Path(__file__).parents[1] / "claims" / "statements.csv"
NOT_TESTABLE = "not testable here"
JUDGEMENTS = ("holds", "holds if", "false", NOT_TESTABLE)
OPEN = "open"  # no claim decides the statement, or one that does is not as declared
# A sign that is read without its colour, and the outcome whose colour it has.
SIGNS = {"holds": ("✓", "CONFIRMED"), "holds if": ("◐", "CONFIRMED"), "false": ("✗", "REFUTED"),
         NOT_TESTABLE: ("–", "INCONCLUSIVE"), OPEN: ("?", ERROR)}


def statements() -> "pd.DataFrame":
    """What the notes say: id, note, statement, judgement, correction, one row a statement.

    >>> statements().set_index("id").loc["A1", "judgement"]
    'holds'
    """
    import pandas as pd

    return pd.read_csv(STATEMENTS, dtype=str, keep_default_na=False)


def ledger(verdicts: Iterable[Mapping[str, str]]) -> "pd.DataFrame":
    """Each statement with the claims that decide it, by the rows of verdicts.csv.

    A judgement stands if claims decide the statement and each came out as declared, its near misses
    too; else it is open, and the correction says why. A statement that is not testable here needs
    no claim.

    >>> row = {"claim": "mine", "decides": "A4", "expected": "CONFIRMED", "verdict": "REFUTED"}
    >>> ledger([row]).set_index("id").loc["A4", ["judgement", "correction"]].to_list()
    ['open', 'mine is REFUTED, declared CONFIRMED']
    """
    table = statements()
    claims = deciding(sorted(verdicts, key=lambda row: row["claim"]))
    table["claims"] = [" ".join(row["claim"] for row in claims.get(name, []))
                       for name in table["id"]]
    for index, name, judgement in zip(table.index, table["id"], table["judgement"], strict=True):
        why = "; ".join(filter(None, map(departure, claims.get(name, []))))
        if why or (name not in claims and judgement != NOT_TESTABLE):
            table.loc[index, ["judgement", "correction"]] = [OPEN, why or "no claim decides it"]
    return table


def deciding(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """By the id of each statement that is decided the rows of the claims that decide it."""
    claims: dict[str, list[Row]] = {}
    for row in rows:
        for name in statement_ids(row["decides"]):
            claims.setdefault(name, []).append(row)
    return claims


def ledger_of(results: Results) -> "pd.DataFrame":
    """The ledger of a folder: all statements after a run of all claims, else those it decides."""
    table = ledger(results.read("verdicts"))
    return table if results.file("ledger").exists() else table[table["claims"] != ""]


def as_declared(claims: Iterable[Claim]) -> list[dict[str, str]]:
    """The rows of verdicts that claims are declared to get, for a ledger before any run."""
    return [{"claim": claim.name, "decides": claim.decides, "expected": str(claim.expect),
             "verdict": str(claim.expect)} for claim in claims]
