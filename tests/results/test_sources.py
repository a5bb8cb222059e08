"""Of mcverify's own claims, which a change of a file would have judged again."""

from functools import cache

import pytest

from mcverify import discover
from mcverify.declare.imports import PACKAGE
from mcverify.declare.origins import source
from mcverify.results import sources
from mcverify.results.sources import changed, sources_of

CLAIMS = [claim for claim in discover()
          if source(claim).stem in ("tails", "variance", "jacobian", "hand")]


@cache
def before():
    return sources_of(CLAIMS)


@pytest.fixture
def judged_again(monkeypatch):
    """The reasons by claims, after a change of all that a file of mcverify defines."""
    told = sources.text_of

    def after(file):
        before()
        monkeypatch.setattr(sources, "text_of", lambda part, docstrings=False: (
            told(part, docstrings) + ("changed" if part.file == PACKAGE / file else "")))
        now = sources_of(CLAIMS)
        return {claim: why for claim in CLAIMS if (why := changed(now[claim], before()[claim]))}

    return after


def test_what_has_not_changed_is_judged_by_nothing(judged_again):
    assert judged_again("cli/main.py") == judged_again("report/__init__.py") == {}
    assert judged_again("claims/precision.py") == judged_again("results/reader.py") == {}


@pytest.mark.parametrize(("file", "why"), [("judge/trial.py", "the judge"),
                                           ("verdict.py", "the judge"),
                                           ("declare/grid.py", "the judge"),
                                           ("statistic/studentised.py", "statistic")])
def test_what_judges_all_is_behind_all(judged_again, file, why):
    assert judged_again(file) == dict.fromkeys(CLAIMS, why)


def test_the_claims_of_a_file_have_no_others_behind_them(judged_again):
    assert judged_again("claims/tails.py") == {
        claim: "their own text" for claim in CLAIMS if source(claim).stem == "tails"}


@pytest.mark.parametrize(("file", "why", "stems"), [
    ("laws/coordinates_heavy.py", "laws", {"tails", "variance"}),
    ("attention/jacobian.py", "attention", {"jacobian"}),
    ("theory/enumeration.py", "theory", {"hand"}),
])
def test_laws_and_bodies_and_theory_are_behind_whom_they_serve(judged_again, file, why, stems):
    found = judged_again(file)
    assert {source(claim).stem for claim in found} <= stems
    assert set(found.values()) <= {why}
    assert len(found) < len(CLAIMS)
    for claim in CLAIMS:  # seen by another witness: the body's or the grid's own text
        if file.startswith("laws") and any("student-t" in str(case) for case in claim.cases()):
            assert claim in found


def test_data_that_a_law_reads_is_behind_its_claims(monkeypatch):
    claim = next(claim for claim in discover() if any("minilm" in str(c) for c in claim.cases()))
    row = sources_of([claim])[claim]
    monkeypatch.setattr(sources, "_digest", lambda file, changed: file.name)
    assert changed(sources_of([claim])[claim], row) == "laws"


def test_the_version_of_numpy_counts(monkeypatch):
    row = before()[CLAIMS[0]]
    monkeypatch.setattr(sources, "version_of", lambda package: "0")
    assert changed(sources_of(CLAIMS)[CLAIMS[0]], row) == "packages"
    assert "numpy-" in row["packages"]
    assert "scipy-" in row["packages"]
