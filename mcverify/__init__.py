"""Monte Carlo verdicts, with both error rates bounded, on what is said about attention.

>>> from mcverify import check, discover
>>> claims = {claim.name: claim for claim in discover()}
>>> case = claims["dot_variance"].cases()[2]
>>> str(case), str(check(case).verdict)
('dot_variance-normal-d_k:64', 'CONFIRMED')
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mcverify import attention, laws, theory
    from mcverify.declare import Claim, claim
    from mcverify.discover import discover
    from mcverify.grid import grid
    from mcverify.prediction import absolute, printed, relative
    from mcverify.quick import check
    from mcverify.tables import load
    from mcverify.verdict import Verdict

__all__ = [
    "Claim",
    "Verdict",
    "absolute",
    "attention",
    "check",
    "claim",
    "discover",
    "grid",
    "laws",
    "load",
    "printed",
    "relative",
    "theory",
]

_MODULES = ("attention", "laws", "statistic", "theory")
_HOMES = {
    "Claim": "declare",
    "Verdict": "verdict",
    "absolute": "prediction",
    "check": "quick",
    "claim": "declare",
    "discover": "discover",
    "grid": "grid",
    "load": "tables",
    "printed": "prediction",
    "relative": "prediction",
}


class _Package(ModuleType):
    """A package that imports what it exports when that is first asked for.

    NumPy and SciPy take most of a second, and pytest imports this package whenever it starts, for
    mcverify.pytest_plugin. A class, not a module's ``__getattr__``, since importing the module
    mcverify.grid would otherwise hide the function of that name, and likewise mcverify.discover.
    """

    def __getattr__(self, name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name,
                                 obj=self)
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
