"""Calls of several chunks: the same findings for any number, also if processes die in them."""

import pytest

from mcverify import discover
from mcverify.judge import group
from mcverify.judge.measure import at_step, measure
from mcverify.judge.reference import resolve
from mcverify.judge.run import run
from mcverify.judge.worker import Killed

NAMES = ["dot_variance", "dot_std", "product_mean"]


@pytest.fixture
def cases():
    """Three claims that share worlds of 8 and of 64 coordinates."""
    claims = {claim.name: claim for claim in discover()}
    return [case for name in NAMES for case in claims[name].cases()
            if str(case.settings[0][1]) == "normal" and case.drawn["d_k"] in (8, 64)]


def killing(name, first, told=True):
    """Calls are made here; what measures a case on a chunk dies, and with luck tells where."""
    calls_made = []

    def spread(function, calls, on_begin, limit):
        for index, call in enumerate(calls):
            on_begin(index, lambda: (-1.0, 0.0))
            references, _, chunks = call
            names = [str(resolve(reference)) for reference in references]
            calls_made.append((names, chunks))
            firsts = [at for at, _ in chunks]
            if name in names and first in firsts:
                step = firsts.index(first) * (len(names) + 1) + 1 + names.index(name)
                assert at_step(step, len(names)) == (firsts.index(first), names.index(name))
                yield index, Killed("SIGKILL(-9)", step if told else None)
            else:
                yield index, measure(*call)

    return spread, calls_made


def reports(cases, spread):
    return sorted(f"{finding} {finding.low} {finding.high}" for finding in run(cases, jobs=spread))


@pytest.mark.parametrize("seconds", [0.0, 1e-2, 10.0])
@pytest.mark.parametrize("knows", [True, False])
def test_a_death_in_a_later_chunk_costs_its_case_alone(cases, monkeypatch, seconds, knows):
    name = "dot_variance-normal-d_k:64"
    assert name in map(str, cases)
    quiet = {str(finding.case): finding for finding in run(cases, jobs=1)}
    monkeypatch.setattr(group, "CALL", seconds)
    spread, _ = killing(name, 64, knows)
    findings = {str(finding.case): finding for finding in run(cases, jobs=spread)}
    blamed = findings.pop(name)
    assert blamed.broken
    assert blamed.reason == "its process was killed (SIGKILL(-9)) (seed 0, chunk at block 64)"
    assert findings == {other: quiet[other] for other in findings}


def test_calls_take_about_as_long_as_they_are_to(cases, monkeypatch):
    monkeypatch.setattr("mcverify.judge.schedule.FEW", 0)
    counts = []
    for seconds in (0.0, 10.0):
        monkeypatch.setattr(group, "CALL", seconds)
        spread, calls = killing("", -1)
        findings = reports(cases, spread)
        counts.append((findings, [len(chunks) for _, chunks in calls]))
    (apart, ones), (together, several) = counts
    assert apart == together
    assert set(ones) == {1}
    assert sum(several) == len(ones) > len(several)


@pytest.mark.parametrize("among", [3, 1])
def test_what_a_chunk_has_broken_sees_no_other(cases, monkeypatch, among):
    monkeypatch.setattr(group, "CALL", 0.0)
    name = "dot_variance-normal-d_k:64"
    cases = sorted(cases, key=lambda case: str(case) != name)[:among] if among == 1 else cases
    spread, calls = killing(name, 0)
    assert {str(each.case): each.broken for each in run(cases, jobs=spread)}[name]
    assert [chunks[0][0] for names, chunks in calls if name in names] == [0]
