"""Run a benchmark by its name: `python -m benchmarks suite`."""

import importlib
import sys
from pathlib import Path

NAMES = sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))

if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
    sys.exit(f"usage: python -m benchmarks NAME [OPTIONS], where NAME is {', '.join(NAMES)}")
module = importlib.import_module(f"benchmarks.{sys.argv.pop(1)}")
module.main()
