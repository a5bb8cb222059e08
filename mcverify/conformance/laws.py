"""From a law to whether it keeps what every law promises: a frozen value whose blocks are new."""

import copy
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from mcverify.conformance import moments
from mcverify.conformance.remarks import Problem, Remark, place_of, place_of_function
from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import source
from mcverify.judge.measure import GlobalRandomness, describe
from mcverify.judge.world import MAX_TOKENS, Array, World, world_of
from mcverify.laws import Law

FALSE_ALARM = 1e-6  # of all that is said of the draws of all laws of a file
PAIRS = (64, 256)  # of calls whose blocks are compared: more if the first do not look even
LOPSIDED = 0.6  # a larger share does not: of 64 fair coins, one time in ten
SECONDS = 0.5  # spent on that at most


def worlds(claims: list[Claim]) -> dict[Law, tuple[World, Case]]:
    """For each law that the claims and their controls name, a narrow world and a case it is of.

    At least two coordinates, where the grids have that: one has no covariances to be wrong.
    """
    found: dict[Law, tuple[World, Case]] = {}
    for claim in claims:
        for case in (*claim.cases(), *claim.control_cases()) if claim.draws else ():
            try:
                world = world_of(case)
            except Exception:  # a control without a law, say: the case itself will tell
                continue
            if "tokens" not in case.drawn:
                world = dataclasses.replace(world, tokens=min(world.tokens, MAX_TOKENS))
            if world.law not in found or _narrower(world, found[world.law][0]):
                found[world.law] = world, case
    return found


def _narrower(one: World, other: World) -> bool:
    return (one.d_k < 2, one.d_k, one.tokens) < (other.d_k < 2, other.d_k, other.tokens)


def look(world: World, case: Case, known: list[Any], rate: float) -> tuple[bool, list[Remark]]:
    """Whether the law of a world can be drawn, and what is wrong with it.

    ``known`` are the generators that there are, ``rate`` is how often draws may be blamed falsely.
    """
    law, file = world.law, source(case.claim)
    place = place_of_function(type(law).draw, file) or place_of(case.claim)
    remarks: list[Remark] = [Problem(place, f"{law}: {text}") for text in _value(law)]
    undrawn = _draws(world)
    wrong = undrawn or _blocks(world, rate / 2)
    remarks += [Problem(place, f"{law}: {text}") for text in wrong]
    if not wrong:
        place = place_of_function(type(law).moments, file) or place
        remarks += [Problem(place, f"{law}: {text}")
                    for text in moments.look(world, known, rate / 2)]
    return not undrawn, remarks


def _value(law: Law) -> Iterator[str]:
    """What is wrong with the law as a value, without drawing."""
    if type(law).__str__ is object.__str__:
        yield ("has no __str__, and its random numbers descend from its name; give it one that "
               "tells all its parameters")
    if not isinstance(law.coupled, bool | np.bool_):
        yield f"coupled is {law.coupled!r}; it must be True or False"
    order = law.finite_moments
    if not (isinstance(order, int | float) and order > 0):
        yield (f"finite_moments is {order!r}; it must be the order below which moments exist, "
               "math.inf for all")
    try:
        other = copy.deepcopy(law)
        same = bool(other == law) and hash(other) == hash(law)
    except Exception:  # what cannot be copied or compared cannot be told
        return
    if not same:
        yield "is not equal to its own copy; make it a dataclass with frozen=True"
    elif _changes(other):
        yield "can be changed after it was made; make it a dataclass with frozen=True"


def _changes(law: Law) -> bool:
    """Whether an attribute of the law, a copy, can be set."""
    name = next(iter(getattr(law, "__dataclass_fields__", ())), "_any")
    try:
        setattr(law, name, getattr(law, name, None))
    except (AttributeError, TypeError):  # FrozenInstanceError is an AttributeError
        return False
    return True


def _draws(world: World) -> list[str]:
    """What is wrong with single draws of the world."""
    randomness = GlobalRandomness()
    try:
        with np.errstate(all="ignore"):
            first, again, other = (world.draw(seed, 0, 4) for seed in (0, 0, 1))
        randomness.untouched("draw")
    except Exception as error:
        return [describe(error).removeprefix(f"the law {world.law} ")]
    if any(array.dtype.kind != "f" for array in first):
        return [f"draws {first[0].dtype} and {first[1].dtype} numbers; they must be floats"]
    if not all(map(np.array_equal, first, again)):
        return ["two draws from the same generator differ; draw from the rng that is given, and "
                "keep nothing between calls"]
    if all(map(np.array_equal, first, other)):
        return ["every generator draws the same q and k; draw from the rng that is given"]
    return []


def _blocks(world: World, rate: float) -> list[str]:
    """Whether two blocks of one call are as alike as two blocks of two calls.

    Of blocks a, a' of one call and b, b' of another, abs(a − a') + abs(b − b') and abs(a − b) +
    abs(a' − b') change places with a' and b, and so are as often the larger one if all four are
    independent with one law, whatever that is. Compared are whole blocks, and their mean squares.
    """
    started = time.perf_counter()
    # How often blocks of one call are more alike, and less, in their entries and in their sizes.
    ahead = np.zeros((2, 2), dtype=np.int64)
    for pair in range(PAIRS[1]):
        even = (ahead.max(axis=1) <= LOPSIDED * ahead.sum(axis=1)).all()
        if pair >= PAIRS[0] and (even or time.perf_counter() - started > SECONDS):
            break
        try:
            ahead += _compared(*(world.draw(2, 2 * pair + call, 2) for call in (0, 1)))
        except Exception as error:
            return [f"two blocks cannot be drawn: {describe(error)}"]
    for name, (more, less) in zip(("entries", "sizes"), ahead.tolist(), strict=True):
        chance = 4 * float(bdtrc(max(more, less) - 1, more + less, 0.5)) if more + less else 1.0
        if chance < rate:  # of two sides, in two comparisons
            return [f"blocks drawn in one call are too {'alike' if more > less else 'unlike'} in "
                    f"their {name} to be independent, and blocks count as independent; draw arrays "
                    "whose first axis is the blocks"]
    return []


def _compared(one: tuple[Array, Array], other: tuple[Array, Array]) -> NDArray[np.int64]:
    """Of two calls of two blocks: (2, 2), 1 where the blocks of one call are more, or less, alike.

    The first row compares entries, the second sizes; equal distances count on neither side.
    """
    found = np.zeros((2, 2), dtype=np.int64)
    for row, numbers in zip(found, (_vectors, _sizes), strict=True):
        x, y = numbers(*one), numbers(*other)
        within = np.abs(x[0] - x[1]).sum() + np.abs(y[0] - y[1]).sum()
        between = np.abs(x - y).sum()
        row[:] = within < between * (1 - 1e-9), within > between * (1 + 1e-9)
    return found


def _vectors(q: Array, k: Array) -> Array:
    return np.concatenate([q.reshape(len(q), -1), k.reshape(len(k), -1)], axis=1)


def _sizes(q: Array, k: Array) -> Array:
    return np.stack([np.mean(x * x, axis=(1, 2)) for x in (q, k)], axis=1)


def same_names(laws: list[Law]) -> list[tuple[Law, str]]:
    """Laws that have the name of another one, and so its random numbers and its rows."""
    first: dict[str, Law] = {}
    return [(law, f"{law}: another law has this name and is not equal to it; tell all parameters "
                  "in __str__, floats with .12g")
            for law in laws if first.setdefault(str(law), law) != law]
