"""Measure how often the intervals of the statistics miss truths that are known.

Misses are counted at 1e-2 and 1e-3, of every sample, and weighed where verdicts are made, at the
rate of a look, by importance sampling. An interval that rests on a theorem may miss no more often
than it is asked for, whatever the blocks; a calibrated one by what its expansion leaves (see
rows.limit), and it is known to fail on contaminated blocks. The statistic ``exact`` has no error
to judge.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mcverify.declare.discover import discover
from mcverify.judge.measure import refer
from mcverify.judge.processes import Killed, workers
from mcverify.judge.world import generator
from mcverify.selfcheck.misses import counted, weighed
from mcverify.selfcheck.populations import POPULATIONS, Population, of_case
from mcverify.selfcheck.rows import COLUMNS, FEW, Row
from mcverify.verdict import CASE_ERROR_RATE, LOOKS

__all__ = ["COLUMNS", "passed", "report", "selfcheck"]

LOOK_RATE = CASE_ERROR_RATE / LOOKS


@dataclass(frozen=True)
class Effort:
    """How much is drawn.

    Attributes
    ----------
    counts : of blocks of samples whose misses are counted.
    samples : of each count of blocks.
    weighs : of blocks of samples whose misses are weighed.
    replications : tilted samples a side: 1000 of them tell a factor of 1.5.
    keys : of POPULATIONS that are judged; None for all.
    """

    counts: tuple[int, ...]
    samples: int
    weighs: tuple[int, ...]
    replications: int
    keys: frozenset[tuple[str, str]] | None = None


# 64 blocks are too few for a calibrated interval at the rate of a look, 512 are the first look.
LONG = Effort((128, 512), 20_000, (64, 512, 4096), 1000)
SHORT = Effort((128,), 10_000, (64, 512), 300, frozenset({
    ("mean", "normal"), ("mean", "skew laplace"), ("mean", "1 % at 40"), ("variance", "scores"),
    ("ratio", "normal"), ("proportion", "exponential"), ("proportion", "1 % at 40"),
    ("median", "normal")}))
SLOW = {"kurtosis": 0.2, "slope of mean": 0.2, "slope of variance": 0.2, "median": 0.1,
        "quantile 0.9": 0.1}  # of the samples that are counted


def selfcheck(
    short: bool = False, seed: int = 0, jobs: int | None = None, files: Iterable[Path] = (),
) -> pd.DataFrame:
    """Judge every statistic on blocks of known truth: a row a check, with COLUMNS and the seed.

    ``short`` takes fewer populations and samples: seconds instead of minutes. With ``files`` of
    claims, the statistics of those are judged instead, on the blocks of each claim's first case.
    The table does not depend on ``jobs``, the number of processes (default: one a core). Raises
    ValueError for a bad seed, ClaimError for a broken file, RuntimeError when a process is killed.
    """
    if not (isinstance(seed, int) and seed >= 0):
        raise ValueError(f"seed={seed!r}: must be a whole number of at least 0")
    effort = SHORT if short else LONG
    builders: list[Callable[[], Population]] = [
        partial(_built, key) for key in POPULATIONS if effort.keys is None or key in effort.keys]
    if files := list(files):
        builders = [partial(of_case, refer(claim.cases()[0]), seed)
                    for claim in discover(*files) if claim.draws]
    found: dict[int, list[Row]] = {}
    with workers(jobs) as spread:
        for index, rows in spread(judged, [(builder, effort, seed) for builder in builders]):
            if isinstance(rows, Killed):
                raise RuntimeError(f"selfcheck: a process was killed ({rows.how}); use fewer jobs")
            found[index] = rows
    return pd.DataFrame([row.cells() for index in sorted(found) for row in found[index]],
                        columns=COLUMNS).assign(seed=seed)


def _built(key: tuple[str, str]) -> Population:
    return POPULATIONS[key]()


def judged(build: Callable[[], Population], effort: Effort, seed: int) -> list[Row]:
    """Every check of one population."""
    population = build()
    name = f"selfcheck of {population.statistic.name} on {population.name}"
    samples = round(effort.samples * SLOW.get(population.statistic.name, 1.0))
    rows = []
    for blocks in effort.counts:
        rows += counted(population, blocks, samples, generator(seed, name, 0, blocks))
    for blocks in effort.weighs:
        rows += weighed(population, blocks, LOOK_RATE, effort.replications,
                        generator(seed, name, 1, blocks))
    return rows


# --- what it comes to ------------------------------------------------------------------------


def passed(frame: pd.DataFrame) -> bool:
    """Whether no row is surely too high or too low, where nothing is known to fail."""
    return not frame["verdict"].isin(["high", "low"]).any()


def report(frame: pd.DataFrame) -> str:
    """The worst miss ratio of each statistic, every row that fails, and what is known to fail."""
    known, misses = frame["verdict"] == "known to fail", frame["check"].str.startswith("miss")
    told = frame[misses & ~known & (frame["effective"] >= FEW)]
    lines = ["How many times too often an interval misses, at worst:"]
    lines += [f"  {row.statistic} ({row.basis}): {_ratio(row)}"
              for row in told.loc[told.groupby(["statistic", "basis"])["ratio"].idxmax()]
              .itertuples()]
    for verdict in ("high", "low"):
        lines += [f"too {verdict}: {row.statistic}: {_ratio(row)}"
                  for row in frame[frame["verdict"] == verdict].itertuples()]
    if known.any():
        worst = frame.loc[frame[known & (frame["nominal"] > 1e-6)]["ratio"].idxmax()]
        lines.append(
            f"known to fail: {known.sum()} checks of calibrated intervals on blocks of which a "
            f"small share lies far away, such as {worst['data']} standard deviations, misses up to "
            f"{worst['ratio']:.3g} times too often at {2 * worst['nominal']:g}: a sample that "
            "holds none cannot tell. Intervals that rest on a theorem are judged on the same.")
    counts = frame["verdict"].value_counts()
    lines.append(("passed: " if passed(frame) else "failed: ") + ", ".join(
        f"{counts.get(verdict, 0)} {verdict}"
        for verdict in ("ok", "high", "low", "known to fail", "open", "waits")))
    return "\n".join(lines)


def _ratio(row: Any) -> str:
    return (f"{row.ratio:.3g}, surely {row.low / row.nominal:.3g} to {row.high / row.nominal:.3g}: "
            f"{row.check}, {row.data}, {row.blocks} blocks")
