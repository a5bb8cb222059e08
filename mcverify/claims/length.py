"""Longer contexts: what a fixed scale does to attention, and what temperatures that follow the length do."""

import math

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import entropy, max_weight, rows, softmax
from mcverify.claims.ranges import ENTROPY, SCALED_WEIGHT
from mcverify.declare import near
from mcverify.statistic import exact

TRAINED = 512  # keys, at unit variance of the scores: an entropy of 5.742
FOLDS = [2, 8, 32]


def entropy_at(fold, sigma):
    """E H over fold·512 independent N(0, σ²) scores."""
    return theory.softmax.entropy(TRAINED * fold, sigma)


def trained_entropy():
    return entropy_at(1, 1.0)


@claim(exact, equals=-0.5, within=absolute(0.02), over=grid(keys=[128, 512, 4096, 65536]),
       decides="B13 B6")
def dispersion(keys):
    """At unit variance the entropy stays 1/2 below its ceiling ln n, however long the context: attention disperses."""
    return theory.softmax.entropy(keys, 1.0) - math.log(keys)


@claim(SCALED_WEIGHT, at_most=lambda keys: 20 / keys, over=grid(law=laws.normal, d_k=64, keys=[128, 1024]),
       decides="B13", controls=near.query_scale(8.0))
def no_key_stands_out(q, k, keys, d_k):
    """Divided by √d_k, the largest weight tends to 0 with the number of keys: below 20/n up to 1024."""
    return max_weight(softmax(rows(q, k, keys, scale=1 / math.sqrt(d_k))))


@claim(exact, equals=trained_entropy, within=relative(0.02), over=grid(fold=FOLDS), decides="B13",
       expect=Verdict.REFUTED)
def constant_temperature_keeps_entropy(fold):
    """A fixed scale keeps the entropy of 512 keys at longer contexts."""
    return entropy_at(fold, 1.0)


@claim(exact, equals=lambda fold: printed({2: "5.94", 8: "4.74", 32: "2.09"}[fold]),
       over=grid(fold=FOLDS), decides="B14")
def root_rule(fold):
    """T = √d_k·√(trained/actual length) overshoots: from 5.74 nats the entropy goes to 5.94, 4.74 and 2.09 at 2, 8, 32-fold length."""
    return entropy_at(fold, math.sqrt(fold))


@claim(exact, equals=trained_entropy, within=relative(0.02), over=grid(fold=[8, 32]), decides="B14",
       expect=Verdict.REFUTED)
def root_rule_keeps_entropy(fold):
    """T = √d_k·√(trained/actual length) keeps the entropy at longer contexts."""
    return entropy_at(fold, math.sqrt(fold))


@claim(exact, equals=printed("3.70"), decides="B14")
def root_rule_crosses():
    """Under T = √d_k·√(trained/actual length) the entropy is back at its trained value at 3.70-fold length, on its way down."""
    from scipy.optimize import brentq  # here, as it is slow to import

    return brentq(lambda fold: entropy_at(1, 1.0) - theory.softmax.entropy(
        round(TRAINED * fold), math.sqrt(fold)), 3, 5, xtol=1e-4)


@claim(exact, equals=trained_entropy, within=relative(0.02), over=grid(fold=FOLDS), decides="B14",
       expect=Verdict.REFUTED)
def logarithmic_rule_keeps_entropy(fold):
    """Scores multiplied by ln n/ln 512 keep the entropy (they slow its growth: +10, +29, +48 %)."""
    return entropy_at(fold, math.log(TRAINED * fold) / math.log(TRAINED))


@claim(exact, equals=trained_entropy, within=relative(0.02), over=grid(fold=FOLDS), decides="B14",
       expect=Verdict.REFUTED)
def yarn_rule_keeps_entropy(fold):
    """Scores multiplied by (0.1 ln s + 1)² at s-fold length keep the entropy (+9, +26, +40 %)."""
    return entropy_at(fold, (0.1 * math.log(fold) + 1) ** 2)


@claim(exact, equals=trained_entropy, within=relative(0.04), over=grid(fold=[2, 4, 8, 32]),
       decides="B14")
def variance_rule(fold):
    """A score variance of 1 + 2 ln(n/512) keeps the entropy to 4 % up to 32-fold length."""
    return entropy_at(fold, math.sqrt(1 + 2 * math.log(fold)))


@claim(exact, equals=lambda fold: printed({8: "5.36"}[fold]), over=grid(fold=8), decides="B14")
def exact_rule(fold):
    """The variance that keeps the entropy exactly at 8-fold length is 5.36, by quadrature."""
    from scipy.optimize import brentq

    return brentq(lambda variance: entropy_at(fold, math.sqrt(variance)) - trained_entropy(), 1, 20)


@claim(ENTROPY, equals=lambda d_k, sigma: theory.softmax.entropy(1024, sigma, d_k),
       within=relative(0.02), over=grid(law=laws.normal, d_k=64, keys=1024, sigma=[1.0, 1.545, 1.414]),
       decides="B14")
def drawn_at_twice_the_length(q, k, keys, d_k, sigma):
    """At 1024 keys the drawn entropies under a fixed scale, the variance rule and the √ rule are the exact ones."""
    return entropy(softmax(rows(q, k, keys, scale=sigma / math.sqrt(d_k))))
