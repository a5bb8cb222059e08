"""What a law is: draws of queries and keys, declared moments, a name; and what laws share."""

import hashlib
import math
import re
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mcverify.laws.fourth_powers import Powers
from mcverify.laws.side import Array as Array
from mcverify.laws.side import Side, Views

Pair = tuple[Array, Array]
Rng = np.random.Generator
Which = Literal["q", "k"]
Of = Literal["all", "other", "matched", "q", "k", "mean"]


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
class LawBase:
    """What the laws of this room share; a law of a ``base`` law has from it what it does not say.

    A law adds its fields, ``draw``, ``moments``, and ``side`` as far as it is known.
    """

    @property
    def coupled(self) -> bool:
        """Whether a token's own query and key are dependent: as in the base, else not."""
        base: Any = getattr(self, "base", None)
        return base is not None and bool(base.coupled)

    @property
    def finite_moments(self) -> float:
        """The order below which a coordinate's absolute moments exist: the base's, else inf."""
        base: Any = getattr(self, "base", None)
        return math.inf if base is None else float(base.finite_moments)

    @property
    def tokens_independent(self) -> bool:
        """Whether the tokens of a block are known to be independent: as in the base."""
        base: Any = getattr(self, "base", None)
        return base is None or getattr(base, "tokens_independent", False)

    @property
    def key_is_query(self) -> bool:
        """Whether every token's key is known to be its own query."""
        return False

    @property
    def kind(self) -> str:
        """The class as users write it: ``common_scale``."""
        return re.sub("(?<=.)(?=[A-Z])", "_", type(self).__name__).lower()

    def side(self, which: Which, d_k: int) -> Side:
        """What is known of a query ("q") or of a key ("k") alone."""
        return Side()

    def joint(self, d_k: int) -> Views | None:
        """A token's query and key as images of the same z with r = 1, if coupled so."""
        return None

    def powers(self, which: Which) -> Powers | None:
        """Moments of a query's or key's coordinates up to the eighth; None where not known."""
        return None

    def normal_tokens(self, tokens: int) -> tuple[Array, Array, Array] | None:
        """Covariances of one coordinate's queries and keys at the tokens of a block, if coordinates
        are independent, alike, of mean 0 and jointly normal: of queries, of keys, and across.
        """
        return None

    def block_moments(
        self, d_k: int, tokens: int, of: Of, width: int
    ) -> BlockMoments | None:
        """What is known of a block of dependent tokens: see ``laws.block_moments``."""
        return None

    def coordinate_products(self) -> tuple[float, ...] | None:
        """E (q_i k_i)^n of a token for n = 1 to 4, if all (q_i, k_i) are independent and alike."""
        return None

    def __str__(self) -> str:
        """The class and the fields: ``common_scale[normal-9]``, ``multivariate_t-5-0.2``.

        Fields that have a default are left out at it, and else stand with their name.
        """
        parts = [shown for field in fields(self) if (shown := self._shown(field)) is not None]
        of_laws = any(isinstance(getattr(self, field.name), Law) for field in fields(self))
        return f"{self.kind}[{'-'.join(parts)}]" if of_laws else "-".join([self.kind, *parts])

    def _shown(self, field: Field[Any]) -> str | None:
        value = getattr(self, field.name)
        shown = f"{value:.12g}" if isinstance(value, float | np.floating) else str(value)
        if field.default is MISSING:
            return shown
        return None if value == field.default else f"{field.name}:{shown}"


def side(law: Law, which: Which, d_k: int) -> Side:
    """What is known of a query or a key of any law; nothing, of one that does not say."""
    ask: Any = getattr(law, "side", None)
    return Side() if ask is None else ask(which, d_k)


def joint(law: Law, d_k: int) -> Views | None:
    """``LawBase.joint`` of any law; None of one that does not say."""
    ask: Any = getattr(law, "joint", None)
    return None if ask is None else ask(d_k)


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


def require_law(law: object, kind: str) -> None:
    """Raise ValueError unless what a law of this kind is made of is a law."""
    require(isinstance(law, Law), f"{kind}: the base {law!r} is not a law; use laws.normal, or "
                                  "another value of mcverify.laws")


def require_between(low: float, value: float, high: float, kind: str, name: str) -> None:
    """Raise ValueError unless the parameter ``name`` of a law of this kind is in [low, high]."""
    require(low <= value <= high,
            f"{kind}({name}={value}): {name} must be between {low} and {high}")
