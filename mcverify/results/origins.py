"""Tell where the claims of a results folder come from, and which names are another's or gone."""

from collections.abc import Iterable
from pathlib import Path

from mcverify.declare.claim import Claim
from mcverify.results.folder import Results
from mcverify.results.rows import origin_from


def _origins(results: Results) -> dict[str, str]:
    """Where the claims in verdicts.csv come from, by their names."""
    return {row["claim"]: row.get("origin", "") for row in results.read("verdicts")}


def namesakes(results: Results, claims: Iterable[Claim]) -> dict[Claim, str]:
    """Of the claims whose names have results of another claim, where that one comes from."""
    known = _origins(results)
    return {claim: other for claim in claims if (other := known.get(claim.name, ""))
            and other != origin_from(claim, results.home)}


def check(results: Results, claims: Iterable[Claim]) -> None:
    """Raise ValueError if these claims may not be judged into the folder.

    So it is if a table that is read again is damaged (DamagedError), or holds the results of
    another claim of one of their names.
    """
    results.read("controls")
    for claim, other in namesakes(results, claims).items():
        raise ValueError(f"{claim.name}: {results.folder} holds the results of the claim of this "
                         f"name in {other}; rename one, or choose another --out")


def files_of(results: Results) -> list[Path]:
    """The files outside of packages that claims in verdicts.csv come from and that exist."""
    files = {results.home / origin for origin in _origins(results).values()
             if origin.endswith(".py")}
    return sorted(file for file in files if file.is_file())


def stale(results: Results, claims: Iterable[Claim]) -> list[str]:
    """The names in verdicts.csv that the origins of these claims no longer have."""
    names: dict[str, set[str]] = {}
    for claim in claims:
        names.setdefault(origin_from(claim, results.home), set()).add(claim.name)
    return [name for name, origin in _origins(results).items()
            if name not in names.get(origin, {name})]
