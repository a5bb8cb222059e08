"""From a judged case to the report a person reads."""

import html
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mcverify.declare.claim import Case, Claim
from mcverify.declare.discover import BUILT_IN, source
from mcverify.verdict import CASE_ERROR_RATE, Verdict

ERROR = "error: "  # how the reason of a case begins that broke instead of measuring


@dataclass(frozen=True)
class Finding:
    """A case with its estimate and verdict; ``str(finding)`` is the four-line report.

    Attributes
    ----------
    estimate, stderr : the measured number and its Monte Carlo standard error.
    low, high : the measured interval; claimed_low, claimed_high : the claimed one.
    blocks : how many independent blocks were drawn.
    reason : why there is no verdict, "" when there is one.
    detects : by how much the claim must be off to be REFUTED with a probability of 0.999, if need
        be at the last look; in proportion to the prediction if its margin is.
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
    detects: float = math.nan

    @property
    def expected(self) -> Verdict:
        """The verdict that the claim declares, or that a control must have."""
        return self.case.expected

    @property
    def broken(self) -> bool:
        """Whether the case is an error: nothing was measured, and nothing may be concluded."""
        return self.reason.startswith(ERROR)

    @property
    def as_declared(self) -> bool:
        """Whether the verdict is the declared one; an error never is."""
        return self.verdict is self.expected and not self.broken

    def __str__(self) -> str:
        declared = "" if self.as_declared else (
            ", a control, which must be REFUTED" if self.case.control
            else f", declared {self.expected}")
        verdict = "ERROR" if self.broken else str(self.verdict)
        why = f" ({self.reason})" if self.reason else ""
        measured = (f"nothing: {self.reason.removeprefix(ERROR)}" if self.broken else
                    f"{self.estimate:.6g}, in {_interval(self.low, self.high)} but for an "
                    f"error rate of {self.error_rate:g}, {self.blocks} blocks{why}")
        rate = "" if self.error_rate == CASE_ERROR_RATE else f" --error-rate {self.error_rate!r}"
        return "\n".join([
            f"{verdict}{declared}: {self.case}: {self.case.claim.sentence}",
            f"  claimed   {_interval(self.claimed_low, self.claimed_high)}",
            f"  measured  {measured}",
            f"  rerun     {run_command(self.case.claim)} --seed {self.seed}{rate}",
        ])

    def _repr_html_(self) -> str:
        first, _, rest = html.escape(str(self)).partition("\n")
        return (f'<pre><b style="color:{COLOURS[self.verdict]}">{first}</b>\n{rest}</pre>')


COLOURS = {"CONFIRMED": "#2a7f3f", "REFUTED": "#b3541e", "INCONCLUSIVE": "#5b6770"}


def contradictions(findings: list[Finding]) -> list[Finding]:
    """The findings of one claim that are not as declared.

    A control tells something only of a claim that is found to be as declared.
    """
    wrong = [finding for finding in findings if not finding.as_declared]
    return [finding for finding in wrong if not finding.case.control] or wrong


def bare(claims: Iterable[Claim]) -> list[str]:
    """The names of the claims that no control shows to be refutable though they need one."""
    return sorted(claim.name for claim in claims
                  if claim.expect is Verdict.CONFIRMED and not claim.control_cases())


def run_command(claim: Claim) -> str:
    """The command that judges a claim: by its name, or by its file if it is a user's."""
    file, here = source(claim), Path.cwd()
    if file.parent == BUILT_IN.resolve():
        return f"mcverify run {claim.name}"
    shown = str(file.relative_to(here) if file.is_relative_to(here) else file)
    return f"mcverify run {shlex.quote(f'{shown}::{claim.name}')}"


def _interval(low: float, high: float) -> str:
    return f"[{low:.6g}, {high:.6g}]"
