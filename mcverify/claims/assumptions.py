"""Every assumption of Var(q·k) = d_k, broken one at a time and together: the textbook's value and the true one."""

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import matched_scores, other_scores, scores
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


def of_heads(head):
    law = laws.minilm(head)
    return case("trained", law, theory.population.score_variance(law), d_k=32, tokens=13)


BROKEN = total(
    case("coordinates uncorrelated", laws.equicorrelated(NORMAL, 0.3)),
    case("coordinates uncorrelated", laws.autoregressive(laws.laplace, 0.7)),
    case("coordinates uncorrelated", laws.low_rank(NORMAL, 16)),
    case("coordinates uncorrelated", laws.multivariate_t(14, 0.2)),
    case("q independent of k", laws.correlated(NORMAL, 0.5),
         theory.correlated_variance(0.5, 3.0, WIDTH), MATCHED),
    case("q independent of k", laws.identical(laws.laplace),
         theory.correlated_variance(1.0, 6.0, WIDTH), MATCHED),
    case("q independent of k", laws.random_sign(NORMAL), theory.random_sign_variance(3.0, 8), MATCHED,
         d_k=8),
    case("tokens independent", laws.topic(NORMAL, 0.5), theory.topic_variance(0.5, 3.0, WIDTH),
         tokens=8),
    case("coordinates alike", laws.unequal(NORMAL, 2)),
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
    *map(of_heads, ("trained_l0h0", "trained_l5h3", "trained_l0h2", "init_bert_l0h0")),
)


def chosen(q, k, pairs):
    return matched_scores(q, k) if pairs == MATCHED else other_scores(q, k)


@claim(variance, equals=lambda law, d_k: TRUTH[law, d_k], within=relative(0.06), over=BROKEN, decides="A5 A17")
def assumptions(q, k, pairs):
    """However an assumption fails, Var(q·k) is what the general formula says: tr(Σ_q Σ_k) + μ_q'Σ_k μ_q + μ_k'Σ_q μ_k and what ties tokens add."""
    return chosen(q, k, pairs)


@claim(variance, equals=lambda d_k: d_k, within=relative(0.06), over=BROKEN, decides="A5 A17",
       expect=Verdict.REFUTED)
def assumptions_do_not_matter(q, k, pairs):
    """Var(q·k) = d_k, whichever assumption fails."""
    return chosen(q, k, pairs)


HARMLESS = total(
    case("coordinates uncorrelated", laws.independent(laws.autoregressive(NORMAL, 0.9), NORMAL)),
    case("coordinates uncorrelated", laws.independent(laws.low_rank(laws.laplace, 4), laws.laplace)),
    case("coordinates alike", laws.independent(laws.unequal(NORMAL, 3), laws.rademacher)),
    case("coordinates independent", laws.common_scale(NORMAL, 9)),
    case("coordinates independent", laws.sign_products, d_k=15),
    case("tokens independent", laws.memory(NORMAL, 0.9)),
    case("tokens independent", laws.shared_query(NORMAL)),
    case("light tails", laws.student_t(9)),
    case("light tails", laws.exponential),
    case("light tails", laws.sparse(0.1)),
)


@claim(variance, equals=lambda d_k: d_k, within=relative(0.06), over=HARMLESS, decides="A5 B3")
def harmless_assumptions(q, k, pairs):
    """Var(q·k) = d_k although an assumption fails: one white side, uncorrelated coordinates and independent q and k are enough."""
    return chosen(q, k, pairs)


# --- tokens that depend on each other change how scores vary together --------------------------


def known(entry):
    """What the law knows of a block's mean score."""
    return lambda law, d_k, tokens: getattr(laws.block_moments(law, d_k, tokens, "mean"), entry)


OF_MEANS = variance.with_variance(known("of_squares"), mean=known("mean"))


@claim(OF_MEANS, equals=lambda law, d_k, tokens: theory.memory_block_variance(law.rho, tokens, d_k),
       within=relative(0.06), over=grid(law=laws.memory(NORMAL, 0.9), d_k=[4, 16], tokens=16),
       decides="A5")
def mean_score_of_a_sequence(q, k):
    """In a sequence with memory the mean score of a block varies as if it had fewer tokens: d_k v², v the variance of a mean of tokens."""
    return scores(q, k).mean(axis=(1, 2))


@claim(OF_MEANS, equals=lambda d_k, tokens: theory.memory_block_variance(0.0, tokens, d_k),
       within=relative(0.06), over=grid(law=laws.memory(NORMAL, 0.9), d_k=[4, 16], tokens=16),
       decides="A5", expect=Verdict.REFUTED)
def mean_score_of_independent_tokens(q, k):
    """The mean score of a block varies as d_k/tokens², whether or not its tokens depend on each other."""
    return scores(q, k).mean(axis=(1, 2))


@claim(OF_MEANS, equals=lambda law, d_k, tokens: theory.topic_block_variance(law.strength, 3.0, tokens, d_k),
       within=relative(0.06), over=grid(law=laws.topic(NORMAL, 0.5), d_k=[4, 16], tokens=8),
       decides="A5")
def mean_score_with_a_topic(q, k):
    """A topic that all tokens of a block share does not average out: the block's mean score keeps a variance of s²(κ − 1)d_k."""
    return scores(q, k).mean(axis=(1, 2))


@claim(mean, equals=lambda law, d_k: theory.topic_mean(law.strength, d_k), within=relative(0.02),
       over=grid(law=laws.topic(NORMAL, 0.5), d_k=[8, 64], tokens=8), decides="A5")
def topic_mean(q, k):
    """A topic of strength s gives every pair of tokens a mean score of s·d_k, a token's own key or another's."""
    return other_scores(q, k)


# --- growth in d_k -----------------------------------------------------------------------------


def at_widths(q, k, widths=(8, 32, 128)):
    return [(d, other_scores(q[..., :d], k[..., :d])) for d in widths]


GROWTH = (
    grid(law=laws.autoregressive(NORMAL, 0.5), d_k=128, exponent=1.0)
    + grid(law=laws.shifted(NORMAL, 0.5), d_k=128, exponent=1.0)
    + grid(law=laws.common_scale(NORMAL, 14), d_k=128, exponent=1.0)
)


@claim(slope(variance), equals=lambda exponent: exponent, within=absolute(0.1), over=GROWTH, decides="A5")
def growth_when_assumptions_fail(q, k):
    """With correlations that decay, with means, and with a common random length, the variance still grows as d_k: √d_k is the right power, with another constant."""
    return at_widths(q, k)


@claim(slope(variance), equals=1, within=absolute(0.1),
       over=grid(law=laws.equicorrelated(NORMAL, 0.5), d_k=128), decides="A5", expect=Verdict.REFUTED)
def growth_with_a_common_part(q, k):
    """The variance grows as d_k however the coordinates are correlated (with a common part it comes to grow as d_k²)."""
    return at_widths(q, k)
