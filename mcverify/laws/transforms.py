"""From a law to that of its vectors after a norm, a clip, a quantiser or a rotation.

Each acts on q and on k; for one side alone take ``independent(layer_norm(a), b)``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcverify.attention import vectors
from mcverify.laws import marginals
from mcverify.laws.dependence import Identical, Shifted, _require, _require_law
from mcverify.laws.law import Array, Law, Moments

DEFAULTS = {"gain": 1.0, "epsilon": 0.0}


@dataclass(frozen=True)
class Transformed:
    """Every query and key of ``base`` after a function of one vector that is bounded.

    Moments are declared where symmetry or a closed form gives them exactly, and nan elsewhere.

    Attributes
    ----------
    base : what is drawn first.
    kind : the name of the function, a key of ``KINDS``.
    settings : its arguments as pairs of name and value.
    """

    base: Law
    kind: str
    settings: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        _require_law(self.base, self.kind)
        for name, value in self.settings:
            _require(math.isfinite(value), f"{self.kind}({name}={value}): {name} must be finite")
        KINDS[self.kind][0](np.ones(1), **dict(self.settings))  # refuses what it does not take

    @property
    def coupled(self) -> bool:
        return self.base.coupled

    @property
    def finite_moments(self) -> float:
        return math.inf

    def __str__(self) -> str:
        shown = [f"{name}:{value:.12g}" if name in DEFAULTS else f"{value:.12g}"
                 for name, value in self.settings if value != DEFAULTS.get(name)]
        return f"{self.kind}[{'-'.join([str(self.base), *shown])}]"

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        function, settings = KINDS[self.kind][0], dict(self.settings)
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return function(q, **settings), function(k, **settings)

    def moments(self, d_k: int) -> Moments:
        declared, settings = KINDS[self.kind][1], dict(self.settings)
        mean_q, cov_q = declared(marginals.side(self.base, "q"), d_k, **settings)
        mean_k, cov_k = declared(marginals.side(self.base, "k"), d_k, **settings)
        if _same(self.base):
            cross = cov_q
        else:
            cross = np.full((d_k, d_k), math.nan if self.coupled else 0.0)
        return Moments(mean_q, mean_k, cov_q, cov_k, cross)


@dataclass(frozen=True)
class Rotary:
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
    distance: int
    theta: float = 10000.0
    pairing: str = "halves"

    def __post_init__(self) -> None:
        _require_law(self.base, "rotary")
        _require(isinstance(self.distance, int), f"rotary(distance={self.distance!r}): positions "
                                                 "are whole numbers; use an int")
        self._turned(np.ones(2))  # refuses what it does not take

    @property
    def coupled(self) -> bool:
        return self.base.coupled

    @property
    def finite_moments(self) -> float:
        return self.base.finite_moments

    def __str__(self) -> str:
        shown = [str(self.base), str(self.distance)]
        shown += [f"theta:{self.theta:.12g}"] if self.theta != 10000.0 else []
        shown += [f"pairing:{self.pairing}"] if self.pairing != "halves" else []
        return f"rotary[{'-'.join(shown)}]"

    def _turned(self, x: Array) -> Array:
        y = vectors.rotate(x, self.distance, self.theta, self.pairing)
        return np.asarray(y, np.float64)

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        q, k = self.base.draw(rng, blocks, tokens, d_k)
        return self._turned(q), k

    def moments(self, d_k: int) -> Moments:
        """R μ_q, R Σ_q R' and R C: the rows of a matrix M turn into M R'."""
        m = self.base.moments(d_k)
        with np.errstate(invalid="ignore"):  # of variances that are infinite
            cov_q = self._turned(self._turned(m.cov_q).T)
            return Moments(self._turned(m.mean_q), m.mean_k, cov_q, m.cov_k,
                           self._turned(m.cross.T).T)


rotary = Rotary


def layer_norm(base: Law, gain: float = 1.0, epsilon: float = 0.0) -> Transformed:
    """Every q and k after ``vectors.layer_norm``: bounded by gain·√d_k in length.

    Coordinates that can be exchanged get mean 0 and equal covariances, so with epsilon 0 the
    covariance is gain²·P·(d_k I − 11')/(d_k − 1), P the probability that not all are equal: 1 for
    continuous laws, 1 − 2^(1 − d_k) for coins. A common shift or scale changes nothing.

    >>> from mcverify.laws import normal, shifted
    >>> str(layer_norm(shifted(normal, 0.5), gain=2))
    'layer_norm[shifted[normal-0.5]-gain:2]'
    >>> layer_norm(shifted(normal, 0.5)).moments(2).cov_q
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return Transformed(base, "layer_norm", (("gain", gain), ("epsilon", epsilon)))


def rms_norm(base: Law, gain: float = 1.0, epsilon: float = 0.0) -> Transformed:
    """Every q and k after ``vectors.rms_norm``, of length gain·√d_k with epsilon 0.

    Independent coordinates symmetric about 0 become uncorrelated ones of mean 0 and variance
    gain²·P, P the probability of a vector that is not 0.

    >>> from mcverify.laws import laplace
    >>> rms_norm(laplace, gain=2).moments(2).cov_q.tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    return Transformed(base, "rms_norm", (("gain", gain), ("epsilon", epsilon)))


def unit_norm(base: Law) -> Transformed:
    """Every q and k after ``vectors.unit_norm``: scores are cosines. As rms_norm, over √d_k.

    >>> from mcverify.laws import normal
    >>> unit_norm(normal).moments(2).cov_q.tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    return Transformed(base, "unit_norm", ())


def clipped(base: Law, bound: float) -> Transformed:
    """Every coordinate of q and k after ``vectors.clip``: at most ``bound`` in size.

    >>> from mcverify.laws import rademacher
    >>> str(clipped(rademacher, 0.5)), clipped(rademacher, 0.5).moments(1).cov_q.tolist()
    ('clipped[rademacher-0.5]', [[0.25]])
    """
    return Transformed(base, "clipped", (("bound", bound),))


def quantised(base: Law, bits: int, bound: float) -> Transformed:
    """Every coordinate of q and k after ``vectors.quantise``: at most ``bound`` in size.

    >>> from mcverify.laws import rademacher
    >>> str(quantised(rademacher, 2, 3)), quantised(rademacher, 2, 3).moments(1).cov_q.tolist()
    ('quantised[rademacher-2-3]', [[0.0]])
    """
    return Transformed(base, "quantised", (("bits", bits), ("bound", bound)))


def _same(law: Law) -> bool:
    """Whether every token's key is known to be its own query."""
    return isinstance(law, Identical) or (
        isinstance(law, Shifted | Transformed) and _same(law.base))


KINDS: dict[str, tuple[Callable[..., Any], Callable[..., marginals.Side]]] = {
    "layer_norm": (vectors.layer_norm, marginals.layer_norm),
    "rms_norm": (vectors.rms_norm, marginals.rms_norm),
    "unit_norm": (vectors.unit_norm, marginals.unit_norm),
    "clipped": (vectors.clip, marginals.clipped),
    "quantised": (vectors.quantise, marginals.quantised),
}
