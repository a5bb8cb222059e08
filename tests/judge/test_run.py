"""Running: the same findings however the work is split, and faults that stay where they are."""

import dataclasses
import math
import re

import numpy as np
import pytest
from scipy import stats

from mcverify import Claim, Verdict, absolute, check, claim, discover, grid, laws, relative
from mcverify.attention import matched_scores, other_scores, rows, scores
from mcverify.judge.run import run
from mcverify.judge.world import CHUNK_NUMBERS, World, generator, world_of
from mcverify.laws import Moments
from mcverify.statistic import exact, kurtosis, mean, median, proportion, std, variance
from mcverify.statistic.estimate import no_interval
from mcverify.verdict import LOOKS, MAX_BLOCKS, Terms

FILE = '''
import numpy as np
from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean, variance

@claim(variance, equals=lambda d_k: d_k, within=relative(0.05),
       over=grid(law=[laws.normal, laws.laplace], d_k=[2, 70]))
def width(q, k):
    """Var(q·k) = d_k."""
    return scores(q, k)

@claim(mean, equals=0, within=absolute(0.05), over=grid(law=laws.normal, d_k=[2, 70]))
def noise(q, rng):
    """Extra draws of a body's own have mean 0."""
    return rng.standard_normal(q.shape)

@claim(mean, at_most=-1, over=grid(law=laws.laplace, d_k=2), expect=Verdict.REFUTED)
def negative(q):
    """Coordinates are below -1 in the mean."""
    return q
'''


@pytest.fixture
def claims(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    return discover(file)


def cases_of(claims):
    return [case for claim in claims for case in claim.cases()]


def by_name(findings):
    return {str(finding.case): dataclasses.replace(finding, case=None) for finding in findings}


def test_findings_do_not_depend_on_workers_order_or_company(claims):
    cases = cases_of(claims)
    one = by_name(run(cases, jobs=1))
    assert all(finding.verdict is not Verdict.INCONCLUSIVE for finding in one.values())
    assert by_name(run(cases, jobs=2)) == one
    assert by_name(run(reversed(cases), jobs=2)) == one
    for case in cases:
        assert by_name([check(case)]) == {str(case): one[str(case)]}


def test_changed_claims_travel_to_workers_by_value(claims):
    changed = dataclasses.replace(claims[0], equals=lambda d_k: 2 * d_k)
    found = list(run(changed.cases(), jobs=2))
    assert {finding.verdict for finding in found} == {Verdict.REFUTED}


def test_seeds_give_different_draws(claims):
    estimates = {check(claims[0].cases()[0], seed=seed).estimate for seed in (0, 1, 2**70)}
    assert len(estimates) == 3


@pytest.mark.parametrize("seed", [-1, 1.5, "0"])
def test_a_bad_seed_is_refused(claims, seed):
    with pytest.raises(ValueError, match="whole number of at least 0"):
        check(claims[0].cases()[0], seed=seed)


def test_a_single_case_may_be_judged_at_any_rate(claims):
    quick = check(claims[0].cases()[0], error_rate=1e-3)
    assert quick.blocks < check(claims[0].cases()[0]).blocks
    with pytest.raises(ValueError, match="between 0 and 1"):
        check(claims[0].cases()[0], error_rate=0)


# --- worlds ----------------------------------------------------------------------------------


def test_chunks_cover_a_look_in_powers_of_two():
    for d_k, tokens in ((1, 11), (512, 80), (64, 4096)):
        world = World(laws.normal, d_k, tokens)
        for start, stop in ((0, 64), (64, 128), (2**17, 2**18)):
            chunks = list(world.chunks(start, stop))
            assert chunks[0][0] == start
            assert sum(blocks for _, blocks in chunks) == stop - start
            assert all(math.log2(blocks).is_integer() for _, blocks in chunks)
            assert all(2 * blocks * world.tokens * world.d_k <= CHUNK_NUMBERS or blocks == 1
                       for _, blocks in chunks)


def test_chunks_worlds_and_seeds_have_streams_of_their_own():
    draws = [World(law, d_k, tokens).draw(seed, first, 1)[0].flat[0]
             for law in (laws.normal, laws.student_t(5)) for d_k in (1, 2) for tokens in (1, 2)
             for seed in (0, 1) for first in (0, 1)]
    assert len(set(draws)) == len(draws)


def test_streams_are_the_same_for_ever():
    # Committed results depend on these numbers.
    assert generator(0, "normal", 64, 80, 0).integers(10**9) == 146440023


@pytest.mark.parametrize(("settings", "tokens"), [
    ({"d_k": 1}, 8), ({"d_k": 8}, 14), ({"d_k": 64}, 40), ({"d_k": 4096}, 128),
    ({"d_k": 1, "keys": 2}, 8), ({"d_k": 8, "keys": 128}, 128), ({"d_k": 8, "keys": 7}, 14),
    ({"d_k": 512, "keys": 2}, 40),
    ({"d_k": 8, "tokens": 3}, 3),
])
def test_tokens_follow_the_width_unless_keys_or_the_claim_say_otherwise(settings, tokens):
    made = claim(mean, equals=0, within=absolute(1), over=grid(law=laws.normal, **settings))(body)
    assert world_of(made.cases()[0]).tokens == tokens


# --- faults ----------------------------------------------------------------------------------


def body(q, k):
    """A sentence."""
    return scores(q, k)


def judged(function, statistic=mean, law=laws.normal, **given):
    given = {"equals": 0, "within": absolute(0.1)} | given
    terms = Terms(max_blocks=given.pop("max_blocks", MAX_BLOCKS))
    made = claim(statistic, over=grid(law=law, d_k=given.pop("d_k", 8), **given.pop("at", {})),
                 **given)
    function.__doc__ = "A sentence."
    return next(run(made(function).cases()[:1], terms, jobs=1))


def raises(q):
    raise RuntimeError("no\nluck")


def gives_nan(q):
    return np.where(q > 2, np.nan, q)


def overflows(q):
    return np.abs(q) ** 300 * 1e300


def drops_blocks(q):
    return q.mean(axis=0)


def drops_all(q):
    return q.mean()


def is_empty(q):
    return q[:, :0]


def gives_a_tuple(q):
    return q, q


def gives_a_list(q):
    return list(q)


def gives_nested_lists(q):
    return [[1.0, 2.0], [3.0]]


def gives_pairs_of_numbers(q):
    return [[1.0, 2.0], [3.0, 4.0]]


def gives_numbers(q):
    return [1.0, 2.0]


def unlocks(q):
    q.setflags(write=True)
    return q


def is_complex(q):
    return q * 1j


def writes(q):
    q *= 2
    return q


@pytest.mark.parametrize(("function", "message"), [
    (raises, "RuntimeError: no luck"),
    (gives_nan, "NaN or infinite values out of"),
    (overflows, "NaN or infinite values out of"),
    (drops_blocks, "the first axis must be the 128 blocks"),
    (drops_all, r"returned shape \(\); the first axis must be the 128 blocks"),
    (is_empty, "empty array of shape"),
    (is_complex, "complex128 values; they must be real"),
    (gives_a_tuple, "the body returned a tuple; this statistic takes one array"),
    *((function, r"returned a list, which is for a slope and holds pairs \(x, values\); return")
      for function in (gives_a_list, gives_nested_lists, gives_pairs_of_numbers, gives_numbers)),
    (writes, "read-only; q, k and what is made of them are shared with other claims: work on"),
    (unlocks, "cannot set WRITEABLE flag.*shared with other claims: work on a copy"),
])
def test_a_body_that_breaks_is_an_error_that_says_seed_and_reason(function, message):
    finding = judged(function)
    assert finding.broken
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert not finding.as_declared
    assert finding.broken
    assert finding.reason.endswith("(seed 0, chunk at block 0)")
    assert re.search(message, finding.reason), finding.reason
    assert "\n" not in finding.reason
    assert str(finding).startswith("ERROR, declared CONFIRMED: ")


def test_an_error_is_not_what_an_inconclusive_claim_declares():
    finding = judged(raises, expect=Verdict.INCONCLUSIVE)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert not finding.as_declared


@dataclasses.dataclass(frozen=True)
class Bad:
    fault: str
    coupled: bool = False
    finite_moments: float = math.inf

    def __str__(self):
        return f"bad[{self.fault}]"

    def moments(self, d_k) -> Moments:
        return laws.normal.moments(d_k)

    def draw(self, rng, blocks, tokens, d_k):
        q, k = laws.normal.draw(rng, blocks, tokens, d_k)
        if self.fault == "shape":
            return q, k[..., :-1]
        if self.fault == "nan":
            k[0, 0, 0] = np.nan
        if self.fault == "raise":
            raise OSError("disk")
        if self.fault == "one":
            return (q,)
        return (q, list(k)) if self.fault == "list" else (q, k)


@pytest.mark.parametrize(("fault", "message"), [
    ("shape", r"drew k of shape \(128, 14, 7\); it must be .* = \(128, 14, 8\)"),
    ("nan", "drew k with NaN or infinite entries"),
    ("list", "drew k of shape list"),
    ("raise", "OSError: disk"),
    ("one", "shorter"),
])
def test_a_law_that_breaks_is_an_error_of_its_claims_alone(fault, message):
    finding = judged(lambda q: q, law=Bad(fault))
    assert finding.broken
    assert re.search(message, finding.reason), finding.reason
    good, bad = (claim(mean, equals=0, within=absolute(0.5), over=grid(law=law, d_k=8))(body)
                 for law in (laws.normal, Bad(fault)))
    verdicts = {str(f.case): f.verdict for f in run(good.cases() + bad.cases(), jobs=1)}
    assert verdicts["body-normal-d_k:8"] is Verdict.CONFIRMED


@pytest.mark.parametrize("function", [lambda q, k: scores(q, k),
                                      lambda q, k, keys: rows(q, k, keys)])
def test_all_pairs_under_a_coupled_law_must_fix_the_tokens(function):
    law = laws.correlated(laws.normal, 0.5)
    finding = judged(function, law=law, at={"keys": 31})
    assert finding.broken
    assert "fix tokens in the grid, or use matched_scores or other_scores" in finding.reason
    fixed = judged(function, law=law, at={"keys": 31, "tokens": 31}, equals=8 * 0.5 / 31)
    assert fixed.verdict is Verdict.CONFIRMED
    for allowed in (lambda q, k: matched_scores(q, k), lambda q, k: other_scores(q, k)):
        assert not judged(allowed, law=law, equals=4, within=absolute(10)).broken


def test_a_relative_margin_at_a_prediction_that_is_0_somewhere_is_an_error_there():
    finding = judged(lambda q: q, equals=lambda d_k: d_k - 8, within=relative(0.1))
    assert finding.broken
    assert "use within=absolute" in finding.reason


def test_missing_moments_are_inconclusive_before_anything_is_drawn():
    for law, statistic, needed in ((laws.student_t(5), variance, 6),
                                   (laws.student_t(9), kurtosis, 12),
                                   (laws.identical(laws.student_t(9)), variance, 12),
                                   (laws.iid(stats.cauchy(), raw=True), mean, 3)):
        finding = judged(lambda q: q, statistic, law)
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert not finding.broken
        assert finding.blocks == 0
        assert f"moment of order {needed}" in finding.reason
    assert judged(lambda q: q, median, laws.iid(stats.cauchy(), raw=True)).blocks > 0
    assert judged(lambda q: np.tanh(q), mean.within(-1, 1), laws.student_t(1)).blocks > 0


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_an_exact_value_that_is_not_finite_is_an_error(value):
    def broken():
        """Beyond all bounds."""
        return value

    finding = check(claim(exact, at_least=1, expect=Verdict.INCONCLUSIVE)(broken).cases()[0])
    assert finding.broken
    assert not finding.as_declared


def test_values_that_never_vary_are_never_evidence():
    finding = judged(lambda q: np.ones(len(q)), equals=1, d_k=1, at={"tokens": 1})
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "mean.within" in finding.reason
    assert finding.blocks == 512


def test_a_rare_event_is_not_refuted_before_it_occurs():
    def rare(rng, q):
        return (rng.random((len(q), 1)) < 1e-5).astype(float)

    for statistic in (mean.within(-1, 1), proportion):
        finding = judged(rare, statistic, d_k=1, at={"tokens": 1}, equals=1e-5,
                         within=absolute(0.9e-5), max_blocks=2**15)
        assert (finding.estimate, finding.verdict) == (0, Verdict.INCONCLUSIVE)
        finding = judged(rare, statistic, d_k=1, at={"tokens": 1}, equals=None, within=None,
                         at_most=1e-6, max_blocks=2**15)
        assert (finding.estimate, finding.verdict) == (0, Verdict.INCONCLUSIVE)


def test_a_quantile_that_would_keep_too_many_numbers_says_so(monkeypatch):
    monkeypatch.setattr("mcverify.judge.trial.MAX_TABLE", 2**12)
    finding = judged(lambda q: q, median, within=absolute(1e-6))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "let the body return fewer a block" in finding.reason


def test_a_report_has_four_lines_with_claim_claimed_measured_and_rerun(claims):
    finding = check(claims[2].cases()[0], seed=3)
    first, *rest = str(finding).splitlines()
    assert first == "REFUTED: negative-laplace-d_k:2: Coordinates are below -1 in the mean."
    assert [line.split()[0] for line in rest] == ["claimed", "measured", "rerun"]
    assert rest[0].endswith("[-inf, -1]")
    assert rest[2].endswith("mine.py::negative --seed 3")
    broken = dataclasses.replace(finding, reason="ValueError: no luck", broken=True,
                                     error_rate=1.5e-9)
    assert str(broken).splitlines()[2:] == [
        "  measured  nothing: ValueError: no luck", f"{rest[2]} --error-rate 1.5e-09"]


@pytest.mark.parametrize("law", [laws.sparse(1e-4), laws.layer_norm(laws.normal)], ids=str)
def test_chunks_that_are_nearly_constant_may_be_equal_by_chance(law):
    claim = Claim("rare", "Values are rarely large.", proportion, lambda q: np.abs(q) > 50,
                  at_most=2e-3, over=grid(law=law, d_k=1, tokens=8))
    [finding] = run(claim.cases(), jobs=1)
    assert finding.verdict is Verdict.CONFIRMED
    assert finding.blocks > 8192  # of several chunks


@pytest.mark.parametrize("edge", [0.5, 0.8, 0.9])
def test_a_wide_interval_of_few_skew_blocks_leaves_no_look_out(edge):
    """It narrows faster than 1/√blocks: what decides a far edge decides a near one as soon."""
    of_16 = claim(std, at_most=edge, over=grid(law=laws.normal, d_k=1, tokens=16))(coordinates)
    found = check(of_16.cases()[0])
    assert found.verdict is Verdict.REFUTED
    assert found.blocks <= 2048


def coordinates(q):
    """The coordinates of queries."""
    return +q


def rates_asked(anytime):
    """The error rates that a run asks an interval for, from look to look, until it gives up."""
    rates = []

    def interval(table, error_rate):
        rates.append(error_rate)
        return no_interval(0.0, 1.0, "never")

    statistic = dataclasses.replace(mean, interval=interval, anytime=anytime)
    case, = Claim("looks", "Never decided.", statistic, lambda q: q[:, 0], equals=0.0,
                  within=absolute(1.0), over=grid(law=laws.normal, d_k=1, tokens=1)).cases()
    check(case, error_rate=1e-6)
    return rates


def test_looks_share_the_rate_of_a_case_unless_the_interval_holds_at_all(monkeypatch):
    asked = rates_asked(anytime=False)  # of fewer looks than there are, where some are passed over
    assert asked == pytest.approx([1e-6 / LOOKS] * len(asked))
    assert len(asked) <= LOOKS
    assert set(rates_asked(anytime=True)) == {1e-6}
    monkeypatch.setattr(Terms, "look_rate", lambda terms, anytime=False: terms.error_rate)
    assert sum(rates_asked(anytime=False)) > 2e-6  # more than the case may spend
