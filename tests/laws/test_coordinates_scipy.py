"""Laws from distributions of SciPy: their moments, tails and names."""

import copy
import math

import numpy as np
import pytest
from agreement import assert_drawn_from
from scipy import stats

from mcverify import laws
from mcverify.laws.coordinates import Iid
from mcverify.laws.coordinates_scipy import tail_index


@pytest.mark.parametrize(("distribution", "index"), [
    (stats.t(3), 3), (stats.t(9), 9), (stats.cauchy(), 1), (stats.pareto(2.5), 2.5),
    (stats.invgamma(3), 3), (stats.burr12(2, 3), 6), (stats.norm(), math.inf),
    (stats.expon(), math.inf), (stats.uniform(), math.inf), (stats.poisson(3), math.inf),
    (stats.zipf(4), 3), (stats.f(5, 6), 3),
], ids=lambda value: value.dist.name if hasattr(value, "dist") else "")
def test_tail_index(distribution, index):
    assert tail_index(distribution) == pytest.approx(index, rel=1e-3)


def test_quantiles_that_stand_still_do_not_make_a_tail_light(monkeypatch):
    # As those of Cauchy's law did in SciPy before 1.15: ±1.6e16 from 1e-17 on.
    cauchy = type(stats.cauchy)
    monkeypatch.setattr(cauchy, "_isf", lambda _, p: np.minimum(1 / np.pi / p, 1.6e16))
    monkeypatch.setattr(cauchy, "_ppf", lambda _, p: np.maximum(-1 / np.pi / p, -1.6e16))
    frozen = stats.cauchy()
    assert frozen.isf(1e-50) == frozen.isf(1e-100) == 1.6e16
    assert tail_index(frozen) == 1


def test_moments_are_those_of_the_distribution():
    raw = laws.iid(stats.gamma(4), raw=True)
    assert (raw.mean, raw.variance, raw.fourth_moment) == (4, 4, 4.5)
    assert laws.iid(stats.cauchy(), raw=True).finite_moments == pytest.approx(1)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.iid(stats.norm), "freeze it"),
    (lambda: laws.iid(stats.cauchy()), "raw=True"),
    (lambda: laws.iid(stats.norm([0.0, 1.0])), "arrays for parameters"),
])
def test_what_cannot_be_a_law_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def table(values, shares, **kwargs):
    return stats.rv_discrete(values=(values, shares), **kwargs)()


def histogram(counts, edges):
    return stats.rv_histogram((np.array(counts), np.array(edges)), density=False)()


class Wedge(stats.rv_continuous):
    def _pdf(self, x):
        return 2 * x

    def _cdf(self, x):
        return x**2

    def _stats(self):  # which SciPy takes a second to integrate
        return 2 / 3, 1 / 18, -2 * math.sqrt(2) / 5, -3 / 5


class Slab(stats.rv_continuous):
    power = 1.0

    def _cdf(self, x):
        return x**self.power


def wedge_of_one_name():
    class Other(Wedge):
        def _cdf(self, x):
            return 2 * x - x**2

    Other.__qualname__ = "Wedge"
    return Other(a=0, b=1)()


# All have mean 0 and variance 1 as they are, or are standardised to them; no two are the same.
DIFFERENT = [
    table([-1, 1], [0.5, 0.5]),
    # Seen by none of 512 quantiles: nine in ten thousand at ±30, the rest at what keeps variance.
    table([-30, -1, 1, 30], [0.00045, 0.49955, 0.49955, 0.00045]),
    table([-30, -1, 1, 30], [0.00045, 0.49955, 0.49954, 0.00046]),
    table([-31, -1, 1, 30], [0.00045, 0.49955, 0.49955, 0.00045]),
    table([-1, 1.001], [0.5, 0.5]),  # within a step of the grid of distribution functions
    table([-1, 1], [0.5, 0.5], name="norm"), stats.norm(), stats.norm(1, 1.5),
    stats.norm(0.1 + 0.2), stats.norm(0.3), stats.binom(1, 0.5),
    histogram([3, 0, 1], [1, 3, 5, 7]), histogram([3, 1, 0], [1, 3, 5, 7]),
    histogram([3, 0, 1], [1, 3, 5, 7.5]),
    Wedge(a=0, b=1)(), Wedge(a=0, b=1, name="norm")(), wedge_of_one_name(),
    type(stats.uniform)(a=0.0, b=0.5, name="uniform")(), stats.uniform(),
]


@pytest.mark.parametrize("raw", [False, True])
def test_no_two_laws_share_a_name(raw):
    made = [laws.iid(distribution, raw=raw) for distribution in DIFFERENT]
    assert len({str(law) for law in made}) == len(set(made)) == len(DIFFERENT)
    again = [laws.iid(copy.deepcopy(distribution), raw=raw) for distribution in DIFFERENT]
    assert again == made
    assert list(map(hash, again)) == list(map(hash, made))
    assert list(map(str, again)) == list(map(str, made))


def test_the_name_says_what_is_drawn():
    assert str(laws.iid(stats.norm(1, 1.5))) == "standardised[norm-1-1.5]"
    assert str(laws.iid(stats.norm(1, scale=1.5), raw=True)) == "raw[norm-1-scale:1.5]"
    q, _ = laws.iid(stats.norm(1, 1.5)).draw(np.random.default_rng(0), 100, 20, 10)
    assert_drawn_from(q, stats.norm())


def test_laws_of_one_name_with_other_samplers_are_not_equal():
    one, other = (Iid("mine", lambda rng, shape, c=c: rng.normal(c, 1, shape), 3.0)
                  for c in (0.0, 1.0))
    assert one != other
    assert {laws.identical(one), laws.identical(other)} == {laws.identical(one),
                                                            laws.identical(other)}
    assert laws.identical(one) != laws.identical(other)

    # Its numbers cannot be seen from outside, but the code of its methods can.
    class Other(Slab):
        def _ppf(self, x):
            return 0 * x

    Other.__qualname__ = "Slab"
    first, second = (laws.iid(cls(a=0, b=1)(), raw=True) for cls in (Slab, Other))
    assert (str(first) == str(second), first == second) == (True, False)
