"""From files to what is wrong with their claims and laws, in a few seconds before a long run.

Nothing here gives a verdict, and a file without a problem can still hold a claim that is false.
"""

from pathlib import Path

from mcverify.check_claim import forecast, laws, values
from mcverify.check_claim.remarks import PROBLEM, WARNING, Remark, about, ok, report
from mcverify.declare.discover import survey
from mcverify.declare.rules import lacking
from mcverify.judge.processes import workers
from mcverify.judge.watch import Watch

__all__ = ["Remark", "inspect", "ok", "report"]


def inspect(*paths: str | Path, watch: Watch | None = None) -> list[Remark]:
    """All that can be told of files or folders of files; ClaimError if there is no such one.

    A ``watch`` is kept up to date for whoever waits.
    """
    files, watch = survey(*paths), watch or Watch()
    broken, of_laws = laws.check(files.claims, watch)
    remarks = [*(Remark(PROBLEM, *fault.split(": ", 1)) for fault in files.faults), *of_laws]
    with workers(2) as spread:
        for claim in files.claims:
            if reason := lacking(claim):
                remarks.append(about(claim, WARNING, f"not looked at, as it {reason}; install it"))
            elif cases := values.sound_cases(claim, broken):
                of_claim = [*values.check(claim, cases, spread, watch)]
                if ok(of_claim):  # else the rest would be of numbers that mean nothing
                    of_claim += [*forecast.controls(claim, watch),
                                 *forecast.costs(claim, cases, watch)]
                remarks += of_claim
    return remarks
