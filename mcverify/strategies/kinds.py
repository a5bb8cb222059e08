"""Make laws of each name with drawn parameters: the catalogue behind strategies.laws."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcverify import laws
from mcverify.attention.vectors import PAIRINGS
from mcverify.laws import Law, initialisation
from mcverify.strategies.numbers import (
    LEAST_ORDER,
    covariances,
    hundredths,
    means,
    orders,
    seeds,
)
from mcverify.strategies.wanted import Kind, Wanted

RHO, SHARE = hundredths(-1, 1), hundredths(0, 1)
BOUNDS = hundredths(0.01, 4)
STARTS = (initialisation.lecun(), initialisation.lecun("uniform"), initialisation.xavier(),
          initialisation.xavier("head", "normal"), initialisation.he(),
          initialisation.gaussian(0.02))


@lru_cache(maxsize=1024)
def some(names: tuple[str, ...], w: Wanted) -> SearchStrategy[Any]:
    """Laws of any of these names that have what is wanted; empty where there are none."""
    made = {name: KINDS[name].make(w) for name in names if KINDS[name].fits(w)}
    return st.one_of([_law(_Named(name, each.filter(w.met_by))) for name, each in made.items()
                      if not each.is_empty])


class _Named:  # not a dataclass, of which Hypothesis shows all fields
    """A strategy that reports show as a name, and not as all that it is made of."""

    def __init__(self, name: str, strategy: SearchStrategy[Law]) -> None:
        self.name, self.strategy = name, strategy

    def __repr__(self) -> str:
        return self.name


def _built(law: Callable[..., Law], *parts: SearchStrategy[Any]) -> SearchStrategy[Law]:
    # As st.builds, which does not tell that it is empty where one of its parts is.
    return st.tuples(*parts).map(lambda values: law(*values))


@st.composite
def _law(draw: st.DrawFn, named: _Named) -> Law:
    return draw(named.strategy)


def _iid(w: Wanted, moments: float = 0.0) -> SearchStrategy[Any]:
    """Laws of one coordinate for others to be made of, with moments of this order as well."""
    return some(tuple(IID), replace(w, coupled=None, finite_moments=max(w.lowest, moments)))


def _simple(w: Wanted) -> SearchStrategy[Law]:
    """Laws for others to be made of that are not made of other laws themselves."""
    return some((*IID, *SIMPLE), w)


# --- independent coordinates ------------------------------------------------------------------


def _stable(w: Wanted) -> SearchStrategy[Law]:
    exponents = hundredths(max(LEAST_ORDER, w.lowest + 0.01), 2) if w.lowest < 2 else st.just(2.0)
    return exponents.map(laws.stable)


IID = {
    **{law.name: Kind(lambda w, law=law: st.just(law), False)  # type: ignore[misc]
       for law in (*laws.STANDARD, laws.exponential)},
    "student_t": Kind(lambda w: orders(w.lowest).map(laws.student_t), False),
    "sparse": Kind(lambda w: hundredths(0.1, 1).map(laws.sparse), False),
    "stable": Kind(_stable, False),
}


# --- coordinates, q and k, or tokens that depend on each other --------------------------------


def _rho(law: Callable[..., Law], moments: float = 0.0, rho: Any = RHO) -> Any:
    return lambda w: _built(law, _iid(w, moments), rho)


def _common_scale(w: Wanted) -> SearchStrategy[Law]:
    return _built(laws.common_scale, _iid(w, 1.0), orders(max(2.0, w.lowest)))


def _linear(w: Wanted) -> SearchStrategy[Law]:
    d_k = _width(w)

    def made(base: Any, m: int, seed: int, mean_q: Any, mean_k: Any, joint: bool) -> Law:
        root_q, root_k = np.random.default_rng(seed).standard_normal((2, d_k, m)).round(2)
        return laws.linear(base, root_q, root_k, mean_q, mean_k, joint)

    return _built(made, _iid(w), st.integers(1, d_k + 1), seeds(), means(d_k), means(d_k),
                  _either(w))


def _gaussian(w: Wanted) -> SearchStrategy[Law]:
    d_k = _width(w)

    def coupled(joint: Any, mean_q: Any, mean_k: Any) -> Law:
        return laws.gaussian(joint[:d_k, :d_k], joint[d_k:, d_k:], mean_q, mean_k,
                             cross=joint[:d_k, d_k:])

    parts = [_built(laws.gaussian, covariances(d_k), covariances(d_k), means(d_k), means(d_k)),
             _built(coupled, covariances(2 * d_k), means(d_k), means(d_k))]
    return st.one_of(parts if w.coupled is None else parts[int(w.coupled):][:1])


def _measured(w: Wanted) -> SearchStrategy[Law]:
    def made(tokens: int, seed: int) -> Law:
        q, k = np.random.default_rng(seed).standard_normal((2, tokens, _width(w)))
        return laws.measured(q, k)

    return _built(made, st.integers(2, 6), seeds())


def _projected(w: Wanted) -> SearchStrategy[Law]:
    starts = STARTS[:2] if w.standard else STARTS  # Var W = 1/fan_in keeps the variance
    weights = st.none() if w.standard else st.none() | st.integers(0, 9)
    gains = st.just(1.0) if w.standard else st.sampled_from([1.0, 0.5, 2.0])
    return _built(laws.projected, _iid(w), st.sampled_from(starts), st.integers(1, 8), gains,
                  weights, _either(w))


def _width(w: Wanted) -> int:
    assert w.d_k is not None  # or the kind would not fit
    return w.d_k


def _either(w: Wanted) -> SearchStrategy[bool]:
    return st.booleans() if w.coupled is None else st.just(w.coupled)


def _scaled(w: Wanted) -> SearchStrategy[Law]:
    stds = st.sampled_from([1.0, 2.0, 0.5, 0.02, 30.0])
    return _built(laws.scaled, _simple(w), stds, stds)


def _independent(w: Wanted) -> SearchStrategy[Law]:
    sides = _simple(replace(w, coupled=None))
    return _built(laws.independent, sides, sides)


SIMPLE = {
    "identical": Kind(lambda w: _iid(w).map(laws.identical), True),
    "correlated": Kind(_rho(laws.correlated), True),
    "random_sign": Kind(lambda w: _iid(w).map(laws.random_sign), True),
    "equicorrelated": Kind(_rho(laws.equicorrelated, rho=SHARE), False),
    "autoregressive": Kind(_rho(laws.autoregressive), False),
    "low_rank": Kind(_rho(laws.low_rank, rho=st.integers(1, 4)), False),
    "unequal": Kind(_rho(laws.unequal, rho=hundredths(0, 6)), False, standard=False),
    "common_scale": Kind(_common_scale, False),
    "multivariate_t": Kind(
        lambda w: _built(laws.multivariate_t, orders(w.lowest), SHARE), False),
    "sign_products": Kind(lambda w: st.just(laws.sign_products), False),
    "memory": Kind(_rho(laws.memory, 2.0), False),
    "topic": Kind(_rho(laws.topic, 2.0, SHARE), True),
    "projected": Kind(_projected),
    "linear": Kind(_linear, standard=False, widths="one"),
    "gaussian": Kind(_gaussian, standard=False, widths="one"),
    "measured": Kind(_measured, True, standard=False, widths="one"),
}
DEPENDENT = SIMPLE | {
    "shifted": Kind(lambda w: _built(laws.shifted, _simple(w), hundredths(-3, 3)),
                    standard=False),
    "scaled": Kind(_scaled, standard=False),
    "independent": Kind(_independent, False),
    "shared_query": Kind(
        lambda w: _simple(replace(w, coupled=False)).map(laws.shared_query), False),
}


# --- functions of a vector --------------------------------------------------------------------


def _before(w: Wanted) -> SearchStrategy[Law]:
    """Laws of vectors for a bounded function, after which all moments exist."""
    if not (w.standard or w.declared):
        names = (*IID, *SIMPLE, "shifted", "scaled")
        return some(names, replace(w, finite_moments=0.0))
    # Of these the moments afterwards are known; layer norm makes coins that are all equal 0.
    base = st.sampled_from([law for law in laws.STANDARD
                            if law is not laws.rademacher or not w.standard])
    same = base.map(laws.identical)
    return {None: base | same, True: same, False: base}[w.coupled]


def _normed(law: Callable[..., Law], w: Wanted) -> SearchStrategy[Law]:
    gains, epsilons = [1.0, 0.5, 3.0], [0.0, 1e-5, 1.0]
    return _built(law, _before(w), st.sampled_from(gains[:1] if w.standard else gains),
                  st.sampled_from(epsilons[:1] if w.standard or w.declared else epsilons))


def _layer_norm(w: Wanted) -> SearchStrategy[Law]:
    if w.standard and (w.d_k is None or w.d_k < 2):
        return st.nothing()  # one coordinate is its own mean
    return _normed(laws.layer_norm, w)


def _rotary(w: Wanted) -> SearchStrategy[Law]:
    # Turning keeps variances only where those of a pair are equal and uncorrelated.
    isotropic = ("identical", "correlated", "random_sign", "common_scale", "memory", "topic")
    return _built(laws.rotary, some((*IID, *isotropic), w) if w.standard else _simple(w),
                  st.integers(-1000, 1000), st.sampled_from([10000.0, 10.0, 500000.0]),
                  st.sampled_from(PAIRINGS))


TRANSFORMED = {
    "layer_norm": Kind(_layer_norm),
    "rms_norm": Kind(lambda w: _normed(laws.rms_norm, w)),
    "unit_norm": Kind(lambda w: _before(w).map(laws.unit_norm), standard=False),
    "clipped": Kind(lambda w: _built(laws.clipped, _before(w), BOUNDS), standard=False),
    "quantised": Kind(lambda w: _built(laws.quantised, _before(w), st.integers(2, 8), BOUNDS),
                      standard=False),
    "rotary": Kind(_rotary, widths="even"),
}

FAMILIES = {"iid": IID, "dependent": DEPENDENT, "transformed": TRANSFORMED}
KINDS = IID | DEPENDENT | TRANSFORMED
