"""ALiBi and YaRN: what a bias by distance, and a temperature by length, do to the entropy."""

import math

from mcverify import Verdict, absolute, claim, grid, laws, relative, theory
from mcverify.attention import alibi_bias, softmax_entropy
from mcverify.statistic import exact, mean

ENTROPY = mean.within(0, lambda tokens: math.log(tokens))
SLOPES = grid(law=laws.normal, d_k=1, slope=2.0**-4, tokens=[256, 2048]) + grid(
    law=laws.normal, d_k=1, slope=2.0**-8, tokens=4096)


def last_row(q, slope):
    """The last query's independent N(0, 1) scores with what ALiBi adds to them."""
    return q[..., 0] + alibi_bias(q.shape[1], slope, queries=1)[0]


@claim(ENTROPY, equals=lambda slope: theory.variants.alibi_entropy(slope, 1.0), within=relative(0.03),
       over=SLOPES, decides="C20", controls=grid(steeper=1.3))
def alibi_stops_the_entropy(q, slope, steeper=1.0):
    """ALiBi with slope m stops the entropy at about ln(1/m) + 1/2 at 256 and at 2048 keys alike: at 3.36 for 1/16, and at 6.05 for the smallest slope, 1/256."""
    return softmax_entropy(last_row(q, slope * steeper))


@claim(exact, equals=lambda slope: math.log(1 / slope) + 0.5, within=absolute(0.1),
       over=grid(slope=[2.0**-4, 2.0**-6, 2.0**-8]), decides="C20", controls=grid(sigma=0.8))
def alibi_ceiling(slope, sigma=1.0):
    """That ceiling is ln(1/m) + 1/2 to order m, 1 more than ln(1/m) − 1/2: the distances spread the weights by 1 nat."""
    return theory.variants.alibi_entropy(slope, sigma)


@claim(ENTROPY, equals=lambda tokens: math.log(tokens) - 0.5, within=relative(0.05),
       over=grid(law=laws.normal, d_k=1, slope=2.0**-4, tokens=2048), decides="C20", expect=Verdict.REFUTED)
def alibi_disperses_with_the_length(q, slope):
    """With ALiBi the entropy grows as ln n − 1/2, as it does without."""
    return softmax_entropy(last_row(q, slope))


# --- YaRN ----------------------------------------------------------------------------------------

TRAINED = 128


def yarn_factor(fold, sides):
    """What YaRN multiplies scores by at s-fold length: 0.1 ln s + 1 on q and on k."""
    return (0.1 * math.log(fold) + 1) ** sides


@claim(exact, equals=theory.variants.yarn_growth, within=absolute(0.02), over=grid(fold=[2, 4, 8, 32]),
       decides="C21 B14", controls=grid(sides=1))
def yarn_slows_dispersion(fold, sides=2):
    """YaRN's temperature undoes about a fifth of what a longer context adds to the entropy: at s-fold length it grows by ln s − ((0.1 ln s + 1)⁴ − 1)/2, by 1.51 of 2.08 nats at 8."""
    n = 10**6
    return theory.softmax.entropy(n * fold, yarn_factor(fold, sides)) - theory.softmax.entropy(n, 1.0)


@claim(mean.within(0, lambda fold: math.log(TRAINED * fold)), within=relative(0.02), decides="C21 B14",
       equals=lambda fold: theory.softmax.entropy(TRAINED, 1.0) + theory.variants.yarn_growth(fold),
       over=grid(law=laws.normal, d_k=1, fold=8, tokens=8 * TRAINED), controls=grid(sides=0))
def drawn_entropy_under_yarn(q, fold, sides=2):
    """The drawn entropy at 8 times 128 keys, with YaRN's temperature, is that of 128 keys and 1.51 nats."""
    return softmax_entropy(yarn_factor(fold, sides) * q[..., 0])
