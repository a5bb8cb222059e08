"""Moments of scores: enumerated, by quadrature that is exact, in closed form, and in draws."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from agreement import assert_mean
from hypothesis import given, settings
from hypothesis import strategies as st

from mcverify import laws, theory
from mcverify.attention import matched_scores, other_scores, scores
from mcverify.laws import score_moments
from mcverify.laws.base import LawBase
from mcverify.laws.coordinates import Iid
from mcverify.laws.side import Image, Side

PAIRS = {"all": scores, "other": other_scores, "matched": matched_scores}


@dataclass(frozen=True)
class Values:
    """A coordinate of mean 0 and variance 1 that takes these values with these probabilities."""

    values: tuple[float, ...]
    shares: tuple[float, ...]

    def moment(self, n):
        return float(np.power(self.values, n) @ np.array(self.shares))

    def outcomes(self, m):
        """All vectors of m independent coordinates, and their probabilities."""
        z = np.array([*itertools.product(self.values, repeat=m)]).reshape(-1, m)
        return z, np.prod(np.array([*itertools.product(self.shares, repeat=m)]), axis=1)

    @property
    def law(self):
        return Iid(f"values-{hash(self)}", lambda rng, shape: rng.choice(
            self.values, shape, p=self.shares), self.moment(4), skewness=self.moment(3))


def two_points(p):
    return Values((-math.sqrt(p / (1 - p)), math.sqrt((1 - p) / p)), (1 - p, p))


COIN = two_points(0.5)
SPARSE = Values((-2.0, 0.0, 2.0), (1 / 8, 3 / 4, 1 / 8))
# Three nodes of Gauss and Hermite have the moments of the normal law up to the fifth; a fourth
# moment of scores is a polynomial of degree 4 in each coordinate.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
NORMAL = Values(tuple(NODES), tuple(WEIGHTS / WEIGHTS.sum()))


def enumerated(q, p_q, k, p_k):
    """The moments of q·k over all queries and keys, (outcomes, d_k) with their probabilities."""
    s = q @ k.T
    mean = p_q @ s @ p_k
    s = s - mean
    return {"mean": mean, "variance": p_q @ s**2 @ p_k, "fourth": p_q @ s**4 @ p_k,
            "shared_query": p_q @ (s**2 @ p_k) ** 2, "shared_key": (p_q @ s**2) ** 2 @ p_k,
            "query_share": p_q @ (s @ p_k) ** 2, "key_share": (p_q @ s) ** 2 @ p_k}


def assert_moments(found, expected):
    scale = max(1.0, abs(expected["fourth"]))
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-11 * scale), name


@settings(max_examples=60)
@given(st.sampled_from([COIN, SPARSE, NORMAL, two_points(0.2)]), st.integers(1, 3),
       st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_linear_images_enumerated(base, d_k, m, diagonal_q, diagonal_k, seed):
    rng = np.random.default_rng(seed)
    roots = [rng.standard_normal(d_k) if diagonal else rng.standard_normal((d_k, m))
             for diagonal in (diagonal_q, diagonal_k)]
    means = rng.standard_normal((2, d_k)) * rng.integers(0, 2, (2, 1))
    law = laws.linear(base.law, *roots, *means)
    sides = []
    for root, mean in zip(roots, means, strict=True):
        root = np.diag(root) if root.ndim == 1 else root
        z, p = base.outcomes(root.shape[1])
        sides += [z @ root.T + mean, p]
    assert_moments(score_moments(law, d_k), enumerated(*sides))


@dataclass(frozen=True)
class Given(LawBase):
    """A law of which only the images of its sides are given."""

    q: Image
    k: Image

    def side(self, which, d_k):
        return Side(image=self.q if which == "q" else self.k)

    draw = moments = None

    def __str__(self):
        return "given"


@pytest.mark.parametrize("base", [COIN, SPARSE, NORMAL])
@pytest.mark.parametrize("shifted", [False, True])
def test_random_scales_enumerated(base, shifted):
    rng, sides, images = np.random.default_rng(1), [], []
    for low, high in ((0.5, 2.0), (0.2, 3.0)):  # E r² = 1 with shares that make it so
        share = (1 - low**2) / (high**2 - low**2)
        root, mean = rng.standard_normal((3, 2)), shifted * rng.standard_normal(3)
        z, p = base.outcomes(2)
        x = np.concatenate([low * z, high * z]) @ root.T + mean
        sides += [x, np.concatenate([(1 - share) * p, share * p])]
        images.append(Image(root, mean, 0.0, base.moment(4),
                            scale_fourth=(1 - share) * low**4 + share * high**4))
    assert_moments(score_moments(Given(*images), 3), enumerated(*sides))


@pytest.mark.parametrize("d_k", [1, 2, 7, 64, 4096])
@pytest.mark.parametrize(("q", "k"), [
    (laws.normal, laws.normal), (laws.laplace, laws.rademacher), (laws.exponential, laws.uniform),
    (laws.sparse(0.1), laws.student_t(9))], ids=str)
def test_closed_form_of_independent_coordinates(q, k, d_k):
    found = score_moments(laws.independent(q, k), d_k)
    a, b = q.fourth_moment, k.fourth_moment
    assert found.variance == d_k
    assert found.fourth == pytest.approx(3 * (d_k**2 + d_k * (a - 1)) + (b - 3) * a * d_k)
    assert found.fourth / found.variance**2 - 3 == pytest.approx(theory.dot_kurtosis(a, b, d_k))
    assert found.shared_query == pytest.approx(d_k**2 + d_k * (a - 1))
    assert found.shared_key == pytest.approx(d_k**2 + d_k * (b - 1))


@pytest.mark.parametrize("d_k", [1, 3, 64])
@pytest.mark.parametrize("df", [5, 14])
def test_closed_form_with_a_common_scale(df, d_k):
    law = laws.common_scale(laws.normal, df)
    for same in (law, laws.multivariate_t(df, 0)):
        found = score_moments(same, d_k)
        assert found.fourth / found.variance**2 - 3 == pytest.approx(
            theory.scaled_vector_kurtosis(law.scale_fourth_moment, law.scale_fourth_moment, d_k))


@pytest.mark.parametrize("d_k", [1, 2, 3, 10])
def test_cosines_and_normed_scores(d_k):
    # q·k of two uniform directions is a coordinate of one: its square is Beta(1/2, (d − 1)/2).
    found = score_moments(laws.unit_norm(laws.scaled(laws.normal, 3, 2)), d_k)
    assert found.variance == pytest.approx(1 / d_k)
    assert found.fourth == pytest.approx(3 / (d_k * (d_k + 2)))
    assert found.shared_query == pytest.approx(1 / d_k**2)
    if d_k > 1:  # of length √d_k, in d_k − 1 dimensions
        found = score_moments(laws.layer_norm(laws.shifted(laws.normal, 1.0), gain=2.0), d_k)
        expected = (4 * d_k) ** 4 * 3 / ((d_k - 1) * (d_k + 1))
        assert found.fourth == pytest.approx(expected)
        assert found.shared_key == pytest.approx((4 * d_k) ** 4 / (d_k - 1) ** 2)
    coins = score_moments(laws.rms_norm(laws.scaled(laws.rademacher, 2.0, 3.0)), d_k)
    assert_moments(coins, vars(score_moments(laws.rademacher, d_k)))


@settings(max_examples=20)
@given(st.sampled_from([COIN, two_points(0.3)]), st.integers(1, 2), st.integers(1, 2),
       st.sampled_from(["all", "other", "matched"]), st.booleans(), st.integers(0, 2**32))
def test_block_values_enumerated(base, d_k, tokens, pairs, shifted, seed):
    tokens = max(tokens, 1 + (pairs == "other"))
    rng = np.random.default_rng(seed)
    roots, means = rng.standard_normal((2, d_k, 2)), shifted * rng.standard_normal((2, d_k))
    found = score_moments(laws.linear(base.law, *roots, *means), d_k)
    z, p = base.outcomes(2 * tokens)
    q, k = (z.reshape(-1, tokens, 2) @ root.T + mean
            for root, mean in zip(roots, means, strict=True))
    both = np.arange(len(z))
    first, second = (x.ravel() for x in np.meshgrid(both, both))
    s = PAIRS[pairs](q[first], k[second]).reshape(len(first), -1) - found.mean
    weights = p[first] * p[second]
    for values, variance in ((s.mean(axis=1), found.of_block(tokens, pairs).of_means),
                             ((s**2).mean(axis=1), found.of_block(tokens, pairs).of_squares)):
        mean = weights @ values
        assert variance == pytest.approx(weights @ (values - mean) ** 2, rel=1e-9, abs=1e-9)


# Of so many tokens the fewest blocks have an interval.
@pytest.mark.parametrize(("law", "d_k", "tokens"), [
    (laws.autoregressive(laws.uniform, 0.7), 4, 8), (laws.shifted(laws.uniform, 0.5), 8, 8),
    (laws.rotary(laws.unequal(laws.rademacher, 1), 3), 8, 4),
    (laws.quantised(laws.normal, 3, 2.0), 8, 4),
    (laws.clipped(laws.scaled(laws.laplace, 2.0, 1.0), 1.0), 8, 8),
    (laws.layer_norm(laws.normal), 8, 4),
    (laws.projected(laws.uniform, laws.initialisation.lecun(), 6, weights=1, shared=False), 4, 8),
], ids=str)
def test_block_values_drawn(law, d_k, tokens):
    found = score_moments(law, d_k)
    assert found.mean == pytest.approx(theory.dot_mean(law, d_k), abs=1e-12)
    assert found.variance == pytest.approx(theory.dot_variance(law, d_k))

    def squares(blocks):
        s = scores(*law.draw(np.random.default_rng(5), blocks, tokens, d_k)) - found.mean
        block = (s**2).mean(axis=(1, 2))
        return np.stack([s.mean(axis=(1, 2)) ** 2, (block - found.variance) ** 2], axis=1)

    assert_mean(squares, [found.of_block(tokens).of_means, found.of_block(tokens).of_squares])


def enumerated_norms(law, base, d_k):
    """The moments of scores after a norm of vectors of independent ``base``, all enumerated."""
    x, p = base.outcomes(d_k)
    return enumerated(law.function(x), p, law.function(x), p)


@pytest.mark.parametrize("d_k", [2, 3, 4])
@pytest.mark.parametrize(("norm", "base", "symmetric"), [
    *itertools.product([laws.layer_norm, laws.rms_norm, laws.unit_norm],
                       [COIN, SPARSE, NORMAL], [True]), (laws.layer_norm, two_points(0.2), False)])
def test_lengths_that_have_a_bound_bound_the_moments(norm, base, symmetric, d_k):
    atoms = tuple(zip(base.values, base.shares, strict=True))
    law = norm(replace(base.law, symmetric=symmetric, atoms=atoms))
    found, exact = score_moments(law, d_k), enumerated_norms(law, base, d_k)
    assert found.variance == pytest.approx(exact["variance"])
    for name in ("shared_query", "shared_key"):
        assert getattr(found, name) == pytest.approx(exact[name])
    assert found.fourth >= exact["fourth"] * (1 - 1e-12)
    if d_k == 2 and norm is laws.layer_norm:  # all scores are 0 or as long as can be
        assert found.fourth == pytest.approx(exact["fourth"])


def test_a_bound_on_lengths_is_scaled_and_goes_with_a_shift():
    law = laws.unit_norm(laws.laplace)
    once, twice = score_moments(law, 4), score_moments(laws.scaled(law, 2.0, 1.0), 4)
    assert twice.fourth == pytest.approx(16 * once.fourth)
    assert twice.shared_key == pytest.approx(16 * once.shared_key)
    assert math.isnan(score_moments(laws.shifted(law, 1.0), 4).fourth)
    assert math.isnan(score_moments(laws.layer_norm(laws.laplace, epsilon=1.0), 4).fourth)


# --- a token's query and key that depend on each other -----------------------------------------


def products_of(law, outcomes, d_k):
    """q·k of one token over all outcomes (p, z, …) of what each is made of."""
    z, p = outcomes
    views = law.joint(d_k)
    q, k = (np.asarray(z * v.root if v.root.ndim == 1 else z @ v.root.T) + v.mean for v in views)
    return np.sum(q * k, axis=1), p


@pytest.mark.parametrize("d_k", [1, 2])
@pytest.mark.parametrize("made", [
    laws.identical, lambda base: laws.correlated(base, 0.6), lambda base: laws.correlated(base, -1),
])
@pytest.mark.parametrize("base", [laws.normal, laws.rademacher, laws.uniform, laws.laplace,
                                  laws.exponential], ids=str)
def test_matched_moments_of_coordinates_that_are_alike(base, made, d_k):
    # Gauss quadrature of eight nodes has all moments up to the fifteenth.
    nodes, weights = {
        "normal": np.polynomial.hermite_e.hermegauss, "uniform": np.polynomial.legendre.leggauss,
        "exponential": np.polynomial.laguerre.laggauss, "laplace": np.polynomial.laguerre.laggauss,
        "rademacher": lambda n: (np.array([-1.0, 1.0]), np.ones(2))}[str(base)](5)
    if base in (laws.uniform, laws.exponential):
        nodes = nodes * math.sqrt(3) if base == laws.uniform else nodes - 1
    if base == laws.laplace:
        nodes, weights = np.concatenate([nodes, -nodes]) * math.sqrt(0.5), np.tile(weights, 2)
    law, values = made(base), Values(tuple(nodes), tuple(weights / weights.sum()))
    s, p = products_of(law, values.outcomes(law.joint(d_k)[0].root.shape[-1]), d_k)
    found = score_moments(law, d_k)
    assert found.matched_mean == pytest.approx(p @ s, abs=1e-12)
    s = s - p @ s
    assert found.matched_variance == pytest.approx(p @ s**2, rel=1e-9, abs=1e-9)
    assert found.matched_fourth == pytest.approx(p @ s**4, rel=1e-9, abs=1e-9)
    assert found.of_block(3, "matched").of_squares == pytest.approx(
        p @ (s**2 - p @ s**2) ** 2 / 3, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("d_k", [1, 2, 8])
def test_matched_moments_under_a_random_sign(d_k):
    # E of abs(q)^2n of a normal q is d_k (d_k + 2) … (d_k + 2n − 2).
    found = score_moments(laws.random_sign(laws.normal), d_k)
    assert found.matched_mean == 0
    assert found.matched_variance == pytest.approx(d_k * (d_k + 2))
    assert found.matched_fourth == pytest.approx(d_k * (d_k + 2) * (d_k + 4) * (d_k + 6))
    assert found.matched_variance == pytest.approx(theory.random_sign_variance(3.0, d_k))
    coins = score_moments(laws.random_sign(laws.rademacher), d_k)
    assert (coins.matched_variance, coins.matched_fourth) == (d_k**2, d_k**4)
    unknown = replace(laws.normal, name="unknown", higher=None)
    assert math.isnan(score_moments(laws.random_sign(unknown), d_k).matched_fourth)


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 3), st.booleans(), st.integers(0, 2**32))
def test_matched_moments_of_normal_vectors_by_quadrature(d_k, m, rotated, seed):
    rng = np.random.default_rng(seed)
    d_k += d_k * rotated
    law = laws.shifted(laws.linear(laws.normal, *rng.standard_normal((2, d_k, m)),
                                   *rng.standard_normal((2, d_k)), joint=True), 0.3)
    law = laws.rotary(laws.scaled(law, 0.5, 2.0), 3) if rotated else law
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    values = Values(tuple(nodes), tuple(weights / weights.sum()))
    s, p = products_of(law, values.outcomes(m), d_k)
    found = score_moments(law, d_k)
    assert found.matched_mean == pytest.approx(p @ s, abs=1e-9)
    assert found.matched_mean == pytest.approx(theory.matched_mean(law, d_k), abs=1e-9)
    s = s - p @ s
    assert found.matched_variance == pytest.approx(p @ s**2)
    assert found.matched_variance == pytest.approx(theory.matched_variance(law, d_k))
    assert found.matched_fourth == pytest.approx(p @ s**4)


@pytest.mark.parametrize("tokens", [2, 3])
@pytest.mark.parametrize("law", [laws.identical(laws.rademacher), laws.correlated(COIN.law, 0.6),
                                 laws.shifted(laws.identical(laws.rademacher), 0.5)], ids=str)
def test_other_tokens_of_coupled_laws_vary_at_most_as_said(law, tokens):
    q, k = law.joint(2)
    z, p = COIN.outcomes(tokens * q.root.shape[-1])
    z = z.reshape(len(z), tokens, -1)
    q, k = ((z * v.root if v.root.ndim == 1 else z @ v.root.T) + v.mean for v in (q, k))
    found = score_moments(law, 2)
    s = other_scores(q, k).reshape(len(z), -1) - found.mean
    assert p @ s == pytest.approx(0, abs=1e-12)
    for values, most in ((s, found.of_block(tokens, "other").of_means),
                         (s**2, found.of_block(tokens, "other").of_squares)):
        block = values.mean(axis=1)
        variance = p @ (block - p @ block) ** 2
        assert variance <= most + 1e-12
        if isinstance(law, laws.identical):  # there the bound is reached
            assert variance == pytest.approx(most)
    assert math.isnan(found.of_block(tokens).of_squares)  # matched ones are among all
    assert math.isnan(found.of_block(1, "other").of_squares)


@dataclass(frozen=True)
class WithoutImages(LawBase):
    base: LawBase

    def moments(self, d_k):
        return self.base.moments(d_k)

    draw = None


# --- what is not known ------------------------------------------------------------------------


@pytest.mark.parametrize("law", [
    laws.memory(laws.normal, 0.5), laws.topic(laws.normal, 0.5), laws.shared_query(laws.normal),
    laws.shifted(laws.memory(laws.normal, 0.5), 1.0),
    laws.independent(laws.normal, laws.memory(laws.normal, 0.5)),
    laws.projected(laws.normal, laws.initialisation.lecun(), 8),
    laws.projected(laws.normal, laws.initialisation.lecun(), 8, shared=False),
], ids=str)
def test_tokens_that_depend_on_each_other_have_none(law):
    assert score_moments(law, 4) is None


@pytest.mark.parametrize("law", [
    laws.student_t(4), laws.common_scale(laws.normal, 4),
    laws.independent(laws.rms_norm(laws.laplace), laws.student_t(4)),
], ids=str)
def test_without_fourth_moments_the_variance_of_a_mean_remains(law):
    found = score_moments(law, 4)
    assert np.isnan([found.fourth, found.shared_query, found.of_block(3).of_squares]).all()
    assert found.variance == pytest.approx(theory.dot_variance(law, 4))
    assert found.of_block(3).of_means == pytest.approx(theory.dot_variance(law, 4) / 9)


def test_what_first_and_second_moments_say_is_what_images_say():
    law = laws.independent(laws.shifted(laws.equicorrelated(laws.laplace, 0.3), 0.7),
                           laws.shifted(laws.unequal(laws.uniform, 1), -0.4))
    known, found = score_moments(law, 4), score_moments(WithoutImages(law), 4)
    for name in ("mean", "variance", "query_share", "key_share"):
        assert getattr(found, name) == pytest.approx(getattr(known, name))


def test_an_unknown_third_moment_matters_only_with_means():
    unknown = replace(laws.exponential, name="unknown", skewness=math.nan)
    assert score_moments(unknown, 4) == score_moments(laws.exponential, 4)
    assert math.isnan(score_moments(laws.shifted(unknown, 1.0), 4).fourth)
    assert math.isfinite(score_moments(laws.shifted(laws.exponential, 1.0), 4).fourth)
    # Not even a known one is enough beside a random scale, whose third moment nobody gives.
    scaled = laws.common_scale(laws.exponential, 9)
    assert math.isfinite(score_moments(scaled, 4).fourth)
    assert math.isnan(score_moments(laws.shifted(scaled, 1.0), 4).fourth)
