"""From a file of claims and laws to what is wrong with it, before anything long runs.

A few seconds of looking: nothing here gives a verdict, and a file without a problem can still hold
a claim that is false. False alarms are bounded: laws are held against their declared moments and
their independence at 1e-6 over all of a file, controls are judged at 1e-3 each.
"""

from mcverify.conformance.inspection import inspect, ok, report
from mcverify.conformance.remarks import Doubt, Note, Problem, Remark

__all__ = ["Doubt", "Note", "Problem", "Remark", "inspect", "ok", "report"]
