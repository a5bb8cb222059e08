"""Hypothesis strategies for what a property leaves open: laws, widths, draws, rows of scores.

All shrink to the simplest that still fails: the normal law, one coordinate, scale 1, seed 0, equal
scores. So a property of attention is a few lines, and a counterexample is one that can be read::

    import numpy as np
    from hypothesis import given, settings
    from hypothesis import strategies as st

    from mcverify import Verdict, check, claim, grid, relative, strategies
    from mcverify.attention import jacobian_norm, scores, softmax
    from mcverify.statistic import variance

    @given(strategies.score_rows(masked=True), st.floats(-1e4, 1e4))
    def test_softmax_ignores_what_all_scores_share(s, shift):
        np.testing.assert_allclose(softmax(s + shift), softmax(s), rtol=1e-10, atol=1e-300)

    @given(strategies.weights())
    def test_little_gradient_passes_where_one_weight_is_large(p):
        m = p.max()
        assert jacobian_norm(p, "spectral") <= 2 * m * (1 - m) + 1e-14

    @given(strategies.draws())
    def test_a_score_is_at_most_the_product_of_the_lengths(drawn):
        law, d_k, q, k = drawn
        q_length, k_length = np.linalg.norm(q, axis=-1), np.linalg.norm(k, axis=-1)
        bound = q_length[:, :, None] * k_length[:, None, :]
        assert (abs(scores(q, k)) <= bound * (1 + 1e-12)).all()

    @settings(deadline=None, max_examples=20)
    @given(strategies.laws("iid", standard=True, finite_moments=12), strategies.widths(16),
           strategies.seeds())
    def test_scores_have_the_variance_d_k(law, d_k, seed):
        @claim(variance, equals=d_k, within=relative(0.5), over=grid(law=law, d_k=d_k))
        def dot_variance(q, k):
            "Var(q·k) = d_k."
            return scores(q, k)

        finding = check(dot_variance.cases()[0], seed, error_rate=1e-10)
        assert finding.verdict is Verdict.CONFIRMED, str(finding)

Hypothesis draws parameters and a seed, and all that is random descends from that seed. A property
that measures must allow for chance: by ``check``, whose verdicts are false at most at its error
rate, and not by a margin on a few draws, which Hypothesis looks for until it is exceeded.
"""

try:
    import hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError("mcverify.strategies needs Hypothesis, which is not installed; "
                      "pip install 'mcverify[test]'") from error

from mcverify.strategies.drawn import Draw, draws, laws, worlds
from mcverify.strategies.numbers import covariances, means, scales, seeds, tokens, widths
from mcverify.strategies.rows import score_rows, weights

__all__ = [
    "Draw",
    "covariances",
    "draws",
    "laws",
    "means",
    "scales",
    "score_rows",
    "seeds",
    "tokens",
    "weights",
    "widths",
    "worlds",
]
