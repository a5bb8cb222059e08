"""From a case, a claim or a plain function to what the draws say of it, in one call."""

import inspect
import sys
from collections.abc import Callable
from typing import Any, overload

from mcverify.declare.claim import Case, Claim
from mcverify.declare.fault import ClaimError
from mcverify.declare.grid import grid
from mcverify.declare.names import COUNTS, DRAWN, WORLD, parameters
from mcverify.declare.prediction import KINDS
from mcverify.declare.text import suggestion
from mcverify.judge.finding import Finding
from mcverify.judge.run import run
from mcverify.statistic import Statistic, mean
from mcverify.statistic.estimate import Basis, Estimate
from mcverify.verdict import CASE_ERROR_RATE, MAX_BLOCKS, Terms

ANYWHERE = (-sys.float_info.max, sys.float_info.max)  # a prediction that every number meets


@overload
def check(
    what: Case, seed: int = 0, error_rate: float = ..., jobs: int = 1,
    *, margin_scale: float = ..., max_blocks: int = ...,
) -> Finding: ...
@overload
def check(
    what: Claim, seed: int = 0, error_rate: float = ..., jobs: int = 1,
    *, margin_scale: float = ..., max_blocks: int = ...,
) -> list[Finding]: ...
@overload
def check(
    what: Callable[..., Any], seed: int = 0, error_rate: float = ..., jobs: int = 1,
    *, margin_scale: float = ..., max_blocks: int = ..., statistic: Statistic = ...,
    **settings: Any,
) -> Any: ...


def check(
    what: Any, seed: int = 0, error_rate: float = CASE_ERROR_RATE, jobs: int = 1,
    *, margin_scale: float = 1.0, max_blocks: int = MAX_BLOCKS, statistic: Statistic = mean,
    **settings: Any,
) -> Any:
    """Judge a case (a Finding), a claim (the list of its cases'), or look at a plain function.

    A function is a claim's body, with its statistic and the settings of its grid. With a prediction
    as ``@claim`` takes it (``equals``, ``within`` and so on) it gets a Finding, or the list of them
    if the grid has several points; without one, Estimates at the first look that allows one.
    The findings are the same as among all others, on terms as of verdict.Terms. Raises ClaimError
    for a claim that breaks a rule.

    >>> from mcverify import discover, laws
    >>> from mcverify.attention import scores
    >>> from mcverify.statistic import variance
    >>> claims = {claim.name: claim for claim in discover()}
    >>> check(claims["hand_dot_product"].cases()[0]).verdict
    <Verdict.CONFIRMED: 'CONFIRMED'>
    >>> len(check(claims["hand_slope"]))
    3
    >>> 60 < check(scores, statistic=variance, law=laws.normal, d_k=64).value < 68
    True
    """
    terms = Terms(seed, error_rate, margin_scale, max_blocks)
    if isinstance(what, Case):
        return next(run([what], terms, jobs))
    if isinstance(what, Claim):
        return _in_order(what, terms, jobs)
    if not callable(what):
        raise ClaimError(f"check({what!r}): takes a case, a claim, or a function of q and k")
    parts = {name: settings.pop(name) for name in (*KINDS, "within") if name in settings}
    predicts = any(name in parts for name in KINDS)
    if "within" in parts and not predicts:
        raise ClaimError(f"check: within={parts['within']} without a prediction; give one of "
                         f"{', '.join(KINDS)}")
    _check_names(what, parts, settings)
    name = getattr(what, "__name__", "function")
    sentence = (inspect.getdoc(what) or "").partition("\n")[0] or f"What {name} returns."
    made = Claim(name, sentence, statistic, what, over=grid(**settings),
                 **(parts if predicts else {"between": ANYWHERE}))
    findings = _in_order(made, terms, jobs)
    told = findings if predicts else [
        Estimate(f.estimate, f.stderr, f.low, f.high, f.reason, Basis(f.basis)) for f in findings]
    return told if len(told) > 1 else told[0]


def _check_names(body: Any, parts: dict[str, Any], settings: dict[str, Any]) -> None:
    """Raise ClaimError for a setting that nothing looks at, which may be a misspelled name."""
    functions = [body, *(part for part in parts.values() if callable(part))]
    known = {name for function in functions for name in parameters(function)}
    known |= {*WORLD, *COUNTS, "statistic", *KINDS, "within"} - {*DRAWN}
    for name in settings.keys() - known:
        raise ClaimError(f"check: nothing looks at {name}={settings[name]!r}; "
                         f"{suggestion(name, sorted(known - settings.keys()), 'known are')}")


def _in_order(claim: Claim, terms: Terms, jobs: int) -> list[Finding]:
    by_case = {finding.case: finding for finding in run(claim.cases(), terms, jobs)}
    return [by_case[case] for case in claim.cases()]
