"""From claims to digests of all that their results depend on, and to those where it has changed."""

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from mcverify.declare.claim import Claim
from mcverify.declare.imports import PACKAGE
from mcverify.declare.loading import loaded_from
from mcverify.declare.origins import source
from mcverify.declare.parts import ALL, Part, digest, looked_at_once, text_of, words_of
from mcverify.declare.reach import defines, reached
from mcverify.results.folder import Results, version_of
from mcverify.results.reader import departure
from mcverify.results.rows import SOURCE_COLUMNS

# What judges every claim, and what writes its rows.
ENGINE = ((PACKAGE / "judge" / "run.py", ("run",)),
          (PACKAGE / "results" / "rows.py", ("case_row", "control_row", "verdict_row")))
ATLAS = ((PACKAGE / "judge" / "atlas.py", ("atlas",)),
         (PACKAGE / "results" / "rows.py", ("cell",)))
Roots = Sequence[tuple[Path, Sequence[str]]]
ROOMS = ("laws", "theory", "attention", "statistic")  # what else is of mcverify is the judge's
NUMBERS = {"numpy", "scipy"}  # packages on which all numbers depend
WHY = {"source": "their own text", "imports": "what they import", "judge": "the judge",
       "packages": "packages"} | {room: room for room in ROOMS}
NEW = "want of results that tell their source"
WRONG = "results not as declared"


@looked_at_once()
def sources_of(claims: Iterable[Claim]) -> dict[Claim, dict[str, str]]:
    """The claims' rows in sources.csv."""
    digests, rows = _Digests(ENGINE), {}
    for claim in claims:
        file = loaded_from(claim) or source(claim)
        names = sorted({claim.name, claim.body.__name__})
        known = [name for name in names if defines(file, name)]
        rows[claim] = {"claim": claim.name, **digests.row(file, known or [ALL])}
    return rows


def sources_of_the_atlas(name: str) -> dict[str, str]:
    """The row of the table that a run of all claims writes beside theirs."""
    return {"claim": name, **_Digests(ATLAS[1:]).row(*ATLAS[0])}


def why_changed(claims: Iterable[Claim], results: Results) -> dict[Claim, str]:
    """The claims that are to be judged again, each with the first reason.

    So are those with no results in the folder, with results that are not as declared, or of which
    anything has changed that the results depend on. A comment counts for nothing.
    """
    known = {row["claim"]: row for row in results.read("sources")}
    verdicts = {row["claim"]: row for row in results.read("verdicts")}
    claims, reasons = list(claims), {}
    now = sources_of(claims)
    for claim in claims:
        row = verdicts.get(claim.name)
        if row is None or claim.name not in known or not results.file(claim.name).exists():
            reasons[claim] = NEW
        elif departure(row):
            reasons[claim] = WRONG
        elif change := changed(now[claim], known[claim.name]):
            reasons[claim] = change
    return reasons


def changed(now: dict[str, str], before: dict[str, str]) -> str:
    """The first thing that has changed between two rows; "" if nothing has."""
    return next((WHY[name] for name in SOURCE_COLUMNS if now[name] != before[name]), "")


class _Digests:
    """Digests of parts, each made once; those of ``behind`` are in every row."""

    def __init__(self, behind: Roots) -> None:
        self.made: dict[Part, str] = {}
        self.behind = frozenset(part for file, names in behind for part in reached(file, names)[0])
        self.common = self._columns(self.behind, PACKAGE / "judge" / "run.py")

    def row(self, file: Path, names: Sequence[str]) -> dict[str, str]:
        """What stands in the columns for these definitions of a file."""
        parts, packages = reached(file, names, self.behind)
        own = self._columns(parts, file)
        own["source"] += [text_of(Part(file, name), docstrings=True) for name in names]
        return {name: digest(both) if (both := self.common[name] + texts) else ""
                for name, texts in own.items()} | {
            "packages": " ".join(f"{name}-{version_of(name)}"
                                 for name in sorted(packages | NUMBERS))}

    def _columns(self, parts: Iterable[Part], own: Path) -> dict[str, list[str]]:
        columns: dict[str, list[str]] = {name: [] for name in SOURCE_COLUMNS[1:-1]}
        for part in sorted(parts):
            if part not in self.made:
                self.made[part] = _digest_of(part)
            column, told = _place(part.file, own)
            columns[column].append(f"{told}:{part.name}:{self.made[part]}")
        return columns


def _digest_of(part: Part) -> str:
    """The digest of a part's text, and of the files of data that it names."""
    return digest([text_of(part), *(text for word in sorted(words_of(part))
                                    for text in _data(word, part.file))])


@lru_cache(maxsize=4096)
def _place(file: Path, own: Path) -> tuple[str, str]:
    """Of which column a file is, for a claim in its own one, and the way to it."""
    inside = file.is_relative_to(PACKAGE)
    told = os.path.relpath(file, PACKAGE if inside else own.parent)
    if file == own and file != PACKAGE / "judge" / "run.py":
        return "source", told
    if not inside or file.parent.name == "claims":
        return "imports", told
    room = file.relative_to(PACKAGE).parts[0]
    return room if room in ROOMS else "judge", told


def _data(word: str, file: Path) -> list[str]:
    """A file of data that a text names, as words and a digest; nothing if there is none."""
    homes = [PACKAGE / "data"] if file.is_relative_to(PACKAGE) else [file.parent, Path.cwd()]
    for place in (home / word for home in homes):
        if place.is_file() and place.suffix != ".py":
            return [word, _digest(place, place.stat().st_mtime_ns)]
    return []


@lru_cache(maxsize=256)
def _digest(file: Path, changed: int) -> str:
    return digest([file.read_bytes().hex()])

