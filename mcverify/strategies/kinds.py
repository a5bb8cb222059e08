"""Make laws of each name, by what their annotations say that they may be made of."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcverify import laws
from mcverify.laws import Law, initialisation
from mcverify.laws.coordinates import Iid
from mcverify.laws.parameters import of_laws, parts
from mcverify.laws.rotary_positions import Rotary
from mcverify.laws.transforms import Transformed
from mcverify.strategies.numbers import covariances, means, numbers, seeds
from mcverify.strategies.wanted import Wanted

Argument = tuple[Any, Any, Any]  # its type, its range or what a base must have, its default
# Of laws of these the moments are known, if they are of any.
PLAIN: list[Any] = [*laws.STANDARD, *map(laws.identical, laws.STANDARD)]
REQUIRED = inspect.Parameter.empty
STARTS = (initialisation.lecun(), initialisation.lecun("uniform"), initialisation.xavier(),
          initialisation.xavier("head", "normal"), initialisation.he(),
          initialisation.gaussian(0.02))


@lru_cache(maxsize=1024)
def some(names: tuple[str, ...], w: Wanted) -> SearchStrategy[Any]:
    """Laws of any of these names that have what is wanted; empty where there are none."""
    made = {name: (BY_HAND.get(name) or _by_annotations(name))(w) for name in names}
    return st.one_of([_law(_Named(name, each.filter(w.met_by))) for name, each in made.items()
                      if not each.is_empty])


class _Named:  # not a dataclass, of which Hypothesis shows all fields
    """A strategy that reports show as a name, and not as all that it is made of."""

    def __init__(self, name: str, strategy: SearchStrategy[Law]) -> None:
        self.name, self.strategy = name, strategy

    def __repr__(self) -> str:
        return self.name


@st.composite
def _law(draw: st.DrawFn, named: _Named) -> Law:
    return draw(named.strategy)


def _built(law: Callable[..., Law], *parts: SearchStrategy[Any]) -> SearchStrategy[Law]:
    # As st.builds, which does not tell that it is empty where one of its parts is.
    return st.tuples(*parts).map(lambda values: law(*values))


# --- by annotations ---------------------------------------------------------------------------


def _by_annotations(name: str) -> Callable[[Wanted], SearchStrategy[Law]]:
    """Laws of a name; none where the least and the largest numbers make none that is wanted."""
    law = KINDS[name]

    def made(w: Wanted) -> SearchStrategy[Law]:
        if not callable(law):
            return st.just(law) if w.met_by(law) else st.nothing()
        # Where moments are asked for, what need not be given is left as it is.
        given = [each for each in _arguments(law) if each[2] is REQUIRED or not w.of_moments]
        some_base = any(of_laws(of) for of, *_ in given)
        bases = [base for base in (PLAIN if some_base else PLAIN[:1])
                 if _fits(law, given, base, w)]
        return _built(law, *(_argument(law, each, bases, w) for each in given)) if bases else (
            st.nothing())

    return made


def _arguments(law: Callable[..., Law]) -> list[Argument]:
    return [(*parts(each.annotation), each.default)
            for each in inspect.signature(law).parameters.values()]


def _fits(law: Callable[..., Law], given: list[Argument], base: Law, w: Wanted) -> bool:
    """Whether laws of this base have what is wanted, at either end of all ranges."""
    try:
        ends = [law(*(base if of_laws(of) else numbers(rule, w.lowest)[end] if rule else
                      get_args(of)[0] for of, rule, _ in given)) for end in (0, 1)]
        return all(w.met_by(each) and all(map(each.moments, w.widths)) for each in ends)
    except ValueError:  # no law has such a base or such moments, or this law has no such width
        return False


def _argument(
    law: Callable[..., Law], each: Argument, bases: list[Any], w: Wanted
) -> SearchStrategy[Any]:
    of, rule, default = each
    if of is Iid:
        return _iid(w, rule.moments if rule else 0)
    if of is Law and w.of_moments:
        return st.sampled_from(bases)
    if of is Law:
        coupled = {base.coupled for base in bases}
        bounded = isinstance(law, type) and issubclass(law, Transformed)
        return some((*IID, *SIMPLE), replace(
            w, coupled=coupled.pop() if len(coupled) == 1 else None,
            finite_moments=0.0 if bounded else w.finite_moments))
    drawn = numbers(rule, w.lowest)[2] if rule else st.sampled_from(get_args(of))
    return drawn if default is REQUIRED else st.just(default) | drawn


# --- by hand: what one of these takes for an argument depends on another ------------------------


def _linear(w: Wanted) -> SearchStrategy[Law]:
    if (d_k := w.d_k) is None or w.standard:
        return st.nothing()

    def made(base: Any, m: int, seed: int, mean_q: Any, mean_k: Any, joint: bool) -> Law:
        root_q, root_k = np.random.default_rng(seed).standard_normal((2, d_k, m)).round(2)
        return laws.linear(base, root_q, root_k, mean_q, mean_k, joint)

    return _built(made, _iid(w), st.integers(1, d_k + 1), seeds(), means(d_k), means(d_k),
                  _either(w))


def _gaussian(w: Wanted) -> SearchStrategy[Law]:
    if (d_k := w.d_k) is None or w.standard:
        return st.nothing()

    def coupled(joint: Any, mean_q: Any, mean_k: Any) -> Law:
        return laws.gaussian(joint[:d_k, :d_k], joint[d_k:, d_k:], mean_q, mean_k,
                             cross=joint[:d_k, d_k:])

    made = [_built(laws.gaussian, covariances(d_k), covariances(d_k), means(d_k), means(d_k)),
            _built(coupled, covariances(2 * d_k), means(d_k), means(d_k))]
    return st.one_of(made if w.coupled is None else [made[w.coupled]])


def _measured(w: Wanted) -> SearchStrategy[Law]:
    if (d_k := w.d_k) is None or w.standard or w.coupled is False:
        return st.nothing()

    def made(tokens: int, seed: int) -> Law:
        q, k = np.random.default_rng(seed).standard_normal((2, tokens, d_k))
        return laws.measured(q, k)

    return _built(made, st.integers(2, 6), seeds())


def _projected(w: Wanted) -> SearchStrategy[Law]:
    starts = STARTS[:2] if w.standard else STARTS  # Var W = 1/fan_in keeps the variance
    weights = st.none() if w.standard else st.none() | st.integers(0, 9)
    gains = st.just(1.0) if w.standard else st.sampled_from([1.0, 0.5, 2.0])
    return _built(laws.projected, _iid(w), st.sampled_from(starts), st.integers(1, 8), gains,
                  weights, _either(w))


def _iid(w: Wanted, moments: int = 0) -> SearchStrategy[Any]:
    return some(tuple(IID), replace(w, coupled=None, finite_moments=max(w.lowest, moments)))


def _either(w: Wanted) -> SearchStrategy[bool]:
    return st.booleans() if w.coupled is None else st.just(w.coupled)


# --- names, the simplest first: standard ones, and what takes fewest arguments -------------------

BY_HAND = {"linear": _linear, "gaussian": _gaussian, "measured": _measured, "projected": _projected}


def _made_by(law: Any) -> Any:
    """The class of what a class, a function or a value is, or makes."""
    return (type(law) if not callable(law) else law if isinstance(law, type) else
            inspect.signature(law).return_annotation)


def _drawable(name: str) -> bool:
    law: Any = getattr(laws, name)
    return name in BY_HAND or (of_laws(_made_by(law)) and (not callable(law) or all(
        of_laws(of) or rule or hasattr(of, "__args__") for of, rule, _ in _arguments(law))))


def _order(name: str) -> tuple[int, str]:
    law = getattr(laws, name)
    return (sum(default is REQUIRED for *_, default in _arguments(law)) if callable(law) else
            not isinstance(law, Iid)), name


def _family(name: str) -> str:
    made = _made_by(KINDS[name])
    return ("iid" if issubclass(made, Iid) else
            "transformed" if issubclass(made, Transformed | Rotary) else "dependent")


NAMES = [*map(str, laws.STANDARD), *sorted(filter(_drawable, laws.__all__), key=_order)]
KINDS: dict[str, Any] = {name: getattr(laws, name) for name in NAMES}
FAMILIES = {family: [name for name in KINDS if _family(name) == family]
            for family in ("iid", "dependent", "transformed")}
IID = FAMILIES["iid"]
SIMPLE = [name for name in FAMILIES["dependent"] if name in BY_HAND or not callable(KINDS[name])
          or all(of is not Law for of, _, _ in _arguments(KINDS[name]))]
