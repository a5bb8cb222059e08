"""From chosen claims to a results folder: judged, kept as they finish, written and reported."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mcverify.cli import terminal as report
from mcverify.declare.claim import Claim
from mcverify.declare.rules import ATLAS
from mcverify.judge.atlas import atlas
from mcverify.judge.finding import Finding, contradictions, without_controls
from mcverify.judge.run import run
from mcverify.results.folder import Results
from mcverify.results.journal import Journal
from mcverify.results.ledger import ledger
from mcverify.verdict import Verdict, check_budget

AS_DECLARED, CONTRADICTED, BAD_USAGE, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130


@dataclass
class Suite:
    """Claims to be judged together under one seed and one error budget.

    ``part`` says that they are not all there are, so that results of others stay as they are.
    """

    claims: list[Claim]
    results: Results
    seed: int
    error_rate: float
    jobs: int | None
    part: bool
    judged: dict[Claim, list[Finding]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.cases = [case for claim in self.claims
                      for case in (*claim.cases(), *claim.control_cases())]

    def run(self, resume: bool = False) -> int:
        """Judge and write everything; returns the exit status.

        Raises ValueError, before anything is drawn, if the budget does not pay for the cases or the
        folder was made otherwise or is in use; OSError if it cannot be written to.
        """
        check_budget(len(self.cases), self.error_rate)
        with self.results.held():
            self._agree()
            started = time.monotonic()
            journal = Journal(self.results.folder)
            interrupted = self._judge(journal, resume)
            self._write(complete=not (self.part or interrupted))
            seconds = time.monotonic() - started
            if not interrupted:
                journal.forget()
                self.results.write_run(self.seed, self.error_rate, seconds, len(self.cases))
        report.run_table(self.judged, self.seed, self.error_rate, seconds, self.results.folder)
        if interrupted:
            print(f"interrupted: {len(self.judged)} of {len(self.claims)} claims are finished and "
                  "kept; the same command with --resume goes on", file=sys.stderr)
            return INTERRUPTED
        return status(self.judged)

    def _agree(self) -> None:
        """A folder keeps to one seed and one error rate, from the first draw on."""
        made = self.results.made_with()
        for name, value in made.items():
            mine = getattr(self, name)
            if value != mine:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} {mine}: {self.results.folder} holds results of "
                                 f"{name.replace('_', ' ')} {value}, and a folder keeps to one; "
                                 "choose another --out, or remove it")
        if not made:
            self.results.write_run(self.seed, self.error_rate, 0.0, len(self.cases))

    def _judge(self, journal: Journal, resume: bool) -> bool:
        """Judge, and write each claim's table as it finishes; returns whether interrupted."""
        kept = journal.finished(self.cases, self.seed, self.error_rate) if resume else []
        if resume:
            print(f"resumed: {len(kept)} of {len(self.cases)} cases were finished",
                  file=sys.stderr)
        else:
            journal.forget()
        done = {finding.case for finding in kept}
        fresh = run([case for case in self.cases if case not in done], self.seed,
                    self.error_rate, self.jobs)
        found: dict[Claim, list[Finding]] = {claim: [] for claim in self.claims}
        try:
            for finding in self._shown([*kept], journal.keep(fresh)):
                claim = finding.case.claim
                found[claim].append(finding)
                if len(found[claim]) == len(claim.cases()) + len(claim.control_cases()):
                    self.results.write_claim(claim, found[claim])
                    self.judged[claim] = found[claim]
        except KeyboardInterrupt:
            pass
        self.judged = {claim: found[claim] for claim in self.claims if claim in self.judged}
        return len(self.judged) < len(self.claims)

    def _shown(self, kept: list[Finding], fresh: Iterable[Finding]) -> Iterator[Finding]:
        """Pass the findings on, with a bar on a terminal."""
        console = Console(stderr=True)
        if not console.is_terminal:
            yield from chain(kept, fresh)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                   TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("cases", total=len(self.cases))
            for finding in chain(kept, fresh):
                progress.advance(bar)
                yield finding

    def _write(self, complete: bool) -> None:
        """The tables beside those of the claims; all of them only after a complete run."""
        if complete:
            for file in self.results.prune(claim.name for claim in self.claims):
                print(f"removed {file}, whose claim is gone", file=sys.stderr)
        self.results.write_verdicts(self.judged, keep=not complete)
        if complete:
            with Console(stderr=True).status("saturation atlas"):
                table = atlas(self.seed, self.jobs)
            self.results.write_table(self.results.claims / f"{ATLAS}.csv", table)
            self.results.write_table(self.results.folder / "ledger.csv", ledger(self.claims))


def status(judged: Mapping[Claim, list[Finding]]) -> int:
    """The exit status that a run's findings deserve: a claim that nothing refutes is undecided."""
    wrong = [finding for findings in judged.values() for finding in contradictions(findings)]
    if any(f.verdict is not Verdict.INCONCLUSIVE and not f.broken for f in wrong):
        return CONTRADICTED
    return UNDECIDED if wrong or without_controls(judged) else AS_DECLARED
