"""From a results folder to what its page shows: rows, counts, and how the folder was made."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import metadata
from typing import Any

from mcverify.declare.fault import UsageError
from mcverify.report.surprises import surprises
from mcverify.results.folder import Results
from mcverify.results.ledger import OPEN, SIGNS, deciding, ledger_of
from mcverify.results.reader import departure, outcome_of
from mcverify.verdict import (
    COLOURS,
    LOOKS,
    OUTCOMES,
    SUITE_ERROR_RATE,
    Terms,
    budget,
)

# Of each claim its forest plots, then other pictures by name, then the style sheet of all. Each is
# SVG as it is drawn, and as it is shown once more.
Pictures = tuple[Mapping[str, Sequence[tuple[str, str]]], Mapping[str, tuple[str, str]], str]
Row = dict[str, Any]

# The marks of the pictures, as letters; each with the outcome whose colour it has.
MARKS = SIGNS | {outcome: (sign, outcome)
                 for outcome, sign in zip(OUTCOMES, "●■◇✖", strict=True)}
SHOWN = 5  # of the surprises


def contents(results: Results, draw: Callable[[Results], Pictures]) -> dict[str, Any]:
    """All that the page is made of, by the names that its template uses.

    UsageError if the folder holds no verdicts, or a damaged table.
    """
    verdicts = results.read("verdicts")
    if not verdicts:
        raise UsageError(f"{results.folder}: has no verdicts yet; run `mcverify run` first")
    terms = results.terms() or Terms()
    options = "".join(f" {each}" for each in terms.options if each != "--seed 0")
    forests, pictures, style = draw(results)
    claims = {row["claim"]: row for row in _claims(results, verdicts, options)}
    statements, alone = _tables(results, claims, forests, options)
    tables = {name: rows for name, rows in (("statements", statements), ("claims", alone)) if rows}
    standing = {row["id"] for row in statements if row["kind"] != OPEN}
    kinds = [row["kind"] for rows in tables.values() for row in rows]
    return _sums(verdicts, terms.error_rate) | {
        "tables": tables, "kinds": [kind for kind in MARKS if kind in kinds],
        "counts": Counter(kinds), "notes": list(dict.fromkeys(row["note"] for row in statements)),
        "surprises": [each for each in surprises(results) if each.statement in standing][:SHOWN],
        "unexpected": [row for row in claims.values() if not row["as_declared"]],
        "pictures": {name: part[0] for name, part in pictures.items()}, "style": style,
        "marks": MARKS, "colours": COLOURS, "package": metadata("mcverify"),
        "folder": results.folder, "run": results.about()}


def _sums(verdicts: list[dict[str, str]], rate: float) -> Row:
    """How much was judged, at which error rates."""
    cases, near, refuted = (sum(int(row[name]) for row in verdicts)
                            for name in ("cases", "controls", "controls_refuted"))
    return {"claims": len(verdicts), "cases": cases, "near": near, "missed": near - refuted,
            "looks": LOOKS, "rate": rate, "suite_rate": SUITE_ERROR_RATE,
            "budget": budget(cases + near, rate).split(": ", 1)[1]}


def _tables(
    results: Results, claims: Mapping[str, Row],
    forests: Mapping[str, Sequence[tuple[str, str]]], options: str,
) -> tuple[list[Row], list[Row]]:
    """The rows of statements, and those of the claims that decide none of them."""
    drawn: set[str] = set()

    def shown(names: Sequence[str]) -> list[Row]:
        """Claims with their pictures, each of which is drawn once in a page."""
        listed = [claims[name] | {"pictures": [part[name in drawn] for part in forests[name]],
                                  "first": name not in drawn} for name in names]
        drawn.update(names)
        return listed

    names = {statement: [row["claim"] for row in rows]
             for statement, rows in deciding(claims.values()).items()}
    statements = [_statement(row, shown(names.get(row["id"], [])), options)
                  for row in ledger_of(results).to_dict("records")]
    return statements, [row | {"claims": shown([name])} for name, row in claims.items()
                        if name not in drawn]


def _claims(results: Results, verdicts: list[dict[str, str]], options: str) -> Iterator[Row]:
    """A row a claim."""
    near: dict[str, list[Row]] = {}
    for row in results.read("controls"):
        at, _, changed = row["case"].removeprefix(row["claim"]).strip("-").rpartition("control-")
        near.setdefault(row["claim"], []).append(row | {"changed": changed, "at": at.strip("-")})
    for row in verdicts:
        yield row | {
            "id": row["claim"], "note": "", "kind": outcome_of(row), "text": row["sentence"],
            "correction": "", "as_declared": not departure(row), "basis": row.get("basis", ""),
            "near": near.get(row["claim"], []), "reasons": list(dict.fromkeys(
                case["reason"] for case in results.read(row["claim"]) if case["reason"])),
            "command": f"mcverify run {shlex.quote(_word(row))}{options}"}


def _statement(row: Row, claims: list[Row], options: str) -> Row:
    """A row of the ledger, with the command that judges all claims which decide it."""
    files = [_word(claim) for claim in claims if _word(claim) != claim["claim"]]
    words = shlex.join([row["id"], *files])
    return {"id": row["id"], "note": row["note"], "kind": row["judgement"],
            "text": row["statement"], "correction": row["correction"], "claims": claims,
            "cases": sum(int(claim["cases"]) for claim in claims), "basis": "",
            "command": f"mcverify run {words}{options}" if claims else ""}


def _word(row: Mapping[str, str]) -> str:
    """The word by which `mcverify run` knows a claim: its name, or its file and name."""
    file = row.get("origin", "")
    return f"{file}::{row['claim']}" if file.endswith(".py") else row["claim"]
