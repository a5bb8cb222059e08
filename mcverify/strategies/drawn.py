"""Draw laws, worlds, and the q and k that they draw in turn."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcverify.arrays import Array
from mcverify.judge.world import World
from mcverify.laws import Law
from mcverify.strategies.kinds import FAMILIES, KINDS, some
from mcverify.strategies.numbers import seeds, widths
from mcverify.strategies.numbers import tokens as counts
from mcverify.strategies.wanted import Wanted

T = TypeVar("T")
Laws = Law | SearchStrategy[Law] | Callable[[int], SearchStrategy[Law]] | None
Count = int | SearchStrategy[int] | None


def laws(
    family: str | None = None, *, d_k: int | None = None, coupled: bool | None = None,
    finite_moments: float = 0.0, standard: bool = False, declared: bool = False,
) -> SearchStrategy[Law]:
    """Laws with drawn parameters; shrinks to the normal law or what is made of it.

    Parameters
    ----------
    family : "iid"; "dependent", for laws that break an assumption: independence, equal variances,
        mean 0; "transformed", for norms, clipping, quantisation and rotary positions; the name of
        a law, such as "topic"; or None for all of them.
    d_k : the width that they are for. Without one they can be drawn at any width, which leaves out
        rotary positions, and the laws of one width: linear, gaussian, measured.
    coupled : whether a token's own query and key are dependent; None for either.
    finite_moments : the absolute moment of this order exists for a coordinate; inf: of all orders.
    standard : every coordinate of q and of k has the declared mean 0 and variance 1.
    declared : all first and second moments are declared, and finite.

    Raises ValueError for an unknown family, and if no law has all that is asked for.

    >>> from hypothesis import find
    >>> str(find(laws(coupled=True), lambda law: True))
    'identical[normal]'
    """
    if family is not None and family not in FAMILIES | KINDS:
        raise ValueError(f"laws({family!r}): is neither a family nor the name of a law; use one of "
                         f"{', '.join([*FAMILIES, *KINDS])}")
    names = tuple(KINDS if family is None else FAMILIES.get(family, [family]))
    drawn = some(names, Wanted(d_k, coupled, finite_moments, standard, declared))
    if drawn.is_empty:
        advice = "ask for less" if d_k else "ask for less, or give the d_k they are for"
        raise ValueError(f"laws({family!r}, d_k={d_k}, coupled={coupled}, finite_moments="
                         f"{finite_moments:g}, standard={standard}, declared={declared}): no law "
                         f"has all that; {advice}")
    return drawn


def worlds(laws: Laws = None, d_k: Count = None, tokens: Count = None) -> SearchStrategy[World]:
    """Worlds: a law, its width and the tokens of a block; shrinks to one normal coordinate.

    Each is a value, a strategy, or None for the usual one; ``laws`` may also be a function of d_k,
    such as ``lambda d_k: strategies.laws("transformed", d_k=d_k)``.

    >>> from hypothesis import find
    >>> str(find(worlds(tokens=2), lambda world: world.d_k > 2))
    'normal, d_k = 3, 2 tokens'
    """

    @st.composite
    def drawn(draw: st.DrawFn) -> World:
        width = draw(_strategy(d_k, widths(8)))
        return World(draw(_laws_at(width, laws)), width, draw(_strategy(tokens, counts())))

    return drawn()


class Draw(NamedTuple):
    """A law, its width, and what it drew: q and k, (blocks, tokens, d_k) and read-only."""

    law: Law
    d_k: int
    q: Array
    k: Array


def draws(
    laws: Laws = None, d_k: Count = None, tokens: Count = None, blocks: Count = None
) -> SearchStrategy[Draw]:
    """Fresh q and k of some world under some seed, with the law and d_k that they have.

    The first three are as in ``worlds``; blocks are 1 to 3 unless given. Raises ValueError, when
    drawn, for a law that cannot have the width.

    >>> from hypothesis import find
    >>> drawn = find(draws(blocks=2), lambda drawn: drawn.q.max() > 0)
    >>> str(drawn.law), drawn.d_k, drawn.k.shape
    ('normal', 1, (2, 1, 1))
    """

    def drawn(world: World, seed: int, blocks: int) -> Draw:
        return Draw(world.law, world.d_k, *world.draw(seed, 0, blocks))

    return st.builds(drawn, worlds(laws, d_k, tokens), seeds(),
                     _strategy(blocks, st.integers(1, 3)))


def _strategy(given: T | SearchStrategy[T] | None, usual: SearchStrategy[T]) -> SearchStrategy[T]:
    if given is None:
        return usual
    return given if isinstance(given, SearchStrategy) else st.just(given)


def _laws_at(d_k: int, given: Laws) -> SearchStrategy[Law]:
    if given is None:
        return laws(d_k=d_k)
    if isinstance(given, SearchStrategy | Law):
        return _strategy(given, st.nothing())
    return given(d_k)
