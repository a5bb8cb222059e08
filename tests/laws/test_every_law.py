"""One table of laws, and what holds of every law: moments, sides, coupling, seeds, names."""

import copy
import itertools
import math

import numpy as np
import pytest
from agreement import RATE, assert_mean, assert_share
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify import laws
from mcverify.laws import initialisation as init
from mcverify.laws.coordinates import Iid
from mcverify.laws.covariance import lagged
from mcverify.laws.law import Law, With

NORMAL, COIN = laws.normal, laws.rademacher
COV = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
CROSS = np.array([[0.4, 0.3, 0.0], [-0.2, 0.1, 0.2], [0.0, 0.1, -0.1]])  # not symmetric
ROOT = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, -1.0, 0.7, 0.0], [0.3, 0.0, 0.0, 1.5]])
MEAN = [1.0, -0.5, 0.0]
ARRAYS = np.random.default_rng(0).standard_normal((30, 3)).round(2)
GROUPS = [7] * 12 + [3] * 18
TOKENS = 12


def rising(d_k):
    return np.sqrt(np.arange(1.0, d_k + 1))


def projections(base, how):
    return [laws.projected(base, how, 6, gain=1.5, weights=weights, shared=shared)
            for weights, shared in itertools.product((None, 3), (True, False))]


# A law of each kind, and of each case in what it declares. A new law is a new line here.
IID = [*laws.STANDARD, laws.exponential, laws.sparse(0.3), laws.student_t(30), laws.stable(2),
       laws.iid(stats.gamma(3)), laws.iid(stats.binom(5, 0.3)), laws.iid(stats.beta(2, b=5)),
       laws.iid(stats.norm(2, 3), raw=True)]
ANY_WIDTH = [
    *IID,
    laws.shifted(NORMAL, 0.7), laws.shifted(laws.correlated(NORMAL, 0.3), -0.5),
    laws.scaled(NORMAL, 2, 0.5), laws.scaled(laws.correlated(laws.uniform, 0.5), 0.1, 3),
    laws.scaled(laws.shifted(NORMAL, 1), 2, 3),
    laws.equicorrelated(laws.laplace, 0.4), laws.equicorrelated(COIN, 1.0),
    laws.common_scale(NORMAL, 40), laws.multivariate_t(40, 0.4), laws.multivariate_t(40, 0),
    laws.sign_products,
    laws.autoregressive(laws.laplace, 0.7), laws.autoregressive(NORMAL, -0.4),
    laws.low_rank(NORMAL, 2), laws.low_rank(laws.uniform, 3), laws.unequal(COIN, 2),
    laws.linear(laws.exponential, rising, name="rising"),
    laws.linear(NORMAL, rising, With(lagged, 0.5), 0.5, -1, joint=True, name="mixed"),
    laws.linear(laws.iid(stats.norm(2, 3), raw=True), With(lagged, 0.5), name="raw"),
    laws.independent(COIN, laws.exponential),
    laws.independent(laws.equicorrelated(NORMAL, 0.5), laws.shifted(NORMAL, 1.0)),
    laws.independent(laws.low_rank(NORMAL, 1), laws.topic(COIN, 0.5)),
    laws.correlated(laws.uniform, -0.6), laws.correlated(laws.exponential, 0.6),
    laws.identical(NORMAL),
    laws.random_sign(NORMAL), laws.random_sign(laws.iid(stats.norm(0.5, 2), raw=True)),
    laws.memory(laws.exponential, 0.6), laws.memory(NORMAL, -0.8),
    laws.topic(NORMAL, 0.3), laws.topic(laws.uniform, 0.8),
    laws.shifted(laws.topic(NORMAL, 0.5), 1),
    laws.shared_query(laws.laplace), laws.shared_query(laws.shifted(NORMAL, 1.0)),
    *projections(laws.exponential, init.lecun()),
    *projections(laws.independent(NORMAL, laws.shifted(NORMAL, 1.0)), init.xavier("head")),
    laws.projected(laws.identical(NORMAL), init.lecun(), 4, shared=False),
    *(norm(base) for norm in (laws.layer_norm, laws.rms_norm, laws.unit_norm) for base in (
        NORMAL, COIN, laws.student_t(2.5), laws.sparse(0.3), laws.common_scale(NORMAL, 5),
        laws.scaled(laws.laplace, 3.0, 0.1), laws.identical(laws.uniform))),
    laws.rms_norm(laws.independent(laws.laplace, laws.identical(laws.sparse(0.2))), gain=3.0),
    *(laws.layer_norm(base, gain=-2.0) for base in (
        laws.exponential, laws.student_t(0.8), laws.shifted(laws.sparse(0.3), 1.0),
        laws.equicorrelated(COIN, 0.4), laws.shifted(laws.identical(NORMAL), 2.0),
        laws.scaled(laws.shifted(NORMAL, 1.0), 2.0, 3.0))),
    *(laws.clipped(base, 0.7) for base in (*laws.STANDARD, laws.identical(laws.laplace))),
    *(laws.quantised(base, 3, 2.0) for base in laws.STANDARD),
    laws.independent(laws.layer_norm(NORMAL), NORMAL),
]
EVEN_WIDTH = [
    laws.rotary(NORMAL, 3), laws.rotary(laws.unequal(NORMAL, 1), -5, pairing="neighbours"),
    laws.rotary(laws.identical(laws.laplace), 11), laws.rotary(laws.shifted(NORMAL, 1.0), 2),
    laws.rotary(laws.clipped(laws.uniform, 1.0), 100, theta=100.0),
]
THREE = [
    laws.linear(laws.laplace, ROOT, joint=True), laws.linear(NORMAL, ROOT, [2.0, 1.0, 0.0]),
    laws.linear(COIN, ROOT, -ROOT, MEAN, 0.5, joint=True, name="mirrored"),
    laws.gaussian(COV), laws.gaussian(COV, np.diag([0.0, 1.0, 3.0]), MEAN, 2.0),
    laws.gaussian(COV, np.eye(3), 0.0, MEAN, cross=CROSS),
    laws.measured(ARRAYS, ARRAYS[:, [0, 2, 1]] ** 2, GROUPS),
    laws.measured(ARRAYS, ARRAYS[:, ::-1]),
]
WORLDS = [*itertools.product(ANY_WIDTH, [1, 3]), *itertools.product(EVEN_WIDTH, [2, 4]),
          *itertools.product(THREE, [3]), (laws.minilm("trained_l5h3"), 32)]
# Whose variance does not exist, and whose moments are not all known.
HEAVY = [laws.stable(1.5), laws.stable(0.7), laws.student_t(2), laws.iid(stats.cauchy(), raw=True),
         laws.multivariate_t(2, 0.3), laws.multivariate_t(1, 0),
         laws.autoregressive(laws.student_t(1.5), 0.5),
         laws.linear(laws.stable(1), ROOT, joint=True),
         laws.projected(laws.student_t(2), init.lecun(), 4),
         laws.projected(laws.student_t(2), init.lecun(), 4, weights=1)]
UNKNOWN = [laws.rms_norm(laws.correlated(NORMAL, 0.5)), laws.unit_norm(laws.shifted(NORMAL, 1.0)),
           laws.layer_norm(laws.random_sign(laws.exponential), epsilon=0.1),
           laws.rms_norm(laws.memory(laws.uniform, 0.5)), laws.clipped(laws.exponential, 1.0)]
LAWS = [*ANY_WIDTH, *EVEN_WIDTH, *THREE, *HEAVY, *UNKNOWN]


def width(law):
    return 3 if law in (*THREE, *HEAVY) else 6


@pytest.mark.parametrize(("law", "d_k"), WORLDS, ids=str)
def test_declared_moments_are_those_of_the_draws(law, d_k):
    m, few = law.moments(d_k), slice(3)
    cross = m.cross[few, few]
    declared = np.block([[m.cov_q[few, few], cross], [cross.T, m.cov_k[few, few]]])
    upper = np.triu_indices(len(declared))

    def first_and_second(blocks):
        q, k = law.draw(np.random.default_rng(1), blocks, TOKENS, d_k)
        x = np.concatenate([(q - m.mean_q)[..., few], (k - m.mean_k)[..., few]], axis=-1)
        products = np.einsum("bti,btj->bij", x, x)[:, *upper]
        return np.hstack([x.sum(axis=1), products]) / TOKENS

    assert_mean(first_and_second, [*np.zeros(len(declared)), *declared[upper]])


@pytest.mark.parametrize("law", [law for law in IID if law.finite_moments > 24], ids=str)
def test_declared_fourth_moment_of_a_coordinate_is_that_of_the_draws(law):
    def fourth(blocks):
        x = np.concatenate(law.draw(np.random.default_rng(2), blocks, 5, 10), axis=1)
        return (((x - law.mean) ** 2 / law.variance) ** 2).mean(axis=(1, 2))

    assert_mean(fourth, law.fourth_moment)


@pytest.mark.parametrize("law", HEAVY, ids=str)
def test_moments_that_do_not_exist_are_not_declared(law):
    m = law.moments(3)
    assert not np.isfinite(np.diag(m.cov_q)).any()
    assert not np.isfinite(np.diag(m.cov_k)).any()
    assert law.finite_moments <= 2
    assert (law.finite_moments <= 1) == bool(np.isnan(m.mean_q).all())


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_is_known_of_a_side_holds_of_the_draws(law):
    drawn = law.draw(np.random.default_rng(3), 4096, 1, width(law))
    for which, x in zip("qk", drawn, strict=True):
        assert_known(law.side(which, width(law)), x[:, 0])


def assert_known(known, x):
    y = np.tanh(x)  # has every moment
    size = stats.rankdata(abs(x), axis=0) / len(x) - (len(x) + 1) / 2 / len(x)
    a, b, c = y[:, :3].T
    if known.symmetric:
        assert_mean(np.stack([a, a * b, a * b**2], 1), 0.0)
    if known.exchangeable:
        assert_mean(np.stack([a - b, a**2 * (b - c), a * b - b * c], 1), 0.0)
    if known.independent:
        assert_mean(size[:, 0] * size[:, 1], 0.0)
    shares = [(known.all_equal, np.ptp(x, axis=1) == 0), (known.all_zero, (x == 0).all(axis=1))]
    for value, share in known.atoms or ():
        shares.append((share, x[:, 0] == value))
    for bound in (0.3, 1.1, 2.5) if known.sizes else ():
        inside, beyond = known.sizes(2, np.array(bound))
        shares.append((beyond, abs(x[:, 0]) > bound))
        # A size below the bound is bounded: as a share of it, a mean has an exact interval.
        shares.append((inside / bound**2, (x[:, 0] / bound) ** 2 * (abs(x[:, 0]) <= bound)))
    for share, happens in shares:
        if not math.isnan(share):
            assert_share(happens, share)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_images_have_the_moments_up_to_the_fourth_of_the_draws(law):
    d_k = width(law)
    m, w, images = law.moments(d_k), np.linspace(1, -0.4, d_k), {}
    for place, which in enumerate("qk"):
        image = law.side(which, d_k).image
        if image is None:
            continue
        np.testing.assert_allclose(image.mean, m.mean_q if which == "q" else m.mean_k, atol=1e-12)
        np.testing.assert_allclose(image.cov, m.cov_q if which == "q" else m.cov_k, atol=1e-12)
        # Other fourth powers are too heavy for an interval of their mean from few draws.
        if image.fourth <= 3 and image.scale_fourth <= 1 and law.tokens_independent:
            images[place] = image

    def powers(blocks):
        drawn, found = law.draw(np.random.default_rng(5), blocks, TOKENS, d_k), []
        for place, image in images.items():
            y = (drawn[place] - image.mean) @ w / math.sqrt(np.sum((w @ image.cov) * w))
            squares = y * y
            found += [(squares * y).mean(axis=1), (squares * squares).mean(axis=1)]
        return np.stack(found, axis=1)

    expected = []
    for image in images.values():
        a = w * image.root if image.root.ndim == 1 else w @ image.root
        a /= math.sqrt(np.sum(a**2))
        expected += [image.third * np.sum(a**3),
                     image.scale_fourth * (3 + (image.fourth - 3) * np.sum(a**4))]
    if images:
        assert_mean(powers, expected)


@pytest.mark.parametrize("law", [law for law in LAWS if law.coupled], ids=str)
def test_joint_views_have_the_moments_of_a_token(law):
    d_k = width(law)
    views, m = law.joint(d_k), law.moments(d_k)
    if views is None:
        return
    q, k = views
    a, b = (np.diag(view.root) if view.root.ndim == 1 else view.root for view in views)
    for found, declared in ((q.mean, m.mean_q), (k.mean, m.mean_k), (a @ a.T, m.cov_q),
                            (b @ b.T, m.cov_k), (a @ b.T, m.cross)):
        np.testing.assert_allclose(found, declared, atol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_coupled_says_whether_a_token_s_own_key_follows_its_query(law):
    # Rank correlation of sizes and of values shows every coupling that these laws have.
    q, k = law.draw(np.random.default_rng(4), 4000, 1, width(law))
    ranks = [stats.rankdata(np.column_stack([x[:, 0], np.sum(x[:, 0] ** 2, axis=1).round(9)]),
                            axis=0) for x in (q, k)]
    x, y = (r - r.mean(axis=0) for r in ranks)
    sizes = np.sqrt(np.outer((x**2).sum(axis=0), (y**2).sum(axis=0)))
    z = -stats.norm.ppf(RATE / 2 / x.shape[1] ** 2) / math.sqrt(len(x))
    assert bool((np.abs(x.T @ y) > z * sizes).any()) == law.coupled
    if getattr(law, "key_is_query", False):
        np.testing.assert_array_equal(q, k)


@given(st.sampled_from([*WORLDS, *((law, width(law)) for law in HEAVY + UNKNOWN)]),
       st.integers(1, 5), st.integers(1, 2), st.integers(0, 2**32))
def test_draws_have_the_shape_asked_for_and_follow_the_seed(world, blocks, tokens, seed):
    law, d_k = world
    first, second = (law.draw(np.random.default_rng(seed), blocks, tokens, d_k) for _ in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.shape == (blocks, tokens, d_k)
        assert a.dtype == np.float64
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


def test_laws_are_values_whose_names_tell_them_apart():
    everything = set(LAWS)
    assert len({str(law) for law in everything}) == len(everything) == len(LAWS)
    for law in everything:
        assert isinstance(law, Law)
        assert copy.copy(law) == law
        assert hash(copy.copy(law)) == hash(law)
        made_again = copy.deepcopy(law) if not isinstance(law, Iid) else law
        assert (made_again == law, str(made_again)) == (True, str(law))


@pytest.mark.parametrize(("law", "name"), [
    (laws.correlated(NORMAL, 0.3), "correlated[normal-0.3]"),
    (laws.autoregressive(NORMAL, 0.5), "autoregressive[normal-0.5]"),
    (laws.topic(NORMAL, 0.3), "topic[normal-0.3]"),
    (laws.multivariate_t(5, 0.2), "multivariate_t-5-0.2"),
    (laws.sign_products, "sign_products"), (laws.student_t(5), "student_t-5"),
    (laws.independent(NORMAL, laws.shifted(COIN, 1)), "independent[normal-shifted[rademacher-1]]"),
    (laws.layer_norm(NORMAL, gain=2), "layer_norm[normal-gain:2]"),
    (laws.rms_norm(NORMAL, epsilon=1e-5), "rms_norm[normal-epsilon:1e-05]"),
    (laws.quantised(NORMAL, 4, bound=3.0), "quantised[normal-4-3]"),
    (laws.rotary(NORMAL, -16), "rotary[normal--16]"),
    (laws.rotary(NORMAL, 16, 500000.0, "neighbours"),
     "rotary[normal-16-theta:500000-pairing:neighbours]"),
    (laws.projected(NORMAL, init.xavier("head"), 512, gain=0.5, weights=3, shared=False),
     "projected[normal-xavier_uniform_head-512-gain:0.5-weights:3-cross]"),
], ids=str)
def test_names(law, name):
    assert str(law) == name


def test_finite_moments_are_those_of_the_base_or_fewer():
    base = laws.student_t(5)
    made = [laws.shifted(base, 1), laws.scaled(base, 2, 2), laws.autoregressive(base, 0.5),
            laws.random_sign(base), laws.memory(base, 0.5), laws.topic(base, 0.5),
            laws.shared_query(base), laws.multivariate_t(5, 0.1), laws.rotary(base, 1),
            laws.projected(base, init.he(), 8), laws.independent(NORMAL, base),
            laws.common_scale(base, 7), laws.common_scale(laws.student_t(9), 5)]
    assert [law.finite_moments for law in made] == [5.0] * len(made)
    for law in (laws.layer_norm(base), laws.clipped(base, 1.0), laws.sign_products):
        assert law.finite_moments == math.inf
