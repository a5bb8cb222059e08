"""Gather the findings of a session, wherever they were made, into its summary and tables."""

import json
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcverify.verdict import OUTCOMES, Terms, budget

if TYPE_CHECKING:
    from mcverify.declare.claim import Claim
    from mcverify.judge.finding import Finding
    from mcverify.results.folder import Results

TERMS = pytest.StashKey[Terms]()  # on which the session judges
PROPERTY = "mcverify"  # of a test's report; also in a JUnit file


def entry(place: tuple[str, str, int], finding: "Finding") -> str:
    """A finding as text, since a process that it travels to may hold no claims.

    ``place`` is the file, the claim's name and the case's number there.
    """
    return json.dumps({"place": place, "control": bool(finding.case.control),
                       "as_declared": finding.as_declared, **finding.row()})


def _finding(entry: dict[str, Any]) -> "Finding":
    from mcverify.judge.finding import Finding
    from mcverify.judge.reference import resolve

    file, claim, index = entry["place"]
    return Finding.of_row(resolve((Path(file), claim, index)), entry)


class Record:
    """What was found in a session; a plugin of the process that hears of every test."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.entries: dict[str, dict[str, Any]] = {}
        self.results: Results | None = None
        self.tables = ""
        self.terms = config.stash[TERMS]

    def pytest_sessionstart(self) -> None:
        """Take the folder for tables, before anything is drawn."""
        self.started = time.monotonic()
        out = self.config.getoption("mcverify_out")
        if not out:
            return
        from mcverify.results.folder import Results

        self.results = Results(self.config.invocation_params.dir / out)
        stack = ExitStack()
        self.config.add_cleanup(stack.close)
        try:
            stack.enter_context(self.results.held())
            made = self.results.made_with()
        except OSError as error:
            raise pytest.UsageError(f"--mcverify-out {out}: cannot be written to "
                                    f"({error.strerror}); choose another folder") from None
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        if made and made != self.terms:
            scaled = f", margins times {made.margin_scale:g}" if made.margin_scale != 1 else ""
            raise pytest.UsageError(f"--mcverify-out {out}: holds results of seed {made.seed} "
                                    f"and error rate {made.error_rate:g}{scaled}, and a folder "
                                    "keeps to them; choose another folder")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a finding."""
        if report.when == "call":
            for name, value in report.user_properties:
                if name == PROPERTY and isinstance(value, str):
                    self.entries[report.nodeid] = json.loads(value)

    def pytest_sessionfinish(self) -> None:
        """Write the tables of the claims of which every case was judged."""
        if not (self.results and self.entries):
            return
        from mcverify.results.sources import sources_of

        judged: dict[Claim, list[Finding]] = {}
        for finding in map(_finding, self.entries.values()):
            judged.setdefault(finding.case.claim, []).append(finding)
        whole = {claim: findings for claim, findings in judged.items()
                 if len(findings) == len(claim.all_cases())}
        for claim, findings in whole.items():
            self.results.write_claim(claim, findings)
        self.results.write_verdicts(whole, sources_of(whole).values())
        self.results.write_run(self.terms, seconds=time.monotonic() - self.started,
                               cases=len(self.entries))
        part = sorted(claim.name for claim in judged if claim not in whole)
        self.tables = f"tables in {self.config.getoption('mcverify_out')}" + (
            f"; none of {', '.join(part)}, of which not every case was judged" if part else "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What was found, and what it took of the error budget."""
        if self.entries:
            spent = budget(len(self.entries), self.terms.error_rate)
            terminalreporter.section("mcverify")
            for line in filter(None, [self._counts(), spent, self.tables]):
                terminalreporter.write_line(line)

    def _counts(self) -> str:
        cases = [entry for entry in self.entries.values() if not entry["control"]]
        controls = [entry for entry in self.entries.values() if entry["control"]]
        verdicts = Counter(entry["verdict"] for entry in cases)
        counts = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in OUTCOMES
                           if verdicts[verdict])
        wrong = sum(not entry["as_declared"] for entry in cases)
        refuted = sum(entry["as_declared"] for entry in controls)
        return (f"cases {len(cases)}{counts and f' ({counts})'}, not as declared {wrong}; controls "
                f"{len(controls)}, refuted {refuted}; seed {self.terms.seed}")
