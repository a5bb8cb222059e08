"""Fourth moments of alike coordinates after a norm: closed forms, and scores by draws."""

import math

import numpy as np
import pytest

from mcverify import laws
from mcverify.attention import scores
from mcverify.laws import score_moments
from mcverify.laws.normed_alike import ERROR, fourth_of_score, normed_products


@pytest.mark.parametrize("n", [2, 3, 8, 512])
def test_normal_coordinates_have_a_uniform_direction(n):
    fourth, _, pairs, *_ = normed_products(laws.normal.sizes, n, centred=False)
    assert fourth == pytest.approx(3 / (n * (n + 2)), rel=1e-4)
    assert pairs == pytest.approx(1 / (n * (n + 2)), rel=1e-4)


@pytest.mark.parametrize("n", [2, 3, 8, 512])
def test_less_their_mean_it_is_uniform_in_a_dimension_less(n):
    u, m = np.eye(n) - 1 / n, n - 1  # E w_i w_j w_k w_l is a sum of products of these
    found = normed_products(laws.normal.sizes, n, centred=True)
    places = [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 0, 1, 2), (0, 1, 2, 3)]
    for value, (i, j, k, l) in zip(found, places, strict=True):  # noqa: E741
        if max(i, j, k, l) < n:
            expected = (u[i, j] * u[k, l] + u[i, k] * u[j, l] + u[i, l] * u[j, k]) / (m * (m + 2))
            assert value == pytest.approx(expected, rel=ERROR, abs=ERROR / n**2), (i, j, k, l)


@pytest.mark.parametrize("law", [laws.uniform, laws.laplace], ids=str)
def test_of_three_coordinates_less_their_mean_any_law_has_the_same_sum_of_fourths(law):
    # Where x + y + z = 0 and x² + y² + z² = 1, x⁴ + y⁴ + z⁴ is 1/2.
    assert 3 * normed_products(law.sizes, 3, centred=True)[0] == pytest.approx(0.5, rel=ERROR)


def test_two_coordinates_by_their_angle():
    # E cos⁴ of the angle: of Laplace coordinates |y|/|x| is a ratio of exponentials, 1/(1 + r)²,
    # and of uniform ones as often below 1 as above, and even in between.
    r = np.tan(math.pi / 2 * (np.arange(20000) + 0.5) / 20000)  # even in the angle
    angle = math.pi / 2 / 20000 * (1 + r**2)
    laplace = np.sum(angle / (1 + r) ** 2 / (1 + r**2) ** 2)
    uniform = np.sum(angle * np.where(r < 1, 0.5, 0.5 / r**2) / (1 + r**2) ** 2)
    for law, expected in ((laws.laplace, laplace), (laws.uniform, uniform)):
        assert normed_products(law.sizes, 2, centred=False)[0] == pytest.approx(expected, rel=ERROR)


@pytest.mark.parametrize("norm", [laws.layer_norm, laws.rms_norm, laws.unit_norm])
@pytest.mark.parametrize("base", [laws.uniform, laws.laplace], ids=str)
@pytest.mark.parametrize("d_k", [8, 32])
def test_fourth_powers_of_scores_against_draws(norm, base, d_k):
    law, rng = norm(base), np.random.default_rng(d_k)
    squares = scores(*law.draw(rng, 12_500, 4, d_k)) ** 2
    fourth = (squares * squares).mean(axis=(1, 2))
    found = score_moments(law, d_k)
    error = fourth.std() / math.sqrt(len(fourth))
    assert abs(fourth.mean() - found.fourth) < 5 * error + ERROR * found.fourth
    assert found.fourth < 0.5 * (norm(base).longest(d_k) ** 4) * found.variance  # lengths alone


def test_a_law_whose_quadrature_fails_is_not_known():
    def spike(p, b):  # half of all sizes are within a cell of each other
        inside, beyond = laws.uniform.sizes(p, b)
        return 1e-3 * inside, 1e-3 * beyond

    assert normed_products(spike, 8, centred=False) is None
    assert laws.layer_norm(laws.laplace, epsilon=1.0).side("q", 8).products is None


def test_the_products_of_a_score_are_all_there_are():
    ones = (1.0,) * 5
    assert fourth_of_score(ones, ones, 6) == 6**4
