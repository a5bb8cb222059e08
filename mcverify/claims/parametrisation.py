"""Where the scale is put: folded into W_Q as T5 does, or 1/d_k as width-transferable models use."""

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws
from mcverify.attention import matched_scores, score_gradient, scores, softmax
from mcverify.statistic import mean, proportion, slope

# --- T5: no scale, and W_Q smaller by √d_k at first ----------------------------------------------

STEPS = {
    "sign": lambda gradient, w: np.sign(gradient),
    "gradient": lambda gradient, w: gradient,
    "relative": lambda gradient, w: gradient * size(w) / size(gradient),
}


def size(x):
    """The root mean square of each block's matrix."""
    return np.sqrt(np.mean(x * x, axis=(1, 2), keepdims=True))


def first_step(x, k, w, g, folded, rule):
    """The scores of inputs x under W_Q = w, and how a step on W_Q changes them; all but ``folded`` of the factor 1/√d_k stays with the scores."""
    w, scale = w * k.shape[-1] ** (-folded / 2), k.shape[-1] ** ((folded - 1) / 2)
    s = scores(x @ w, k, scale)
    gradient = np.swapaxes(x, 1, 2) @ (scale * score_gradient(softmax(s), g) @ k)
    return s, scores(x @ STEPS[rule](gradient, w), k, scale)


POWERS = {"sign": 0.5, "gradient": 1.0, "relative": 0.0}


@claim(proportion, at_least=0.9, over=grid(law=laws.normal, d_k=[16, 64], tokens=8, rule=[*POWERS]),
       decides="C18", controls=grid(folded=0.5))
def folded_scale_learns_faster(q, k, d_k, rng, rule, folded=1.0):
    """With 1/√d_k folded into W_Q, the first step on W_Q changes scores √d_k times as much if it goes by signs (Adam), d_k times by the gradient, and no more if it is relative to the weights (Adafactor)."""
    w = rng.standard_normal((len(q), d_k, d_k)) / np.sqrt(d_k)
    g = rng.standard_normal((len(q), q.shape[1], k.shape[1]))
    apart, together = first_step(q, k, w, g, 0.0, rule), first_step(q, k, w, g, folded, rule)
    return np.isclose(together[0], apart[0]) & np.isclose(together[1], d_k ** POWERS[rule] * apart[1])


@claim(proportion, at_least=0.9, over=grid(law=laws.normal, d_k=[16, 64], tokens=8, rule=[*POWERS][:2]),
       decides="C18", expect=Verdict.REFUTED)
def folded_scale_is_the_same(q, k, d_k, rng, rule):
    """Folding 1/√d_k into W_Q changes nothing, whatever takes the first step."""
    w = rng.standard_normal((len(q), d_k, d_k)) / np.sqrt(d_k)
    g = rng.standard_normal((len(q), q.shape[1], k.shape[1]))
    return np.isclose(first_step(q, k, w, g, 0.0, rule)[1], first_step(q, k, w, g, 1.0, rule)[1])


# --- 1/d_k, for pairs that training has aligned --------------------------------------------------

RHO = 0.5
ALIGNED = laws.correlated(laws.normal, RHO)


def at_widths(q, k, power):
    return [(d, matched_scores(q[..., :d], k[..., :d], d**-power)) for d in (16, 64, 256)]


@claim(slope(mean), equals=lambda power: 1 - power, within=absolute(0.02), decides="C5",
       over=grid(law=ALIGNED, d_k=256, power=[0.5, 1.0]), controls=grid(power=0.75))
def aligned_score_grows(q, k, power):
    """The mean score of an aligned pair grows as √d_k when divided by √d_k, and not at all when divided by d_k."""
    return at_widths(q, k, power)


@claim(slope(mean), equals=0, within=absolute(0.02), over=grid(law=ALIGNED, d_k=256), decides="C5",
       expect=Verdict.REFUTED)
def root_of_the_width_transfers(q, k):
    """Divided by √d_k, the mean score of an aligned pair does not change with the width."""
    return at_widths(q, k, 0.5)


@claim(mean.within(0, 1), equals=lambda tokens: 1 / (1 + (tokens - 1) * np.exp(-RHO)), within=absolute(0.02),
       over=grid(law=ALIGNED, d_k=[64, 256], tokens=16), decides="C5", controls=grid(power=0.5))
def aligned_key_keeps_its_weight(q, k, d_k, power=1.0):
    """Divided by d_k, the key that a query is aligned with by ρ = 0.5 has the weight 1/(1 + 15e^−ρ) among 16 at any width of 64 or more; divided by √d_k it has more the wider the head."""
    return softmax(scores(q, k, d_k**-power)).diagonal(axis1=1, axis2=2)
