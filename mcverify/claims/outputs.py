"""What one layer of attention puts out: how alike the outputs of unlike tokens become."""

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, theory
from mcverify.attention import cosines, head_scores, outputs, rows, softmax
from mcverify.statistic import exact, mean, ratio

WIDTH = 64  # of a value
KEYS = 128
COSINE = mean.within(-1, 1)


def layer(q, k, keys, d_k, power, rng, own_values=False):
    """Outputs of a few queries, which share the keys and the values of a block."""
    p = softmax(rows(q, k, keys, scale=d_k**-power))[:, :32]
    if own_values:
        p = p[:, :8]
        v = rng.standard_normal((*p.shape[:2], keys, WIDTH))
        return np.einsum("brk,brkd->brd", p, v)
    return outputs(p, rng.standard_normal((len(p), keys, WIDTH)))


def of_pairs(x):
    """The entries of a matrix of pairs that are not on its diagonal."""
    size = x.shape[-1]
    return x[:, ~np.eye(size, dtype=bool)]


@claim(ratio.of_degree(2), equals=lambda keys: 1 / (keys * theory.softmax.sum_squares(keys, 1.0)),
       within=absolute(0.03), decides="C12", over=grid(law=laws.normal, d_k=64, keys=KEYS),
       controls=grid(power=0.4) + grid(own_values=True))
def strangers_become_alike(q, k, keys, d_k, rng, power=0.5, own_values=False):
    """Divided by √d_k, outputs of independent queries over the same 128 keys and values have E o·o' = 0.39 E ‖o‖²."""
    o = layer(q, k, keys, d_k, power, rng, own_values)
    products = o @ np.swapaxes(o, 1, 2)
    return of_pairs(products), np.trace(products, axis1=1, axis2=2) / o.shape[1]


@claim(ratio.of_degree(2), equals=lambda tokens: 1 / (tokens * theory.softmax.sum_squares(tokens, 1.0)),
       within=absolute(0.03), decides="C12", over=grid(law=laws.normal, d_k=2 * 16, tokens=KEYS),
       controls=grid(groups=2))
def heads_of_a_group_are_alike(q, k, d_k, rng, groups=1):
    """Two heads of queries that share keys and values, as in grouped-query attention, give a token outputs that are as alike: E o·o' = 0.39 E ‖o‖²."""
    width = d_k // 2
    p = softmax(head_scores(q[:, :32], k[..., :groups * width], 2, groups, width**-0.5))
    o = outputs(p, rng.standard_normal((len(k), groups, k.shape[1], WIDTH)))
    return np.einsum("brd,brd->br", o[:, 0], o[:, 1]), np.einsum("bhrd,bhrd->br", o, o) / 2


@claim(exact, equals=theory.many_keys.alikeness, within=absolute(0.01), decides="C12",
       over=grid(sigma=[0.125, 0.5, 1.0], keys=[512, 65536]), controls=grid(sigma=0.25))
def alikeness_of_strangers(sigma, keys):
    """For n scores of N(0, σ²) that ratio, 1/(n E Σp²), is e^(−σ²) from 512 keys on: 0.37 at σ = 1, and 0.98 at 1/8, as after dividing by d_k = 64."""
    return 1 / (keys * theory.softmax.sum_squares(keys, sigma))


@claim(COSINE, at_least=0.95, over=grid(law=laws.normal, d_k=64, keys=KEYS), decides="C12 B7",
       controls=grid(power=0.5))
def strangers_are_one_divided_by_the_width(q, k, keys, d_k, rng, power=1.0):
    """Divided by d_k, the outputs of independent queries have a mean cosine above 0.95: a layer makes all tokens nearly the same."""
    return of_pairs(cosines(layer(q, k, keys, d_k, power, rng)))


@claim(COSINE, at_most=0.1, over=grid(law=laws.normal, d_k=64, keys=KEYS), decides="C12",
       controls=grid(power=0.5))
def strangers_stay_apart_unscaled(q, k, keys, d_k, rng, power=0.0):
    """Unscaled at d_k = 64, the outputs of independent queries have a mean cosine below 0.1."""
    return of_pairs(cosines(layer(q, k, keys, d_k, power, rng)))


@claim(COSINE, at_most=0.2, over=grid(law=laws.normal, d_k=64, keys=KEYS), decides="C12",
       expect=Verdict.REFUTED)
def independent_queries_have_unlike_outputs(q, k, keys, d_k, rng):
    """Divided by √d_k, queries that are independent get outputs whose mean cosine is below 0.2."""
    return of_pairs(cosines(layer(q, k, keys, d_k, 0.5, rng)))
