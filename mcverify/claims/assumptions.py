"""Every assumption of Var(q·k) = d_k, broken one at a time and together: the textbook's value and the true one."""

import math

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import matched_scores, other_scores, scores
from mcverify.declare import near
from mcverify.laws import initialisation as init
from mcverify.statistic import mean, slope, variance

WIDTH = 64
NORMAL = laws.normal
MATCHED, OTHER = "a token with itself", "different tokens"


TRUTH: dict[tuple[laws.Law, int], float] = {}  # Var(q·k) by law and d_k, where an assumption fails


def case(assumption, law, truth=theory.dot_variance, pairs=OTHER, d_k=WIDTH, **settings):
    """The point at which an assumption fails; the true variance goes into TRUTH."""
    TRUTH[law, d_k] = truth(law, d_k) if callable(truth) else truth
    return grid(law=law, d_k=d_k, assumption=assumption, pairs=pairs, **settings)


def total(*grids):
    return sum(grids[1:], grids[0])


BROKEN = total(
    case("coordinates uncorrelated", laws.equicorrelated(NORMAL, 0.3)),
    case("coordinates uncorrelated", laws.equicorrelated(laws.rademacher, 0.3), d_k=8),
    case("coordinates uncorrelated", laws.autoregressive(laws.laplace, 0.7)),
    case("coordinates uncorrelated", laws.low_rank(NORMAL, 16)),
    case("coordinates uncorrelated", laws.multivariate_t(14, 0.2)),
    case("q independent of k", laws.correlated(NORMAL, 0.5),
         theory.correlated_variance(0.5, 3.0, WIDTH), MATCHED),
    case("q independent of k", laws.correlated(NORMAL, -0.6),
         theory.correlated_variance(-0.6, 3.0, 8), MATCHED, d_k=8),
    case("q independent of k", laws.identical(NORMAL), theory.correlated_variance(1.0, 3.0, 1),
         MATCHED, d_k=1),
    case("q independent of k", laws.identical(laws.laplace),
         theory.correlated_variance(1.0, 6.0, WIDTH), MATCHED),
    case("q independent of k", laws.random_sign(NORMAL), theory.random_sign_variance(3.0, 8), MATCHED,
         d_k=8),
    case("tokens independent", laws.topic(NORMAL, 0.5), theory.topic_variance(0.5, 3.0, WIDTH),
         tokens=8),
    case("coordinates alike", laws.unequal(NORMAL, 2)),
    case("mean 0", laws.shifted(laws.rademacher, 0.5), d_k=1),
    case("mean 0", laws.shifted(laws.uniform, 0.5)),
    case("mean 0", laws.independent(laws.shifted(NORMAL, 1.0), laws.laplace)),
    case("variance 1", laws.scaled(NORMAL, 1.5, 1.0)),
    case("variance 1", laws.projected(NORMAL, init.xavier("fused"), 512)),
    case("variance 1", laws.clipped(NORMAL, 1.0)),
    case("variance 1", laws.quantised(NORMAL, 2, 3.0)),
    case("normalised", laws.unit_norm(laws.laplace)),
    case("normalised", laws.layer_norm(laws.shifted(laws.laplace, 0.5)), d_k=8),
    case("several", laws.shifted(laws.equicorrelated(laws.laplace, 0.2), 0.5)),
    case("several", laws.scaled(laws.shifted(laws.unequal(laws.uniform, 1), 0.5), 1.2, 0.8)),
    case("several", laws.rotary(laws.shifted(laws.unequal(NORMAL, 2), 0.5), 100)),
    # The formula takes the tokens of a sentence for independent, and they are not.
    *(case("trained", laws.minilm(head), d_k=32, tokens=13)
      for head in ("trained_l0h0", "trained_l5h3", "trained_l0h2", "init_bert_l0h0")),
)


def chosen(q, k, pairs):
    return matched_scores(q, k) if pairs == MATCHED else other_scores(q, k)


@claim(variance, equals=lambda law, d_k: TRUTH[law, d_k], within=relative(0.06), over=BROKEN,
       decides="A5 A17", controls=near.law(NORMAL))
def assumptions(q, k, pairs):
    """Where assumptions of the textbook fail, one or several, Var(q·k) is what the general formula says: tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k and what ties tokens add."""
    return chosen(q, k, pairs)


@claim(variance, equals=lambda d_k: d_k, within=relative(0.06), over=BROKEN, decides="A5 A17",
       expect=Verdict.REFUTED)
def assumptions_do_not_matter(q, k, pairs):
    """Var(q·k) = d_k although assumptions of the textbook fail."""
    return chosen(q, k, pairs)


EQUICORRELATED = laws.equicorrelated(NORMAL, 0.3)
HARMLESS = total(
    *(case("coordinates uncorrelated", laws.independent(EQUICORRELATED, NORMAL), d_k=d_k)
      for d_k in (1, 8, 64, 512)),
    *(case("coordinates uncorrelated",
           laws.independent(laws.laplace, laws.equicorrelated(laws.laplace, 0.3)), d_k=d_k)
      for d_k in (1, 8, 64, 512)),
    case("coordinates uncorrelated", laws.independent(laws.autoregressive(NORMAL, 0.9), NORMAL)),
    case("coordinates uncorrelated", laws.independent(laws.low_rank(laws.laplace, 4), laws.laplace)),
    case("coordinates alike", laws.independent(laws.unequal(NORMAL, 3), laws.rademacher)),
    *(case("coordinates independent", laws.common_scale(NORMAL, 9), d_k=d_k)
      for d_k in (1, 8, 64, 512)),
    *(case("coordinates independent", laws.common_scale(laws.rademacher, 12), d_k=d_k)
      for d_k in (1, 8, 64, 512)),
    case("coordinates independent", laws.sign_products, d_k=15),
    case("tokens independent", laws.memory(NORMAL, 0.9)),
    case("tokens independent", laws.shared_query(NORMAL)),
    case("light tails", laws.student_t(9)),
    case("light tails", laws.exponential),
    case("light tails", laws.sparse(0.1)),
)


@claim(variance, equals=lambda d_k: d_k, within=relative(0.06), over=HARMLESS, decides="A5 B3",
       controls=near.law(EQUICORRELATED) + near.law(laws.shifted(laws.common_scale(NORMAL, 9), 0.3)))
def harmless_assumptions(q, k, pairs):
    """Var(q·k) = d_k although an assumption fails: one white side, uncorrelated coordinates and independent q and k are enough."""
    return chosen(q, k, pairs)


# --- tokens that depend on each other change how scores vary together --------------------------


def known(entry):
    """What the law knows of a block's mean score."""
    return lambda law, d_k, tokens: getattr(laws.block_moments(law, d_k, tokens, "mean"), entry, None)


OF_MEANS = variance.with_variance(known("of_squares"), mean=known("mean"))


@claim(OF_MEANS, equals=lambda law, d_k, tokens: theory.memory_block_variance(law.rho, tokens, d_k),
       within=relative(0.06), over=grid(law=laws.memory(NORMAL, 0.9), d_k=[4, 16], tokens=16),
       decides="A5", controls=near.law(NORMAL) + near.law(laws.memory(NORMAL, 0.85)))
def mean_score_of_a_sequence(q, k):
    """In a sequence with memory the mean score of a block varies as if it had fewer tokens: d_k v², v the variance of a mean of tokens."""
    return scores(q, k).mean(axis=(1, 2))


@claim(OF_MEANS, equals=lambda law, d_k, tokens: theory.topic_block_variance(law.strength, 3.0, tokens, d_k),
       within=relative(0.06), over=grid(law=laws.topic(NORMAL, 0.5), d_k=[4, 16], tokens=[8, 32]),
       decides="A5", controls=near.law(NORMAL) + near.law(laws.topic(laws.laplace, 0.5)))
def mean_score_with_a_topic(q, k):
    """A topic that the tokens of a block share does not average out: over 8 or 32 tokens the block's mean score keeps a variance above s²(κ − 1)d_k."""
    return scores(q, k).mean(axis=(1, 2))


@claim(mean, equals=lambda law, d_k: theory.topic_mean(law.strength, d_k), within=relative(0.02),
       over=grid(law=laws.topic(NORMAL, 0.5), d_k=[8, 64], tokens=8), decides="A5",
       controls=near.law(laws.correlated(NORMAL, 0.5)))
def topic_mean(q, k):
    """A topic of strength s gives pairs of different tokens a mean score of s·d_k, as a correlation gives only a token and its own key."""
    return other_scores(q, k)


# --- growth in d_k -----------------------------------------------------------------------------

WIDTHS = (8, 64, 512)


def at_widths(q, k, widths=WIDTHS):
    return [(d, other_scores(q[..., :d], k[..., :d])) for d in widths]


GROWTH = [laws.autoregressive(NORMAL, 0.5), laws.shifted(NORMAL, 0.5), laws.common_scale(NORMAL, 14)]


@claim(slope(variance), equals=1, within=absolute(0.1), over=grid(law=GROWTH, d_k=512), decides="A5",
       controls=near.law(EQUICORRELATED))
def growth_when_assumptions_fail(q, k):
    """With correlations that decay, with means, and with a common random length, the variance still grows as d_k: √d_k is the right power, with another constant."""
    return at_widths(q, k)


def power_between_ends(law):
    """The power by which the variance grows from the first width to the last."""
    first, *_, last = WIDTHS
    return math.log(theory.dot_variance(law, last) / theory.dot_variance(law, first), last / first)


@claim(slope(variance), equals=power_between_ends, within=absolute(0.1),
       over=grid(law=EQUICORRELATED, d_k=512),
       decides="A5", controls=grid(equals=2.0) + near.law(laws.autoregressive(NORMAL, 0.5)))
def growth_with_a_common_part(q, k):
    """With coordinates correlated 0.3 in both q and k, d_k + 0.09·d_k(d_k − 1) grows with the power 1.81 from 8 to 512: no longer as d_k, not yet as d_k²."""
    return at_widths(q, k)
