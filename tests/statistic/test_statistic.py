"""Statistics against numpy and scipy on all values, and their intervals against hand values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mcverify.statistic.base import (
    Statistic,
    exact,
    kurtosis,
    mean,
    median,
    proportion,
    quantile,
    ratio,
    slope,
    std,
    studentised,
    variance,
)
from mcverify.statistic.studentised import chernoff

RNG = np.random.default_rng(12)
VALUES = RNG.standard_normal((200, 7, 5)) ** 3
RATE = 1e-3


def estimate(statistic, values, rate=RATE):
    return statistic.estimate(statistic.reduce(values), rate)


@pytest.mark.parametrize(("statistic", "expected"), [
    (mean, np.mean),
    (kurtosis, lambda x: stats.kurtosis(x, axis=None)),
    (median, lambda x: np.quantile(x, 0.5, method="inverted_cdf")),
    (quantile(0.9), lambda x: np.quantile(x, 0.9, method="inverted_cdf")),
])
def test_estimates_are_those_of_all_values_together(statistic, expected):
    assert estimate(statistic, VALUES).value == pytest.approx(expected(VALUES), rel=1e-12)


def test_variance_is_unbiased_from_block_to_block():
    # With one value a block it is the usual unbiased variance, block by block.
    assert estimate(variance, np.array([[1.0], [4.0]])).value == 4.5
    assert estimate(variance, np.array([[1.0, 3.0]])).value == 1  # has no spread of its own
    single = VALUES[:, :1, 0]
    assert estimate(variance, single).value == pytest.approx(single.var(ddof=1), rel=1e-12)
    assert estimate(variance, VALUES).value == pytest.approx(VALUES.var(), rel=1e-2)


def test_std_is_the_root_of_the_variance_with_its_interval():
    squared = estimate(variance, np.cbrt(VALUES))
    found = estimate(std, np.cbrt(VALUES))
    assert (found.value, found.low, found.high) == pytest.approx(
        tuple(math.sqrt(x) for x in (squared.value, squared.low, squared.high)))
    assert found.stderr == pytest.approx(squared.stderr / (2 * found.value), rel=1e-2)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("cut", [1, 2, 50])
def test_variance_survives_a_large_mean_and_any_chunking(offset, cut):
    x = np.tile(np.array([1.0, 2.0, 3.0]), (100, 1)) + offset
    x[::2] = x[::2, ::-1]
    table = np.concatenate([variance.reduce(part) for part in np.split(x, cut)])
    assert variance.influence(table)[0] == pytest.approx(2 / 3, rel=1e-12)


@given(st.integers(0, 2**32), st.floats(-3, 3), st.floats(0.1, 10))
def test_moments_move_with_shift_and_scale(seed, shift, scale):
    x = np.random.default_rng(seed).standard_exponential((64, 4))
    moved = scale * x + shift
    for statistic, power in ((mean, 1), (variance, 2), (std, 1), (kurtosis, 0)):
        expected = estimate(statistic, x).value * scale**power + (shift if statistic is mean else 0)
        assert estimate(statistic, moved).value == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("statistic", [mean, variance, std, kurtosis, median, quantile(0.8)],
                         ids=lambda s: s.name)
def test_standard_error_is_the_scatter(statistic):
    found = [estimate(statistic, np.random.default_rng(i).gamma(4.0, size=(256, 10)))
             for i in range(400)]
    scatter = np.std([f.value for f in found])
    assert np.sqrt(np.mean([f.stderr**2 for f in found])) == pytest.approx(scatter, rel=0.2)


def test_scores_that_share_a_query_do_not_count_as_independent():
    q, k = RNG.standard_normal((2, 500, 30, 1))
    s = q @ np.swapaxes(k, 1, 2)
    honest = estimate(variance, s).stderr
    naive = estimate(variance, s.reshape(-1, 1)).stderr
    assert honest > 2.5 * naive


def test_ratio_is_that_of_the_means_and_its_error_uses_the_pairing():
    a = RNG.gamma(3.0, size=(300, 4))
    found = estimate(ratio, (2 * a, a))
    assert found.value == pytest.approx(2)
    assert "do not vary" in found.reason
    b = a + 0.1 * RNG.standard_normal(a.shape)
    paired, apart = estimate(ratio, (a, b)), estimate(ratio, (a, b[::-1]))
    assert paired.value == pytest.approx(a.mean() / b.mean())
    assert paired.stderr < apart.stderr / 3


def test_slope_finds_the_exponent():
    z = RNG.standard_normal((300, 64))
    found = estimate(slope(variance), [(d, z * d**1.5) for d in (1, 4, 16)])
    assert found.value == pytest.approx(3.0, abs=1e-12)
    of_std = estimate(slope(std), [(d, z * d**1.5) for d in (1, 4, 16)])
    assert of_std.value == pytest.approx(1.5, abs=1e-12)
    assert of_std.stderr == pytest.approx(found.stderr / 2, rel=1e-6)
    of_median = estimate(slope(median), [(d, abs(z) * d**1.5) for d in (1, 4, 16)])
    assert of_median.value == pytest.approx(1.5, abs=1e-12)
    assert of_median.low < 1.5 < of_median.high
    for of, values in ((mean, z - 10), (mean, 0 * z), (mean, 0 * z - 0.5), (std, 0 * z)):
        with pytest.raises(ValueError, match="only a positive number grows like a power"):
            estimate(slope(of), [(d, values) for d in (1, 2)])
    with pytest.raises(ValueError, match="list of at least two pairs"):
        slope(mean).reduce(z)
    with pytest.raises(ValueError, match="list of at least two pairs"):
        slope(mean).reduce([(1, z)])


def test_interval_by_hand():
    # 40 blocks, ten each of 1, 2, 3, 4: no skewness, variance 50/39, t(39) at 2.5 % a side.
    found = mean.estimate(np.tile(np.arange(1.0, 5.0), 10)[:, None], 0.05)
    half = stats.t(39).isf(0.025) * math.sqrt(50 / 39 / 40)
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half))
    assert found.stderr == pytest.approx(math.sqrt(50 / 39 / 40))


def test_interval_is_widened_for_skewness_by_the_edgeworth_term():
    x = np.concatenate([np.zeros(300), np.ones(100)])
    found = studentised(0.25, x - 0.25, 1e-3)
    t = stats.t(399).isf(5e-4)
    skewness = stats.skew(x)
    delta = skewness * (2 * t**2 + 1) / (6 * 20)
    assert (found.high - found.low) / 2 / found.stderr == pytest.approx(t + delta, rel=1e-9)


def test_parts_of_a_curved_influence_pay_for_their_skewness():
    x = RNG.standard_normal(1000)
    skew = RNG.standard_exponential((1000, 2))
    plain, paid = (studentised(0.0, x - x.mean(), 1e-3, parts) for parts in (None, skew))
    t = stats.t(999).isf(5e-4)
    delta = np.abs(stats.skew(skew)).max() * (2 * t**2 + 1) / (6 * math.sqrt(1000))
    second = stats.kurtosis(skew).max() / 2 * t**3 / 1000
    assert paid.high / paid.stderr == pytest.approx(t + delta + second, rel=1e-9)
    assert plain.high < paid.high
    assert "too few" in studentised(0.0, x - x.mean(), 1e-3, caution=1000).reason


@pytest.mark.parametrize(("values", "reason"), [
    (np.ones((64, 3)), "do not vary"),
    (np.zeros((64, 3)), "do not vary"),
    (np.ones((64, 3)) + 1e-15 * RNG.standard_normal((64, 3)), "do not vary"),
    (np.eye(256)[:, :1] + 1e-3 * RNG.standard_normal((256, 1)), "too skew"),
    (RNG.standard_normal((64, 3)), "64 blocks are too few at this error rate"),
    (np.ones((1, 3)), "one block"),
])
def test_no_interval_where_none_is_honest(values, reason):
    found = estimate(mean, values)
    assert reason in found.reason
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_quantile_interval_is_made_of_values_that_the_draws_do_not_contradict():
    x = np.sort(RNG.standard_normal(4000))[:, None]
    found = estimate(median, x)
    # Independent values: the binomial interval of order statistics, from t instead of z.
    low, high = stats.binom(4000, 0.5).interval(1 - RATE)
    assert abs(np.searchsorted(x[:, 0], found.low) - low) < 8
    assert abs(np.searchsorted(x[:, 0], found.high) - high) < 8
    assert found.low < found.value < found.high
    assert "do not vary" in estimate(median, np.ones((64, 3))).reason
    assert "too few blocks" in estimate(quantile(0.999), x[:64]).reason


@given(st.integers(0, 64), st.sampled_from([64, 1024, 2**20]), st.sampled_from([1e-3, 1e-11]))
def test_proportion_interval_solves_chernoffs_bound(share, blocks, rate):
    p = share / 64
    table = np.repeat([1.0, 0.0], [share, 64 - share])[:, None]
    found = proportion.estimate(np.tile(table, (blocks // 64, 1)), rate)
    assert found.value == p
    for mu in (found.low, found.high):
        if 0 < mu < 1:
            kl = sum(a * math.log(a / b) for a, b in ((p, mu), (1 - p, 1 - mu)) if a > 0)
            assert blocks * kl == pytest.approx(math.log(2 / rate), rel=1e-3)
        else:
            assert mu == p
    if p == 1:
        assert found.low == pytest.approx((rate / 2) ** (1 / blocks), rel=1e-9)


def test_a_rare_event_that_has_not_occurred_is_no_evidence_against_it():
    never = np.zeros((64, 1))
    assert estimate(mean, never).high == math.inf
    assert estimate(proportion, never).high > 0.1


def test_what_a_statistic_cannot_take_it_says():
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        proportion.reduce(np.array([[2.0]]))
    with pytest.raises(ValueError, match="one number"):
        exact.reduce([1.0, 2.0])
    with pytest.raises(ValueError, match="tuple of two arrays"):
        ratio.reduce(np.ones((3, 3)))
    for level in (0, 1, 1.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            quantile(level)
    assert math.isnan(kurtosis.influence(kurtosis.reduce(np.ones((3, 2))))[0])


def test_a_statistic_of_ones_own_needs_only_the_two_halves():
    second = Statistic("second moment", lambda x: (np.asarray(x) ** 2).mean(axis=1, keepdims=True),
                       mean.influence, moments=6)
    found = estimate(second, VALUES[:, :, 0])
    assert found.value == pytest.approx((VALUES[:, :, 0] ** 2).mean())


def test_moments_asked_for():
    assert [s.moments for s in (mean, variance, std, kurtosis, ratio, median, proportion, exact)
            ] == [3, 6, 6, 12, 3, 0, 0, 0]
    assert variance.of_degree(2).moments == 12
    assert mean.within(0, 1).moments == 0
    assert slope(variance).moments == 6


# --- every number of an estimate, by hand ------------------------------------------------------


def pairs_of(x):
    return [(d, np.exp(0.1 * x[:, i::3]) * d**0.7) for i, d in enumerate((1, 3, 4))]


SMOOTH = {
    mean: lambda x: x, variance: lambda x: x, kurtosis: lambda x: x,
    ratio: lambda x: (x[:, :2] + 5, x[:, 2:] + 3), slope(mean): pairs_of, slope(std): pairs_of,
    slope(kurtosis): lambda x: [(d, np.sinh(x[:, i::3])) for i, d in enumerate((1, 3, 4))],
}


@pytest.mark.parametrize("statistic", SMOOTH, ids=lambda s: s.name)
def test_influence_is_what_one_block_more_changes(statistic):
    """With every block counted 2000 times, once more for one of them moves the estimate by its
    influence over all that are counted."""
    x = np.random.default_rng(5).gamma(4.0, size=(16, 12))
    table = statistic.reduce(SMOOTH[statistic](x))
    many = np.tile(table, (2000,) + (1,) * (table.ndim - 1))
    value, influence = statistic.influence(many)
    assert influence.mean() == pytest.approx(0, abs=1e-9 * np.abs(influence).max())
    for block in (0, 7, 15):
        more = statistic.influence(np.concatenate([many, table[block : block + 1]]))[0]
        change = (more - value) * (len(many) + 1)
        assert change == pytest.approx(influence[block], abs=2e-3 * np.abs(influence).max())


def same(found, expected):
    assert (found.value, found.stderr, found.low, found.high) == pytest.approx(
        (expected.value, expected.stderr, expected.low, expected.high), rel=1e-9)
    assert found.reason == expected.reason == ""


def test_variance_pays_for_the_square_of_its_blocks_mean():
    x = RNG.standard_normal((400, 4)) + 0.5
    means = x.mean(axis=1)
    squares = x.var(axis=1) + (means - means.mean()) ** 2 * 400 / 399
    value = squares.mean()
    same(estimate(variance, x), studentised(value, squares - value, RATE,
                                            curvature=((means - means.mean()) ** 2).mean()))


def test_kurtosis_pays_for_its_second_and_fourth_moments():
    x = RNG.uniform(-1, 1.5, (4000, 8)) ** 3
    about = x - x.mean()
    y2, y4 = (about**2).mean(axis=1), (about**4).mean(axis=1)
    value, influence = kurtosis.influence(kurtosis.reduce(x))
    same(estimate(kurtosis, x), studentised(value, influence, RATE, np.stack([y2, y4], axis=1),
                                            caution=64))
    first = next(n for n in range(2, 4000) if n >= 64 * stats.t(n - 1).isf(RATE / 2) ** 2)
    assert estimate(kurtosis, x[:first]).reason == ""
    for n in (first - 1, first - 100):
        assert estimate(kurtosis, x[:n]).reason == f"{n} blocks are too few at this error rate"


def test_kurtosis_is_trusted_up_to_a_half():
    u = np.random.default_rng(8).uniform(-1, 1, (800, 8))
    t = stats.t(799).isf(RATE / 2)
    deltas = []
    for power in np.arange(1.0, 40.0, 1.0):
        x = np.sign(u) * np.abs(u) ** power
        about = x - x.mean()
        columns = [kurtosis.influence(kurtosis.reduce(x))[1],
                   *((about**n).mean(axis=1) for n in (2, 4))]
        skewness = max(abs(stats.skew(column)) for column in columns)
        deltas.append(skewness * (2 * t**2 + 1) / (6 * math.sqrt(800)))
        assert (estimate(kurtosis, x).reason == "") == (deltas[-1] <= 0.5)
    for low, high in ((0.2, 0.35), (0.35, 0.5), (0.5, 0.7)):
        assert any(low < delta < high for delta in deltas)


def test_ratio_pays_for_an_error_that_its_spread_shares():
    bottom = RNG.gamma(4.0, size=(500, 3)) + 5
    top = bottom.mean(axis=1, keepdims=True) ** 1.5 + RNG.standard_normal((500, 3))
    a, b = top.mean(axis=1), bottom.mean(axis=1)
    value = a.mean() / b.mean()
    influence = (a - value * b) / b.mean()
    lean = abs(np.cov(influence, b, ddof=0)[0, 1]) / influence.std() / b.mean()
    assert lean > 0.01
    same(estimate(ratio, (top, bottom)), studentised(value, influence, RATE, lean=lean))


def test_slope_is_the_least_squares_line_through_logs_of_log():
    x = RNG.gamma(4.0, size=(300, 12))
    values = pairs_of(x)
    logs = [math.log(part.mean()) for _, part in values]
    expected = np.polyfit(np.log([1, 3, 4]), logs, 1)[0]
    found = estimate(slope(mean), values)
    assert found.value == pytest.approx(expected, rel=1e-12)
    columns = [part.mean(axis=1) for _, part in values]
    t = np.log([1, 3, 4]) - np.log(12) / 3
    shares = [(c - c.mean()) / c.mean() for c in columns]
    influence = t / (t @ t) @ shares
    bends = np.mean(shares * influence, axis=1) ** 2
    lean = abs(t / (t @ t) @ bends) / (2 * influence.std() ** 3)
    assert lean > 1e-4
    same(found, studentised(expected, influence, RATE, np.stack(columns, axis=1), lean=lean))


PAIRED = {  # whose means, or means of squares, a change of the blocks' weights moves linearly
    ratio: lambda x: (x[:, :1] + 5, x[:, 1:] + 3),
    slope(mean): lambda x: [(1, x[:, :1] + 2), (4, x[:, 1:] ** 2)],
    slope(variance): lambda x: [(1, x[:, :1] * [1, -1]), (4, x[:, 1:] ** 2 * [1, -1])],
    slope(std): lambda x: [(1, x[:, :1] * [1, -1]), (4, x[:, 1:] ** 2 * [1, -1])],
}


@pytest.mark.parametrize("statistic", PAIRED, ids=lambda s: s.name)
def test_lean_is_the_second_order_of_the_studentised_error(statistic):
    """Blocks that count a little more where the influence is large move the estimate by a known
    error, and the spread with it: the studentised error is z + lean·z², z that of a mean."""
    x = np.random.default_rng(6).gamma(4.0, size=(16, 2))
    table = statistic.reduce(PAIRED[statistic](x))
    value, influence = statistic.influence(np.repeat(table, 10_000, axis=0))
    y = influence[::10_000]
    for sign in (1, -1):
        counts = np.rint(1e4 * (1 + sign * 0.02 * y / y.std())).astype(int)
        moved, spread = statistic.influence(np.repeat(table, counts, axis=0))
        weights = counts / counts.sum()
        mean_of_y = weights @ y
        z = mean_of_y / math.sqrt(weights @ y**2 - mean_of_y**2)
        found = (moved - value) / spread.std()
        lean = statistic.lean(table)
        assert lean > 1e-3
        assert abs(found - z) / z**2 == pytest.approx(lean, rel=0.1)


def test_slope_pays_for_the_parts_of_what_it_is_a_slope_of():
    x = RNG.uniform(-1, 1, (4000, 40))
    values = [(1, x[:, :20] ** 3), (2, x[:, 20:] ** 5)]
    tables = [kurtosis.reduce(part) for _, part in values]
    parts = np.concatenate([np.column_stack([kurtosis.influence(t)[1], kurtosis.parts(t)])
                            for t in tables], axis=1)
    whole = slope(kurtosis)
    value, influence = whole.influence(whole.reduce(values))
    same(estimate(whole, values, 0.3), studentised(
        value, influence, 0.3, parts, caution=64,
        lean=whole.lean(whole.reduce(values))))
    early = estimate(whole, [(d, part[:600]) for d, part in values])
    assert early.reason == "600 blocks are too few at this error rate"


def test_slope_of_a_quantile_joins_the_intervals_that_share_the_error_rate():
    x = RNG.gamma(4.0, size=(500, 12))
    values = pairs_of(x)
    one, three, four = (estimate(median, part, RATE / 3) for _, part in values)
    t = np.log([1, 3, 4]) - np.log(12) / 3
    w = t / (t @ t)
    assert w[0] < 0 < w[1] < w[2]
    found = estimate(slope(median), values)
    for value, ends in ((found.value, (one.value, three.value, four.value)),
                        (found.low, (one.high, three.low, four.low)),
                        (found.high, (one.low, three.high, four.high))):
        assert value == pytest.approx(w @ np.log(ends), rel=1e-12)
    errors = [each.stderr / each.value for each in (one, three, four)]
    assert found.stderr == pytest.approx(math.sqrt(sum((w * errors) ** 2)), rel=1e-12)
    assert found.reason == ""
    early = estimate(slope(quantile(0.999)), [(d, part[:8, :1]) for d, part in values])
    assert early.reason == "too few blocks to bound quantile 0.999"
    assert early.high == math.inf
    few = estimate(slope(median), [(d, part[:3]) for d, part in values])
    assert (few.low, few.high) == (-math.inf, math.inf)
    assert few.reason == "too few blocks to bound median"


def test_the_root_of_what_is_below_zero_is_zero():
    assert [std.back(value) for value in (4.0, 0.0, -1.0)] == [2.0, 0.0, 0.0]


def quantile_one_by_one(x, level, rate):
    """The quantile, and the nearest contradicted values, of all values asked one by one."""
    value = np.quantile(x, level, method="inverted_cdf")
    below, above = -math.inf, math.inf
    for candidate in np.unique(x):
        share = (x <= candidate).mean(axis=1)
        found = studentised(share.mean(), share - share.mean(), rate)
        found = chernoff(share, rate) if found.reason else found
        if candidate < value and found.high < level:
            below = candidate
        if candidate >= value and found.low > level:
            above = min(above, candidate)
    return value, below, above


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5, 0.9, 0.97]),
       st.sampled_from([(1, 150), (3, 60), (20, 12)]), st.sampled_from([1e-2, 1e-6]), st.booleans())
def test_quantile_interval_ends_at_the_nearest_values_that_are_contradicted(
        seed, level, shape, rate, coarse):
    tokens, blocks = shape
    x = np.random.default_rng(seed).standard_normal((blocks, tokens))
    x = np.round(2 * x) if coarse else x  # with ties
    value, below, above = quantile_one_by_one(x, level, rate)
    found = quantile(level).estimate(x, rate)
    assert (found.value, found.low, found.high) == (value, below, above)
    name = "median" if level == 0.5 else f"quantile {level}"
    if math.isfinite(above - below):
        assert found.reason == ""
    else:
        assert found.reason == f"too few blocks to bound {name}"


@pytest.mark.parametrize(("level", "ends"), [(0.5, {"low": 17, "high": 11}),
                                             (0.9, {"low": 6, "high": 73})])
def test_quantile_interval_from_the_first_blocks_that_bound_it(level, ends):
    """The high end begins at the largest value, from level^blocks < 5e-4 on, and the low one at
    the smallest, from blocks·kl(1/blocks, level) > ln 2000 on."""
    first = {}
    for blocks in range(2, 80):
        x = np.arange(float(blocks))[:, None]
        found = quantile(level).estimate(x, 1e-3)
        if blocks < 20 or blocks in ends.values():
            assert (found.value, found.low, found.high) == quantile_one_by_one(x, level, 1e-3)
        for end in ("low", "high"):
            if math.isfinite(getattr(found, end)):
                first.setdefault(end, blocks)
    assert first == ends


@pytest.mark.parametrize("level", [0.002, 0.1, 0.5, 0.97, 0.998])
def test_standard_error_of_a_quantile_is_a_quarter_of_the_distance_of_two_on_either_side(level):
    x = np.random.default_rng(9).laplace(size=(60, 12)).cumsum(axis=1)  # dependent in a block
    found = quantile(level).estimate(x, 1e-2)
    below = (x <= found.value).mean(axis=1)
    error = stats.sem(below)
    ends = np.quantile(x, np.clip([level - 2 * error, level + 2 * error], 0, 1),
                       method="inverted_cdf")
    assert found.stderr == pytest.approx((ends[1] - ends[0]) / 4, rel=1e-12)
    assert found.stderr > 0


def test_quantile_of_one_block_and_of_a_few_values():
    # One block is no evidence on a share strictly between 0 and 1.
    found = median.estimate(np.array([[1.0, 2.0, 3.0]]), 1e-3)
    assert (found.value, found.low, found.high) == (2.0, -math.inf, math.inf)
    assert math.isnan(found.stderr)
    # All but one agree, and that one is seen.
    for other in (4.0, 6.0):
        most = np.repeat([5.0, other], [63, 1])[:, None]
        found = median.estimate(most, 1e-3)
        assert (found.value, found.low, found.high) == quantile_one_by_one(most, 0.5, 1e-3)
        assert ("do not vary" in found.reason) is False
    flat = median.estimate(np.full((9, 2), 5.0), 1e-3)
    assert (flat.value, flat.stderr) == (5.0, 0.0)
    assert flat.reason == "the values do not vary; use the statistic proportion"
    value, influence = quantile(0.25).influence(np.arange(8.0).reshape(4, 2))
    assert value == 1.0  # a quarter of the values lie at or below it
    np.testing.assert_array_equal(influence, [-0.75, 0.25, 0.25, 0.25])


def test_shares_reach_from_zero_to_one_and_no_further():
    shares = proportion.reduce(np.array([[0.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(shares, [[0.5], [1.0]])
    for bad in (-1e-9, 1 + 1e-9, math.nan):
        with pytest.raises(ValueError, match=r"from .* to .*use the statistic mean"):
            proportion.reduce(np.array([[0.5, bad]]))


def test_a_hand_calculation_is_its_own_interval():
    found = estimate(exact, 2.5)
    assert (found.value, found.stderr, found.low, found.high, found.reason) == (
        2.5, 0.0, 2.5, 2.5, "")
    assert exact.influence(exact.reduce([[3.0]]))[0] == 3


def test_ratio_to_zero_is_not_a_number():
    value, influence = ratio.influence(np.array([[1.0, 1.0], [2.0, -1.0], [3.0, 0.0]]))
    assert math.isnan(value)
    np.testing.assert_array_equal(influence, [0, 0, 0])
    with pytest.raises(ValueError, match="returned tuple; it must"):
        ratio.reduce((np.ones((2, 1)),) * 3)
    with pytest.raises(ValueError, match="returned list; it must"):
        ratio.reduce([np.ones((2, 1))] * 2)


def test_names():
    assert [s.name for s in (mean, variance, std, kurtosis, ratio, proportion, exact, median,
                             quantile(0.9), slope(std))] == [
        "mean", "variance", "std", "kurtosis", "ratio", "proportion", "exact", "median",
        "quantile 0.9", "slope of std"]
