"""From a decorated function to a claim: a frozen value that says what is measured and predicted."""

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mcverify import laws
from mcverify.grid import NOWHERE, Grid, Point, shown
from mcverify.prediction import KINDS, ClaimError, Margin, claimed_interval
from mcverify.rules import DRAWN, call, check_claim, parameters
from mcverify.statistic import Statistic
from mcverify.verdict import Verdict

DEFAULTS: dict[str, tuple[Any, ...]] = {"law": laws.STANDARD, "d_k": (1, 8, 64, 512)}


@dataclass(frozen=True)
class Claim:
    """A statistic, of something computed from q and k, in some worlds, meets a prediction.

    Declaring one registers nothing and runs nothing. Just one of ``equals``, ``at_least``,
    ``at_most`` and ``between`` is given: a number (``between``: a pair), or a function of the
    settings. A body that draws and whose grid names no law or no d_k gets ``laws.STANDARD`` and
    1, 8, 64, 512. Raises ClaimError when it breaks a rule.
    """

    name: str
    sentence: str
    statistic: Statistic
    body: Callable[..., Any]
    equals: Any = None
    at_least: Any = None
    at_most: Any = None
    between: Any = None
    within: Margin | None = None
    over: Grid = NOWHERE
    decides: str = ""
    expect: Verdict = Verdict.CONFIRMED

    def __post_init__(self) -> None:
        if isinstance(self.between, list):
            object.__setattr__(self, "between", tuple(self.between))
        check_claim(self)

    @property
    def draws(self) -> bool:
        """Whether the body needs a world at all."""
        return any(name in parameters(self.body) for name in DRAWN)

    @property
    def prediction(self) -> tuple[str, Any]:
        """Which of the four kinds is given, and its value or function."""
        return next((kind, getattr(self, kind)) for kind in KINDS
                    if getattr(self, kind) is not None)

    def cases(self) -> list["Case"]:
        """The claim at each point of its grid."""
        return list(_cases(self))


@dataclass(frozen=True)
class Case:
    """One claim at one point of its grid.

    >>> from mcverify import attention, grid, relative, statistic
    >>> @claim(statistic.variance, equals=lambda d_k: d_k, within=relative(0.02),
    ...        over=grid(law=laws.normal, d_k=64))
    ... def example(q, k):
    ...     '''Var(q·k) = d_k.'''
    ...     return attention.scores(q, k)
    >>> str(example.cases()[0]), example.cases()[0].claimed
    ('example-normal-d_k:64', (62.72, 65.28))
    """

    claim: Claim
    settings: Point

    def __str__(self) -> str:
        return "-".join([self.claim.name, *(
            str(value) if name == "law" else f"{name}:{shown(value)}"
            for name, value in self.settings
        )])

    @property
    def predicted(self) -> Any:
        """The number (or pair, or printed number) that the claim predicts here."""
        _, prediction = self.claim.prediction
        return call(prediction, dict(self.settings)) if callable(prediction) else prediction

    @property
    def claimed(self) -> tuple[float, float]:
        """The claimed interval; a half-line has an infinite end."""
        return claimed_interval(self.claim.prediction[0], self.predicted, self.claim.within)


def claim(
    statistic: Statistic,
    *,
    equals: Any = None,
    at_least: Any = None,
    at_most: Any = None,
    between: Any = None,
    within: Margin | None = None,
    over: Grid = NOWHERE,
    decides: str = "",
    expect: Verdict = Verdict.CONFIRMED,
) -> Callable[[Callable[..., Any]], Claim]:
    """Turn a function into a Claim of its name; its docstring's first line is the sentence.

    The function names what it needs (``q``, ``k``, settings of its grid, ``law``, ``rng`` for
    extra draws) and returns an array whose first axis is the blocks; a tuple of two for a ratio, a
    list of pairs for a slope. Raises ClaimError for a claim that breaks a rule.
    """

    def declare(body: Callable[..., Any]) -> Claim:
        sentence = (inspect.getdoc(body) or "").strip().partition("\n")[0]
        try:
            return Claim(body.__name__, sentence, statistic, body, equals, at_least, at_most,
                         between, within, over, decides, expect)
        except ClaimError as error:
            faults = _faults.get()
            if faults is None:
                raise
            faults.append((body.__code__.co_firstlineno, str(error)))
            return None  # type: ignore[return-value]  # a broken claim is reported, not run

    return declare


_faults: ContextVar[list[tuple[int, str]] | None] = ContextVar("_faults", default=None)


@contextmanager
def collect_faults() -> Iterator[list[tuple[int, str]]]:
    """Inside it a broken declaration does not raise, so that the file's other claims are read.

    Yields the list of (line, message) that fills up.
    """
    faults: list[tuple[int, str]] = []
    token = _faults.set(faults)
    try:
        yield faults
    finally:
        _faults.reset(token)


def statement_ids(decides: str) -> list[str]:
    """The statements that ``decides`` names.

    >>> statement_ids("A5 B2")
    ['A5', 'B2']
    """
    return re.findall(r"[A-Z]\d+", decides)


@lru_cache(maxsize=4096)
def _cases(claim: Claim) -> tuple[Case, ...]:
    found = []
    for point in claim.over.points:
        given = dict(point)
        defaults = DEFAULTS if claim.draws else {}
        first = [given[name] if name in given else values
                 for name, values in defaults.items()]
        rest = tuple(item for item in point if item[0] not in defaults)
        for values in itertools.product(*(v if isinstance(v, tuple) else (v,) for v in first)):
            found.append(Case(claim, (*zip(defaults, values, strict=True), *rest)))
    return tuple(found)
