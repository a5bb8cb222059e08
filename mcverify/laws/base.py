"""What the laws of this package share, and what is known of any other law."""

import math
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.fourth_powers import Powers
from mcverify.laws.law import BlockMoments, Law, Values, Which
from mcverify.laws.parameters import check_fields
from mcverify.laws.score_contraction import quadratic_form, sum_of_alike
from mcverify.laws.side import Side, Views


@dataclass(frozen=True)
class LawBase:
    """What the laws of this room share; a law of a ``base`` law has from it what it does not say.

    A law adds its fields, whose annotations say what they may be, ``draw``, ``moments``, and what
    else is known of it, such as ``side``.
    """

    def __post_init__(self) -> None:
        check_fields(self.kind, self)

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
        return base is None or known(base).tokens_independent

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

    def block_moments(self, d_k: int, tokens: int, of: Values, width: int) -> BlockMoments | None:
        """What is known of a block of dependent tokens: see ``laws.block_moments``."""
        return None

    def through(self, function: Callable[[Array], Array]) -> "LawBase | None":
        """The law of vectors after a function of one, if it is of the same kind."""
        return None

    def coordinate_products(self) -> tuple[float, ...] | None:
        """E (q_i k_i)^n of a token for n = 1 to 4, if all (q_i, k_i) are independent and alike."""
        return None

    def matched_moments(self, d_k: int, width: int) -> tuple[float, float, float] | None:
        """Mean, variance and fourth central moment of a coupled token's score with itself.

        Over the first ``width`` of d_k coordinates; nan for a fourth that is not known.

        >>> from mcverify import laws
        >>> laws.identical(laws.rademacher).matched_moments(4, 4)
        (4.0, 0.0, 0.0)
        """
        if (products := self.coordinate_products()) is not None:
            mean, variance, _, fourth = sum_of_alike(products, width)
            return mean, variance, fourth
        views = self.joint(d_k)
        return None if views is None else quadratic_form(*(view.first(width) for view in views))

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


class Unknown(LawBase):
    """Nothing, of a law that declares no more than its moments."""

    tokens_independent = False


def known(law: Law) -> LawBase:
    """Where to ask what is known of a law beyond its first two moments.

    >>> from mcverify import laws
    >>> known(laws.normal) is laws.normal
    True
    """
    return law if isinstance(law, LawBase) else Unknown()
