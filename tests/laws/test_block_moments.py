"""How much a block's mean and mean square vary: enumerated, or by quadrature that is exact."""

import itertools
import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcverify import laws
from mcverify.attention import matched_scores, other_scores, scores
from mcverify.laws import block_moments, fourth_moments, score_moments
from mcverify.laws.coordinates import Iid
from mcverify.laws.fourth_powers import Powers, spread_of_fourths
from mcverify.laws.normal_tokens import weights_of
from mcverify.laws.projected_tokens import of_projected_tokens
from mcverify.laws.sampled_tokens import of_pairs, of_tokens

VALUES = {"all": scores, "other": other_scores, "matched": matched_scores,
          "q": lambda q, k: q, "k": lambda q, k: k,
          "mean": lambda q, k: scores(q, k).mean(axis=(1, 2))}
COIN = ((-1.0, 1.0), (0.5, 0.5))
SPARSE = ((-2.0, 0.0, 2.0), (1 / 8, 3 / 4, 1 / 8))


def hermite(nodes):
    """A law of few values that has the normal law's moments up to the order 2·nodes − 1."""
    values, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return tuple(values), tuple(weights / weights.sum())


def outcomes(*laws_of_coordinates):
    """All outcomes of independent coordinates, (outcomes, coordinates), and their probabilities."""
    values = np.array([*itertools.product(*(values for values, _ in laws_of_coordinates))])
    shares = np.array([*itertools.product(*(shares for _, shares in laws_of_coordinates))])
    return values, shares.prod(axis=1)


def of_blocks(values, shares, mean=None):
    """What ``block_moments`` says, of blocks of values that have these probabilities."""
    x = values.reshape(len(values), -1)
    mean = shares @ x.mean(axis=1) if mean is None else mean
    squares = ((x - mean) ** 2).mean(axis=1)
    of_means = shares @ (x.mean(axis=1) - mean) ** 2
    return mean, shares @ squares, of_means, shares @ squares**2 - (shares @ squares) ** 2


def agree(found, expected):
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


# --- tokens that are jointly normal -------------------------------------------------------------


@pytest.mark.parametrize("of", VALUES)
@pytest.mark.parametrize("law", [
    laws.memory(laws.normal, 0.6), laws.independent(laws.normal, laws.memory(laws.normal, -0.3)),
    laws.independent(laws.memory(laws.normal, 0.5), laws.normal)], ids=str)
def test_memory(law, of):
    # Two tokens of two coordinates; in each of the eight numbers s² s'² has degree 4.
    z, p = outcomes(*[hermite(3)] * 8)
    z = z.reshape(-1, 2, 2, 2)  # outcomes, q and k, tokens, coordinates
    roots = [np.linalg.cholesky(cov) for cov in law.normal_tokens(2)[:2]]
    q, k = roots[0] @ z[:, 0], roots[1] @ z[:, 1]
    agree(block_moments(law, 2, 2, of), of_blocks(VALUES[of](q, k), p))


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_topic(strength):
    # In what tokens share s² s'² has degree 8, in all else 4.
    z, p = outcomes(*[hermite(3)] * 8, *[hermite(5)] * 2)
    own, common = z[:, :8].reshape(-1, 2, 2, 2), z[:, None, 8:]
    q, k = (math.sqrt(1 - strength) * own[:, side] + math.sqrt(strength) * common
            for side in (0, 1))
    law = laws.topic(laws.normal, strength)
    for of, values in VALUES.items():
        agree(block_moments(law, 2, 2, of), of_blocks(values(q, k), p))


def test_closed_form_of_a_sequence():
    law, tokens, d = laws.memory(laws.normal, 0.9), 16, 64
    lags = np.abs(np.subtract.outer(np.arange(tokens), np.arange(tokens)))
    r = (0.9 ** (2 * lags)).mean()
    found = block_moments(law, d, tokens, "all")
    assert found.of_squares == pytest.approx(4 * d * r + 2 * r**2 * (d**2 + d))
    assert found.of_means == pytest.approx(d * (0.9**lags).mean() ** 2)


def test_tokens_that_are_independent_after_all():
    for law in (laws.memory(laws.normal, 0.0), laws.topic(laws.normal, 0.0)):
        for of in VALUES:
            agree(block_moments(law, 5, 3, of), block_moments(laws.normal, 5, 3, of))
    assert block_moments(laws.uniform, 5, 3, "mean") is None


def test_only_normal_coordinates_stay_normal():
    for law in (laws.memory(laws.laplace, 0.5), laws.topic(laws.laplace, 0.5),
                laws.independent(laws.normal, laws.memory(laws.laplace, 0.5))):
        assert block_moments(law, 4, 3, "other") is None


@pytest.mark.parametrize("of", ["all", "other", "matched"])
def test_one_query_for_all_tokens(of):
    z, p = outcomes(*[COIN] * 4, *[SPARSE] * 1)
    q, k = np.repeat(z[:, None, 4:], 4, axis=1), z[:, :4, None]
    base = laws.independent(sparse(), laws.rademacher)
    agree(block_moments(laws.shared_query(base), 1, 4, of), of_blocks(VALUES[of](q, k), p))
    assert block_moments(laws.shared_query(base), 1, 4, "q") is None


def sparse():
    return Iid("sparse values", lambda rng, shape: rng.choice(SPARSE[0], shape, p=SPARSE[1]), 4.0,
               symmetric=True)


# --- weights that are drawn with the tokens ------------------------------------------------------


@lru_cache
def projections(x, weight, d, tokens):
    """Outcomes of q and k of inputs of two coordinates, with the probabilities of each."""
    z, p = outcomes(*[x] * (2 * tokens), *[weight] * (4 * d))
    inputs = z[:, :2 * tokens].reshape(-1, tokens, 2)
    w = z[:, 2 * tokens:].reshape(-1, 2, 2, d)
    return inputs @ w[:, 0], inputs @ w[:, 1], p


@pytest.mark.parametrize("of", ["other", "matched", "q", "k"])
@pytest.mark.parametrize(("x", "d", "tokens"), [(COIN, 1, 4), (COIN, 2, 2), (SPARSE, 1, 3)])
def test_new_weights_in_every_block(of, x, d, tokens):
    kappa = 1.0 if x is COIN else 4.0
    nodes = hermite(3)
    q, k, p = projections(x, nodes, d, tokens)
    mean, variance, means, squares = of_blocks(VALUES[of](q, k), p)
    found = of_projected_tokens(2, kappa, 1.0, d, tokens, of)
    agree(found, (mean, variance, means, math.nan if of == "matched" else squares))
    # Weights with lighter tails let values vary no more.
    q, k, p = projections(x, COIN, d, tokens)
    lighter = of_blocks(VALUES[of](q, k), p)
    assert lighter[3] <= squares * (1 + 1e-12)
    assert lighter[:3] == pytest.approx((mean, variance, means), abs=1e-12)


def test_projections_are_known_as_far_as_they_go():
    init = laws.initialisation
    law = laws.projected(laws.scaled(laws.normal, 2.0, 2.0), init.lecun(), 8)
    assert block_moments(law, 4, 3, "other") is None  # no independent coordinates of its own
    law = laws.projected(laws.uniform, init.xavier("head"), 8, gain=2.0)
    v = law.weight_variance(4)
    assert block_moments(law, 4, 3, "other") == of_projected_tokens(8, 1.8, v, 4, 3, "other")
    assert block_moments(law, 4, 3, "all") is None
    fixed = laws.projected(laws.uniform, init.lecun(), 8, weights=1)
    assert block_moments(fixed, 4, 3, "other").of_squares > 0


# --- tokens of a group, and independent ones -----------------------------------------------------


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32))
def test_tokens_of_a_group(group, tokens, seed):
    tokens = min(group, tokens)
    y = np.random.default_rng(seed).standard_normal((group, group))
    drawn = [*itertools.permutations(range(group), tokens)]
    means = [y.diagonal()[[*chosen]].mean() for chosen in drawn]
    assert of_tokens(y.diagonal(), tokens) == pytest.approx(
        (np.mean(means), np.mean(np.square(means))))
    if tokens > 1:
        means = [np.mean([y[i, j] for i in chosen for j in chosen if i != j]) for chosen in drawn]
        assert of_pairs(y, tokens) == pytest.approx((np.mean(means), np.mean(np.square(means))))


@pytest.mark.parametrize("of", ["other", "matched"])
def test_tokens_of_real_groups(of):
    rng = np.random.default_rng(3)
    q, k = rng.standard_normal((2, 7, 2))
    groups = np.array([0, 1, 0, 1, 1, 0, 1])
    law = laws.measured(q, k, groups)
    chosen = [c for group in law.members for c in itertools.permutations(group, 3)]
    shares = np.array([1 / 7 / math.perm(len(group), 3) * len(group)
                       for group in law.members for _ in itertools.permutations(group, 3)])
    values = VALUES[of](q[np.array(chosen)], k[np.array(chosen)])
    agree(block_moments(law, 2, 3, of), of_blocks(values, shares))
    assert block_moments(law, 2, 4, of) is None  # more than the smallest group has
    assert block_moments(law, 2, 3, "all") is None


def test_transformed_tokens_of_arrays_are_arrays():
    rng = np.random.default_rng(4)
    law = laws.measured(*rng.standard_normal((2, 8, 3)), np.arange(8) % 2)
    normed = laws.measured(*(laws.unit_norm(law).function(x) for x in (law.q, law.k)), law.groups)
    agree(block_moments(laws.unit_norm(law), 3, 4, "other"), block_moments(normed, 3, 4, "other"))
    assert block_moments(laws.unit_norm(laws.memory(laws.normal, 0.5)), 3, 4, "other") is None


@pytest.mark.parametrize("of", ["all", "matched", "q", "k"])
def test_independent_tokens_and_the_first_coordinates(of):
    rng = np.random.default_rng(5)
    law = laws.linear(laws.rademacher, *rng.standard_normal((2, 3, 2)),
                      *rng.standard_normal((2, 3)))
    z, p = outcomes(*[COIN] * 8)
    q, k = (z[:, 4 * side:4 * side + 4].reshape(-1, 2, 2) @ image.root.T + image.mean
            for side, image in enumerate((law.side("q", 3).image, law.side("k", 3).image)))
    agree(block_moments(law, 3, 2, of), of_blocks(VALUES[of](q, k), p))
    if of in ("all", "matched"):
        first = VALUES[of](q[..., :2], k[..., :2])
        agree(block_moments(law, 3, 2, of, width=2), of_blocks(first, p))


@pytest.mark.parametrize("law", [
    laws.correlated(laws.uniform, 0.4), laws.identical(laws.laplace), laws.common_scale(
        laws.normal, 9), laws.random_sign(laws.normal), laws.rms_norm(laws.normal)], ids=str)
def test_first_coordinates_of_laws_that_are_the_same_at_any_width(law):
    if law.kind == "rms_norm":  # of which the first ones are shorter
        assert block_moments(law, 8, 3, "other", 2).variance == pytest.approx(2)
        return
    for of in ("other", "matched"):
        agree(block_moments(law, 8, 3, of, 2), block_moments(law, 2, 3, of))


def test_values_of_vectors_without_fourth_moments():
    found = block_moments(laws.student_t(3), 4, 2, "q")
    assert math.isnan(found.of_squares)
    assert found.of_means == pytest.approx(found.variance / 8)


@pytest.mark.parametrize("d_k", [3, 15])
def test_products_of_signs_are_known_by_their_length(d_k):
    # A score is d_k with probability 1/(d_k + 1), else −1; given its query it has the same law.
    found = score_moments(laws.sign_products, d_k)
    assert found.shared_query == found.shared_key == pytest.approx(found.variance**2)
    fourth = (d_k**4 + d_k) / (d_k + 1)
    assert fourth <= found.fourth <= 1.3 * fourth


def test_pairs_count_alike():
    assert weights_of("all", 2).tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert weights_of("matched", 2).tolist() == [[0.5, 0], [0, 0.5]]


# --- the kurtosis of scores ---------------------------------------------------------------------


def raw(values, shares):
    return Powers(tuple(float(np.power(values, n) @ np.array(shares)) for n in range(9)))


@pytest.mark.parametrize(("q", "k"), [
    (COIN, SPARSE), (SPARSE, SPARSE), (SPARSE, ((-1.0, 2.0), (2 / 3, 1 / 3)))])
@pytest.mark.parametrize(("d", "tokens"), [(1, 2), (2, 1), (2, 2), (3, 1)])
def test_fourth_powers_enumerated(q, k, d, tokens):
    z, p = outcomes(*[q] * (d * tokens), *[k] * (d * tokens))
    x, y = (z[:, part].reshape(-1, tokens, d)
            for part in (slice(0, d * tokens), slice(d * tokens, None)))
    s, c = scores(x, y).reshape(len(z), -1), 1.7
    block = (s**4 - c * s**2).mean(axis=1)
    found = spread_of_fourths(raw(*q), raw(*k), d, tokens, c)
    assert found == pytest.approx(p @ (block - p @ block) ** 2)


def test_fourth_powers_with_scales_enumerated():
    roots, shares = np.array([0.5, 1.5]), np.array([0.625, 0.375])  # E r² = 1
    z, p = outcomes(*[(roots, shares)] * 4, *[SPARSE] * 2, *[COIN] * 2)
    q, k = z[:, :2] * z[:, 4:6], z[:, 2:4] * z[:, 6:]  # two tokens of one coordinate
    s = (q[:, :, None] * k[:, None]).reshape(len(z), -1)
    block = (s**4 - 5 * s**2).mean(axis=1)
    scale = tuple(float(roots ** (2 * n) @ shares) for n in range(5))
    found = spread_of_fourths(Powers(raw(*SPARSE).coordinate, scale),
                              Powers(raw(*COIN).coordinate, scale), 1, 2, 5.0)
    assert found == pytest.approx(p @ (block - p @ block) ** 2)


@pytest.mark.parametrize("d_k", [1, 8, 512])
def test_fourth_powers_of_normal_scores_in_closed_form(d_k):
    # Given q a score is normal, and E |q|^2n is d_k (d_k + 2) … (d_k + 2n − 2).
    lengths = [math.prod(d_k + 2 * i for i in range(n)) for n in range(5)]
    kurtosis = 3 + 6 / d_k
    c, mean = 2 * kurtosis * d_k, 3 * lengths[2] - 2 * kurtosis * d_k * d_k
    own = 105 * lengths[4] - 30 * c * lengths[3] + 3 * c**2 * lengths[2] - mean**2
    shared = 9 * lengths[4] - 6 * c * lengths[3] + c**2 * lengths[2] - mean**2
    found = fourth_moments(laws.normal, d_k, 40)
    assert found[:2] == pytest.approx((d_k, kurtosis))
    assert found.of_fourths == pytest.approx((own + 39 * 2 * shared) / 40**2 / d_k**4)


def test_powers_of_a_common_scale():
    # r² = (df − 2)/χ²(df), whose nth moment is (df − 2)^n over (df − 2)(df − 4) … (df − 2n).
    law = laws.common_scale(laws.uniform, 10)
    assert law.powers("q").scale == pytest.approx((1, 1, 8 / 6, 64 / 24, 512 / 48))
    assert law.powers("k").coordinate == laws.uniform.central_moments
    assert law.powers("q").scale[2] == pytest.approx(law.scale_fourth_moment)
    mixed = laws.independent(law, laws.normal)
    assert mixed.powers("k") == laws.normal.powers("q")
    found = score_moments(mixed, 4)
    assert fourth_moments(mixed, 4, 8).kurtosis == pytest.approx(found.fourth / found.variance**2)


@pytest.mark.parametrize("law", [
    laws.common_scale(laws.normal, 8), laws.student_t(9), laws.shifted(laws.normal, 1.0),
    laws.correlated(laws.normal, 0.5), laws.memory(laws.normal, 0.5), laws.unit_norm(laws.normal),
    laws.autoregressive(laws.normal, 0.5)], ids=str)
def test_of_other_laws_no_fourth_powers_are_known(law):
    assert fourth_moments(law, 4, 8) is None
