"""From a law with finitely many values to the exact law of its scores at small d_k."""

from collections.abc import Callable, Mapping
from fractions import Fraction

Law = Mapping[Fraction, Fraction]  # value -> probability

COIN: Law = {Fraction(-1): Fraction(1, 2), Fraction(1): Fraction(1, 2)}


def sparse_coin(share: Fraction) -> Law:
    """0, or ±1 with probability ``share`` in all: its standardised fourth moment is 1/share.

    >>> sparse_coin(Fraction(1, 2))[Fraction(0)]
    Fraction(1, 2)
    """
    return {Fraction(-1): share / 2, Fraction(0): 1 - share, Fraction(1): share / 2}


def product(x: Law, y: Law) -> Law:
    """The law of a product of independent values.

    >>> product(COIN, COIN) == COIN
    True
    """
    return _combine(x, y, lambda a, b: a * b)


def total(term: Law, d_k: int) -> Law:
    """The law of the sum of d_k independent terms: of q·k, when the term is q_i k_i.

    >>> [(int(value), str(p)) for value, p in total(COIN, 2).items()]
    [(-2, '1/4'), (0, '1/2'), (2, '1/4')]
    """
    law: Law = {Fraction(0): Fraction(1)}
    for _ in range(d_k):
        law = _combine(law, term, lambda a, b: a + b)
    return law


def score_law(q: Law, k: Law, d_k: int) -> Law:
    """The exact law of q·k for iid coordinates.

    >>> score_law(COIN, COIN, 1) == COIN
    True
    """
    return total(product(q, k), d_k)


def correlated_term(x: Law, rho: Fraction, root: Fraction) -> Law:
    """The law of q_i k_i when k_i = ρq_i + √(1−ρ²) z_i; ``root`` is √(1−ρ²), so ρ must be rational
    with a rational root, such as 3/5 and 4/5.

    >>> sorted(correlated_term(COIN, Fraction(3, 5), Fraction(4, 5)).items())
    [(Fraction(-1, 5), Fraction(1, 2)), (Fraction(7, 5), Fraction(1, 2))]
    """
    return _combine(x, x, lambda q, z: q * (rho * q + root * z))


def moment(law: Law, order: int, about: Fraction = Fraction(0)) -> Fraction:
    """E (x − about)^order.

    >>> moment(COIN, 2)
    Fraction(1, 1)
    """
    return sum(((value - about) ** order * p for value, p in law.items()), Fraction(0))


def mean_size(law: Law) -> Fraction:
    """E abs(x).

    >>> mean_size(total(COIN, 2))
    Fraction(1, 1)
    """
    return sum((abs(value) * p for value, p in law.items()), Fraction(0))


def variance(law: Law) -> Fraction:
    """E (x − E x)².

    >>> variance(total(COIN, 8))
    Fraction(8, 1)
    """
    return moment(law, 2, about=moment(law, 1))


def excess_kurtosis(law: Law) -> Fraction:
    """E (x − E x)⁴/Var² − 3.

    >>> excess_kurtosis(COIN)
    Fraction(-2, 1)
    """
    return moment(law, 4, about=moment(law, 1)) / variance(law) ** 2 - 3


def _combine(x: Law, y: Law, operation: Callable[[Fraction, Fraction], Fraction]) -> Law:
    law: dict[Fraction, Fraction] = {}
    for a, p in x.items():
        for b, r in y.items():
            value = operation(a, b)
            law[value] = law.get(value, Fraction(0)) + p * r
    return dict(sorted(law.items()))
