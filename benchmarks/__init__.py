"""Where time goes and how it grows; and what a benchmark needs to run as a run's processes do."""

import os
import sys


def as_in_a_worker(name: str) -> None:
    """Begin again with the settings of memory and threads that a run gives its processes."""
    from mcverify.judge.worker import ENVIRONMENT  # suite counts this import's time

    missing = {key: value for key, value in ENVIRONMENT.items() if key not in os.environ}
    if missing:
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", name, *sys.argv[1:]],
                  os.environ | missing)
