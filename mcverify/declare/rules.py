"""From a claim to the first rule that it breaks, if any: what can be seen without drawing.

A claim is a Claim; its module imports this one, so that its type is not named here.
"""

import importlib.util
import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from mcverify.declare.fault import ClaimError
from mcverify.declare.grid import Grid
from mcverify.declare.names import (
    COLUMNS,
    COUNTS,
    DEFAULTS,
    DRAWN,
    MAX_NAME,
    NAMES,
    RESERVED,
    TRAINED,
    WORLD,
    call,
    parameters,
)
from mcverify.declare.prediction import KINDS, Margin, Printed, claimed_interval
from mcverify.laws import Law
from mcverify.statistic import Statistic
from mcverify.verdict import CASE_ERROR_RATE, SUITE_ERROR_RATE, Verdict

EXTRAS = ("torch",)  # what claims of mcverify's own need besides, by which it is installed
MAX_CASES = round(SUITE_ERROR_RATE / CASE_ERROR_RATE)


def lacking(claim: Any) -> str:
    """Why nothing can be measured here: a module that the claim needs is missing; "" if none is.

    >>> from types import SimpleNamespace
    >>> lacking(SimpleNamespace(needs="nowhere")), lacking(SimpleNamespace(needs="math"))
    ('needs nowhere', '')
    """
    if not claim.needs or importlib.util.find_spec(claim.needs) is not None:
        return ""
    return f"needs mcverify[{claim.needs}]" if claim.needs in EXTRAS else f"needs {claim.needs}"


def number_of_cases(claim: Any) -> int:
    """How many cases a claim has, without making them."""
    defaults = DEFAULTS if claim.of_world else {}
    return sum(math.prod(len(values) for name, values in defaults.items() if name not in given)
               for given in map(dict, claim.over.points))


def check_claim(claim: Any) -> None:
    """Raise ClaimError, with value, rule and repair, for the first rule that the claim breaks."""

    def require(condition: bool, message: str) -> None:
        if not condition:
            name = claim.name if len(claim.name) <= MAX_NAME else f"{claim.name[:20]}…"
            raise ClaimError(f"{name}: {message}")

    require(len(claim.name.encode()) <= MAX_NAME, f"the name has {len(claim.name)} letters, and a "
            f"file is named after it; use at most {MAX_NAME}")
    require(claim.name not in RESERVED, "is the name of a table of results; choose another")
    _check_parts(claim, require)
    count = number_of_cases(claim)
    require(count <= MAX_CASES, f"its grid has {count} cases, and the error budget of "
            f"{SUITE_ERROR_RATE:g} pays for {MAX_CASES} at {CASE_ERROR_RATE:g} each; make it "
            "smaller")
    for point in claim.over.points:
        _check_point(claim, dict(point), require)
    _check_controls(claim, require)
    _check_prediction(claim, require)
    name, count = Counter(str(case) for case in claim.cases()).most_common(1)[0]
    require(count == 1, f"{count} points of its grid are all named {name}; leave one")


Require = Callable[[bool, str], None]


def _check_parts(claim: Any, require: Require) -> None:
    require(isinstance(claim.statistic, Statistic),
            f"statistic {claim.statistic!r} is no Statistic; use e.g. mcverify.statistic.mean")
    require(bool(claim.sentence), "has no docstring; its first line must be the claim's sentence"
            + (", and Python runs without docstrings (-OO)" if sys.flags.optimize > 1 else ""))
    given = [kind for kind in KINDS if getattr(claim, kind) is not None]
    require(len(given) == 1, f"has {' and '.join(given) or 'no prediction'}; give just one of "
                             f"{', '.join(KINDS)}")
    require(claim.within is None or isinstance(claim.within, Margin),
            f"within={claim.within!r} is no margin; use relative(…) or absolute(…)")
    require(isinstance(claim.expect, Verdict),
            f"expect={claim.expect!r} is no verdict; use e.g. Verdict.REFUTED")
    require(isinstance(claim.over, Grid) and bool(claim.over.points),
            f"over={claim.over!r} is no grid with points; use grid(law=…, d_k=…)")
    require(claim.draws == claim.statistic.draws,
            "the statistic exact is for a body that draws nothing, and every other statistic for "
            "one that names q, k, rng or seeds; change the one or the other")
    names = parameters(claim.body)
    require("seeds" not in names or not {*DRAWN}.intersection(names),
            "a body that names seeds trains a model for each, and draws all it needs from them; "
            "leave out q, k and rng")
    require("seeds" in names or "progress" not in names,
            "progress is for a body that names seeds; leave it out")
    require(claim.needs.isidentifier() or not claim.needs,
            f"needs={claim.needs!r} is no name of a module; write e.g. needs=\"torch\"")


def _check_prediction(claim: Any, require: Require) -> None:
    kind, prediction = claim.prediction
    if claim.within is not None:
        size = claim.within.size
        require(0 < size < float("inf"), f"within has the size {size}; it must be above 0")
    elif kind == "equals":
        for case in claim.cases() if callable(prediction) else []:
            try:
                prediction = case.predicted
            except Exception as error:
                require(False, f"equals raises {type(error).__name__}: {error}; mend it")
        require(isinstance(prediction, Printed), "has equals without within, but no measurement is "
                                                 "exact; add e.g. within=relative(0.02)")
    if claim.statistic.support and claim.statistic.about:  # a mean, itself in that range
        for case in claim.cases():
            _check_within(case, require)
    if not callable(prediction):
        try:
            claimed_interval(kind, prediction, claim.within)
        except (TypeError, ValueError) as error:
            require(False, str(error))


def _check_within(case: Any, require: Require) -> None:
    kind, within = case.claim.prediction[0], case.claim.within
    try:
        support = case.claim.statistic.settled(lambda f: call(f, dict(case.settings))).support
        least, most = support or (-math.inf, math.inf)
        if kind == "equals" and within is not None:  # the prediction itself may take its time
            reach = within.size * (max(abs(least), abs(most)) if within.relative else 1)
            if 2 * reach < most - least:
                return
        low, high = case.claimed
    except Exception:  # the case itself will tell
        return
    require(low > least or high < most or support is None,
            f"at {case} it claims values from {low:g} to {high:g}, and all of them lie in "
            f"[{least:g}, {most:g}]; narrow it")


def _check_point(claim: Any, settings: dict[str, Any], require: Require) -> None:
    for name, value in settings.items():
        require(name not in COLUMNS + NAMES + DRAWN + TRAINED + KINDS,
                f"the setting {name!r} has the name of a column of results, of a draw or of a "
                "prediction; choose another")
        if name == "law":
            maker = getattr(value, "__name__", "") if callable(value) else ""
            require(not maker, f"law={maker} makes laws; call it, e.g. {maker}(…)")
            missing = [part for part in ("draw", "moments", "finite_moments", "coupled")
                       if not hasattr(value, part)]
            require(isinstance(value, Law), f"law={value!r} is not a law; use laws.normal or "
                    f"another value of mcverify.laws, or give it {', '.join(missing)}")
        elif name in COUNTS:
            require(isinstance(value, int) and not isinstance(value, bool) and value >= 1,
                    f"{name}={value!r}: must be a whole number of at least 1")
        require(" at 0x" not in str(value), f"{name}={value} has no name of its own, which " + (
            "its draws descend from; give it a __str__" if name == "law" else
            "ids and tables go by; use a number or a text, and let the body look the rest up"))
        try:
            hash(value)
        except TypeError:
            require(False, f"{name}={value!r} can be changed; use a number, a text or a tuple")
    known = {*settings, *((*DRAWN, *WORLD) if claim.of_world else TRAINED if claim.draws else ())}
    functions = [claim.body] + [p for _, p in [claim.prediction] if callable(p)]
    for function in functions:
        missing = [name for name, parameter in inspect.signature(function).parameters.items()
                   if name not in known and parameter.default is parameter.empty]
        require(not missing, f"{function.__name__} asks for {', '.join(missing)}, which its grid "
                             f"does not name; known are {', '.join(sorted(known)) or 'none'}")


def _check_controls(claim: Any, require: Require) -> None:
    require(isinstance(claim.controls, Grid), f"controls={claim.controls!r} is no grid; use e.g. "
                                              "controls=grid(law=laws.shifted(laws.normal, 0.2))")
    require(not claim.controls.points or claim.expect is Verdict.CONFIRMED,
            "has controls, which are near misses that must be REFUTED, but is itself not declared "
            "CONFIRMED; leave them out")
    settings = {name for point in claim.over.points for name, _ in point}
    known = {*settings, *parameters(claim.body), *(WORLD if claim.of_world else ()),
             claim.prediction[0]} - {*DRAWN, *TRAINED}
    for point in claim.controls.points:
        require(bool(point), "has a control that changes nothing; name a setting in it")
        for name, _ in point:
            require(name in known, f"the control {name!r} is neither a setting nor a parameter of "
                                   f"the body; known are {', '.join(sorted(known))}")
