"""Longer contexts: what a fixed scale does to attention, and what temperatures that follow the length do."""

import math

import numpy as np

from mcverify import Verdict, claim, grid, laws, relative, theory
from mcverify.attention import softmax_entropy
from mcverify.claims.ranges import ENTROPY

TRAINED = 512  # keys, at unit variance of the scores: an entropy of 5.742

# The standard deviation of the scores when the length has grown ``fold`` times, by rule.
RULES = {
    "fixed": lambda fold: 1.0,
    "root": math.sqrt,  # T = √d_k·√(trained/actual length)
    "variance": lambda fold: math.sqrt(1 + 2 * math.log(fold)),
    "logarithm": lambda fold: math.log(TRAINED * fold) / math.log(TRAINED),
    "yarn": lambda fold: (0.1 * math.log(fold) + 1) ** 2,
}


def at(rule, *folds):
    """Points of a grid: a rule, and lengths with the number of keys there."""
    points = [grid(law=laws.normal, d_k=1, keys=round(TRAINED * fold), rule=rule, fold=fold) for fold in folds]
    return sum(points[1:], points[0])


def lengthened(q, keys, rule, fold):
    """The entropies of rows of independent normal scores, as spread as the rule says."""
    return softmax_entropy(RULES[rule](fold) * q.reshape(len(q), -1, keys))


def trained_entropy():
    """ln n − 1/2 + (e + 1)/(2n): that of unit variance, and so of what was trained."""
    return math.log(TRAINED) - 0.5 + (math.e + 1) / (2 * TRAINED)


@claim(ENTROPY, equals=lambda keys, rule, fold: theory.softmax.entropy(keys, RULES[rule](fold)),
       within=relative(0.02), over=at("root", 2.0, 3.7, 8.0, 1.0) + at("variance", 8.0), decides="B14",
       controls=grid(fold=2.0))
def root_rule(q, keys, rule, fold):
    """T = √d_k·√(trained/actual length) overshoots: from 5.742 nats the entropy goes to 5.94, 5.742 and 4.74 at 2, 3.7 and 8-fold length; a variance of 1 + 2 ln 8 leaves 5.83 at 8."""
    return lengthened(q, keys, rule, fold)


@claim(ENTROPY, equals=trained_entropy, within=relative(0.02), decides="B13 B14", expect=Verdict.REFUTED,
       over=at("fixed", 2.0, 8.0) + at("root", 8.0) + at("logarithm", 2.0, 8.0) + at("yarn", 2.0, 8.0))
def rules_keep_the_entropy(q, keys, rule, fold):
    """From 512 keys at unit variance, a fixed scale, the √ rule and scores times ln n/ln 512 or YaRN's (0.1 ln s + 1)² keep the entropy at s-fold length (at 8-fold it is 36 % up, 18 % down, 29 and 26 % up)."""
    return lengthened(q, keys, rule, fold)


@claim(ENTROPY, equals=trained_entropy, within=relative(0.04), over=at("variance", 2.0, 8.0, 16.0),
       decides="B14", controls=grid(rule="fixed"))
def variance_rule(q, keys, rule, fold):
    """A score variance of 1 + 2 ln(n/512) keeps the entropy of 512 keys to 4 % at 2, 8 and 16-fold length."""
    return lengthened(q, keys, rule, fold)


@claim(ENTROPY, equals=trained_entropy, within=relative(0.005), decides="B14", controls=grid(variance=1 + 2 * math.log(8)),
       over=grid(law=laws.normal, d_k=1, keys=8 * TRAINED, variance=5.36))
def exact_rule(q, k, keys, variance):
    """A score variance of 5.36 gives 4096 keys the entropy of 512 at unit variance, to 0.5 %; 1 + 2 ln 8 does not."""
    rows = np.concatenate([x.reshape(len(x), -1, keys) for x in (q, k)], axis=1)
    return softmax_entropy(math.sqrt(variance) * rows)
