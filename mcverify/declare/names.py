"""The names that a body, a grid and a table of results go by, and what a function asks for."""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from mcverify import laws

DRAWN = ("q", "k", "rng")  # what a body may name besides the settings of its grid
# What a body may name instead: a seed for each training run, and whom to tell how far they are.
TRAINED = ("seeds", "progress")
WORLD = ("law", "d_k", "tokens")  # what it may name as soon as something is drawn
# Of a case's result; the names of no settings.
COLUMNS = ("seed", "error_rate", "blocks", "estimate", "stderr", "low", "high", "claimed_low",
           "claimed_high", "verdict", "expected", "basis", "reason")
ATLAS = "saturation_atlas"  # the table that a run of all claims writes beside theirs
RESERVED = ("verdicts", "controls", "sources", "ledger", "selfcheck", ATLAS)
NAMES = ("claim", "case")  # the columns that tables of several claims begin with
DEFAULTS: dict[str, tuple[Any, ...]] = {"law": laws.STANDARD, "d_k": (1, 8, 64, 512)}
MAX_NAME = 200  # bytes of a claim's name: a file system takes 255, of which its file needs some
COUNTS = ("d_k", "tokens", "keys")


@lru_cache(maxsize=4096)
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)


def call(function: Callable[..., Any], available: Mapping[str, Any]) -> Any:
    """Call a function with those of the available values that it names."""
    return function(**{name: available[name] for name in parameters(function) if name in available})
