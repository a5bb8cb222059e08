"""Laws whose queries are rotated against their keys, as rotary positions do."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from mcverify.arrays import Array
from mcverify.attention import vectors
from mcverify.laws.base import LawBase, known
from mcverify.laws.law import Law, Moments, Pair, Rng, Which
from mcverify.laws.parameters import Positive, Range
from mcverify.laws.side import Side, Views


@dataclass(frozen=True)
class Rotary(LawBase):
    """Rotary positions: every query stands ``distance`` positions after every key it meets.

    A score depends on the difference of positions alone, (R_m q)·(R_n k) = (R_{m−n} q)·k, so the
    query is rotated by the distance, which may be negative, and the key is left alone. Theta and
    pairing are those of ``vectors.rotate``. Odd d_k raises ValueError.

    >>> from mcverify.laws import identical, normal
    >>> law = rotary(identical(normal), distance=3, pairing="neighbours")
    >>> str(law), law.moments(2).cross.round(2).tolist()
    ('rotary[identical[normal]-3-pairing:neighbours]', [[-0.99, -0.14], [0.14, -0.99]])
    """

    base: Law
    distance: Annotated[int, Range(rule="an int, as positions are whole numbers", whole=True)]
    theta: Positive = 10000.0
    pairing: Literal["halves", "neighbours"] = "halves"

    def _turned(self, x: Array) -> Array:
        y = vectors.rotate(x, self.distance, self.theta, self.pairing)
        return np.asarray(y, np.float64)

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return self._turned(q), k

    def moments(self, d_k: int) -> Moments:
        """R μ_q, R Σ_q R' and R C: the rows of a matrix M turn into M R'."""
        m = self.base.moments(d_k)
        with np.errstate(invalid="ignore"):  # of variances that are infinite
            cov_q = self._turned(self._turned(m.cov_q).T)
            return Moments(self._turned(m.mean_q), m.mean_k, cov_q, m.cov_k,
                           self._turned(m.cross.T).T)

    def side(self, which: Which, d_k: int) -> Side:
        """A rotation leaves 0 where it is."""
        base = known(self.base).side(which, d_k)
        if which == "k":
            return base
        return Side(all_zero=base.all_zero, image=base.mapped(self._turned(np.eye(d_k)).T))

    def joint(self, d_k: int) -> Views | None:
        base = known(self.base).joint(d_k)
        return base and (base[0].mapped(self._turned(np.eye(d_k)).T), base[1])


rotary = Rotary
