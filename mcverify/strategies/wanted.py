"""Say whether a law has what is asked for."""

import math
from dataclasses import dataclass

import numpy as np

from mcverify.laws import Law

TOLERANCE = 1e-8  # of a mean of 0 and a variance of 1


@dataclass(frozen=True)
class Wanted:
    """What the laws must have; the switches of ``strategies.laws``."""

    d_k: int | None = None
    coupled: bool | None = None
    finite_moments: float = 0.0
    standard: bool = False
    declared: bool = False

    @property
    def widths(self) -> list[int]:
        """Where a law must have it."""
        return [1, 2, 3] if self.d_k is None else [self.d_k]

    @property
    def of_moments(self) -> bool:
        """Whether means and variances are asked for."""
        return self.standard or self.declared

    @property
    def lowest(self) -> float:
        """The order of the moments that independent coordinates must have."""
        return max(self.finite_moments, 2.0 if self.of_moments else 0.0)

    def met_by(self, law: Law) -> bool:
        """Whether a law has it all, by what it declares."""
        if self.coupled not in (None, law.coupled):
            return False
        if law.finite_moments != math.inf and law.finite_moments <= self.finite_moments:
            return False
        return not self.of_moments or all(self._met_at(law, d_k) for d_k in self.widths)

    def _met_at(self, law: Law, d_k: int) -> bool:
        m = law.moments(d_k)
        if self.declared and not all(np.isfinite(moment).all() for moment in vars(m).values()):
            return False
        if not self.standard:
            return True
        off = m.mean_q, m.mean_k, m.cov_q.diagonal() - 1, m.cov_k.diagonal() - 1
        return bool(np.max(np.abs(off)) <= TOLERANCE)
