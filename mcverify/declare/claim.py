"""What a claim is: a frozen value that says what is measured, in which cases, and predicted."""

import inspect
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mcverify.declare.fault import ClaimError
from mcverify.declare.grid import NOWHERE, Grid, Point, shown
from mcverify.declare.names import DEFAULTS, DRAWN, TRAINED, call, parameters
from mcverify.declare.prediction import KINDS, Margin, Printed, claimed_interval
from mcverify.declare.rules import check_claim
from mcverify.statistic import Statistic
from mcverify.verdict import Verdict

NO_CONTROLS = Grid(())
WRONG_MARGINS = 3  # by which a predicted value is off in the control that every value has


@dataclass(frozen=True)
class Claim:
    """A statistic, of something computed from q and k, in some worlds, meets a prediction.

    Declaring one registers nothing and runs nothing. Just one of ``equals``, ``at_least``,
    ``at_most`` and ``between`` is given: a number (``between``: a pair), or a function of the
    settings. A body that draws and whose grid names no law or no d_k gets ``laws.STANDARD`` and
    1, 8, 64, 512. ``controls`` are near misses: settings that the draws and the body get instead
    of the grid's, while the prediction stays, so that it must be REFUTED; a function takes the
    grid's value and returns the other one. ``needs`` names a module without which nothing can be
    measured, so that every case is INCONCLUSIVE. Raises ClaimError when it breaks a rule.
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
    controls: Grid = NO_CONTROLS
    needs: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.between, list):
            object.__setattr__(self, "between", tuple(self.between))
        check_claim(self)

    def __hash__(self) -> int:
        return hash(self.name)  # asked for once a chunk; that of all fields takes long

    def __repr__(self) -> str:
        return f"<Claim {self.name}: {self.sentence}>"

    @property
    def draws(self) -> bool:
        """Whether the body measures something of draws, and is no calculation."""
        return any(name in parameters(self.body) for name in (*DRAWN, *TRAINED))

    @property
    def of_world(self) -> bool:
        """Whether it is measured on queries and keys of a law, and on no training runs."""
        return any(name in parameters(self.body) for name in DRAWN)

    @property
    def slow(self) -> bool:
        """Whether it is judged only where it is named: it trains models, or needs a module more."""
        return bool(self.needs) or "seeds" in parameters(self.body)

    @property
    def prediction(self) -> tuple[str, Any]:
        """Which of the four kinds is given, and its value or function."""
        return next((kind, getattr(self, kind)) for kind in KINDS
                    if getattr(self, kind) is not None)

    def cases(self) -> list["Case"]:
        """The claim at each point of its grid."""
        return list(_cases(self))

    def control_cases(self) -> list["Case"]:
        """The near misses: those named, and for ``equals`` the value off by three margins.

        They are tried at the claim's cheapest point of at least 8 coordinates, since with fewer
        some departures do not show. A claim that is not declared CONFIRMED has none.
        """
        return list(_control_cases(self))

    def all_cases(self) -> list["Case"]:
        """The cases, then the near misses."""
        return [*_cases(self), *_control_cases(self)]


@dataclass(frozen=True)
class Case:
    """One claim at one point of its grid; with a ``control``, one that must be REFUTED there.

    >>> from mcverify import attention, claim, grid, laws, relative, statistic
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
    control: Point = ()

    def __hash__(self) -> int:
        return hash(self._id)

    def __str__(self) -> str:
        return self._id

    @cached_property
    def _id(self) -> str:
        parts = [self.claim.name, *(
            shown(value) if name == "law" else f"{name}:{shown(value)}"
            for name, value in self.settings
        )]
        if self.control:
            parts += ["control", *(f"{name}:{shown(value)}" for name, value in self.control)]
        return "-".join(parts)

    def __repr__(self) -> str:
        return f"<Case {self}>"

    @property
    def drawn(self) -> dict[str, Any]:
        """The settings that the draws and the body get: a control's instead of the grid's."""
        return dict(self.settings) | dict(self.control)

    @property
    def expected(self) -> Verdict:
        """What the claim declares; REFUTED for a control."""
        return Verdict.REFUTED if self.control else self.claim.expect

    @property
    def predicted(self) -> Any:
        """The number (or pair, or printed number) that the claim predicts here."""
        kind, prediction = self.claim.prediction
        moved = dict(self.control).get(kind)
        if moved is not None:
            return moved
        return call(prediction, dict(self.settings)) if callable(prediction) else prediction

    @property
    def claimed(self) -> tuple[float, float]:
        """The claimed interval; a half-line has an infinite end."""
        return self.claimed_at(1.0)

    def claimed_at(self, margin_scale: float) -> tuple[float, float]:
        """The claimed interval with ``within`` so many times as wide.

        A bound has no margin, and that of a printed number is what its digits say: both stay. The
        control whose value is off by three margins is off by three of the scaled ones.
        """
        (kind, _), within, predicted = self.claim.prediction, self.claim.within, self.predicted
        if self.control and kind == "equals" and margin_scale != 1:
            case = Case(self.claim, self.settings)
            scaled = zip(_moved(case), _moved(case, margin_scale), strict=True)
            predicted = next((to for moved, to in scaled if moved == predicted), predicted)
        return claimed_interval(kind, predicted, within and within.scaled(margin_scale))


def statement_ids(decides: str) -> list[str]:
    """The statements that ``decides`` names.

    >>> statement_ids("A5 B2")
    ['A5', 'B2']
    """
    return re.findall(r"[A-Z]\d+", decides)


@lru_cache(maxsize=4096)
def _cases(claim: Claim) -> tuple[Case, ...]:
    cases, defaults = [], DEFAULTS if claim.of_world else {}
    for point in claim.over.points:
        given = dict(point)
        first = [(given[name],) if name in given else values for name, values in defaults.items()]
        rest = tuple(item for item in point if item[0] not in defaults)
        cases += [Case(claim, (*zip(defaults, values, strict=True), *rest))
                  for values in itertools.product(*first)]
    return tuple(cases)


@lru_cache(maxsize=4096)
def _control_cases(claim: Claim) -> tuple[Case, ...]:
    if claim.expect is not Verdict.CONFIRMED:
        return ()
    cases = _cases(claim)
    wide = [case for case in cases if dict(case.settings).get("d_k", 8) >= 8] or cases
    case = min(wide, key=lambda case: [dict(case.settings).get(name, 1) for name in
                                       ("d_k", "keys", "tokens")])
    kind, _ = claim.prediction
    points = [*claim.controls.points]
    if kind == "equals":
        points += [(("equals", moved),) for moved in _moved(case)]
    defaults = {name: parameter.default
                for name, parameter in inspect.signature(claim.body).parameters.items()}
    given = defaults | dict(case.settings)

    def changed(name: str, value: Any) -> Any:
        try:
            return value(given[name]) if callable(value) else value
        except Exception as error:
            raise ClaimError(f"{claim.name}: its control {name} raises {type(error).__name__}: "
                             f"{error}; a function takes the grid's value and returns another"
                             ) from None

    return tuple(Case(claim, case.settings, tuple((name, changed(name, value))
                                                  for name, value in point)) for point in points)


def _moved(case: Case, margin_scale: float = 1.0) -> list[Any]:
    """The predicted value, too small and too large by three margins."""
    try:
        predicted, (low, high) = case.predicted, case.claimed_at(margin_scale)
    except Exception:  # the case itself will tell
        return []
    shift = WRONG_MARGINS * (high - low) / 2
    if isinstance(predicted, Printed):
        return [Printed(f"{value:g}", value, predicted.margin)
                for value in (predicted.value - shift, predicted.value + shift)]
    return [float(predicted) - shift, float(predicted) + shift]
