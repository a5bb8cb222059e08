"""From cases to findings: each world is drawn once, and every case that lives in it is judged."""

from collections.abc import Iterable, Iterator

from mcverify.declare.claim import Case
from mcverify.declare.fault import ClaimError
from mcverify.judge.finding import Finding
from mcverify.judge.measure import measure
from mcverify.judge.memory import Memory
from mcverify.judge.processes import Spread, workers
from mcverify.judge.schedule import Schedule
from mcverify.judge.trial import Trial
from mcverify.judge.watch import Watch
from mcverify.laws import Law
from mcverify.verdict import Terms

USUAL = Terms()


def run(
    cases: Iterable[Case], terms: Terms = USUAL, jobs: int | Spread | None = None,
    watch: Watch | None = None, limit: float | None = None, memory: Memory | None = None,
) -> Iterator[Finding]:
    """Judge all cases in ``jobs`` processes (default: one a core) and yield findings as they come.

    A case that breaks, or kills its process, becomes a finding whose reason says so, and the
    others go on. So does one whose body takes more than ``limit`` seconds for a chunk of draws, or
    whose prediction or calculation does, if this is the main thread. The error rate is a case's;
    what a suite may spend is for verdict.check_budget. ``jobs`` may be a spread, see workers. A
    ``watch`` is kept up to date for whoever looks at it meanwhile, a ``memory`` holds chunks
    that are measured already, and gets the others. Raises ClaimError for two laws
    of one name.
    """
    cases, watch = list(cases), watch or Watch()
    _check_laws(cases)
    schedule = Schedule([Trial(case, terms) for case in cases], terms, watch, limit, memory)
    with workers(jobs) as spread:
        for index, result in spread(measure, schedule, on_begin=schedule.begun, limit=limit):
            yield from schedule.said()
            yield from schedule.settle(index, result)
    yield from schedule.said()


def _check_laws(cases: Iterable[Case]) -> None:
    """Raise ClaimError for two laws of one name, whose draws would be mistaken for each other."""
    named: dict[str, Law] = {}
    for case in cases:
        law = case.drawn.get("law") if case.claim.draws else None
        if law is not None and named.setdefault(str(law), law) != law:
            raise ClaimError(f"{case}: another law has the name {law} as well, and draws descend "
                             "from the name; give one of them another name")
