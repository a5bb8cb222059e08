"""Laws after a transform: moments by enumeration, quadrature and draws; what rotations can do."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from mcverify import laws, theory
from mcverify.attention import matched_scores, scores, vectors
from mcverify.laws import Moments
from mcverify.laws.coordinates import Iid
from mcverify.laws.transforms import Rotary, Transformed
from mcverify.statistic import mean, variance
from mcverify.theory import rotary as rotations

D_K = 6
NORMS = [laws.layer_norm, laws.rms_norm, laws.unit_norm]
COIN = laws.rademacher
SYMMETRIC = [laws.normal, COIN, laws.uniform, laws.laplace, laws.student_t(2.5), laws.sparse(0.3),
             laws.common_scale(laws.normal, 5), laws.scaled(laws.normal, 3.0, 0.1)]
KNOWN = [norm(base) for norm in NORMS for base in SYMMETRIC]
KNOWN += [laws.layer_norm(base, gain=-2.0) for base in (
    laws.exponential, laws.student_t(0.8), laws.shifted(laws.normal, 0.5),
    laws.shifted(laws.sparse(0.3), 1.0), laws.equicorrelated(COIN, 0.4),
    laws.equicorrelated(laws.laplace, 0.9), laws.scaled(laws.shifted(laws.normal, 1.0), 2.0, 3.0))]
KNOWN += [
    laws.rms_norm(laws.laplace, gain=3.0),
    laws.layer_norm(laws.identical(laws.normal)), laws.unit_norm(laws.identical(COIN)),
    laws.layer_norm(laws.shifted(laws.identical(laws.normal), 2.0)),
    laws.rms_norm(laws.independent(laws.laplace, laws.identical(laws.sparse(0.2)))),
    laws.independent(laws.layer_norm(laws.normal), laws.normal),
]
BOUNDS = [0.4, 1.0, 1.6, 3.0]
KNOWN += [laws.clipped(base, bound) for base in laws.STANDARD for bound in (0.7, 1.8)]
KNOWN += [laws.quantised(base, bits, 2.0) for base in laws.STANDARD for bits in (2, 4)]
KNOWN += [laws.clipped(laws.identical(laws.laplace), 1.5)]


@dataclass(frozen=True)
class Gaussian:
    """Normal q and k of covariances AA' and BB', k following q if coupled; for rotations."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[tuple[float, ...], ...]
    mean: tuple[float, ...]
    coupled: bool = False
    finite_moments: float = math.inf

    def __str__(self):
        return f"gaussian-{self.mean[0]:.3f}"

    def draw(self, rng, blocks, tokens, d_k):
        z, other = rng.standard_normal((2, blocks, tokens, d_k))
        q, k = z @ np.array(self.a).T, (z if self.coupled else other) @ np.array(self.b).T
        return q + self.mean, k - self.mean

    def moments(self, d_k):
        a, b, mean = (np.array(x) for x in (self.a, self.b, self.mean))
        return Moments(mean, -mean, a @ a.T, b @ b.T, a @ b.T * self.coupled)


def gaussian(seed, d_k=D_K, coupled=False):
    a, b = np.random.default_rng(seed).standard_normal((2, d_k, d_k)) / math.sqrt(d_k)
    return Gaussian(*(tuple(map(tuple, x)) for x in (a, b)), tuple(a[0]), coupled)


ROTATED = [laws.rotary(base, distance, pairing=pairing) for pairing in vectors.PAIRINGS
           for base, distance in ((laws.normal, 3), (gaussian(1), -5), (laws.laplace, 0),
                                  (gaussian(2, coupled=True), 7),
                                  (laws.identical(laws.laplace), 11))]
ROTATED += [laws.rotary(laws.layer_norm(laws.shifted(laws.normal, 1.0)), 2),
            laws.rotary(laws.clipped(laws.uniform, 1.0), 100, theta=100.0)]


# --- moments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("law", KNOWN + ROTATED, ids=str)
def test_declared_moments_are_those_of_the_draws(law):
    tokens = 20_000
    q, k = (x[:, 0] for x in law.draw(np.random.default_rng(11), tokens, 1, D_K))
    m = law.moments(D_K)
    # Products about the declared means are independent from token to token. 120 of them within
    # 6.5 standard errors: a false alarm in 1e8 where they are normal. 1e-12 is for constants.
    x, y, one = q - m.mean_q, k - m.mean_k, np.ones((tokens, 1))
    for a, b, expected in ((q, one, m.mean_q[:, None]), (k, one, m.mean_k[:, None]),
                           (x, x, m.cov_q), (y, y, m.cov_k), (x, y, m.cross)):
        found, square = a.T @ b / tokens, (a**2).T @ b**2 / tokens
        error = np.sqrt(np.maximum(square - found**2, 0) / tokens)
        assert (abs(found - expected) <= 6.5 * error + 1e-12).all()


@pytest.mark.parametrize("d_k", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("law", [
    *(norm(COIN) for norm in NORMS), laws.layer_norm(laws.equicorrelated(COIN, 0.0), gain=3.0),
    *(laws.clipped(COIN, bound) for bound in BOUNDS),
    *(laws.quantised(COIN, 3, bound) for bound in BOUNDS),
], ids=str)
def test_moments_of_coins_by_enumeration(law, d_k):
    x = np.array(list(itertools.product([-1.0, 1.0], repeat=d_k)))
    functions = {"layer_norm": vectors.layer_norm, "rms_norm": vectors.rms_norm,
                 "unit_norm": vectors.unit_norm, "clipped": vectors.clip,
                 "quantised": vectors.quantise}
    y = functions[law.kind](x, **dict(law.settings))
    m = law.moments(d_k)
    np.testing.assert_allclose(m.mean_q, y.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(m.cov_q, y.T @ y / len(y), atol=1e-14)
    np.testing.assert_array_equal(m.cov_q, m.cov_k)


@pytest.mark.parametrize("d_k", [1, 2, 3])
def test_layer_norm_of_sparse_vectors_loses_only_those_that_are_zero(d_k):
    for base in (laws.sparse(0.3), laws.shifted(laws.sparse(0.3), 2.0)):
        q, _ = laws.layer_norm(base).draw(np.random.default_rng(1), 1, 4000, d_k)
        lost = (q[0] == 0).all(axis=-1)
        expected = 1 - np.trace(laws.layer_norm(base).moments(d_k).cov_q) / d_k
        assert abs(lost.mean() - expected) <= 6 * math.sqrt(expected * (1 - expected) / 4000)


@settings(max_examples=25)
@given(st.sampled_from([(laws.normal, stats.norm()), (laws.laplace, stats.laplace(0, 0.5**0.5)),
                        (laws.uniform, stats.uniform(-(3**0.5), 2 * 3**0.5))]),
       st.floats(1e-3, 12), st.integers(2, 6))
def test_variances_of_clipped_and_quantised_coordinates_by_quadrature(pair, bound, bits):
    law, distribution = pair
    end = min(bound, distribution.support()[1])
    inside, _ = integrate.quad(lambda x: 2 * x**2 * distribution.pdf(x), 0, end, epsabs=1e-13)
    expected = inside + 2 * bound**2 * distribution.sf(bound)
    found = laws.clipped(law, bound).moments(2)
    assert found.cov_q[0, 0] == pytest.approx(expected, rel=1e-9)
    assert found.cov_q[0, 1] == 0
    n = 2 ** (bits - 1) - 1
    levels = np.arange(-n, n + 1) * bound / n
    edges = [-math.inf, *(levels[1:] + levels[:-1]) / 2, math.inf]
    expected = np.sum(levels**2 * np.diff(distribution.cdf(edges)))
    found = laws.quantised(law, bits, bound).moments(2)
    assert found.cov_k[1, 1] == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("base", laws.STANDARD, ids=str)
def test_clips_that_do_nothing_and_fine_levels(base):
    for law in (laws.clipped(base, 1e200), laws.clipped(base, 60.0)):
        assert law.moments(1).cov_q[0, 0] == pytest.approx(1, rel=1e-14)
    # Far within a step, a quantiser adds step²/12 to the variance of a smooth density.
    found = laws.quantised(laws.normal, 8, 12.0).moments(1).cov_q[0, 0]
    assert found == pytest.approx(1 + (12 / 127) ** 2 / 12, abs=1e-12)
    assert laws.quantised(base, 3, 1e200).moments(1).cov_q[0, 0] == 0


def test_moments_that_are_not_known_are_nan_and_the_rest_is_declared():
    unknown = laws.layer_norm(laws.iid(stats.gamma(3))).moments(4)  # may have ties, who knows
    assert not unknown.mean_q.any()
    assert np.isnan(unknown.cov_q).all()
    epsilon = laws.layer_norm(laws.normal, epsilon=1e-5).moments(4)
    assert not epsilon.mean_k.any()
    assert np.isnan(epsilon.cov_k).all()
    assert np.isnan(laws.rms_norm(laws.exponential).moments(3).mean_q).all()
    assert np.isnan(laws.unit_norm(laws.shifted(laws.normal, 1.0)).moments(3).cov_q).all()
    signs = laws.rms_norm(laws.normal, epsilon=1e-5).moments(3)
    assert not signs.mean_q.any()
    assert np.isnan(np.diag(signs.cov_q)).all()
    assert signs.cov_q[0, 1] == 0
    clipped = laws.clipped(laws.exponential, 1.0).moments(3)
    assert np.isnan(clipped.mean_q).all()
    assert clipped.cov_q[0, 1] == 0
    moved = Iid("moved", lambda rng, shape: rng.standard_normal(shape) + 1, fourth_moment=3.0,
                mean=1.0, symmetric=True)
    assert np.isnan(laws.clipped(moved, 1.0).moments(3).mean_q).all()
    assert np.isnan(laws.rms_norm(moved).moments(3).mean_q).all()
    assert not laws.clipped(laws.student_t(1), 1.0).moments(3).mean_q.any()
    assert np.isnan(laws.clipped(laws.shifted(laws.normal, 1.0), 1.0).moments(3).cov_q).all()


def test_cross_covariances():
    coupled = laws.correlated(laws.normal, 0.6)
    for transform in NORMS:
        m = transform(coupled).moments(4)
        assert np.isnan(m.cross).all()
        # A side of a normal pair is normal itself, so all but the cross-covariance is known.
        np.testing.assert_array_equal(m.cov_k, transform(laws.normal).moments(4).cov_k)
        assert transform(coupled).coupled
        same = transform(laws.identical(laws.normal)).moments(4)
        np.testing.assert_array_equal(same.cross, same.cov_q)
    mixed = laws.layer_norm(laws.correlated(laws.exponential, 0.6)).moments(4)
    assert np.isnan(mixed.mean_k).all()
    assert np.isnan(mixed.cov_k).all()
    np.testing.assert_array_equal(mixed.cov_q, laws.layer_norm(laws.exponential).moments(4).cov_q)


# --- what the notes need -----------------------------------------------------------------------


@pytest.mark.parametrize("d_k", [2, 3, 8, 64])
@pytest.mark.parametrize("base", [laws.normal, laws.exponential, laws.shifted(laws.laplace, 3.0)],
                         ids=str)
def test_variance_of_layer_normalised_scores(base, d_k):
    law = laws.layer_norm(base)
    expected = d_k**2 / (d_k - 1)
    assert theory.dot_variance(law, d_k) == pytest.approx(expected, rel=1e-13)
    q, k = law.draw(np.random.default_rng(d_k), 512, 16, d_k)
    found = variance.estimate(variance.reduce(scores(q, k)), 1e-9)
    # At d_k = 2 every score is ±2 and the variance is 4, up to that of the mean.
    assert abs(found.value - expected) <= 6 * found.stderr + 0.02 * (d_k == 2)


def test_coins_lose_their_ties():
    expected = 16 / 3 * (1 - 2**-3) ** 2
    assert theory.dot_variance(laws.layer_norm(COIN), 4) == pytest.approx(expected)
    x = vectors.layer_norm(np.array(list(itertools.product([-1.0, 1.0], repeat=4))))
    assert np.mean((x @ x.T) ** 2) == pytest.approx(expected)


@settings(max_examples=25)
@given(st.sampled_from([*SYMMETRIC, laws.exponential, laws.shifted(laws.normal, 9.0)]),
       st.integers(1, 70), st.integers(0, 2**32))
def test_scores_of_norms_are_bounded(base, d_k, seed):
    for norm, bound in ((laws.layer_norm, d_k), (laws.rms_norm, d_k), (laws.unit_norm, 1.0)):
        q, k = norm(base).draw(np.random.default_rng(seed), 2, 5, d_k)
        assert abs(scores(q, k)).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("d_k", [1, 4, 64])
def test_variance_of_cosines(d_k):
    law = laws.unit_norm(laws.normal)
    assert theory.dot_variance(law, d_k) == pytest.approx(1 / d_k)
    q, k = law.draw(np.random.default_rng(d_k), 512, 16, d_k)
    found = variance.estimate(variance.reduce(scores(q, k)), 1e-9)
    assert abs(found.value - 1 / d_k) <= 6 * found.stderr + 0.001 * (d_k == 1)


# --- rotations ---------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(-10**5, 10**5), st.sampled_from(vectors.PAIRINGS),
       st.floats(2, 1e6))
def test_rotations_keep_the_variance_if_one_side_is_isotropic_with_mean_0(
        seed, distance, pairing, theta):
    for base in (laws.independent(laws.normal, gaussian(seed)),
                 laws.independent(gaussian(seed), laws.laplace)):
        turned = laws.rotary(base, distance, theta, pairing)
        assert theory.dot_variance(turned, D_K) == pytest.approx(theory.dot_variance(base, D_K))


def blocks_of(seed, pairs, pairing):
    """Random covariances without entries between pairs."""
    order = np.arange(2 * pairs).reshape(2, pairs).T.ravel() if pairing == "halves" else slice(None)
    a = np.random.default_rng(seed).standard_normal((pairs, 2, 2))
    cov = np.zeros((2 * pairs, 2 * pairs))
    own = np.zeros((2 * pairs, 2 * pairs))
    for i, block in enumerate(a):
        own[2 * i:2 * i + 2, 2 * i:2 * i + 2] = block @ block.T
    cov[np.ix_(order, order) if pairing == "halves" else ...] = own
    return cov


def turned_variance(cov_q, cov_k, angles, pairing):
    """tr(R Σ_q R' Σ_k), R with any angle for each pair."""
    turn = np.eye(len(cov_q))
    for i, angle in enumerate(angles):
        pair = [i, i + len(angles)] if pairing == "halves" else [2 * i, 2 * i + 1]
        c, s = math.cos(angle), math.sin(angle)
        turn[np.ix_(pair, pair)] = [[c, -s], [s, c]]
    return np.trace(turn @ cov_q @ turn.T @ cov_k)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from(vectors.PAIRINGS),
       st.lists(st.floats(-math.pi, math.pi), min_size=4, max_size=4))
def test_rotations_stay_within_the_bounds_and_some_reach_them(seed, pairs, pairing, angles):
    cov_q, cov_k = blocks_of(seed, pairs, pairing), blocks_of(seed + 1, pairs, pairing)
    low, high = rotations.variance_bounds(cov_q, cov_k, pairing)
    found = turned_variance(cov_q, cov_k, angles[:pairs], pairing)
    assert low - 1e-9 <= found <= high + 1e-9
    # The pairs do not meet, so each has its own best angle, and a pair's part of the variance is
    # c + a cos 2φ + b sin 2φ: three angles give its range.
    at = np.array([[turned_variance(cov_q, cov_k, angle * np.eye(pairs)[i], pairing)
                    for angle in (0, math.pi / 4, math.pi / 2)] for i in range(pairs)])
    centre = (at[:, 0] + at[:, 2]) / 2
    reach = np.hypot(at[:, 0] - centre, at[:, 1] - centre)
    still = turned_variance(cov_q, cov_k, np.zeros(pairs), pairing)
    assert still + (centre + reach - at[:, 0]).sum() == pytest.approx(high, rel=1e-9, abs=1e-9)
    assert still + (centre - reach - at[:, 0]).sum() == pytest.approx(low, rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(vectors.PAIRINGS), st.integers(-500, 500))
def test_one_side_without_entries_between_pairs_is_enough(seed, pairing, distance):
    cov_q = blocks_of(seed, 3, pairing)
    a = np.random.default_rng(seed).standard_normal((6, 6))
    low, high = rotations.variance_bounds(cov_q, a @ a.T, pairing)
    turned = vectors.rotate(vectors.rotate(cov_q, distance, pairing=pairing).T, distance,
                            pairing=pairing)
    assert low - 1e-9 <= np.trace(turned @ a @ a.T) <= high + 1e-9


@pytest.mark.parametrize("scale", [1.0, 2.0**20, 2.0**-20])
@pytest.mark.parametrize(("pairing", "other"), [("halves", 1), ("neighbours", 2)])
def test_one_entry_between_pairs_on_both_sides_is_refused(pairing, other, scale):
    """Coordinate 0 is paired with 2 in halves and with 1 as neighbours."""
    for entry, meets in ((0.5, True), (-0.5, True), (1e-11, True), (1e-13, False), (0.0, False)):
        cov = np.eye(4)
        cov[0, other] = cov[other, 0] = entry
        cov *= scale
        if meets:
            with pytest.raises(ValueError, match="entries between different pairs"):
                rotations.variance_bounds(cov, cov, pairing)
        else:
            assert rotations.variance_bounds(cov, cov, pairing) == (4 * scale**2, 4 * scale**2)
        assert rotations.variance_bounds(cov, np.eye(4), pairing) == (4 * scale, 4 * scale)
        assert rotations.variance_bounds(2 * np.eye(4), cov, pairing) == (8 * scale, 8 * scale)


def test_bounds_of_one_pair_by_hand():
    """Eigenvalues 4 and 1, at an angle to the axes, and 3 and 1: 4·3 + 1·1 and 4·1 + 1·3."""
    for pairing in vectors.PAIRINGS:
        found = rotations.variance_bounds([[3.4, 1.2], [1.2, 1.6]], [[3, 0], [0, 1]], pairing)
        assert found == pytest.approx((7, 13), rel=1e-14)


def test_matched_mean_by_hand():
    assert rotations.matched_mean(4, 2, theta=100.0) == pytest.approx(
        2 * math.cos(2) + 2 * math.cos(0.2), rel=1e-14)
    assert rotations.matched_mean(6, -5, theta=8.0) == pytest.approx(
        2 * math.cos(5) + 2 * math.cos(5 / 2) + 2 * math.cos(5 / 4), rel=1e-14)


def test_variance_of_rotated_scores_by_draws():
    # Pairs (0, 2) and (1, 3): standard deviations 3 and 1, 2 and 1.
    base = Gaussian(tuple(map(tuple, np.diag([3.0, 2.0, 1.0, 1.0]))),
                    tuple(map(tuple, np.diag([3.0, 2.0, 1.0, 1.0]))), (0.0,) * 4)
    low, high = rotations.variance_bounds(np.diag([9.0, 4, 1, 1]), np.diag([9.0, 4, 1, 1]),
                                          "halves")
    assert (low, high) == (9 + 9 + 4 + 4, 81 + 1 + 16 + 1)
    seen = []
    for distance in (0, 1, 157):  # 157 · 0.01 is nearly a quarter turn
        law = laws.rotary(base, distance)
        seen.append(theory.dot_variance(law, 4))
        q, k = law.draw(np.random.default_rng(distance), 512, 16, 4)
        found = variance.estimate(variance.reduce(scores(q, k)), 1e-9)
        assert abs(found.value - seen[-1]) <= 6 * found.stderr
        assert low <= seen[-1] <= high
    assert seen[0] == high
    assert seen[1] < 0.7 * high


@pytest.mark.parametrize("pairing", vectors.PAIRINGS)
@pytest.mark.parametrize(("d_k", "distance"), [(2, 3), (6, 1), (64, 0), (64, 40), (64, -725)])
def test_mean_of_a_token_with_itself_at_a_distance(pairing, d_k, distance):
    law = laws.rotary(laws.identical(laws.normal), distance, pairing=pairing)
    expected = rotations.matched_mean(d_k, distance)
    assert theory.matched_mean(law, d_k) == pytest.approx(expected, abs=1e-11)
    q, k = law.draw(np.random.default_rng(3), 4096, 1, d_k)
    found = mean.estimate(mean.reduce(matched_scores(q, k)), 1e-9)
    assert abs(found.value - expected) <= 6 * found.stderr


@pytest.mark.parametrize(("make", "message"), [
    (lambda: rotations.variance_bounds(np.eye(2), np.eye(4), "halves"), "equally many"),
    (lambda: rotations.variance_bounds(np.eye(3), np.eye(3), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.eye(4)[:2], np.eye(4), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.eye(4)[:, :2], np.eye(4), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.ones(4), np.eye(4), "halves"), "even d_k"),
    (lambda: rotations.variance_bounds(np.eye(2), np.eye(2), "both"), "neighbours"),
    (lambda: rotations.variance_bounds(np.ones((4, 4)), np.ones((4, 4)), "halves"), "between"),
    (lambda: rotations.matched_mean(3, 1), "even"),
])
def test_impossible_questions_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- laws as values ----------------------------------------------------------------------------


@pytest.mark.parametrize(("law", "name"), [
    (laws.layer_norm(laws.shifted(laws.normal, 0.5)), "layer_norm[shifted[normal-0.5]]"),
    (laws.layer_norm(laws.normal, gain=2), "layer_norm[normal-gain:2]"),
    (laws.rms_norm(laws.normal, epsilon=1e-5), "rms_norm[normal-epsilon:1e-05]"),
    (laws.unit_norm(COIN), "unit_norm[rademacher]"),
    (laws.clipped(laws.normal, 2.5), "clipped[normal-2.5]"),
    (laws.quantised(laws.normal, 4, bound=3.0), "quantised[normal-4-3]"),
    (laws.rotary(laws.normal, -16), "rotary[normal--16]"),
    (laws.rotary(laws.normal, 16, 500000.0, "neighbours"),
     "rotary[normal-16-theta:500000-pairing:neighbours]"),
], ids=str)
def test_transforms_are_values_with_names(law, name):
    assert str(law) == name
    assert isinstance(law, laws.Law)
    assert isinstance(law, Transformed | Rotary)
    assert hash(law) == hash(type(law)(*(getattr(law, f) for f in law.__dataclass_fields__)))
    q, k = law.draw(np.random.default_rng(1), 2, 3, 4)
    assert q.shape == k.shape == (2, 3, 4)
    assert q.dtype == k.dtype == np.float64


def test_both_sides_are_transformed_but_only_queries_are_rotated():
    base = laws.correlated(laws.laplace, 0.5)
    x, y = base.draw(np.random.default_rng(2), 3, 4, 6)
    for law, function in (
        (laws.layer_norm(base, 2.0, 0.1), lambda v: vectors.layer_norm(v, 2.0, epsilon=0.1)),
        (laws.rms_norm(base, 2.0, 0.1), lambda v: vectors.rms_norm(v, 2.0, 0.1)),
        (laws.unit_norm(base), vectors.unit_norm),
        (laws.clipped(base, 0.5), lambda v: vectors.clip(v, 0.5)),
        (laws.quantised(base, 3, 2.0), lambda v: vectors.quantise(v, 3, 2.0)),
    ):
        q, k = law.draw(np.random.default_rng(2), 3, 4, 6)
        np.testing.assert_array_equal(q, function(x))
        np.testing.assert_array_equal(k, function(y))
        assert law.finite_moments == math.inf
    q, k = laws.rotary(base, 5, 100.0, "neighbours").draw(np.random.default_rng(2), 3, 4, 6)
    np.testing.assert_array_equal(q, vectors.rotate(x, 5, 100.0, "neighbours"))
    np.testing.assert_array_equal(k, y)
    assert laws.rotary(laws.student_t(3), 1).finite_moments == 3
    assert laws.rotary(base, 1).coupled


@pytest.mark.parametrize("law", [laws.normal, COIN, laws.uniform, laws.laplace, laws.student_t(3),
                                 laws.student_t(1), laws.sparse(0.1)], ids=str)
def test_symmetric_laws_are_symmetric_about_their_mean(law):
    assert law.symmetric
    x = law.sample(np.random.default_rng(4), (20_000,))
    # Signs and the larger halves: P(x > 0) = P(x < 0), and so beyond the median size.
    for part in (x, x[abs(x) > np.median(abs(x))]):
        signs = np.sign(part)
        assert abs(signs.sum()) <= 6 * math.sqrt((signs != 0).sum()) + 1e-9


def test_symmetry_is_not_claimed_unknown():
    assert not laws.exponential.symmetric
    assert not laws.iid(stats.gamma(3)).symmetric


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.layer_norm("normal"), "is not a law"),
    (lambda: laws.layer_norm(laws.normal, gain=math.inf), "gain must be finite"),
    (lambda: laws.rms_norm(laws.normal, epsilon=-1.0), "at least 0"),
    (lambda: laws.clipped(laws.normal, 0.0), "above 0"),
    (lambda: laws.clipped(laws.normal, math.inf), "bound must be finite"),
    (lambda: laws.quantised(laws.normal, 1, 2.0), "from 2 to 16"),
    (lambda: laws.quantised(laws.normal, 4, -2.0), "positive"),
    (lambda: laws.rotary(3, 1), "is not a law"),
    (lambda: laws.rotary(laws.normal, 0.5), "whole numbers"),
    (lambda: laws.rotary(laws.normal, 1, theta=-1.0), "theta"),
    (lambda: laws.rotary(laws.normal, 1, pairing="both"), "one of"),
    (lambda: laws.rotary(laws.normal, 1).draw(np.random.default_rng(0), 1, 1, 3), "pad to 4"),
    (lambda: laws.rotary(laws.normal, 1).moments(3), "even"),
])
def test_impossible_transforms_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
