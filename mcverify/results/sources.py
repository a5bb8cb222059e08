"""From claims to digests of all that their results depend on, and to those where it has changed."""

import os
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mcverify.declare.claim import Claim
from mcverify.declare.discover import loaded_from, source
from mcverify.declare.imports import PACKAGE
from mcverify.declare.parts import ALL, Part, digest, text_of, words_of
from mcverify.declare.reach import defines, reached
from mcverify.results.folder import SOURCE_COLUMNS, Results

# What judges every claim, and what writes its rows.
ENGINE = ((PACKAGE / "judge" / "run.py", ("run",)),
          (PACKAGE / "results" / "folder.py", ("case_row", "control_row", "verdict_row")))
ATLAS = ((PACKAGE / "judge" / "atlas.py", ("atlas",)),
         (PACKAGE / "results" / "folder.py", ("cell",)))
ROOMS = ("laws", "theory", "attention", "statistic")  # what else is of mcverify is the judge's
NUMBERS = {"numpy", "scipy"}  # packages on which all numbers depend
WHY = {"source": "their own text", "imports": "what they import", "judge": "the judge",
       "packages": "packages"} | {room: room for room in ROOMS}
NEW = "want of results that tell their source"
WRONG = "results not as declared"


def sources_of(claim: Claim) -> dict[str, str]:
    """A claim's row in sources.csv."""
    file = loaded_from(claim) or source(claim)
    names = {claim.name, claim.body.__name__}
    known = [name for name in sorted(names) if defines(file, name)]
    return {"claim": claim.name, **_row(((file, tuple(known or [ALL])), *ENGINE), file)}


def sources_of_the_atlas(name: str) -> dict[str, str]:
    """The row of the table that a run of all claims writes beside theirs."""
    return {"claim": name, **_row(ATLAS, ATLAS[0][0])}


def why_changed(claims: Iterable[Claim], results: Results) -> dict[Claim, str]:
    """The claims that are to be judged again, each with the first reason.

    So are those with no results in the folder, with results that are not as declared, or of which
    anything has changed that the results depend on. A comment counts for nothing.
    """
    known = {row["claim"]: row for row in results.read("sources")}
    verdicts = {row["claim"]: row for row in results.read("verdicts")}
    found = {}
    for claim in claims:
        row = verdicts.get(claim.name)
        if row is None or claim.name not in known or not results.file(claim.name).exists():
            found[claim] = NEW
        elif (row["verdict"] != row["expected"] or row["errors"] != "0"
              or row["controls"] != row["controls_refuted"]):
            found[claim] = WRONG
        elif change := changed(sources_of(claim), known[claim.name]):
            found[claim] = change
    return found


def changed(now: dict[str, str], before: dict[str, str]) -> str:
    """The first thing that has changed between two rows; "" if nothing has."""
    return next((WHY[name] for name in SOURCE_COLUMNS if now[name] != before[name]), "")


def _row(roots: tuple[tuple[Path, tuple[str, ...]], ...], own: Path) -> dict[str, str]:
    columns: dict[str, list[str]] = {name: [] for name in SOURCE_COLUMNS[1:-1]}
    parts, packages = _reached(*roots[0])
    for file, names in roots[1:]:
        parts |= _reached(file, names)[0]
    named = {Part(file, name) for file, names in roots[:1] for name in names}
    for part in sorted(parts):
        told = f"{os.path.relpath(part.file, own.parent)}:{part.name}"
        columns[_column(part.file, own)] += [told, text_of(part, docstrings=part in named)]
        columns["imports"] += [text for word in sorted(words_of(part))
                               for text in _data(word, part.file)]
    return {name: digest(texts) if texts else "" for name, texts in columns.items()} | {
        "packages": " ".join(f"{name}-{_version(name)}" for name in sorted(packages | NUMBERS))}


@lru_cache(maxsize=1024)
def _reached(file: Path, names: tuple[str, ...]) -> tuple[frozenset[Part], frozenset[str]]:
    return reached(file, list(names))


def _column(file: Path, own: Path) -> str:
    """Of which column a file is, for a claim in its own one."""
    if file == own:
        return "source"
    if not file.is_relative_to(PACKAGE) or file.parent.name == "claims":
        return "imports"
    room = file.relative_to(PACKAGE).parts[0]
    return room if room in ROOMS else "judge"


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


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # of another name than its module
        return ""
