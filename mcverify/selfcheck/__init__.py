"""Measure how often the intervals of the statistics miss truths that are known.

Misses are counted at 1e-2 and 1e-3, of every sample, and weighed where verdicts are made, at the
rate of a look. An interval that rests on a theorem may miss no more often than it is asked to,
whatever the blocks; a calibrated one by what its expansion leaves (rows.limit), and it is known to
fail on contaminated blocks. The statistic ``exact`` has no error to judge.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mcverify.declare.claim import Case
from mcverify.declare.discover import discover
from mcverify.judge.processes import workers
from mcverify.judge.reference import refer
from mcverify.judge.watch import Watch
from mcverify.judge.worker import Killed
from mcverify.judge.world import generator, statistic_of, world_of
from mcverify.selfcheck.misses import counted, weighed
from mcverify.selfcheck.populations import POPULATIONS, Key, Population, of_case
from mcverify.selfcheck.rows import FEW, Row
from mcverify.statistic import Basis
from mcverify.statistic.studentised import CAUTION
from mcverify.verdict import CASE_ERROR_RATE, look_rate


@dataclass(frozen=True)
class Effort:
    """How much is drawn.

    ``samples`` grow through ``looks``, numbers of blocks, and their misses are counted; of each of
    ``weighs``, blocks and a rate (None: that of a look), ``replications`` a side are weighed.
    ``keys`` of POPULATIONS are judged; None for all.
    """

    looks: tuple[int, ...]
    samples: int
    weighs: tuple[tuple[int, float | None], ...]
    replications: int
    keys: frozenset[Key] | None = None


MANY = 4096  # blocks, for the expansion of calibrated intervals; theorems hold at any number
# 64 blocks are too few for a calibrated interval at the rate of a look, 512 are the first look.
LONG = Effort((128, 512), 20_000, ((64, None), (512, None), (512, 1e-3), (MANY, None)), 1200)
SHORT = Effort((128, 512), 3000, ((512, None),), 300, frozenset({
    ("mean", "calibrated", "normal"), ("mean", "calibrated", "1 % at 40"),
    ("variance", "calibrated", "scores, d_k 2"), ("mean", "bound", "1 % at 40"),
    ("mean", "moments", "1 % at 40"), ("median", "order", "1 % at 40")}))
FEWER = {  # of samples and replications, where an interval takes long
    Basis.BOUND: 0.05, Basis.ORDER: 0.05, Basis.MOMENTS: 0.35, "kurtosis": 0.2,
    "slope of mean": 0.2, "slope of variance": 0.2, "ratio of variance to variance": 0.2,
    "ratio of std to std": 0.2, "difference of variance and mean": 0.3}
LEAST = 300  # replications: theorems miss far less often than they may, which few tell


def selfcheck(
    short: bool = False, seed: int = 0, jobs: int | None = None, files: Iterable[Path] = (),
    watch: Watch | None = None,
) -> pd.DataFrame:
    """Judge every statistic on blocks of known truth: a row a check, see rows.Row.

    ``short`` takes fewer populations and samples: seconds instead of minutes. With ``files`` of
    claims, the statistics of those are judged instead, on the blocks of each claim's first case.
    The table does not depend on ``jobs``, the number of processes (default: one a core). A
    ``watch`` is kept up to date for whoever waits. Raises ValueError for a bad seed and for a body
    that breaks, ClaimError for a broken file, RuntimeError when a process is killed.
    """
    effort = SHORT if short else LONG
    builders = {", ".join(key): build for key, build in POPULATIONS.items()
                if effort.keys is None or key in effort.keys}
    if files := list(files):
        builders = {str(case): partial(of_case, refer(case), seed) for case in _first_cases(files)}
    rows_of: dict[int, list[Row]] = {}
    names, watch = list(builders), watch or Watch()
    with workers(jobs) as spread:
        for index, rows in spread(_judged, [(build, effort, seed) for build in builders.values()],
                                  on_begin=lambda index, _: watch.at(index, names[index])):
            watch.ended(index, 0.0)
            if isinstance(rows, Killed):
                raise RuntimeError(f"selfcheck: a process was killed ({rows.how}); use fewer jobs")
            rows_of[index] = rows
    return pd.DataFrame([row.cells() for index in sorted(rows_of) for row in rows_of[index]]
                        ).assign(seed=seed)


def _first_cases(files: list[Path]) -> list[Case]:
    """Of each claim whose law has the moments that its statistic needs; others draw nothing."""
    cases = [claim.cases()[0] for claim in discover(*files) if claim.of_world]
    able = [case for case in cases
            if not statistic_of(case, world_of(case)).missing_moments(case.drawn["law"])]
    if not able:
        raise ValueError(f"{files[0]}: no claim draws; declare one that uses the statistic")
    return able


def _judged(build: Callable[[], Population], effort: Effort, seed: int) -> list[Row]:
    """Every check of one population."""
    population = build()
    statistic, basis = population.statistic, population.statistic.rests_on
    name = f"selfcheck of {statistic.name} ({basis}) on {population.name}"
    fewer = min(FEWER.get(basis, 1.0), FEWER.get(statistic.name, 1.0))
    later = 2 if statistic.caution > CAUTION else 1  # where its intervals begin to stand
    looks = [blocks * later for blocks in effort.looks]
    rows = counted(population, looks, round(fewer * effort.samples), generator(seed, name))
    replications = max(LEAST, round(fewer * effort.replications))
    for index, (blocks, rate) in enumerate(effort.weighs):
        if blocks < MANY or basis is Basis.CALIBRATED:
            rate = rate or look_rate(CASE_ERROR_RATE, statistic.at_all_looks)
            rows += weighed(population, blocks * later, rate, replications,
                            generator(seed, name, index))
    return rows


def passed(frame: pd.DataFrame) -> bool:
    """Whether no row is surely too high or too low, but for what is known to fail."""
    return not frame["verdict"].isin(["high", "low"]).any()


def report(frame: pd.DataFrame) -> str:
    """The worst miss ratio of each statistic, every row that fails, and what is known to fail."""
    known, misses = frame["verdict"] == "known to fail", frame["check"].str.startswith("miss")
    enough = frame[misses & ~known & (frame["effective"] >= FEW)]
    worst = enough.loc[enough.groupby(["statistic", "basis"])["ratio"].idxmax()]
    lines = ["How many times as often as it may an interval misses, at worst:", *(
        f"  {_told(row)}" for row in worst.itertuples())]
    lines += [f"too {row.verdict}: {_told(row)}"
              for row in frame[frame["verdict"].isin(["high", "low"])].itertuples()]
    if known.any():
        row = frame.loc[frame[known & (frame["nominal"] > 1e-6)]["ratio"].idxmax()]
        lines.append(
            f"known to fail: {known.sum()} checks of calibrated intervals where a small share of "
            f"the blocks lies far away, such as {row['data']} standard deviations: of "
            f"{row['blocks']} blocks often none is there to tell, and {row['measured']:.2g} of the "
            f"intervals miss at a nominal {row['nominal']:g}. Theorems are judged on the same.")
    counts = frame["verdict"].value_counts()
    return "\n".join([*lines, ("passed: " if passed(frame) else "failed: ") + ", ".join(
        f"{counts.get(verdict, 0)} {verdict}"
        for verdict in ("ok", "high", "low", "known to fail", "open", "waits"))])


def _told(row: Any) -> str:
    low, high = row.low / row.nominal, row.high / row.nominal
    return (f"{row.statistic} ({row.basis}): {row.ratio:.3g}, surely {low:.2g} to {high:.2g}, of "
            f"at most {row.most:.3g}: {row.check}, {row.data}, {row.blocks} blocks")
