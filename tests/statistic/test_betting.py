"""The betting interval: its theorem step by step, exact ends, numerical edges, and its misses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.optimize import brentq, minimize_scalar

from mcverify.statistic import Basis, mean, proportion
from mcverify.statistic.betting import interval_of_mean, log_wealth, lower_root, threshold
from mcverify.verdict import CASE_ERROR_RATE

RNG = np.random.default_rng(7)


def kl(p, m):
    return special.rel_entr(p, m) + special.rel_entr(1 - p, 1 - m)


def ends_of(shares, rate):
    low, from_one = interval_of_mean(np.asarray(shares, dtype=np.float64), rate)
    return low, 1 - from_one


# --- the theorem ------------------------------------------------------------------------------


def mixture(shares, m):
    """The wealth of the universal portfolio, exactly: Chebyshev's nodes are those of Gauss for its
    prior, and the wealth is a polynomial of degree n in b."""
    nodes = np.arange(1, len(shares) + 1)
    b = np.cos((2 * nodes - 1) * np.pi / (4 * len(nodes))) ** 2
    return np.prod(np.outer(b, shares / m) + np.outer(1 - b, (1 - shares) / (1 - m)), axis=1).mean()


def test_the_portfolio_is_worth_one_on_average():
    m = 0.3
    outcomes = np.array(np.meshgrid(*[[0.0, 1.0]] * 6)).reshape(6, -1).T
    chances = np.prod(np.where(outcomes == 1, m, 1 - m), axis=1)
    worth = [mixture(outcome, m) for outcome in outcomes]
    assert chances @ worth == pytest.approx(1, rel=1e-12)


def test_the_portfolio_falls_behind_the_best_bet_by_a_known_factor_at_most():
    # Of n blocks with k ones: the largest factor, at k = 0 or n, is √π·Γ(n+1)/Γ(n+1/2), which is at
    # most √(πn + 1) and so at most 2√(n + 1)/1.128.
    for n in (1, 2, 3, 10, 512, 2**20):
        k = np.unique(np.geomspace(1, n + 1, 1000).astype(int)) - 1
        behind = (special.xlogy(k, k / n) + special.xlogy(n - k, 1 - k / n) + math.log(math.pi)
                  - special.betaln(k + 0.5, n - k + 0.5))
        assert behind.argmax() in (0, len(k) - 1)
        assert behind.max() <= math.log(math.pi * n + 1) / 2 + 1e-9
        assert math.log(math.pi * n + 1) / 2 < math.log(2 * math.sqrt(n + 1) / 1.128)
        assert threshold(n, 0.01) == pytest.approx(math.log(100 * 2 * math.sqrt(n + 1)), rel=1e-14)


@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(0.02, 0.98), st.floats(0.05, 20))
def test_no_values_take_more_from_the_portfolio_than_ones_and_zeros(seed, n, m, shape):
    shares = np.random.default_rng(seed).beta(shape, shape, n)
    best = log_wealth(shares - m, -1 / (1 - m), 1 / m)
    assert 0 <= best - math.log(mixture(shares, m)) <= math.log(math.pi * n + 1) / 2 + 1e-9


def refuted(n, m, limit):
    """Whether so many ones of n, from none to all, refute the mean m."""
    return n * kl(np.arange(n + 1) / n, m) > limit(n)


def ever_refuted(m, blocks, limit):
    """The probability that 0/1 values of mean m refute it at any number of blocks: exactly."""
    alive, lost = np.array([1.0]), 0.0  # alive[k] = P(k ones, and not refuted yet)
    for n in range(1, blocks + 1):
        alive = np.append(alive * (1 - m), 0) + np.append(0, alive * m)
        out = refuted(n, m, limit)
        lost, alive = lost + alive[out].sum(), np.where(out, 0, alive)
    return lost


@pytest.mark.parametrize("rate", [0.3, 1e-2, CASE_ERROR_RATE])
@pytest.mark.parametrize("m", [0.002, 0.1, 0.5])
def test_a_true_mean_is_refuted_at_no_time_but_for_the_error_rate(m, rate):
    lost = ever_refuted(m, 1500, lambda n: threshold(n, rate))
    assert 1e-3 * rate < lost <= rate


def test_without_what_the_portfolio_falls_behind_it_would_be_refuted_too_often():
    assert ever_refuted(0.5, 1500, lambda n: math.log(2 / 0.01)) > 0.02  # Chernoff's, at each n


# --- the best bet -----------------------------------------------------------------------------


def best_bet(gains, least, most):
    """By a grid of log odds of the share of the largest bet, and SciPy between its points."""
    grid, found = np.linspace(-45, 36, 150), 0.0
    for edge in (least, most):
        def loss(odds, edge=edge):
            with np.errstate(all="ignore"):
                wealth = float(np.log1p(special.expit(odds) * edge * gains).sum())
            return -wealth if math.isfinite(wealth) else math.inf

        top = int(np.argmin([loss(odds) for odds in grid]))
        bounds = grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)]
        close = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-8})
        found = max(found, -close.fun, -loss(40.0))
    return found


AWKWARD = {
    "uniform": RNG.random(300), "events": (RNG.random(300) < 0.02) * 1.0,
    "one": (np.arange(300) < 1) * 1.0, "constant": np.full(300, 0.7), "two": np.array([1.0, 0.3]),
    "narrow": 0.3 + 1e-6 * RNG.random(300), "edges": RNG.beta(0.01, 0.01, 300),
    "tiny-or-one": np.where(RNG.random(300) < 0.05, 1.0, 1e-17),
    "zero-or-nearly-one": np.where(RNG.random(300) < 0.05, 0.0, 1 - 1e-12),
    "all-sizes": 10.0 ** -RNG.uniform(0, 300, 300), "single": np.array([0.25]),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_the_best_bet_is_that_of_a_search(name):
    shares = AWKWARD[name]
    centre = shares.mean()
    for factor in (1e-20, 0.01, 0.5, 0.9, 0.999, 1.001, 1.1, 2):
        m = centre * factor if factor < 1 else 1 - (1 - centre) / factor
        if not centre < m < 1 and factor > 1:
            continue  # nothing of double precision between
        arguments = shares - m, -1 / (1 - m), 1 / m
        expected = best_bet(*arguments)
        assert log_wealth(*arguments) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@given(st.integers(0, 2**32), st.floats(0.05, 5), st.floats(0.05, 5))
def test_the_best_bet_grows_with_the_distance_of_the_mean(seed, a, b):
    """So the means that are not refuted are an interval, with the sample mean in it."""
    shares = np.random.default_rng(seed).beta(a, b, 30)
    m = np.linspace(0, 1, 60)[1:-1]
    wealth = np.array([log_wealth(shares - each, -1 / (1 - each), 1 / each) for each in m])
    rising = np.diff(wealth) * np.sign(m[:-1] - shares.mean())
    beside = (m[:-1] - shares.mean()) * (m[1:] - shares.mean()) > 0
    assert np.all(rising[beside] >= -1e-9)


# --- the ends, exactly ------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.5, 1e-3, 1e-10, 1e-30])
@pytest.mark.parametrize(("ones", "blocks"), [
    (1, 2), (0, 64), (64, 64), (3, 64), (1, 512), (256, 512), (511, 512), (3, 2**14),
    (2**14 - 3, 2**14),
])
def test_of_zeros_and_ones_the_ends_solve_chernoffs_equation(ones, blocks, rate):
    shares, p = (np.arange(blocks) < ones) * 1.0, ones / blocks
    limit = -math.log(rate) + math.log(2 * math.sqrt(blocks + 1))
    below, from_one = interval_of_mean(shares, rate)

    def solved(p):
        """The least m with blocks·kl(p, m) = limit, where ln m is what is sought."""
        if p in (0.0, 1.0):
            return math.exp(-limit / blocks) if p else 0.0
        return math.exp(brentq(lambda u: blocks * kl(p, math.exp(u)) - limit,
                               -690, math.log(p), xtol=1e-13))

    for found, exact in ((below, solved(p)), (from_one, solved(1 - p))):
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-12)  # rounded to the safe side


@pytest.mark.parametrize("value", [1e-105, 1e-17, 0.3, 0.7])
@pytest.mark.parametrize("blocks", [1, 2, 512, 2**16])
def test_of_a_constant_each_block_divides_what_is_left(value, blocks):
    """A mean m pays value/m a block at most: so the low end is value·exp(−limit/blocks)."""
    left = math.exp(-threshold(blocks, 1e-10) / blocks)
    below, from_one = interval_of_mean(np.full(blocks, value), 1e-10)
    assert below == pytest.approx(value * left, rel=1e-9)
    assert from_one == pytest.approx((1 - value) * left, rel=1e-9)


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("rate", [0.1, 1e-10])
def test_at_the_ends_the_best_bet_makes_just_the_limit(name, rate):
    shares, limit = AWKWARD[name], threshold(len(AWKWARD[name]), rate)
    for x, end in zip((shares, 1 - shares), interval_of_mean(shares, rate), strict=True):
        assert 0 <= end <= x.mean()
        found = best_bet(x - end, -1 / (1 - end), 1 / end)
        assert limit * (1 - 1e-12) <= found <= limit * (1 + 1e-6)  # the safe side of the limit


def test_the_ends_of_the_range_are_reached_exactly():
    for low, high in ((0.0, 1.0), (0.1, 0.3), (-7.3, 0.1)):
        for value, end in ((low, "low"), (high, "high")):
            found = mean.within(low, high).estimate(np.full((512, 1), value), 1e-10)
            assert getattr(found, end) == value
            assert low <= found.low < found.high <= high


@pytest.mark.parametrize("value", [0.0, 1e-320, 1e-300, 1.1e-300, 1e-299, 1e-105, 1e-17, 0.5,
                                   1 - 1e-16, 1.0])
@pytest.mark.parametrize("blocks", [1, 2, 512, 2**17])
def test_shares_however_near_to_the_edge(value, blocks):
    found = proportion.estimate(proportion.block_values(np.full((blocks, 1), value)), 1e-10)
    assert 0 <= found.low <= value <= found.high <= 1
    assert (found.reason, found.basis) == ("", Basis.BOUND)
    assert math.isnan(found.stderr) is (blocks == 1)
    if blocks > 1:
        assert found.high - found.low < 1 - 1e-6
    sure = proportion.estimate(np.full((blocks, 1), value), 1e-300)
    assert 0 <= sure.low <= found.low <= found.high <= sure.high <= 1


def test_where_the_limit_is_never_reached_there_is_no_end():
    assert lower_root(lambda u: 0.0, 20.0, 0.1, 512) == -math.inf
    assert lower_root(lambda u: 19.99, 20.0, 0.1, 512) == -math.inf
    assert lower_root(lambda u: -u, 20.0, 0.1, 512) == pytest.approx(-20, abs=1e-9)
    beyond = lower_root(lambda u: math.inf if u < -2 else -u, 20.0, 0.1, 512)
    assert beyond == pytest.approx(-2, abs=1e-9)


def test_values_that_rounding_took_out_of_the_range_are_put_back():
    x = np.repeat([-1e-12, 1 + 1e-12, 0.5], [300, 100, 112])[:, None]
    found, exact = (mean.within(0, 1).estimate(y, 1e-10) for y in (x, np.clip(x, 0, 1)))
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), rel=1e-9)


# --- properties -------------------------------------------------------------------------------

SHARES = st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed))
RATES = st.sampled_from([0.2, 1e-2, 1e-10])


def some(rng):
    """Values in [0, 1]: smooth, with atoms at the ends, or both."""
    n = int(rng.integers(1, 200))
    x = rng.beta(*rng.uniform(0.05, 5, 2), n)
    return np.where(rng.random(n) < rng.choice([0, 0.3]), np.round(x), x)[:, None]


@given(SHARES, RATES, st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_the_interval_moves_with_the_range(rng, rate, shift, scale):
    x = some(rng)
    plain = mean.within(0, 1).estimate(x, rate)
    moved = mean.within(shift, shift + scale).estimate(scale * x + shift, rate)
    mirrored = mean.within(0, 1).estimate(1 - x, rate)
    slack = 1e-9 * (scale + abs(shift))
    for name in ("value", "low", "high"):
        expected = scale * getattr(plain, name) + shift
        assert getattr(moved, name) == pytest.approx(expected, abs=slack)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - plain.high, 1 - plain.low), abs=1e-9)


@given(SHARES)
def test_a_larger_error_rate_and_a_smaller_range_both_narrow_the_interval(rng):
    x = 0.2 + 0.6 * some(rng)
    found = [mean.within(*ends).estimate(x, rate) for ends, rate in (
        ((-1, 3), 1e-10), ((0, 1), 1e-10), ((0.2, 0.8), 1e-10), ((0.2, 0.8), 1e-2))]
    for wide, narrow in pairwise(found):
        assert wide.low - 1e-9 <= narrow.low <= narrow.value + 1e-12
        assert narrow.value - 1e-12 <= narrow.high <= wide.high + 1e-9


@given(SHARES, RATES)
def test_the_order_of_the_blocks_does_not_matter(rng, rate):
    x = some(rng)
    assert ends_of(x[:, 0], rate) == pytest.approx(ends_of(np.sort(x[:, 0]), rate), abs=1e-9)


def test_it_adapts_to_the_spread():
    # Where a bet may be large enough, the half-width is √(2·variance·limit/n): what a normal law of
    # known variance would have with the same limit.
    n, limit = 2**14, threshold(2**14, 1e-10)
    for spread in (0.25, 0.05):
        x = 0.5 + spread * np.where(np.arange(n) % 2, 1.0, -1.0)
        low, high = ends_of(x, 1e-10)
        assert (high - low) / 2 == pytest.approx(spread * math.sqrt(2 * limit / n), rel=0.02)


# --- misses, of every look of a sequence together ---------------------------------------------

UGLY = {  # with means that the rare values carry
    "events": ((0.0, 1.0), [0.0, 1.0], [0.998, 0.002]),
    "contaminated": ((-4.0, 40.0), [*np.linspace(-3, 3, 12), 40.0],
                     [*(0.99 / 12 * np.ones(12)), 0.01]),
    "two-points": ((0.0, 1.0), [0.4, 1.0], [0.97, 0.03]),
    "coin": ((0.0, 1.0), [0.0, 1.0], [0.5, 0.5]),
}
SEQUENCES, MISS_RATE = 100, 1e-2
LOOKS = [64, 128, 512]
ALLOWED = stats.binom(SEQUENCES, MISS_RATE).isf(1e-9)  # exceeded with 1e-9 by what may be missed


def sequences_that_miss(statistic, name):
    _, values, chances = UGLY[name]
    truth = np.dot(values, chances)
    rng, missed = np.random.default_rng([5, *name.encode()]), 0
    for _ in range(SEQUENCES):
        x = rng.choice(values, p=chances, size=(LOOKS[-1], 1))
        found = (statistic.estimate(x[:look], MISS_RATE) for look in LOOKS)
        missed += any(not each.low <= truth <= each.high for each in found)
    return missed


@pytest.mark.parametrize("name", UGLY)
def test_sequences_of_looks_miss_the_truth_no_more_often_than_once_may(name):
    assert sequences_that_miss(mean.within(*UGLY[name][0]), name) <= ALLOWED


def test_a_calibrated_interval_would_be_caught():
    assert sequences_that_miss(mean, "contaminated") > ALLOWED
