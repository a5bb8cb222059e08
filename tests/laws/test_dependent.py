"""Laws that break an assumption on q and k each: what they declare is what their draws have."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcverify import laws, theory
from mcverify.attention import matched_scores, other_scores, scores
from mcverify.laws.affine import Given
from mcverify.laws.covariance import Harmonic, Lagged, LogSpread
from mcverify.laws.tokens import remember
from mcverify.laws.uncorrelated import subset_products
from mcverify.theory import enumeration

COV = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
CROSS = np.array([[0.4, 0.3, 0.0], [-0.2, 0.1, 0.2], [0.0, 0.1, -0.1]])  # not symmetric
ROOT = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, -1.0, 0.7, 0.0], [0.3, 0.0, 0.0, 1.5]])
MEAN = [1.0, -0.5, 0.0]


def rising(d_k):
    return np.sqrt(np.arange(1.0, d_k + 1))


ANY_WIDTH = [
    laws.autoregressive(laws.laplace, 0.7), laws.autoregressive(laws.normal, -0.4),
    laws.low_rank(laws.normal, 2), laws.low_rank(laws.uniform, 3),
    laws.unequal(laws.rademacher, 2), laws.linear(laws.exponential, rising, name="rising"),
    laws.linear(laws.normal, rising, Lagged(0.5), 0.5, -1, joint=True, name="mixed"),
    laws.linear(laws.iid(stats.norm(2, 3), raw=True), Lagged(0.5), name="raw"),
    laws.scaled(laws.normal, 2, 0.5), laws.scaled(laws.correlated(laws.uniform, 0.5), 0.1, 3),
    laws.scaled(laws.shifted(laws.normal, 1), 2, 3),
    laws.random_sign(laws.normal), laws.random_sign(laws.iid(stats.norm(0.5, 2), raw=True)),
    laws.sign_products, laws.multivariate_t(14, 0.4), laws.multivariate_t(14, 0),
    laws.memory(laws.exponential, 0.6), laws.memory(laws.normal, -0.8),
    laws.topic(laws.normal, 0.3), laws.topic(laws.uniform, 0.8),
    laws.shared_query(laws.laplace), laws.shared_query(laws.shifted(laws.normal, 1.0)),
    laws.independent(laws.low_rank(laws.normal, 1), laws.topic(laws.rademacher, 0.5)),
    laws.shifted(laws.topic(laws.normal, 0.5), 0.5), laws.stable(2),
]
THREE = [
    laws.linear(laws.laplace, ROOT, joint=True), laws.linear(laws.normal, ROOT, [2.0, 1.0, 0.0]),
    laws.linear(laws.rademacher, ROOT, -ROOT, MEAN, 0.5, joint=True, name="mirrored"),
    laws.gaussian(COV), laws.gaussian(COV, np.diag([0.0, 1.0, 3.0]), MEAN, 2.0),
    laws.gaussian(COV, np.eye(3), 0.0, MEAN, cross=CROSS),
]
WORLDS = [*itertools.product(ANY_WIDTH, [1, 2, 5]), *itertools.product(THREE, [3])]
HEAVY = [laws.stable(1.5), laws.stable(0.7), laws.multivariate_t(2, 0.3), laws.multivariate_t(1, 0),
         laws.autoregressive(laws.student_t(1.5), 0.5),
         laws.linear(laws.stable(1), ROOT, joint=True)]


def name(value):
    return str(value)


def within_errors(blocks, truth, errors=6.0):
    """Whether the mean over the first axis, independent blocks, lies near the truth everywhere."""
    error = blocks.std(axis=0, ddof=1) / math.sqrt(len(blocks))
    return bool(np.all(np.abs(blocks.mean(axis=0) - truth) <= errors * error + 1e-9))


@pytest.mark.parametrize(("law", "d_k"), WORLDS, ids=name)
def test_declared_moments_are_those_of_the_draws(law, d_k):
    q, k = law.draw(np.random.default_rng(1), 3000, 4, d_k)
    m = law.moments(d_k)
    x = np.concatenate([q - m.mean_q, k - m.mean_k], axis=-1)
    assert within_errors(x.mean(axis=1), 0.0)
    declared = np.block([[m.cov_q, m.cross], [m.cross.T, m.cov_k]])
    assert within_errors(np.einsum("bti,btj->bij", x, x) / 4, declared)


@pytest.mark.parametrize("law", HEAVY, ids=name)
def test_moments_that_do_not_exist_are_not_declared(law):
    m = law.moments(3)
    assert not np.isfinite(np.diag(m.cov_q)).any()
    assert not np.isfinite(np.diag(m.cov_k)).any()
    assert law.finite_moments <= 2
    assert (law.finite_moments <= 1) == bool(np.isnan(m.mean_q).all())


def test_finite_moments_are_those_of_the_base():
    base = laws.student_t(5)
    made = [laws.autoregressive(base, 0.5), laws.scaled(base, 2, 2), laws.random_sign(base),
            laws.memory(base, 0.5), laws.topic(base, 0.5), laws.shared_query(base),
            laws.multivariate_t(5, 0.1)]
    assert [law.finite_moments for law in made] == [5.0] * len(made)
    assert laws.sign_products.finite_moments == math.inf


@given(st.sampled_from(WORLDS + [(law, 3) for law in HEAVY]), st.integers(1, 5), st.integers(1, 7),
       st.integers(0, 2**32))
def test_draws_have_the_shape_asked_for_and_follow_the_seed(world, blocks, tokens, seed):
    law, d_k = world
    first, second = (law.draw(np.random.default_rng(seed), blocks, tokens, d_k) for _ in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.shape == (blocks, tokens, d_k)
        assert a.dtype == np.float64
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("law", ANY_WIDTH + THREE + HEAVY, ids=name)
def test_coupled_says_whether_a_token_s_own_key_follows_its_query(law):
    # Rank correlation of sizes and of values shows every coupling that these laws have.
    q, k = law.draw(np.random.default_rng(2), 4000, 1, 3)
    ranks = [stats.rankdata(np.column_stack([x[:, 0], np.sum(x[:, 0] ** 2, axis=1).round(9)]),
                            axis=0) for x in (q, k)]
    x, y = (r - r.mean(axis=0) for r in ranks)
    sizes = np.sqrt(np.outer((x**2).sum(axis=0), (y**2).sum(axis=0)))
    assert bool((np.abs(x.T @ y) > 6 / math.sqrt(4000) * sizes).any()) == law.coupled


def test_laws_are_values_whose_names_tell_them_apart():
    everything = {law for law, _ in WORLDS} | set(HEAVY)
    assert len({str(law) for law in everything}) == len(everything)
    assert all(isinstance(law, laws.Law) for law in everything)
    nudged = ROOT + 1e-12 * (ROOT == 1.5)
    variants = [laws.linear(laws.normal, ROOT), laws.linear(laws.normal, nudged),
                laws.linear(laws.normal, ROOT, nudged), laws.linear(laws.normal, ROOT, joint=True),
                laws.linear(laws.normal, ROOT, mean_q=1), laws.linear(laws.normal, ROOT, mean_k=1),
                laws.linear(laws.laplace, ROOT), laws.linear(laws.normal, ROOT, name="mine"),
                laws.gaussian(COV), laws.gaussian(COV, np.eye(3)), laws.gaussian(COV, mean_q=1),
                laws.gaussian(COV, cross=CROSS), laws.gaussian(COV, cross=0 * CROSS)]
    assert len({str(law) for law in variants}) == len(set(variants)) == len(variants)
    assert laws.linear(laws.normal, ROOT.copy()) == laws.linear(laws.normal, ROOT.tolist())
    assert laws.autoregressive(laws.normal, 0.5) == laws.autoregressive(laws.normal, 0.5)
    assert str(laws.autoregressive(laws.normal, 0.5)) == "autoregressive[normal-0.5]"
    assert str(laws.topic(laws.normal, 0.3)) == "topic[normal-0.3]"


def test_a_given_array_is_copied_and_travels():
    root = ROOT.copy()
    law = laws.linear(laws.normal, root)
    root[:] = 0
    np.testing.assert_array_equal(law.roots(3)[0], ROOT)
    assert pickle.loads(pickle.dumps(law.root_q)) == Given(ROOT.shape, ROOT.tobytes())


# --- covariances ------------------------------------------------------------------------------


@given(st.floats(-1, 1), st.integers(1, 40))
def test_lagged_root(rho, d_k):
    root, i = Lagged(rho)(d_k), np.arange(d_k)
    np.testing.assert_allclose(root @ root.T, rho ** np.abs(i[:, None] - i), atol=1e-12)


@given(st.integers(1, 20), st.integers(1, 60))
def test_low_rank_has_unit_variances_and_equal_eigenvalues(rank, d_k):
    law = laws.low_rank(laws.normal, rank)
    cov, least = law.moments(d_k).cov_q, min(rank, d_k)
    np.testing.assert_allclose(np.diag(cov), 1, atol=1e-12)
    eigenvalues = np.sort(np.linalg.eigvalsh(cov))[::-1]
    np.testing.assert_allclose(eigenvalues[:least], d_k / least, atol=1e-11)
    np.testing.assert_allclose(eigenvalues[least:], 0, atol=1e-11)
    assert Harmonic(rank)(d_k).shape[-1] == least
    assert theory.dot_variance(law, d_k) == pytest.approx(d_k**2 / least)


@given(st.floats(-8, 8), st.integers(2, 60))
def test_log_spread_variances(decades, d_k):
    variances = LogSpread(decades)(d_k) ** 2
    assert variances.mean() == pytest.approx(1)
    assert variances[0] / variances[-1] == pytest.approx(10**decades, rel=1e-9)
    steps = np.diff(np.log10(variances))
    np.testing.assert_allclose(steps, -decades / (d_k - 1), atol=1e-9)


@given(st.integers(1, 8), st.integers(0, 8), st.floats(0, 12), st.integers(0, 2**32))
def test_gaussian_takes_any_covariance(d_k, rank, decades, seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((2 * d_k, rank)) * 10 ** -rng.uniform(0, decades, rank)
    cov = a @ a.T
    q, k, c = cov[:d_k, :d_k], cov[d_k:, d_k:], cov[:d_k, d_k:]
    for law, cross in ((laws.gaussian(q, k), 0 * c), (laws.gaussian(q, k, cross=c), c)):
        m = law.moments(d_k)
        for found, given_ in ((m.cov_q, q), (m.cov_k, k), (m.cross, cross)):
            np.testing.assert_allclose(found, given_, atol=1e-12 * (1 + np.abs(cov).max()))


# --- uncorrelated, not independent ------------------------------------------------------------


def all_sign_products(d_k):
    return subset_products(np.array([*itertools.product([-1.0, 1.0], repeat=d_k.bit_length())]),
                           d_k)


@pytest.mark.parametrize("d_k", [1, 2, 3, 5, 7, 12, 15])
def test_sign_products_are_independent_in_pairs_and_not_in_threes(d_k):
    x = all_sign_products(d_k)
    outcomes = len(x)
    assert (x.sum(axis=0) == 0).all()  # a fair coin each
    for i, j in itertools.combinations(range(d_k), 2):
        counts = np.unique(2 * x[:, i] + x[:, j], return_counts=True)[1]
        assert counts.tolist() == [outcomes / 4] * 4
    for i, j, h in itertools.combinations(range(d_k), 3):
        dependent = (i + 1) ^ (j + 1) ^ (h + 1) == 0
        assert abs((x[:, i] * x[:, j] * x[:, h]).sum()) == (outcomes if dependent else 0)


@pytest.mark.parametrize("d_k", [1, 2, 3, 5, 7, 12, 15])
def test_scores_of_sign_products_enumerated(d_k):
    x = all_sign_products(d_k)
    s = x @ x.T  # all pairs of equally likely vectors
    assert s.sum() == 0
    assert (s**2).mean() == d_k == theory.dot_variance(laws.sign_products, d_k)
    if d_k + 1 == len(x):
        assert set(np.unique(s)) == {-1.0, float(d_k)}
        assert (s == d_k).mean() == 1 / (d_k + 1)


@pytest.mark.parametrize("d_k", [3, 5, 7])
def test_drawn_sign_products_are_the_enumerated_ones_equally_often(d_k):
    x = all_sign_products(d_k)
    code = 2.0 ** np.arange(d_k)
    q, k = laws.sign_products.draw(np.random.default_rng(3), 1000, 1, d_k)
    for side in (q, k):
        values, counts = np.unique(side[:, 0] @ code, return_counts=True)
        np.testing.assert_array_equal(values, np.unique(x @ code))
        assert stats.chisquare(counts).pvalue > 1e-7
    pairs = np.unique(np.stack([q[:, 0] @ code, k[:, 0] @ code]), axis=1)
    assert pairs.shape[1] == len(x) ** 2  # 64 of them, of which 1000 draws miss none


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
def test_random_sign_variance(d_k):
    ternary = enumeration.sparse_coin(Fraction(1, 4))  # variance 1/4: ‖q‖⁴ has 1/16 of it
    square = {Fraction(0): Fraction(3, 4), Fraction(1): Fraction(1, 4)}
    length = enumeration.total(square, d_k)
    fourth = float(enumeration.moment(ternary, 4) / enumeration.variance(ternary) ** 2)
    assert float(enumeration.moment(length, 2)) * 16 == pytest.approx(
        theory.random_sign_variance(fourth, d_k))
    assert theory.random_sign_variance(3.0, d_k) == d_k * (d_k + 2) == pytest.approx(
        stats.chi2(d_k).moment(2))
    assert theory.random_sign_variance(1.0, d_k) == d_k**2


def test_random_sign_gives_plus_or_minus_the_query():
    law = laws.random_sign(laws.normal)
    q, k = law.draw(np.random.default_rng(4), 2000, 4, 6)
    ratio = (k / q).mean(axis=-1)
    np.testing.assert_allclose(np.abs(k / q - ratio[..., None]).max(), 0, atol=1e-12)
    assert set(np.unique(ratio.round(12))) == {-1.0, 1.0}
    s = matched_scores(q, k)
    assert within_errors((s**2).mean(axis=1), theory.random_sign_variance(3.0, 6))
    assert within_errors((other_scores(q, k) ** 2).mean(axis=(1, 2)), 6.0)


@pytest.mark.parametrize("df", [0.8, 2.0, 5.0])
def test_multivariate_t_has_t_marginals_a_common_scale_and_the_correlation(df):
    rho, unit = 0.6, math.sqrt((df - 2) / df) if df > 2 else 1.0
    law = laws.multivariate_t(df, rho)
    t = stats.t(df, scale=unit)
    for x in law.draw(np.random.default_rng(5), 20000, 1, 3):
        assert stats.kstest(x[:, 0, 0], t.cdf).pvalue > 1e-7
        assert stats.kstest(x[:, 0, 2], t.cdf).pvalue > 1e-7
        # Projections of an elliptical vector have its marginal law.
        between = (x[:, 0, 0] - x[:, 0, 1]) / math.sqrt(2 * (1 - rho))
        assert stats.kstest(between, t.cdf).pvalue > 1e-7
        # Kendall's τ = 2/π arcsin ρ in every elliptical law; its standard error is below 1/√20000.
        tau = stats.kendalltau(x[:, 0, 0], x[:, 0, 1]).statistic
        assert abs(tau - 2 / math.pi * math.asin(rho)) < 6 / math.sqrt(20000)
    # With ρ = 0, x'x/d is F(d, df): a scale of each coordinate's own would make it a mean.
    x, _ = laws.multivariate_t(df, 0).draw(np.random.default_rng(6), 20000, 1, 8)
    assert stats.kstest((x[:, 0] ** 2).mean(axis=1) / unit**2, stats.f(8, df).cdf).pvalue > 1e-7


# --- tokens of a block ------------------------------------------------------------------------


@given(st.floats(-1, 1), st.integers(1, 12))
def test_memory_remembers_by_lag_and_forgets_nothing_of_its_variance(rho, tokens):
    x = remember(np.eye(tokens), rho)  # token t is x[t] @ z
    lag = np.abs(np.arange(tokens)[:, None] - np.arange(tokens))
    np.testing.assert_allclose(x @ x.T, rho**lag, atol=1e-12)
    v = np.sum(x.mean(axis=0) ** 2)
    assert theory.memory_block_variance(rho, tokens, 7) == pytest.approx(7 * v**2, abs=1e-12)


def test_memory_keeps_the_variance_of_a_pair_at_every_lag():
    law, d_k, rho = laws.memory(laws.laplace, 0.7), 4, 0.7
    q, k = law.draw(np.random.default_rng(7), 20000, 5, d_k)
    assert not law.coupled
    s = scores(q, k)
    assert within_errors(s, 0.0)
    assert within_errors(s**2, theory.dot_variance(law, d_k))
    assert within_errors(s[:, 0, 1] * s[:, 2, 4], d_k * rho**2 * rho**3)
    assert within_errors(s.mean(axis=(1, 2)) ** 2, theory.memory_block_variance(rho, 5, d_k))


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_topic_enumerated_with_coins(s):
    # Two tokens and one coordinate: z₁ z₂ z'₁ z'₂ c. Coordinates of a law are independent.
    z = np.array([*itertools.product([-1.0, 1.0], repeat=5)])
    q = math.sqrt(1 - s) * z[:, :2] + math.sqrt(s) * z[:, 4:]
    k = math.sqrt(1 - s) * z[:, 2:4] + math.sqrt(s) * z[:, 4:]
    pairs = q[:, :, None] * k[:, None, :]
    assert pairs.mean(axis=0) == pytest.approx(theory.topic_mean(s, 1))
    assert pairs.var(axis=0) == pytest.approx(theory.topic_variance(s, 1.0, 1), abs=1e-12)
    assert pairs.mean(axis=(1, 2)).var() == pytest.approx(
        theory.topic_block_variance(s, 1.0, 2, 1), abs=1e-12)


@pytest.mark.parametrize("base", [laws.normal, laws.uniform, laws.exponential], ids=name)
@pytest.mark.parametrize("d_k", [1, 6])
def test_topic_ties_a_query_to_every_key_alike(base, d_k):
    s, tokens = 0.6, 3
    law = laws.topic(base, s)
    q, k = law.draw(np.random.default_rng(8), 20000, tokens, d_k)
    mean = theory.topic_mean(s, d_k)
    variance = theory.topic_variance(s, base.fourth_moment, d_k)
    assert theory.matched_mean(law, d_k) == pytest.approx(mean)
    assert theory.matched_variance(law, d_k) == pytest.approx(variance)
    for values in (matched_scores(q, k), other_scores(q, k)):
        assert within_errors(values, mean)
        assert within_errors((values - mean) ** 2, variance)
    block = scores(q, k).mean(axis=(1, 2))
    assert within_errors((block - mean) ** 2,
                         theory.topic_block_variance(s, base.fourth_moment, tokens, d_k))


def test_topics_of_different_blocks_are_independent():
    q, k = laws.topic(laws.normal, 1.0).draw(np.random.default_rng(9), 5000, 2, 3)
    np.testing.assert_array_equal(q, k)
    np.testing.assert_array_equal(q[:, 0], q[:, 1])
    assert within_errors(q[:-1, 0] * q[1:, 0], 0.0)


def test_shared_query_is_one_query_for_all_keys_of_a_block():
    law, tokens, d_k = laws.shared_query(laws.normal), 4, 6
    q, k = law.draw(np.random.default_rng(10), 20000, tokens, d_k)
    np.testing.assert_array_equal(q, np.repeat(q[:, :1], tokens, axis=1))
    s = scores(q, k)
    assert within_errors(s**2, d_k)
    assert within_errors(s.mean(axis=(1, 2)) ** 2, d_k / tokens)  # not d_k/tokens²
    assert len(np.unique(k[..., 0])) == k[..., 0].size


# --- heavy tails ------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "distribution"), [(1, stats.cauchy()), (2, stats.norm())])
def test_stable_laws_known_in_closed_form(alpha, distribution):
    for x in laws.stable(alpha).draw(np.random.default_rng(11), 100, 20, 20):
        assert stats.kstest(x.ravel(), distribution.cdf).pvalue > 1e-7


@pytest.mark.parametrize("alpha", [0.3, 0.7, 0.999999, 1.0, 1.2, 1.8, 1.999])
def test_stable_characteristic_function(alpha):
    x, _ = laws.stable(alpha).draw(np.random.default_rng(12), 40000, 1, 1)
    t = np.array([0.05, 0.3, 1.0, 2.0, 5.0])
    assert within_errors(np.cos(x[:, 0] * t), np.exp(-(t**alpha)))
    assert within_errors(np.sin(x[:, 0] * t), 0.0)


@pytest.mark.parametrize("alpha", [0.7, 1.5])
def test_stable_shares_below_the_quantiles_that_scipy_integrates(alpha):
    x, _ = laws.stable(alpha).draw(np.random.default_rng(13), 40000, 1, 1)
    at = np.array([-20.0, -1.0, 0.0, 0.4, 3.0])
    assert within_errors((x[:, 0] <= at).astype(float), stats.levy_stable.cdf(at, alpha, 0))


@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.5])
def test_sums_of_stable_coordinates_have_their_shape(alpha):
    d_k = 16  # with coins for keys, q·k is d^(1/α) times a coordinate
    law = laws.independent(laws.stable(alpha), laws.rademacher)
    s = matched_scores(*law.draw(np.random.default_rng(14), 10000, 1, d_k)).ravel()
    x, _ = laws.stable(alpha).draw(np.random.default_rng(15), 10000, 1, 1)
    assert stats.ks_2samp(s / d_k ** (1 / alpha), x.ravel()).pvalue > 1e-7


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "message"), [
    (lambda: laws.linear(3, ROOT), "is not a law"),
    (lambda: laws.linear(laws.topic(laws.normal, 0.1), ROOT), "independent coordinates"),
    (lambda: laws.linear(laws.normal, rising), "needs a name"),
    (lambda: laws.linear(laws.normal, np.zeros((2, 0))), "a root has the shape"),
    (lambda: laws.linear(laws.normal, np.zeros((2, 2, 2))), "a root has the shape"),
    (lambda: laws.linear(laws.normal, [[math.nan]]), "a root has the shape"),
    (lambda: laws.linear(laws.normal, ROOT, np.eye(2)), r"have \[2, 3\] coordinates"),
    (lambda: laws.linear(laws.normal, ROOT, mean_q=[1.0, 2.0]), r"have \[2, 3\] coordinates"),
    (lambda: laws.linear(laws.normal, ROOT, mean_k=math.inf), "must be a finite number"),
    (lambda: laws.linear(laws.normal, ROOT).moments(4), "d_k is 4; give d_k=3"),
    (lambda: laws.gaussian(COV).draw(np.random.default_rng(0), 1, 1, 8), "d_k is 8; give d_k=3"),
    (lambda: laws.linear(laws.normal, ROOT, np.eye(3), joint=True).moments(3), "4 and 3 columns"),
    (lambda: laws.linear(laws.normal, rising, mean_q=[1.0], name="a").moments(2),
     "1 coordinates and d_k is 2"),
    (lambda: laws.linear(laws.normal, lambda d_k: np.ones(3), name="a").moments(2),
     "a root has the shape"),
    (lambda: laws.gaussian(np.ones(3)), "square matrix"),
    (lambda: laws.gaussian(np.array([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
    (lambda: laws.gaussian(np.diag([1.0, -0.1])), "smallest eigenvalue -0.1"),
    (lambda: laws.gaussian(COV, cross=3 * CROSS), "positive semidefinite"),
    (lambda: laws.gaussian(COV, cross=np.eye(2)), "all must be equal"),
    (lambda: laws.autoregressive(laws.normal, 1.1), "between -1 and 1"),
    (lambda: laws.low_rank(laws.normal, 0), "whole number of at least 1"),
    (lambda: laws.low_rank(laws.normal, 1.5), "whole number of at least 1"),
    (lambda: laws.unequal(laws.normal, math.inf), "finite"),
    (lambda: laws.scaled(laws.normal, 0, 1), "must be positive"),
    (lambda: laws.scaled("normal", 1, 1), "is not a law"),
    (lambda: laws.random_sign(laws.sign_products), "independent coordinates"),
    (lambda: laws.multivariate_t(0, 0.1), "df must be positive"),
    (lambda: laws.multivariate_t(5, -0.1), "between 0 and 1"),
    (lambda: laws.memory(laws.normal, 2), "between -1 and 1"),
    (lambda: laws.memory(laws.iid(stats.norm(1), raw=True), 0.5), "mean 0 and a variance"),
    (lambda: laws.topic(laws.student_t(2), 0.5), "mean 0 and a variance"),
    (lambda: laws.topic(laws.normal, 1.5), "between 0 and 1"),
    (lambda: laws.shared_query(laws.identical(laws.normal)), "belongs to one key"),
    (lambda: laws.stable(0.05), "at least 0.1"),
    (lambda: laws.stable(2.1), "at most 2"),
])
def test_impossible_laws_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
