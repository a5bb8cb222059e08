"""Say whether a law, or a way to make laws, has what is asked for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from hypothesis.strategies import SearchStrategy

from mcverify.laws import Law


@dataclass(frozen=True)
class Wanted:
    """What the laws must have; the switches of ``strategies.laws``."""

    d_k: int | None = None
    coupled: bool | None = None
    finite_moments: float = 0.0
    standard: bool = False
    declared: bool = False

    @property
    def lowest(self) -> float:
        """The order of the moments that independent coordinates must have: 2 where variances are
        asked for."""
        return max(self.finite_moments, 2.0 if self.standard or self.declared else 0.0)

    def met_by(self, law: Law) -> bool:
        """Whether a law has it all, by what it declares."""
        if self.coupled not in (None, law.coupled):
            return False
        if law.finite_moments != math.inf and law.finite_moments <= self.finite_moments:
            return False
        widths = [1, 2, 3] if self.d_k is None else [self.d_k]
        return not (self.standard or self.declared) or all(self._met_at(law, d) for d in widths)

    def _met_at(self, law: Law, d_k: int) -> bool:
        m = law.moments(d_k)
        if self.declared and not all(np.isfinite(moment).all() for moment in vars(m).values()):
            return False
        variances = np.diag(m.cov_q), np.diag(m.cov_k)
        return not self.standard or (
            np.allclose([m.mean_q, m.mean_k], 0) and np.allclose(variances, 1))


class Kind(NamedTuple):
    """How laws of one name are made: what is wanted -> strategy, perhaps an empty one.

    Attributes
    ----------
    make : the strategy; it need not heed ``coupled`` unless the kind has both.
    coupled : whether its laws are; None if they can be either.
    standard : whether it can have coordinates of mean 0 and variance 1 at all.
    widths : "any", "one" (a law has the width it is made for) or "even".
    """

    make: Callable[[Wanted], SearchStrategy[Law]]
    coupled: bool | None = None
    standard: bool = True
    widths: str = "any"

    def fits(self, w: Wanted) -> bool:
        """Whether some of its laws may have what is wanted."""
        if w.coupled is not None and self.coupled not in (None, w.coupled):
            return False
        if w.standard and not self.standard:
            return False
        return self.widths == "any" or (
            w.d_k is not None and (self.widths == "one" or w.d_k % 2 == 0))
