"""Make a test of each case of a claim, and judge the cases of a session together."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcverify.declare.claim import Case, Claim
from mcverify.declare.loading import NO_CLAIMS, load
from mcverify.declare.origins import source
from mcverify.judge.finding import Finding
from mcverify.judge.run import run
from mcverify.pytest_plugin.record import PROPERTY, TERMS, entry
from mcverify.verdict import check_budget


class ClaimFile(pytest.File):
    """A file of claims, read as `mcverify run` reads it, and not put into sys.modules."""

    def collect(self) -> Iterator["ClaimTest"]:
        """The tests of its claims; CollectError with a line for each thing that is broken."""
        yield from _tests(self, _claims(self))


def own_claims(module: pytest.Module) -> dict[str, Claim]:
    """By the names that they have there, the claims that a module defines and does not import."""
    path = module.path.resolve()
    claims = {name: obj for name, obj in vars(module.obj).items() if isinstance(obj, Claim)}
    here = {name for name, claim in claims.items() if source(claim) == path}
    if len(here) < len(claims):  # a changed claim is bound by assignment, an imported one is not
        here |= {node.id for node in ast.walk(ast.parse(path.read_bytes()))
                 if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {name: claim for name, claim in claims.items() if name in here}


def tests_of_module(module: pytest.Collector, own: dict[str, Claim]) -> list["ClaimTest"]:
    """The tests of a module's own claims.

    It is read a second time, outside sys.modules, since that is how claims reach other processes.
    """
    names = {claim.name for claim in own.values()}
    return list(_tests(module, [claim for claim in _claims(module) if claim.name in names]))


def _claims(collector: pytest.Collector) -> tuple[Claim, ...]:
    """Those of a file; CollectError with a line for each thing in it that is broken."""
    file = load(collector.path.resolve())
    # One without claims may be there for others, or look at those of others.
    if faults := [fault for fault in file.faults if NO_CLAIMS not in fault]:
        raise collector.CollectError("\n".join(faults))
    return file.claims


def _tests(parent: pytest.Collector, claims: Iterable[Claim]) -> Iterator["ClaimTest"]:
    for claim in claims:
        for index, case in enumerate(claim.all_cases()):
            point = str(case).removeprefix(claim.name).removeprefix("-")
            name = f"{claim.name}[{point}]" if point else claim.name
            # The id as text, since pytest 9.2 reads it so from its cache for --lf.
            yield ClaimTest.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}",
                                        case=case, index=index)


class ClaimTest(pytest.Item):
    """One case of a claim; it fails with the report of a finding that is not as declared."""

    def __init__(self, *, case: Case, index: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.case, self.index = case, index
        self.extra_keyword_matches.add(str(case))
        if case.claim.slow:
            self.add_marker("slow")
            if "slow" not in self.config.option.markexpr:
                self.add_marker(pytest.mark.skip("slow: judged by `pytest -m slow`"))

    def runtest(self) -> None:
        """Judge the case, with those that are judged together, and pass its finding on."""
        finding = self.session.stash.setdefault(JUDGE, Judge(self.session)).finding(self)
        place = (str(self.path.resolve()), self.case.claim.name, self.index)
        self.user_properties.append((PROPERTY, entry(place, finding)))
        if not finding.as_declared:
            pytest.fail(str(finding), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the claim stands."""
        claim = self.case.claim
        here = source(claim) == self.path.resolve()
        return self.path, claim.body.__code__.co_firstlineno - 1 if here else None, self.name


def selected(session: pytest.Session) -> list[ClaimTest]:
    """The tests of claims that are to be run."""
    return [item for item in session.items
            if isinstance(item, ClaimTest) and not item.get_closest_marker("skip")]


def refusal(session: pytest.Session) -> str:
    """Why the selected cases may not be judged together; "" if they may."""
    cases = [test.case for test in selected(session)]
    try:
        check_budget(len(cases), session.config.stash[TERMS].error_rate)
    except ValueError as error:
        return str(error)
    if session.config.getoption("mcverify_out"):
        names = Counter(claim.name for claim in {case.claim for case in cases})
        if twice := sorted(name for name, count in names.items() if count > 1):
            return (f"{', '.join(twice)}: two of the collected claims have this name; rename one, "
                    "as tables are kept by name")
    return ""


class Judge:
    """The findings of a session. Cases that are judged together share their draws."""

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        self.worker = getattr(session.config, "workerinput", None)  # if it is one of xdist's
        self.findings: dict[Case, Finding] = {}
        self.handed: set[Case] = set()

    def finding(self, test: ClaimTest) -> Finding:
        """The test's finding; everything that is judged with it is judged now."""
        if test.case not in self.handed:
            if self.worker and (reason := refusal(self.session)):
                pytest.fail(reason, pytrace=False)
            cases = dict.fromkeys([test.case, *self._with(test)])
            self.handed.update(cases)
            config = self.session.config
            jobs = 1 if self.worker else config.getoption("mcverify_jobs")
            for finding in run(cases, config.stash[TERMS], jobs):
                self.findings[finding.case] = finding
        if test.case not in self.findings:
            pytest.fail("not judged, since the run that it was part of broke off: see the first "
                        "failure", pytrace=False)
        return self.findings[test.case]

    def _with(self, test: ClaimTest) -> list[Case]:
        """All selected cases; those of its file, if not all may be run; none, if that is not known.

        A worker of xdist gets its tests piece by piece, unless they are handed out by files.
        """
        if self.worker and not self.worker["mcverify_by_file"]:
            return []
        by_file = self.worker or self.session.config.getoption("maxfail")
        return [other.case for other in selected(self.session)
                if other.path == test.path or not by_file]


JUDGE = pytest.StashKey[Judge]()
