"""Laws whose queries and keys are inputs projected by initialised weights."""

import math
from dataclasses import Field, dataclass
from typing import Annotated, Any

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.base import LawBase, known
from mcverify.laws.coordinates import Iid, draw_side
from mcverify.laws.initialisation import Initialisation
from mcverify.laws.law import BlockMoments, Law, Moments, Pair, Rng, Values, Which, require
from mcverify.laws.parameters import Positive, Range
from mcverify.laws.projected_tokens import of_projected_tokens
from mcverify.laws.side import Side, Views, root

BATCH = 2**18  # numbers drawn at once, inputs and weights: part of the stream's definition


@dataclass(frozen=True)
class Projected(LawBase):
    """q = W_Q'x and k = W_K'x: inputs x of ``width`` coordinates, independent W_Q and W_K.

    Pairs of different tokens have the variance that ``theory.dot_variance`` gives at both levels,
    if the base has independent tokens. Raises ValueError for what is no law, no initialisation,
    no width, gain or seed.

    >>> from mcverify.laws import initialisation, normal
    >>> law = Projected(normal, initialisation.xavier("fused"), 512)
    >>> str(law), float(law.moments(64).cov_q[0, 0])
    ('projected[normal-xavier_uniform_fused-512]', 0.5)

    Attributes
    ----------
    base : the law of x; an input is a query of the base at d_k = width.
    initialisation : of the entries of W_Q and of W_K, each (width, d_k).
    width : coordinates of an input, the fan_in of the weights.
    gain : a factor on both W_Q and W_K, so the variance of scores has its fourth power.
    weights : None draws new weights for every block, so the block is the replicate of tokens and
        weights together, and moments are over both. A seed draws them once: the same for all
        blocks, so moments are those of tokens at the weights given.
    shared : True is self-attention, a token's q and k are of one x. False is cross-attention: q is
        of a query of the base, k of its key.
    """

    base: Law
    initialisation: Initialisation
    width: Annotated[int, Range(
        1, rule="a whole number of at least 1; pass the number of coordinates of an input",
        whole=True)]
    gain: Positive = 1.0
    weights: Annotated[int | None, Range(
        0, rule="a seed, a whole number of at least 0, or None for new weights in every block",
        whole=True)] = None
    shared: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.initialisation, Initialisation),
                f"projected: {self.initialisation!r} is not an initialisation; use e.g. "
                "laws.initialisation.xavier()")

    @property
    def coupled(self) -> bool:
        return self.shared or self.base.coupled

    def _shown(self, field: Field[Any]) -> str | None:
        if field.name == "shared":
            return None if self.shared else "cross"
        return super()._shown(field)

    def weight_variance(self, d_k: int) -> float:
        """The variance of an entry of W_Q and of W_K over initialisations, gain included."""
        return self.gain**2 * self.initialisation.variance(self.width, d_k)

    def weights_at(self, d_k: int) -> Pair:
        """The fixed (W_Q, W_K), each (width, d_k). Raises ValueError when there are none.

        They depend on the seed, the initialisation, the gain, width and d_k, not on the base.
        """
        if self.weights is None:
            raise ValueError(f"{self} has new weights in every block; fix them by weights=seed")
        sequence = np.random.SeedSequence(self.weights, spawn_key=(self.width, d_k))
        rng, std = np.random.default_rng(sequence), math.sqrt(self.weight_variance(d_k))
        w_q, w_k = self.initialisation.draw(rng, (2, self.width, d_k), std)
        return w_q, w_k

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        q, k = np.empty((blocks, tokens, d_k)), np.empty((blocks, tokens, d_k))
        fixed = None if self.weights is None else self.weights_at(d_k)
        size = max(1, BATCH // (self.width * (tokens + 2 * d_k)))
        for part in (slice(first, first + size) for first in range(0, blocks, size)):
            x_q, x_k = self._inputs(rng, len(q[part]), tokens)
            if fixed is None:
                q[part], k[part] = self._fresh(rng, x_q, x_k, d_k)
            else:
                q[part], k[part] = x_q @ fixed[0], x_k @ fixed[1]
        return q, k

    def moments(self, d_k: int) -> Moments:
        x = self.base.moments(self.width)
        mean_k, cov_k, cross = x.mean_k, x.cov_k, x.cross
        if self.shared:
            mean_k, cov_k, cross = x.mean_q, x.cov_q, x.cov_q
        if self.weights is None:  # E W = 0, and E W'AW = Var W · tr A · I
            v, zero = self.weight_variance(d_k), np.zeros(d_k)
            squares = [float(np.trace(cov) + mean @ mean)
                       for mean, cov in ((x.mean_q, x.cov_q), (mean_k, cov_k))]
            cov_q, cov_k = (np.diag(np.full(d_k, v * square)) for square in squares)
            return Moments(zero, zero, cov_q, cov_k, np.zeros((d_k, d_k)))
        w_q, w_k = self.weights_at(d_k)
        with np.errstate(invalid="ignore"):  # inf − inf is nan: no variance
            return Moments(x.mean_q @ w_q, mean_k @ w_k, w_q.T @ x.cov_q @ w_q,
                           w_k.T @ cov_k @ w_k, w_q.T @ cross @ w_k)

    @property
    def tokens_independent(self) -> bool:
        return self.weights is not None and known(self.base).tokens_independent

    def side(self, which: Which, d_k: int) -> Side:
        """The image of an input under fixed weights."""
        if self.weights is None:
            return Side()
        w = self.weights_at(d_k)[which == "k"]
        x = known(self.base).side("q" if self.shared else which, self.width)
        return Side(image=x.mapped(w.T))

    def joint(self, d_k: int) -> Views | None:
        """Two views of one input, if that is an image with r = 1."""
        x = known(self.base).side("q", self.width)
        if not self.shared or self.weights is None or x.image is None or x.image.scale_fourth != 1:
            return None
        w_q, w_k = self.weights_at(d_k)
        return x.views(w_q.T, w_k.T)

    def block_moments(self, d_k: int, tokens: int, of: Values, width: int) -> BlockMoments | None:
        """Where weights are new in every block, of inputs of independent coordinates of mean 0."""
        x, light = self.base, self.initialisation.fourth_moment <= 3
        if self.weights is not None or not (self.shared and light and isinstance(x, Iid)):
            return None
        if not (x.mean == 0 and math.isfinite(x.variance * x.fourth_moment)):
            return None
        return of_projected_tokens(self.width, x.fourth_moment,
                                   x.variance * self.weight_variance(d_k), width, tokens, of)

    def _inputs(self, rng: Rng, blocks: int, tokens: int) -> Pair:
        if not self.shared:
            return self.base.draw(rng, blocks, tokens, self.width)
        x = draw_side(self.base, "q", rng, blocks, tokens, self.width)
        return x, x

    def _fresh(self, rng: Rng, x_q: Array, x_k: Array, d_k: int) -> Pair:
        blocks, tokens, width = x_q.shape
        std = math.sqrt(self.weight_variance(d_k))
        if self.initialisation.distribution == "normal" and tokens < width and tokens <= d_k:
            same, x_q = x_k is x_q, root(x_q)  # with more tokens the root costs more than it saves
            x_k = x_q if same else root(x_k)
        shape = (blocks, x_q.shape[-1], d_k)
        q = x_q @ self.initialisation.draw(rng, shape, std)
        return q, x_k @ self.initialisation.draw(rng, shape, std)


projected = Projected
