"""From a range to the numbers of a world: widths, tokens, scales, seeds, parameters of laws."""

import math

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

LEAST_ORDER = 0.5  # of drawn exponents and degrees of freedom: at 0.03 Student t draws infinities


def widths(max_d_k: int = 64, even: bool = False, min_d_k: int = 1) -> SearchStrategy[int]:
    """d_k from ``min_d_k`` to ``max_d_k``; shrinks to the narrowest. ``even`` for rotary positions.

    Raises ValueError where there is none.

    >>> from hypothesis import find
    >>> find(widths(even=True), lambda d_k: d_k > 4)
    6
    """
    step = 2 if even else 1
    least, most = -(-min_d_k // step), max_d_k // step
    if not 1 <= min_d_k <= max_d_k or least > most:
        raise ValueError(f"widths({max_d_k}, even={even}, min_d_k={min_d_k}): there is no such "
                         "width; it needs 1 <= min_d_k <= max_d_k")
    return st.integers(least, most).map(lambda n: step * n)


def tokens(max_tokens: int = 8) -> SearchStrategy[int]:
    """Tokens of a block, from 1, to which it shrinks, to ``max_tokens``."""
    return st.integers(1, max_tokens)


def seeds() -> SearchStrategy[int]:
    """Seeds for ``check`` or ``np.random.default_rng``; shrinks to 0."""
    return st.integers(0, 2**63 - 1)


def scales(smallest: float = 1e-3, largest: float = 1e3) -> SearchStrategy[float]:
    """Factors of a score: 1, to which it shrinks, √d_k, 1/√d_k, 1/d_k, and all between both ends.

    Raises ValueError unless 0 < smallest <= 1 <= largest.

    >>> from hypothesis import find
    >>> find(scales(), lambda scale: True)
    1.0
    """
    if not 0 < smallest <= 1 <= largest < math.inf:
        raise ValueError(f"scales({smallest}, {largest}): 1 must lie between the two, which must "
                         "be positive and finite; use e.g. scales(1e-3, 1e3)")
    powers = [d_k**exponent for d_k in (4, 64, 512) for exponent in (-0.5, -1.0, 0.5)]
    named = [scale for scale in (1.0, *powers) if smallest <= scale <= largest]
    return st.sampled_from(named) | st.floats(smallest, largest)


def hundredths(low: float, high: float) -> SearchStrategy[float]:
    """Numbers with two decimals: people can read them, and names of laws show all their digits.

    >>> from hypothesis import find
    >>> find(hundredths(-1, 1), lambda x: x < 0)
    -0.01
    """
    n = st.integers(math.ceil(100 * low - 1e-9), math.floor(100 * high + 1e-9))
    return n.map(lambda n: n / 100)


def orders(above: float) -> SearchStrategy[float]:
    """Degrees of freedom that give a law the moment of the order ``above``; none beyond 100.

    >>> from hypothesis import find
    >>> find(orders(2), lambda df: df > 3), orders(float("inf")).is_empty
    (4.0, True)
    """
    if above > 100:
        return st.nothing()
    whole = math.floor(above) + 1
    return st.integers(whole, whole + 20).map(float) | hundredths(
        max(LEAST_ORDER, above + 0.01), above + 20)
