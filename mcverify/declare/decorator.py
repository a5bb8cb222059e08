"""From a decorated function to a claim, or to a note of what is wrong with it."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from mcverify.declare.claim import NO_CONTROLS, Claim
from mcverify.declare.fault import ClaimError, recorder_of
from mcverify.declare.grid import NOWHERE, Grid
from mcverify.declare.prediction import Margin
from mcverify.declare.text import suggestion
from mcverify.statistic import Statistic
from mcverify.verdict import Verdict


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
    controls: Grid = NO_CONTROLS,
    needs: str = "",
    **unknown: Any,
) -> Callable[[Callable[..., Any]], Claim]:
    """Turn a function into a Claim of its name; its docstring's first line is the sentence.

    The function names what it needs (``q``, ``k``, settings of its grid, ``law``, ``rng`` for
    extra draws) and returns an array whose first axis is the blocks; a tuple of two for a ratio or
    a difference, a list of pairs for a slope. One that names ``seeds`` instead gets (blocks,)
    whole numbers, trains a model from each, and may tell ``progress(share)`` how far it is. Raises
    ClaimError for a claim that breaks a rule.
    """

    def declare(body: Callable[..., Any]) -> Claim:
        sentence = (inspect.getdoc(body) or "").strip().partition("\n")[0]
        try:
            _check_words(body, statistic, unknown)
            return Claim(body.__name__, sentence, statistic, body, equals, at_least, at_most,
                         between, within, over, decides, expect, controls, needs)
        except ClaimError as error:
            recorder = recorder_of(body)
            if recorder is None:
                raise
            return cast(Claim, recorder.note(body.__code__.co_firstlineno, str(error)))

    if inspect.isfunction(statistic):  # @claim above a function
        return declare(statistic)
    return declare


def _check_words(body: Callable[..., Any], statistic: Any, unknown: dict[str, Any]) -> None:
    """Raise ClaimError for @claim without its arguments, or with one that it does not know."""
    if statistic is body:
        raise ClaimError(f"{body.__name__}: @claim stands alone; write @claim(variance, equals=…), "
                         "with the statistic and the prediction")
    known = [name for name in inspect.signature(claim).parameters if name != "unknown"]
    for name in unknown:
        raise ClaimError(f"{body.__name__}: @claim knows no {name}; "
                         f"{suggestion(name, known, 'it takes')}")
