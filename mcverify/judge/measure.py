"""From one chunk of a world to the table of each case that lives in it; runs in the workers."""

import random
import sysconfig
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.attention import refuse_all_pairs
from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import load, loaded_from
from mcverify.declare.rules import call, parameters
from mcverify.judge.processes import apart, at_step
from mcverify.judge.world import World, generator, world_of

PACKAGE = Path(__file__).parents[1]
INSTALLED = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]

Array = NDArray[np.float64]
Outcome = Array | str  # the table of a chunk, or why there is none

# How a case reaches a worker: by file, name and place in the grid, since a claim's name hides its
# function from pickle. A claim that no file holds (changed by dataclasses.replace, or typed at a
# prompt) goes by value.
Reference = tuple[Path | Claim, str, int]


def refer(case: Case) -> Reference:
    """The case in a form that any process can resolve."""
    claim, index = case.claim, _all(case.claim).index(case)
    return (loaded_from(claim) or claim, claim.name, index)


def resolve(reference: Reference) -> Case:
    """The case that a reference stands for."""
    held, name, index = reference
    claim = held if isinstance(held, Claim) else next(
        claim for claim in load(held).claims if claim.name == name)
    return _all(claim)[index]


def _all(claim: Claim) -> list[Case]:
    return [*claim.cases(), *claim.control_cases()]


def measure(references: list[Reference], seed: int, first: int, blocks: int) -> list[Outcome]:
    """Draw one chunk of the cases' common world and reduce it to a table for each of them.

    Whatever goes wrong becomes that case's outcome, as a line of text; nothing is drawn again. The
    place of the case at work is noted, so that it is known which one killed its process.
    """
    cases = [resolve(reference) for reference in references]
    world, randomness = world_of(cases[0]), GlobalRandomness()
    try:
        q, k = world.draw(seed, first, blocks)
        randomness.untouched(f"the law {world.law}")
    except own_faults() as error:
        return [describe(error)] * len(cases)
    outcomes = []
    for index, case in enumerate(cases):
        at_step(index)
        try:
            table = _table(case, world, q, k, seed, first)
            randomness.untouched("the body")
        except own_faults() as error:
            table = describe(error)
        outcomes.append(table)
    return outcomes


def own_faults() -> tuple[type[BaseException], ...]:
    """What a law or a body may raise without ending the run, for use after ``except``.

    Ctrl-C is left to the parent, so that in a process of its own KeyboardInterrupt is a fault, too.
    """
    return (BaseException,) if apart() else (Exception, SystemExit)


class GlobalRandomness:
    """The global random states of NumPy and Python, which nothing that is measured may touch."""

    def __init__(self) -> None:
        self.states = self._now()

    def untouched(self, who: str) -> None:
        """Raise ValueError if ``who`` has drawn from them or set them; they are put back."""
        (numpy_then, python_then), (numpy_now, python_now) = self.states, self._now()
        if python_now == python_then and all(
                np.array_equal(x, y) for x, y in zip(numpy_then, numpy_now, strict=True)):
            return
        np.random.set_state(numpy_then)  # noqa: NPY002
        random.setstate(python_then)
        raise ValueError(f"{who} used the global random state, which others may move; draw from "
                         "the rng that it is given")

    @staticmethod
    def _now() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return np.random.get_state(), random.getstate()  # type: ignore[return-value]  # noqa: NPY002


def _table(case: Case, world: World, q: Array, k: Array, seed: int, first: int) -> Outcome:
    claim, settings = case.claim, case.drawn
    available: dict[str, Any] = {**settings, "q": q, "k": k, "tokens": world.tokens}
    if "rng" in parameters(claim.body):
        available["rng"] = generator(seed, str(case), first)
    refusal = ""
    if world.law.coupled and "tokens" not in settings:
        refusal = (f"all pairs under {world.law}: with a token's key tied to its query the result "
                   "depends on the number of tokens; fix tokens in the grid, or use "
                   "matched_scores or other_scores")
    with refuse_all_pairs(refusal), np.errstate(all="ignore"):
        values = call(claim.body, available)
        _check_values(values, len(q))
        table = claim.statistic.reduce(values)
    if len(table) != len(q):
        raise ValueError(f"the statistic {claim.statistic.name} made {len(table)} rows of {len(q)} "
                         "blocks; its reduce must give one for each")
    return table if np.isfinite(table).all() else _not_finite(values)


def _parts(values: Any) -> list[Array]:
    """The arrays in what a body returned: one, a tuple of them, or a list of pairs (x, array)."""
    if isinstance(values, tuple):
        return [np.asarray(part) for part in values]
    if isinstance(values, list):
        return [np.asarray(pair[-1]) for pair in values]
    return [np.asarray(values)]


def _check_values(values: Any, blocks: int) -> None:
    """Raise ValueError unless every array is real, not empty, and has the blocks first."""
    if values is None:
        raise ValueError("the body returned None; end it with `return` and the values")
    for part in _parts(values):
        if part.dtype.kind not in "biuf":
            raise ValueError(f"the body returned {part.dtype} values; they must be real numbers")
        if part.ndim == 0 or len(part) != blocks:
            raise ValueError(f"the body returned shape {part.shape}; the first axis must be the "
                             f"{blocks} blocks; reduce behind it, e.g. .mean(axis=-1)")
        if part.size == 0:
            raise ValueError(f"the body returned an empty array of shape {part.shape}; each block "
                             "needs a value")


def _not_finite(values: Any) -> str:
    parts = _parts(values)
    bad = sum(int(np.sum(~np.isfinite(part))) for part in parts)
    if not bad:
        return "the body returned numbers too large to average in double precision; scale them"
    return (f"the body returned {bad} NaN or infinite values out of {sum(p.size for p in parts)}; "
            "all must be finite")


def describe(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own text breaks
        text = ""
    if "read-only" in text:
        text += "; q and k are shared with other claims: work on a copy"
    told = text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
    return told + _place(error)


def _place(error: BaseException) -> str:
    """Where in a file of claims or laws it happened: the innermost line of one; "" if nowhere."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        own = PACKAGE in file.parents and file.parent.name != "claims"
        if not own and file.is_file() and not any(home in file.parents for home in INSTALLED):
            place = f" ({file.name}, line {line})"
    return place
