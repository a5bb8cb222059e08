"""Judge the chosen claims into a results folder, keep them as they finish, and report."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import chain

from mcverify.cli import report
from mcverify.cli.exits import Exit, ended_when_over, refused, writing_to
from mcverify.cli.terminal import console, show
from mcverify.cli.waiting import Waiting, patient
from mcverify.declare.claim import Claim
from mcverify.declare.fault import UsageError
from mcverify.declare.loading import load
from mcverify.declare.names import ATLAS
from mcverify.declare.origins import origin, packages, source
from mcverify.declare.rules import lacking
from mcverify.judge.finding import Finding, contradictions, without_controls
from mcverify.judge.limit import limited
from mcverify.judge.processes import Spread
from mcverify.judge.run import run
from mcverify.results.folder import Results
from mcverify.results.journal import Journal
from mcverify.results.ledger import ledger
from mcverify.results.origins import check, stale
from mcverify.results.sources import sources_of, sources_of_the_atlas
from mcverify.verdict import Terms, Verdict, check_budget


@dataclass
class Suite:
    """Claims to be judged together on the same terms, under one error budget.

    ``part`` says that they are not all there are, so that results of others stay as they are. If
    they are, the slow ones are left out, and theirs stay as well. So do rows of claims that cannot
    be measured here for want of a module, and of those that are ``kept``, since they would come out
    the same.
    """

    claims: list[Claim]
    results: Results
    terms: Terms
    jobs: int | Spread | None
    part: bool
    limit: float | None = None  # seconds a body may take for a chunk
    time_limit: float | None = None  # seconds from here on
    kept: Sequence[Claim] | None = None  # None if nobody has looked for such
    judged: dict[Claim, list[Finding]] = field(default_factory=dict, init=False)
    spared: set[Claim] = field(default_factory=set, init=False)
    finished: int = field(default=0, init=False)  # cases, of claims that are not judged yet as well
    started: float = field(default_factory=time.monotonic, init=False)
    over: threading.Event = field(default_factory=threading.Event, init=False)  # the time limit

    def __post_init__(self) -> None:
        self.all = [*self.claims, *(self.kept or [])]
        if not self.part:
            self.claims = [claim for claim in self.claims if not claim.slow]
        self.sources = sources_of(self.claims)
        self.cases = []
        with patient() as watch:
            for claim in self.claims:
                watch.at(0, f"the predictions of {claim.name}")
                with limited(self.limit, "the prediction"):
                    self.cases += claim.all_cases()

    def run(self, resume: bool = False) -> Exit:
        """Judge and write everything; returns the exit status.

        Raises UsageError, before anything is drawn, if the budget does not pay for the cases, or
        the folder was made otherwise, is in use or cannot be written to.
        """
        with writing_to(self.results.folder), ExitStack() as stack:
            with refused():
                check_budget(len(self.cases), self.terms.error_rate)
                stack.enter_context(self.results.held())
                self._agree()
            journal = Journal(self.results.folder)
            stack.callback(lambda: report.run_table(  # whatever becomes of the tables
                self.judged, self.terms, self.seconds, self.results.folder))
            interrupted = self._judge(journal, resume)
            self._write(complete=not (self.part or interrupted))
            if not interrupted:
                journal.forget()
                self.results.write_run(
                    self.terms, self.seconds, len(self.cases),
                    sorted({claim.needs for claim in self.judged if not lacking(claim)} - {""}))
        if interrupted:
            why = "the time is over" if self.over.is_set() else "interrupted"
            show(f"{why}: {len(self.judged)} of {len(self.claims)} claims are finished, and "
                 f"{self.finished} of {len(self.cases)} cases are kept; the same command with "
                 "--resume goes on", stderr=True)
            return Exit.INTERRUPTED
        return status(self.judged, self.kept or ())

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self.started

    def _agree(self) -> None:
        """A folder keeps to the same terms from the first draw on."""
        check(self.results, self.claims)
        known = {row["claim"] for row in self.results.read("verdicts") if row["blocks"] != "0"}
        self.spared = {claim for claim in self.claims if lacking(claim) and claim.name in known}
        made = self.results.made_with()
        for name, mine in asdict(self.terms).items():
            if made and (value := getattr(made, name)) != mine:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} {mine}: {self.results.folder} holds results of "
                                 f"{name.replace('_', ' ')} {value}, and a folder keeps to one; "
                                 "choose another --out, or remove it")
        if not made:
            self.results.write_run(self.terms, 0.0, len(self.cases))

    def _judge(self, journal: Journal, resume: bool) -> bool:
        """Judge, and write each claim's table as it finishes; returns whether interrupted."""
        kept = journal.finished(self.cases, self.terms) if resume else []
        if resume:
            show(f"resumed: {len(kept)} of {len(self.cases)} cases were finished", stderr=True)
        else:
            journal.forget()
        done = {finding.case for finding in kept}
        cases = [case for case in self.cases if case not in done]
        chunks, waiting = journal.chunks(self.terms), Waiting(len(self.cases), len(kept))
        fresh = run(cases, self.terms, self.jobs, waiting.watch, self.limit, chunks)
        findings: dict[Claim, list[Finding]] = {claim: [] for claim in self.claims}
        left = None if self.time_limit is None else self.time_limit - self.seconds
        with chunks.kept(cases), suppress(KeyboardInterrupt), ended_when_over(left, self.over):
            for finding in chain(kept, waiting.follow(journal.keep(fresh, chunks))):
                claim = finding.case.claim
                findings[claim].append(finding)
                if len(findings[claim]) == len(claim.all_cases()):
                    if claim not in self.spared:
                        self.results.write_claim(claim, findings[claim])
                    self.judged[claim] = findings[claim]
        self.finished = sum(map(len, findings.values()))
        self.judged = {claim: findings[claim] for claim in self.claims if claim in self.judged}
        return len(self.judged) < len(self.claims)

    def _write(self, complete: bool) -> None:
        """The tables beside those of the claims; all of them only after a complete run."""
        if complete:
            for file in self.results.prune(claim.name for claim in self.all):
                show(f"removed {file}, whose claim is gone", stderr=True)
        written = {claim: findings for claim, findings in self.judged.items()
                   if claim not in self.spared}
        self.results.write_verdicts(written, [self.sources[claim] for claim in written])
        if self.spared:
            show(f"{self.results.folder} keeps what was measured of "
                 f"{', '.join(sorted(claim.name for claim in self.spared))}, which cannot be "
                 "measured here; choose another --out to have it written", stderr=True)
        files = {source(claim) for claim in self.judged if origin(claim) not in packages()}
        if gone := stale(self.results, (each for file in files for each in load(file).claims)):
            show(f"{self.results.folder} keeps results of {', '.join(gone)}, which its file no "
                 "longer has; `mcverify prune` removes them", stderr=True)
        if complete:
            self._write_atlas()
        if complete or self.results.file("ledger").exists():
            self.results.write_table(self.results.folder / "ledger.csv",
                                     ledger(self.results.read("verdicts")))

    def _write_atlas(self) -> None:
        from mcverify.judge.atlas import atlas

        made_of, file = sources_of_the_atlas(ATLAS), self.results.file(ATLAS)
        if self.kept is None or made_of not in self.results.read("sources") or not file.exists():
            with console(stderr=True).status("saturation atlas"):
                table = atlas(self.terms.seed, self.jobs)
            self.results.write_table(file, table)
            self.results.write_verdicts({}, [made_of])


@contextmanager
def spread_over(
    jobs: int | None, scheduler: str | None, claims: Sequence[Claim]
) -> Iterator[int | Spread | None]:
    """The processes here, or the workers of a cluster."""
    if scheduler is None:
        yield jobs
        return
    if jobs is not None:
        raise UsageError(f"--jobs {jobs}: with --scheduler it is the workers of the cluster that "
                         "say how many calls are made at once; leave one of the two out")
    from mcverify.judge.cluster import cluster

    with cluster(scheduler, claims, lambda line: show(f"mcverify: {line}", stderr=True)) as spread:
        yield spread


def status(judged: Mapping[Claim, list[Finding]], kept: Sequence[Claim] = ()) -> Exit:
    """The exit status that a run's findings deserve: a claim that nothing refutes is undecided."""
    wrong = [*chain.from_iterable(map(contradictions, judged.values()))]
    if any(f.verdict is not Verdict.INCONCLUSIVE and not f.broken for f in wrong):
        return Exit.CONTRADICTED
    return Exit.UNDECIDED if wrong or without_controls([*judged, *kept]) else Exit.AS_DECLARED
