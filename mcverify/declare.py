"""From a decorated function to a claim: a frozen value that says what is measured and predicted."""

import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mcverify import laws
from mcverify.laws import Law
from mcverify.prediction import KINDS, ClaimError, Margin, Printed, claimed_interval
from mcverify.statistic import Statistic
from mcverify.verdict import Verdict

DRAWN = ("q", "k", "rng")  # what a body may name besides the settings of its grid
COLUMNS = ("seed", "blocks", "estimate", "stderr", "low", "high", "claimed_low", "claimed_high",
           "verdict", "expected", "reason")  # of a case's result: no setting may have these names
COUNTS = ("d_k", "tokens", "keys")
DEFAULTS: dict[str, tuple[Any, ...]] = {"law": laws.STANDARD, "d_k": (1, 8, 64, 512)}

Point = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Grid:
    """The points at which a claim is tried; two grids add up to the points of both."""

    points: tuple[Point, ...]

    def __add__(self, other: "Grid") -> "Grid":
        return Grid(self.points + other.points)


def grid(**settings: Any) -> Grid:
    """All combinations of the settings' values; a value that is no list or tuple stands alone.

    >>> [dict(point) for point in grid(d_k=[1, 8], scale=0.5).points]
    [{'d_k': 1, 'scale': 0.5}, {'d_k': 8, 'scale': 0.5}]
    """
    values = [v if isinstance(v, list | tuple | range) else (v,) for v in settings.values()]
    return Grid(tuple(tuple(zip(settings, point, strict=True))
                      for point in itertools.product(*values)))


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
    over: Grid = Grid(((),))
    decides: str = ""
    expect: Verdict = Verdict.CONFIRMED

    def __post_init__(self) -> None:
        if isinstance(self.between, list):
            object.__setattr__(self, "between", tuple(self.between))
        _check(self)

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

    >>> from mcverify import attention, relative, statistic
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
    over: Grid = Grid(((),)),
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


@lru_cache(maxsize=4096)
def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)


def call(function: Callable[..., Any], available: Mapping[str, Any]) -> Any:
    """Call a function with those of the available values that it names."""
    return function(**{name: available[name] for name in parameters(function) if name in available})


def shown(value: Any) -> str:
    """A setting as ids and tables show it."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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


def _check(claim: Claim) -> None:
    """Raise ClaimError, with value, rule and repair, for the first rule that the claim breaks."""

    def require(condition: bool, message: str) -> None:
        if not condition:
            raise ClaimError(f"{claim.name}: {message}")

    require(isinstance(claim.statistic, Statistic),
            f"statistic {claim.statistic!r} is no Statistic; use e.g. mcverify.statistic.mean")
    require(bool(claim.sentence), "has no docstring; its first line must be the claim's sentence")
    given = [kind for kind in KINDS if getattr(claim, kind) is not None]
    require(len(given) == 1, f"has {' and '.join(given) or 'no prediction'}; give just one of "
                             f"{', '.join(KINDS)}")
    require(claim.within is None or isinstance(claim.within, Margin),
            f"within={claim.within!r} is no margin; use relative(…) or absolute(…)")
    require(isinstance(claim.expect, Verdict),
            f"expect={claim.expect!r} is no verdict; use e.g. Verdict.REFUTED")
    require(isinstance(claim.over, Grid) and bool(claim.over.points),
            f"over={claim.over!r} is no grid with points; use grid(law=…, d_k=…)")
    require(claim.draws == (claim.statistic.name != "exact"),
            "the statistic exact is for a body that draws nothing, and every other statistic for "
            "one that names q, k or rng; change the one or the other")
    for point in claim.over.points:
        _check_point(claim, dict(point), require)
    kind, prediction = claim.prediction
    if kind == "equals" and claim.within is None:
        example = claim.cases()[0].predicted
        require(isinstance(example, Printed), "has equals without within, but no measurement is "
                                              "exact; add e.g. within=relative(0.02)")
    if claim.within is not None:
        least = claim.within.size
        require(0 < least < float("inf"), f"within has the size {least}; it must be above 0")
    if not callable(prediction):
        try:
            claimed_interval(kind, prediction, claim.within)
        except (TypeError, ValueError) as error:
            raise ClaimError(f"{claim.name}: {error}") from None


def _check_point(
    claim: Claim, settings: dict[str, Any], require: Callable[[bool, str], None]
) -> None:
    for name, value in settings.items():
        require(name not in COLUMNS + DRAWN, f"the setting {name!r} has the name of a result's "
                                             "column or of a draw; choose another")
        if name == "law":
            require(isinstance(value, Law), f"law={value!r} is not a law; use laws.normal or "
                                            "another value of mcverify.laws")
        elif name in COUNTS:
            require(isinstance(value, int) and value >= 1,
                    f"{name}={value!r}: must be a whole number of at least 1")
        try:
            hash(value)
        except TypeError:
            require(False, f"{name}={value!r} can be changed; use a number, a text or a tuple")
    known = {*settings, *((*DRAWN, *DEFAULTS, "tokens") if claim.draws else ())}
    functions = [claim.body] + [p for _, p in [claim.prediction] if callable(p)]
    for function in functions:
        missing = [name for name, parameter in inspect.signature(function).parameters.items()
                   if name not in known and parameter.default is parameter.empty]
        require(not missing, f"{function.__name__} asks for {', '.join(missing)}, which its grid "
                             f"does not name; known are {', '.join(sorted(known)) or 'none'}")
