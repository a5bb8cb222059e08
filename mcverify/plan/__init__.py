"""What a run would take before it is made: blocks, numbers drawn, time, memory, what stays open.

Two small chunks of each world tell what its draws and bodies cost, and how block values spread
where no results do. How many blocks it takes is foreseen as by a run itself after a look.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from threadpoolctl import threadpool_limits

from mcverify.declare.claim import Case, Claim
from mcverify.judge.raised import described
from mcverify.judge.trial import Trial
from mcverify.judge.watch import Watch
from mcverify.judge.world import World
from mcverify.plan.blocks import Expected, expected, of_intervals
from mcverify.plan.timing import ENOUGH, Stopwatch, Timed, more_blocks, of_law, time_world
from mcverify.results.folder import Results
from mcverify.results.origins import namesakes
from mcverify.results.reader import CASES, read_rows
from mcverify.results.rows import Row, row_of
from mcverify.verdict import Terms

NUMBER = 8  # bytes


@dataclass
class Plan:
    """What a claim's cases, and its controls, are expected to take.

    Attributes
    ----------
    cases : how many there are, controls among them.
    blocks, numbers : that they look at, and that they have to themselves: draws that several cases
        look at are shared out among them.
    seconds : of CPU time.
    memory : bytes of block values that are kept at the end.
    open : the cases that will not be decided, and why.
    """

    cases: int = 0
    blocks: int = 0
    numbers: float = 0.0
    seconds: float = 0.0
    memory: int = 0
    open: dict[Case, str] = field(default_factory=dict)


def plan(
    claims: Iterable[Claim], terms: Terms, results: Results, watch: Watch | None = None
) -> dict[Claim, Plan]:
    """The plan of each claim, if all of them are judged in one run on these terms.

    Where ``results`` hold an estimate of a case, it is taken from there. Raises ValueError for a
    folder that is damaged.
    """
    watch, plans = watch or Watch(), {claim: Plan() for claim in claims}
    rows = _rows(plans, results)
    made = results.made_with() if rows else None
    same = made is not None and replace(made, seed=terms.seed) == terms
    worlds: dict[World, list[Trial]] = {}
    with threadpool_limits(1):
        for claim, planned in plans.items():
            for case in claim.all_cases():
                watch.at(0, str(case))
                planned.cases += 1
                trial = Trial(case, terms)
                if _goes_on(trial, planned):
                    worlds.setdefault(trial.world, []).append(trial)
        checked = set[World]()
        for world, trials in worlds.items():
            watch.at(0, f"the draws of {trials[0].case}")
            _add_world(world, trials, plans, rows, same, checked)
    return plans


def _goes_on(trial: Trial, planned: Plan) -> bool:
    """Whether a case draws, after what needs no draws was done and counted."""
    with Stopwatch() as watch:
        finding = trial.without_drawing()
    planned.seconds += watch.laps[-1]
    if finding is not None and finding.reason:
        planned.open[trial.case] = finding.reason
    return finding is None


def _add_world(
    world: World, trials: Sequence[Trial], plans: Mapping[Claim, Plan],
    rows: Mapping[Case, Row], same: bool, checked: set[World],
) -> None:
    """Count what the draws of a world and the bodies of its cases take."""
    known = {trial.case: rows.get(trial.case) for trial in trials}
    seed = trials[0].terms.seed
    try:
        drawing, timed = time_world(world, list(known), seed, 0 if all(known.values()) else ENOUGH)
        timed |= more_blocks(world, {case: timed[case] for case, row in known.items() if not row},
                             seed, ENOUGH)
    except Exception as error:
        for trial in trials:
            plans[trial.case.claim].open[trial.case] = described(error)
        return
    foreseen = {trial.case: _add_case(plans[trial.case.claim], trial, timed[trial.case],
                                      known[trial.case], same) for trial in trials}
    alike = replace(world, tokens=min(world.tokens, 2))  # of which a process looks at one
    once = drawing.first + (0.0 if alike in checked else of_law(alike, seed))
    checked.add(alike)
    for case, (calls, blocks) in _shared(world, trials[0].terms, foreseen).items():
        planned = plans[case.claim]
        planned.seconds += once / len(trials)
        planned.seconds += calls * drawing.call + blocks * drawing.block
        planned.numbers += blocks * 2 * world.tokens * world.d_k


def _add_case(
    planned: Plan, trial: Trial, timed: Timed, row: Row | None, same: bool
) -> Expected:
    """Count what a case takes besides its draws."""
    try:
        foreseen = Expected(0, timed.fault) if timed.fault else expected(trial, timed, row, same)
    except Exception as error:
        foreseen = Expected(0, described(error))
    if foreseen.reason:
        planned.open[trial.case] = foreseen.reason
    planned.blocks += foreseen.blocks
    planned.memory += NUMBER * trial.numbers(timed.table[:1].size, foreseen.blocks)
    chunks = sum((stop - start) / trial.world.chunk(stop - start)
                 for start, stop in trial.terms.looks if stop <= foreseen.blocks)
    planned.seconds += timed.checks + timed.cost.of(chunks, foreseen.blocks)
    if foreseen.blocks:
        planned.seconds += of_intervals(trial, timed.table, foreseen.blocks)
    return foreseen


def _shared(
    world: World, terms: Terms, foreseen: Mapping[Case, Expected]
) -> dict[Case, tuple[float, float]]:
    """Each case's share of the chunks of its world, and of their blocks."""
    shares = dict.fromkeys(foreseen, (0.0, 0.0))
    for start, stop in terms.looks:
        alive = [case for case, each in foreseen.items() if each.blocks > start]
        for case in alive:
            calls, blocks = shares[case]
            shares[case] = (calls + (stop - start) / world.chunk(stop - start) / len(alive),
                            blocks + (stop - start) / len(alive))
    return shares


def _rows(claims: Collection[Claim], results: Results) -> dict[Case, Row]:
    """The rows of results, by their cases."""
    controls: dict[str, list[Row]] = {}
    for row in results.read("controls"):
        controls.setdefault(row["claim"], []).append(row)
    by_case: dict[Case, Row] = {}
    for claim in {*claims} - {*namesakes(results, claims)}:
        rows = read_rows(results.file(claim.name), CASES)
        for case in claim.all_cases():
            if known := row_of(case, controls.get(claim.name, ()) if case.control else rows):
                by_case[case] = known
    return by_case
