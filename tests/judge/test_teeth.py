"""True claims are refuted under no seed, and wrong ones under any law, width, scale and seed."""

import pytest
from committed import committed_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from mcverify import Verdict, absolute, check, claim, discover, grid, laws, relative, theory
from mcverify.attention import matched_scores, scores
from mcverify.judge.run import run
from mcverify.judge.world import world_of
from mcverify.statistic import mean, std, variance
from mcverify.verdict import Terms

CLAIMS = [claim for claim in discover() if not claim.slow]


def cost(case):
    """How many numbers the case's verdict took, by the committed table."""
    if not case.claim.draws:
        return 0
    world, blocks = world_of(case), int(committed_rows(case.claim)[str(case)]["blocks"])
    return 2 * world.tokens * world.d_k * blocks


def cheapest(claim, count):
    return sorted(claim.cases(), key=cost)[:count]


@pytest.mark.parametrize(("seed", "most"), [
    (2, 4e5),
    *(pytest.param(seed, 2e6, marks=pytest.mark.slow) for seed in range(2, 10)),
])
def test_true_claims_are_refuted_under_no_seed(seed, most):
    cheap = [case for claim in CLAIMS for case in cheapest(claim, 1) if 0 < cost(case) < most]
    assert len(cheap) > 30
    wrong = [str(finding) for finding in run(cheap, Terms(seed), jobs=1)
             if finding.verdict not in (finding.expected, Verdict.INCONCLUSIVE)]
    assert not wrong, "\n".join(wrong)


def test_at_least_four_false_statements_are_declared_false():
    false = [claim.name for claim in CLAIMS if claim.expect is Verdict.REFUTED]
    assert len(false) >= 4
    assert {"assumptions_do_not_matter", "scaled_entropy_is_maximal"} <= set(false)


# --- properties: law, width, scale and seed are drawn, the verdict must come out as declared ---

BASES = st.sampled_from([*laws.STANDARD, laws.student_t(12), laws.exponential])
LAWS = st.one_of(
    BASES,
    st.builds(laws.shifted, BASES, st.floats(-1, 1)),
    st.builds(laws.equicorrelated, BASES, st.floats(0, 0.5)),
    st.builds(laws.independent, BASES, BASES),
    st.builds(laws.common_scale, st.just(laws.normal), st.floats(9, 30)),
)
SEEDS = st.integers(0, 2**63)


def declared(statistic, body, law, d_k, scale, **prediction):
    return claim(statistic, over=grid(law=law, d_k=d_k, scale=scale), **prediction)(body)


def all_pairs(q, k, scale):
    """A property of c·q·k."""
    return scores(q, k, scale)


@settings(max_examples=25)
@given(LAWS, st.integers(2, 48), st.floats(0.01, 100), SEEDS)
def test_variance_and_std_of_any_law_are_the_predicted_ones(law, d_k, scale, seed):
    def predicted(law, d_k, scale):
        return scale**2 * theory.dot_variance(law, d_k)

    right = declared(variance, all_pairs, law, d_k, scale, equals=predicted, within=relative(0.2))
    wrong = declared(std, all_pairs, law, d_k, scale, within=relative(0.2),
                     equals=lambda law, d_k, scale: 2 * predicted(law, d_k, scale) ** 0.5)
    assert check(right.cases()[0], seed).verdict is Verdict.CONFIRMED
    assert check(wrong.cases()[0], seed).verdict is Verdict.REFUTED


@settings(max_examples=25)
@given(BASES, st.floats(-0.9, 0.9), st.integers(2, 64), SEEDS)
def test_mean_of_correlated_pairs_is_rho(base, rho, d_k, seed):
    def body(q, k, d_k):
        """E q·k/d_k = ρ."""
        return matched_scores(q, k, scale=1 / d_k)

    made = claim(mean, equals=rho, within=absolute(0.1),
                 over=grid(law=laws.correlated(base, rho), d_k=d_k))(body)
    assert check(made.cases()[0], seed).verdict is Verdict.CONFIRMED
