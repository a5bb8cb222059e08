"""From a judged case to the report a person reads, and to a row and back."""

import html
import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mcverify.declare.claim import Case, Claim
from mcverify.declare.loading import loaded_from
from mcverify.declare.origins import BUILT_IN, source
from mcverify.verdict import COLOURS, ERROR, MAX_BLOCKS, Terms, Verdict


@dataclass(frozen=True)
class Finding:
    """A case with its estimate and verdict; ``str(finding)`` is the four-line report.

    Attributes
    ----------
    estimate, stderr : the measured number and its Monte Carlo standard error.
    low, high : the measured interval; claimed_low, claimed_high : the claimed one.
    blocks : how many independent blocks were drawn.
    reason : why there is no verdict, "" when there is one.
    basis : what the measured interval rests on: exact, bound, moments, order or calibrated.
    broken : whether the case is an error: nothing was measured, and nothing may be concluded.
    detects : by how much the claim must be off to be REFUTED with a probability of 0.999, if need
        be at the last look; in proportion to the prediction if its margin is.
    margin_scale, max_blocks : as in the run's Terms.
    """

    case: Case
    seed: int
    error_rate: float
    verdict: Verdict
    blocks: int
    estimate: float
    stderr: float
    low: float
    high: float
    claimed_low: float
    claimed_high: float
    reason: str = ""
    basis: str = ""
    broken: bool = False
    detects: float = math.nan
    margin_scale: float = 1.0
    max_blocks: int = MAX_BLOCKS

    @property
    def terms(self) -> Terms:
        """On what terms the case was judged."""
        return Terms(self.seed, self.error_rate, self.margin_scale, self.max_blocks)

    @property
    def expected(self) -> Verdict:
        """The verdict that the claim declares, or that a control must have."""
        return self.case.expected

    @property
    def outcome(self) -> str:
        """The verdict, or ERROR."""
        return ERROR if self.broken else str(self.verdict)

    @property
    def as_declared(self) -> bool:
        """Whether the verdict is the declared one; an error never is."""
        return self.verdict is self.expected and not self.broken

    def __str__(self) -> str:
        declared = "" if self.as_declared else (
            ", a control, which must be REFUTED" if self.case.control
            else f", declared {self.expected}")
        why = f" ({self.reason})" if self.reason else ""
        measured = (f"nothing: {self.reason}" if self.broken else
                    f"{self.estimate:.6g}, in {_interval(self.low, self.high)} ({self.basis}) but "
                    f"for an error rate of {self.error_rate:g}, {self.blocks} blocks{why}")
        return "\n".join([
            f"{self.outcome}{declared}: {self.case}: {self.case.claim.sentence}",
            f"  claimed   {_interval(self.claimed_low, self.claimed_high)}",
            f"  measured  {measured}",
            f"  rerun     {self._again()}",
        ])

    def __repr__(self) -> str:
        measured = "" if self.broken else (
            f", {self.estimate:.6g} in {_interval(self.low, self.high)}, claimed "
            f"{_interval(self.claimed_low, self.claimed_high)}")
        return f"<Finding {self.case}: {self.outcome}{measured}>"

    def _again(self) -> str:
        """What judges the case again; a claim that no file holds is known to Python alone."""
        if loaded_from(self.case.claim) is None:
            told = ", ".join(f"{name}={value!r}" for name, value in self.terms.told.items())
            return f"check(…, {told})"
        return " ".join([run_command(self.case.claim), *self.terms.options])

    def row(self) -> dict[str, Any]:
        """All that is known besides the case, as plain numbers and texts by their names."""
        told = {field.name: getattr(self, field.name) for field in fields(self)
                if field.name not in ("case", "broken")}
        return told | {"verdict": self.outcome, "expected": str(self.expected)}

    @classmethod
    def of_row(cls, case: Case, row: Mapping[str, Any]) -> "Finding":
        """The finding of a case that ``row`` tells of, whose values may be texts, as in a table."""
        told = {name: kind(row[name]) for name, kind in _KINDS.items() if name in row}
        broken = row["verdict"] == ERROR
        verdict = Verdict.INCONCLUSIVE if broken else Verdict(row["verdict"])
        return cls(case, verdict=verdict, broken=broken, **told)

    def _repr_html_(self) -> str:
        first, _, rest = html.escape(str(self)).partition("\n")
        return (f'<pre><b style="color:{COLOURS[self.outcome]}">{first}</b>\n{rest}</pre>')


_KINDS: dict[str, Any] = {field.name: field.type for field in fields(Finding)
                          if field.name not in ("case", "verdict", "broken")}


def contradictions(findings: list[Finding]) -> list[Finding]:
    """The findings of one claim that are not as declared.

    A control tells something only of a claim that is found to be as declared.
    """
    wrong = [finding for finding in findings if not finding.as_declared]
    return [finding for finding in wrong if not finding.case.control] or wrong


def without_controls(claims: Iterable[Claim]) -> list[str]:
    """The names of the claims that no control shows to be refutable though they need one."""
    return sorted(claim.name for claim in claims
                  if claim.expect is Verdict.CONFIRMED and not claim.control_cases())


def run_command(claim: Claim) -> str:
    """The command that judges a claim: by its name, or by its file if it is a user's."""
    file, here = source(claim), Path.cwd()
    if BUILT_IN.resolve() in file.parents:
        return f"mcverify run {claim.name}"
    shown = str(file.relative_to(here) if file.is_relative_to(here) else file)
    return f"mcverify run {shlex.quote(f'{shown}::{claim.name}')}"


def _interval(low: float, high: float) -> str:
    return f"[{low:.6g}, {high:.6g}]"
