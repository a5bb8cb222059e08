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
    same = bool(rows) and _alike(results.made_with(), terms)
    worlds: dict[World, list[Trial]] = {}
    with threadpool_limits(1):
        for claim, its in plans.items():
            for case in claim.all_cases():
                watch.at(0, str(case))
                its.cases += 1
                trial = Trial(case, terms)
                if _goes_on(trial, its):
                    worlds.setdefault(trial.world, []).append(trial)
        looked_at = set[World]()
        for world, trials in worlds.items():
            watch.at(0, f"the draws of {trials[0].case}")
            _add_world(world, trials, plans, rows, same, looked_at)
    return plans


def _goes_on(trial: Trial, its: Plan) -> bool:
    """Whether a case draws, after what needs no draws was done and counted."""
    with Stopwatch() as watch:
        finding = trial.without_drawing()
    its.seconds += watch.laps[-1]
    if finding is not None and finding.reason:
        its.open[trial.case] = finding.reason
    return finding is None


def _add_world(
    world: World, trials: Sequence[Trial], plans: Mapping[Claim, Plan],
    rows: Mapping[Case, Row], same: bool, looked_at: set[World],
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
    ends = {}
    for trial in trials:
        case, its = trial.case, plans[trial.case.claim]
        ends[case] = foreseen = _expected(trial, timed[case], known[case], same)
        if foreseen.reason:
            its.open[case] = foreseen.reason
        its.blocks += foreseen.blocks
        its.memory += NUMBER * trial.numbers(timed[case].table[:1].size, foreseen.blocks)
        its.seconds += timed[case].checks + timed[case].cost.of(
            _chunks(world, trial.terms, foreseen.blocks), foreseen.blocks)
        if foreseen.blocks:
            its.seconds += of_intervals(trial, timed[case].table, foreseen.blocks)
    alike = replace(world, tokens=min(world.tokens, 2))  # of which a process looks at one
    once = drawing.first + (0.0 if alike in looked_at else of_law(alike, seed))
    looked_at.add(alike)
    for case, (calls, blocks) in _shared(world, trials[0].terms, ends).items():
        its = plans[case.claim]
        its.seconds += once / len(trials)
        its.seconds += calls * drawing.call + blocks * drawing.block
        its.numbers += blocks * 2 * world.tokens * world.d_k


def _shared(
    world: World, terms: Terms, ends: Mapping[Case, Expected]
) -> dict[Case, tuple[float, float]]:
    """Each case's share of the chunks of its world, and of their blocks."""
    shares = dict.fromkeys(ends, (0.0, 0.0))
    for start, stop in terms.looks:
        alive = [case for case, end in ends.items() if end.blocks > start]
        for case in alive:
            calls, blocks = shares[case]
            shares[case] = (calls + (stop - start) / world.chunk(stop - start) / len(alive),
                            blocks + (stop - start) / len(alive))
    return shares


def _chunks(world: World, terms: Terms, blocks: int) -> float:
    """How many chunks so many blocks are drawn in."""
    return sum((stop - start) / world.chunk(stop - start)
               for start, stop in terms.looks if stop <= blocks)


def _alike(made: Terms | None, terms: Terms) -> bool:
    """Whether results are of the same terms, whatever their seed."""
    return made is not None and replace(made, seed=terms.seed) == terms


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


def _expected(trial: Trial, timed: Timed, row: Row | None, same: bool) -> Expected:
    if timed.fault:
        return Expected(0, timed.fault)
    try:
        return expected(trial, timed, row, same)
    except Exception as error:
        return Expected(0, described(error))
