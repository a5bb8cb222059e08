"""Laws from distributions of SciPy: their moments, tails and names."""

import math

import numpy as np
import pytest
from scipy import stats

from mcverify import laws
from mcverify.laws.distributions import tail_index


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
])
def test_what_cannot_be_a_law_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_laws_made_from_tables_are_told_apart():
    one, other = (laws.iid(stats.rv_discrete(values=([0, 1, 5], p))())
                  for p in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]))
    assert one != other
    assert str(one) != str(other)
    heights = np.histogram([1.0, 2.0, 2.5, 7.0], bins=3)
    assert str(laws.iid(stats.rv_histogram(heights, density=False)())) == str(
        laws.iid(stats.rv_histogram(heights, density=False)()))
