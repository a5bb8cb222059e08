"""From the statistics and data of known truth to a table of how often their intervals err.

Means, variances, kurtosis, ratios, slopes, quantiles and shares are judged where the truth is
known, by sums, by counting, and by importance sampling where a rate is too small to be counted. A
row passes while measured/nominal lies between ``least`` and ``most``: see limits. The statistic
``exact`` has no error to judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from mcverify.judge.processes import Killed, workers
from mcverify.selfcheck import count, far
from mcverify.selfcheck.data import COINS, POPULATIONS, population
from mcverify.selfcheck.exactly import rows as exact_rows
from mcverify.selfcheck.row import COLUMNS, FEW, Row
from mcverify.selfcheck.stream import stream
from mcverify.selfcheck.tilt import HIGH, LOW
from mcverify.verdict import looks

__all__ = ["COLUMNS", "passed", "report", "selfcheck"]

Key = tuple[str, str]
Task = Callable[[], list[Row]]


@dataclass(frozen=True)
class Effort:
    """How much is drawn.

    Attributes
    ----------
    sequences : samples that grow from look to look; each also gives some of the first look's size.
    scatter : samples whose standard error is held against their scatter.
    replications : tilted samples at a small rate, times MORE: 1000 of them tell a factor of 2.
    sequential : tilted samples that grow from look to look, for each look.
    looks : how many of verdict.looks are taken in sequence.
    keys : of POPULATIONS and COINS that are judged; None for all.
    """

    sequences: int
    scatter: int
    replications: int
    sequential: int
    looks: int
    keys: frozenset[Key] | None = None


SHARE = {  # of sequences, counted or tilted, and scatter, for statistics that take long
    "kurtosis": 0.4, "median": 0.4, "quantile 0.9": 0.25, "ratio": 0.5,
    "slope of variance": 0.5, "slope of mean": 0.5,
}
MORE = {"median": 2.5, "quantile 0.9": 2.5}  # times the replications: lattices have wider limits
LONG = Effort(sequences=5000, scatter=8000, replications=1000, sequential=400, looks=4)
SHORT_KEYS = frozenset({
    ("mean", "normal"), ("mean", "exponential"), ("variance", "scores, d_k 2"), ("std", "laplace"),
    ("slope of variance", "rademacher"), ("proportion", "exponential"), ("median", "one"),
    ("quantile 0.9", "one"), ("mean", "rademacher"), ("variance", "rademacher"),
})
SHORT = Effort(sequences=1000, scatter=600, replications=200, sequential=200, looks=2,
               keys=SHORT_KEYS)


def selfcheck(short: bool = False, seed: int = 0, jobs: int | None = None) -> pd.DataFrame:
    """Judge every statistic on data of known truth: a row a check, with COLUMNS and the seed.

    ``short`` takes fewer statistics, data and replications: seconds instead of minutes. The table
    does not depend on ``jobs``, the number of processes (default: one a core). Raises ValueError
    for a bad seed, RuntimeError when a process is killed.
    """
    if not (isinstance(seed, int) and seed >= 0):
        raise ValueError(f"seed={seed!r}: must be a whole number of at least 0")
    tasks = _tasks(SHORT if short else LONG, seed)
    found: dict[int, list[Row]] = {}
    with workers(jobs) as spread:
        for index, rows in spread(_run, [(task,) for task in tasks]):
            if isinstance(rows, Killed):
                raise RuntimeError(f"selfcheck: a process was killed ({rows.how}); use fewer jobs")
            found[index] = rows
    rows = sorted((row for index in sorted(found) for row in found[index]),
                  key=lambda row: (row.statistic, row.data))
    return pd.DataFrame([row.cells() for row in rows], columns=COLUMNS).assign(seed=seed)


def _run(task: Task) -> list[Row]:
    return task()


def _tasks(effort: Effort, seed: int) -> list[Task]:
    """What can be done apart, costly ones first so that none is left to the end."""
    stops = [stop for _, stop in looks()][:effort.looks]
    chosen = [key for key in POPULATIONS if effort.keys is None or key in effort.keys]
    tasks: list[Task] = []
    for key in sorted(chosen, key=lambda key: SHARE.get(key[0], 1.0)):
        share = SHARE.get(key[0], 1.0)
        tasks += [partial(_far, key, side, replications(key[0], effort),
                          round(share * effort.sequential), effort.looks, seed)
                  for side in (LOW, HIGH)]
        tasks.append(partial(_counted, key, round(share * effort.sequences), stops, seed))
        tasks.append(partial(_scatter, key, stops[0], round(share * effort.scatter), seed))
    return tasks + [partial(_exact, key, stops) for key in COINS
                    if effort.keys is None or key in effort.keys]


def replications(statistic: str, effort: Effort) -> int:
    """Tilted samples at a small rate, as many as tell a factor of 2 for the statistic."""
    return round(MORE.get(statistic, 1.0) * effort.replications)


def _far(
    key: Key, side: int, replications: int, sequential: int, several: int, seed: int
) -> list[Row]:
    return far.rows(population(*key), side, replications, sequential, several,
                    stream(seed, "far", *key, str(side)))


def _counted(key: Key, sequences: int, stops: list[int], seed: int) -> list[Row]:
    return count.rows(population(*key), sequences, stops, stream(seed, "count", *key))


def _scatter(key: Key, blocks: int, samples: int, seed: int) -> list[Row]:
    return count.scatter_rows(population(*key), blocks, samples, stream(seed, "scatter", *key))


def _exact(key: Key, stops: list[int]) -> list[Row]:
    return exact_rows(COINS[key], stops)


# --- what it comes to ------------------------------------------------------------------------


def passed(frame: pd.DataFrame) -> bool:
    """Whether no row is surely too high or too low."""
    return not frame["verdict"].isin(["high", "low"]).any()


def report(frame: pd.DataFrame) -> str:
    """The worst miss ratio of each statistic that the draws tell, and every row that fails."""
    told = (frame["effective"] >= FEW) | (frame["method"] == "exact")
    misses = frame[told & frame["check"].str.startswith("miss")]
    lines = ["How many times too often an interval misses, at worst:"]
    lines += [f"  {row.statistic}: {_ratio(row)}: {row.check}, {row.data}, {row.blocks} blocks"
              for row in misses.loc[misses.groupby("statistic")["ratio"].idxmax()].itertuples()]
    for verdict in ("high", "low"):
        lines += [f"too {verdict}: {row.statistic} of {row.data}, {row.blocks} blocks: "
                  f"{row.check}: {_ratio(row)}"
                  for row in frame[frame["verdict"] == verdict].itertuples()]
    counts = frame["verdict"].value_counts()
    lines.append(("passed: " if passed(frame) else "failed: ") + ", ".join(
        f"{counts.get(verdict, 0)} {verdict}" for verdict in ("ok", "high", "low", "open")))
    return "\n".join(lines)


def _ratio(row: Any) -> str:
    return (f"{row.ratio:.3g} ± {row.mc_error / row.nominal:.2g}, may be "
            f"{row.least:.3g} to {row.most:.3g}")
