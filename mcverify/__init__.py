"""Monte Carlo verdicts, with both error rates bounded, on what is said about attention.

>>> from mcverify import check, discover
>>> claims = {claim.name: claim for claim in discover()}
>>> case = claims["dot_variance"].cases()[2]
>>> str(case), str(check(case).verdict)
('dot_variance-normal-d_k:64', 'CONFIRMED')
"""

__version__ = "0.1.0"

from mcverify import attention, laws, theory
from mcverify.declare import Claim, claim
from mcverify.discover import discover
from mcverify.grid import grid
from mcverify.prediction import absolute, printed, relative
from mcverify.run import check
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
    "printed",
    "relative",
    "theory",
]
