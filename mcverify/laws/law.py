"""From the word "law" to what every law must offer: draws, declared moments, a readable name."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """First and second moments of one token's query and key, as a law declares them.

    Entries are nan where they are not known.

    Attributes
    ----------
    mean_q, mean_k : (d_k,) arrays; nan where the mean does not exist.
    cov_q, cov_k : (d_k, d_k) arrays; inf or nan where the variance does not exist.
    cross : (d_k, d_k) array, the covariance of q_i and k_j **of the same token**.
    """

    mean_q: Array
    mean_k: Array
    cov_q: Array
    cov_k: Array
    cross: Array


@runtime_checkable
class Law(Protocol):
    """How one block of tokens gets its queries and keys: a frozen, hashable value."""

    @property
    def coupled(self) -> bool:
        """Whether a token's own query and key are dependent."""

    @property
    def finite_moments(self) -> float:
        """The order below which the absolute moments of a coordinate exist (inf: all)."""

    def draw(
        self, rng: np.random.Generator, blocks: int, tokens: int, d_k: int
    ) -> tuple[Array, Array]:
        """Fresh (q, k), each (blocks, tokens, d_k); blocks are independent."""

    def moments(self, d_k: int) -> Moments:
        """The moments that the draws have; tests hold the draws against them."""

    def __str__(self) -> str:
        """The readable name; the random stream of a world descends from it."""
