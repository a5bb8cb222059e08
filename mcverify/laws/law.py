"""What a law is: draws of queries and keys, declared moments, and a name."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mcverify.arrays import Array

Pair = tuple[Array, Array]
Rng = np.random.Generator
Which = Literal["q", "k"]
Values = Literal["all", "other", "matched", "q", "k", "mean"]  # of a block


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


class BlockMoments(NamedTuple):
    """What is known of a block's values: scores, queries or keys; nan where it is not.

    Attributes
    ----------
    mean, variance : of a value.
    of_means : the variance of a block's mean value, or at least as much.
    of_squares : that of a block's mean square about the mean, or at least as much.
    """

    mean: float
    variance: float
    of_means: float
    of_squares: float


class FourthMoments(NamedTuple):
    """What is known of the kurtosis κ of a block's scores s, which have mean 0.

    Attributes
    ----------
    variance, kurtosis : V = E s² and κ = E s⁴/V² of a score.
    of_fourths : the variance of a block's mean of (s⁴ − 2κV·s²)/V².
    """

    variance: float
    kurtosis: float
    of_fourths: float


@runtime_checkable
class Law(Protocol):
    """How one block of tokens gets its queries and keys: a frozen, hashable value."""

    @property
    def coupled(self) -> bool:
        """Whether a token's own query and key are dependent."""

    @property
    def finite_moments(self) -> float:
        """The order below which the absolute moments of a coordinate exist (inf: all)."""

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        """Fresh (q, k), each (blocks, tokens, d_k); blocks are independent."""

    def moments(self, d_k: int) -> Moments:
        """The moments that the draws have; tests hold the draws against them."""

    def __str__(self) -> str:
        """The readable name; the random stream of a world descends from it."""


@dataclass(frozen=True)
class With:
    """A function with its last argument given; two are equal if both parts are."""

    function: Callable[..., Array]
    argument: float

    def __call__(self, *arguments: Any) -> Array:
        return self.function(*arguments, self.argument)


def digest(*values: object) -> str:
    """Eight characters that tell frozen values apart.

    >>> digest(0.5) == digest(0.5), digest(0.5) == digest(0.25)
    (True, False)
    """
    return hashlib.blake2b(repr(values).encode(), digest_size=4).hexdigest()


def require(condition: bool, message: str) -> None:
    """Raise ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)
