"""Where the time of a run goes: by kind of work, by world and by claim, beside the floor.

Run it as `python -m benchmarks suite [NAMES] [--top 15] [--csv DIR]`. All cases are judged in this
one process, in CPU time, with every piece of work counted once: what is drawn, the matrix products,
the bodies without these, block values and intervals, the checks of laws and bodies. The floor is
what drawing the numbers and the matrix products alone cost.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

started = time.process_time()  # before mcverify and what it needs is imported

import pandas as pd  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from benchmarks import as_in_a_worker  # noqa: E402
from mcverify.attention import products  # noqa: E402
from mcverify.attention.chunk import Chunk, Drawn  # noqa: E402
from mcverify.declare import discover  # noqa: E402
from mcverify.judge import measure, trial  # noqa: E402
from mcverify.judge.atlas import atlas  # noqa: E402
from mcverify.judge.run import run  # noqa: E402
from mcverify.judge.stream import Stream  # noqa: E402
from mcverify.judge.world import World  # noqa: E402
from mcverify.statistic import Statistic  # noqa: E402

FLOOR = ["drawing", "products"]


class Clock:
    """CPU seconds by kind of work, world and claim; of work within other work the inner counts."""

    def __init__(self) -> None:
        self.spent: dict[tuple[str, str, str], float] = defaultdict(float)
        self.world = self.claim = ""
        self.kinds = ["start"]
        self.since = started

    @contextmanager
    def at(self, kind: str) -> Iterator[None]:
        self.stop()
        self.kinds.append(kind)
        try:
            yield
        finally:
            self.stop()
            self.kinds.pop()

    def stop(self) -> None:
        """Count the time since the last change for what was at work."""
        now = time.process_time()
        self.spent[self.kinds[-1], self.world, self.claim] += now - self.since
        self.since = now

    def watch(self, owner: Any, name: str, kind: str | Callable[..., str]) -> None:
        """Count the calls of a function of a module or a class."""
        function = getattr(owner, name)

        @wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            with self.at(kind if isinstance(kind, str) else kind(*arguments)):
                return function(*arguments, **named)

        setattr(owner, name, counted)

    def table(self) -> pd.DataFrame:
        """A row for each kind, world and claim."""
        rows = [(*key, seconds) for key, seconds in self.spent.items()]
        return pd.DataFrame(rows, columns=["kind", "world", "claim", "seconds"])


def watch_everything(clock: Clock) -> None:
    """Let every kind of work be counted."""
    def for_case(*arguments: Any) -> str:
        case, world = arguments[:2]
        clock.claim, clock.world = case.claim.name, str(world)
        return "else"

    def for_world(world: World, *_: Any) -> str:
        clock.claim, clock.world = "", str(world)
        return "drawing"

    clock.watch(World, "chunk_at", for_world)
    clock.watch(measure, "check_law", "checks")
    clock.watch(measure, "_check_body", "checks")
    clock.watch(measure, "_outcome", for_case)
    clock.watch(measure, "call", "bodies")
    clock.watch(Chunk, "kept", "weights")
    clock.watch(products, "matrix_products", "products")
    clock.watch(Drawn, "__matmul__", "products")  # that bodies ask for
    clock.watch(Drawn, "__rmatmul__", "products")
    clock.watch(Stream, "standard_normal", "drawing")  # that bodies ask for
    clock.watch(Statistic, "block_values", "block values")
    clock.watch(trial.Trial, "judged", "intervals")
    clock.watch(trial.Trial, "without_drawing", "predictions")


def main() -> None:
    as_in_a_worker("suite")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="claims (default: all, and the atlas)")
    parser.add_argument("--top", type=int, default=15, help="rows of worlds and of claims")
    parser.add_argument("--csv", type=Path, help="where every row is written")
    options = parser.parse_args()
    clock = Clock()
    watch_everything(clock)
    claims = [claim for claim in discover.discover()
              if not options.names or claim.name in options.names]
    with threadpool_limits(1):
        clock.stop()
        clock.kinds = ["else"]
        for _ in run([case for claim in claims
                      for case in (*claim.cases(), *claim.control_cases())], jobs=1):
            pass
        if not options.names:
            clock.claim, clock.world = "", "atlas"
            with clock.at("atlas"):
                atlas(seed=0, jobs=1)
        clock.stop()
    show(clock.table(), options.top)
    if options.csv:
        clock.table().to_csv(options.csv, index=False)


def show(spent: pd.DataFrame, top: int) -> None:
    kinds = spent.groupby("kind")["seconds"].sum().sort_values(ascending=False)
    total, floor = kinds.sum(), kinds.reindex(FLOOR).sum()
    print(f"CPU seconds: {total:.1f}; floor ({' and '.join(FLOOR)}): {floor:.1f}; "
          f"ratio {total / floor:.2f}\n")
    print(kinds.round(1).to_string(header=False), "\n")
    for name in ("world", "claim"):
        rows = spent[spent[name] != ""].pivot_table("seconds", name, "kind", "sum", fill_value=0.0)
        rows.insert(0, "all", rows.sum(axis=1))
        print(rows.nlargest(top, "all").round(2).to_string(), "\n")


if __name__ == "__main__":
    main()
