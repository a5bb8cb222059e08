"""Monte Carlo verdicts, with both error rates bounded, on what is said about attention.

>>> from mcverify import check, discover
>>> claims = {claim.name: claim for claim in discover()}
>>> case = claims["dot_variance"].cases()[2]
>>> str(case), str(check(case).verdict)
('dot_variance-normal-d_k:64', 'CONFIRMED')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mcverify import attention, laws, theory
    from mcverify.declare.claim import Claim
    from mcverify.declare.decorator import claim
    from mcverify.declare.discover import discover
    from mcverify.declare.grid import grid
    from mcverify.declare.prediction import absolute, printed, relative
    from mcverify.judge.check import check
    from mcverify.probing.agree import agree
    from mcverify.probing.expect import assert_attention
    from mcverify.probing.probe import probe
    from mcverify.results.load import load
    from mcverify.verdict import Verdict

__all__ = [
    "Claim",
    "Verdict",
    "absolute",
    "agree",
    "assert_attention",
    "attention",
    "check",
    "claim",
    "discover",
    "grid",
    "laws",
    "load",
    "printed",
    "probe",
    "relative",
    "theory",
]

# Where each name stands. It is imported when it is first asked for: NumPy and SciPy take most of a
# second, and pytest imports this package whenever it starts, for mcverify.pytest_plugin.
_HOMES = {
    "Claim": "declare.claim",
    "Verdict": "verdict",
    "absolute": "declare.prediction",
    "agree": "probing.agree",
    "assert_attention": "probing.expect",
    "check": "judge.check",
    "claim": "declare.decorator",
    "discover": "declare.discover",
    "grid": "declare.grid",
    "load": "results.load",
    "printed": "declare.prediction",
    "probe": "probing.probe",
    "relative": "declare.prediction",
}
_ROOMS = ("attention", "laws", "statistic", "theory")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
