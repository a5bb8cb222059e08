"""From logits known within bounds to every scale, and every cap, that none of them contradicts.

No error is assumed but the bound: a scale is in the interval if and only if it explains each single
logit as far as its rounding allows. So more logits make the interval narrower, and one that no
scale explains makes it empty, which says that the rule is wrong.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcverify.arrays import Array

HIGHEST = np.log(1e8)  # above the largest logit: a cap that bends nothing
STEPS = 48  # halvings by which a bracket shrinks beyond what any type resolves
FINE = 0.1  # of the least bound, in proportion to the largest logit: caps so near are one
EDGE = 1e-14  # what they leave open
BRACKET = np.log(1.5)  # about the cap that fits best, in which all caps are that bounds allow
SMALL = 1e-30  # a slope, where none is known
HOPELESS = 100.0  # mean square of misses, in bounds, that is not worth a closer look
SAMPLE = 256  # logits of a head that a first fit looks at


@dataclass(frozen=True)
class Logits:
    """Of each head, what the weights say of many single logits; where nothing is known, wide.

    Attributes
    ----------
    value, wide : (heads, many) the logit less that of a product of 0, and how far it may be off.
    """

    value: Array
    wide: Array

    def linear(self, z: Array) -> tuple[Array, Array]:
        """The least and the largest s with |value − s·z| <= wide everywhere: (heads,) twice.

        The least is above the largest where there is no such s.

        >>> logits = Logits(np.array([[1.0, 2.2]]), np.array([[0.1, 0.1]]))
        >>> [x.round(2).tolist() for x in logits.linear(np.array([[1.0, 2.0]]))]
        [[1.05], [1.1]]
        """
        return _between(self.value - self.wide, self.value + self.wide, z)

    def nearest(self, z: Array, low: Array, high: Array) -> Array:
        """The s between two ends with the least squares of (value − s·z)/wide: (heads,)."""
        weights = z / self.wide**2
        s = np.sum(weights * self.value, axis=1) / np.sum(weights * z, axis=1)
        return np.asarray(np.clip(s, low, high))

    def capped(self, z: Array, cap: Array) -> tuple[Array, Array]:
        """The same of |value − c·tanh(s·z/c)| <= wide, for a cap c of each head."""
        c = cap[:, None]
        with np.errstate(divide="ignore"):
            ends = [c * np.arctanh(np.clip((self.value + side * self.wide) / c, -1, 1))
                    for side in (-1, 1)]
        low, high = _between(ends[0], ends[1], z)
        return np.where(np.any(np.abs(self.value) - self.wide > c, axis=1), np.inf, low), high

    def cap(self, z: Array) -> tuple[Array, Array, Array] | None:
        """The least and largest s with any cap, and (2, heads) the least and the largest such cap.

        The largest is inf where there need be no cap. None where no cap explains all.
        """
        if len(z) > 1 and Logits(self.value[:1], self.wide[:1]).cap(z[:1]) is None:
            return None  # as it mostly is, and found out sooner of one head than of all
        best = np.empty(len(z))
        for head, (value, wide, x) in enumerate(zip(self.value, self.wide, z, strict=True)):
            known = np.flatnonzero(np.isfinite(wide))
            known = known[:: 1 + len(known) // SAMPLE]
            best[head], error = _best_cap(value[known], wide[known], x[known])
            if error > 1:  # bounds would hold the root mean square to 1
                return None
        need = self._gap(z, self._unbent) < 0
        least, most = best - BRACKET, best + BRACKET
        middle = np.where(need, best, self._unbent)
        if np.any(self._gap(z, middle) < 0):
            middle = np.where(need, self._widest(z, least, most), middle)
        if np.any(self._gap(z, middle) < 0):
            return None
        bent = self._edge(z, middle, np.where(need, least, self._unbent - HIGHEST))
        return self._with_caps(z, bent, np.where(need, self._edge(z, middle, most), np.inf))

    def unseen_cap(self, z: Array) -> tuple[Array, Array, Array]:
        """The same where the logits need no cap: with all caps that would go unnoticed."""
        low = self._edge(z, self._unbent, self._unbent - HIGHEST)
        return self._with_caps(z, low, np.full_like(low, np.inf))

    @property
    def _unbent(self) -> Array:
        """The logarithm of a cap that bends nothing: (heads,)."""
        return np.asarray(np.log(np.abs(self.value).max(axis=1)) + HIGHEST)

    def _with_caps(self, z: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """The least and the largest s with caps between two, given as logarithms, and these."""
        caps = low + (np.minimum(high, self._unbent) - low) * np.linspace(0, 1, 33)[:, None]
        ends = np.array([self.capped(z, np.exp(cap)) for cap in caps])
        return ends[:, 0].min(axis=0), ends[:, 1].max(axis=0), np.exp([low - EDGE, high + EDGE])

    def _gap(self, z: Array, log_cap: Array) -> Array:
        low, high = self.capped(z, np.exp(log_cap))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num((high - low) / np.abs(high + low), nan=-np.inf)

    def _widest(self, z: Array, low: Array, high: Array) -> Array:
        known = np.where(np.isfinite(self.wide), self.wide / np.abs(self.value).max(), np.inf)
        for _ in range(2 * STEPS):
            if np.all(high - low <= FINE * known.min()):
                break
            a, b = low + (high - low) / 3, high - (high - low) / 3
            better = self._gap(z, a) > self._gap(z, b)
            low, high = np.where(better, low, a), np.where(better, b, high)
        return (low + high) / 2

    def _edge(self, z: Array, inside: Array, outside: Array) -> Array:
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            holds = self._gap(z, middle) >= 0
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        return inside


def _between(least: Array, most: Array, z: Array) -> tuple[Array, Array]:
    """Every s with least <= s·z <= most, for each head; a z of 0 leaves all s or none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = least / z, most / z
    low, high = np.where(z > 0, one, other), np.where(z > 0, other, one)
    still = z == 0
    if still.any():
        holds = (least <= 0) & (most >= 0)
        low = np.where(still, np.where(holds, -np.inf, np.inf), low)
        high = np.where(still, np.where(holds, np.inf, -np.inf), high)
    return low.max(axis=1), high.min(axis=1)


def _best_cap(value: Array, wide: Array, z: Array) -> tuple[float, float]:
    """The logarithm of the cap that fits best, and its misses in bounds, as root mean square."""
    from scipy.optimize import least_squares  # here, since few functions have a cap

    value = value * np.sign(value @ z)  # of a scale below 0, the cap is that of its opposite
    largest = np.abs(value).max()
    slope = np.max(value / z, initial=SMALL, where=np.abs(value) > 4 * wide)  # at 0 it is steepest

    def misses(logs: Array) -> Array:
        s, c = np.exp(logs)
        return np.asarray((value - c * np.tanh(s * z / c)) / wide)

    def slopes(logs: Array) -> Array:
        s, c = np.exp(logs)
        bent = np.tanh(s * z / c)
        steep = s * z * (1 - bent**2)
        return np.stack([-steep, steep - c * bent], axis=1) / wide[:, None]

    def fitted(start: Array, ftol: float) -> Any:
        return least_squares(misses, start, slopes, method="lm", ftol=ftol, xtol=1e-15, gtol=1e-15)

    with np.errstate(all="ignore"):  # of steps that are taken back
        best = min((fitted(np.log([slope, times * largest]), 1e-3) for times in (1.5, 1.01)),
                   key=lambda fit: float(fit.cost))
        if 2 * best.cost < HOPELESS * len(value):
            best = fitted(best.x, 1e-15)
    cap = np.clip(best.x[1], np.log(largest) - BRACKET, np.log(largest) + HIGHEST)
    return float(cap), float(np.sqrt(2 * best.cost / len(value)))
