"""Score variance at initialisation of PyTorch's own layers, held against the laws that stand for them."""

import numpy as np

from mcverify import Verdict, claim, grid, laws, relative
from mcverify.laws import initialisation as init
from mcverify.statistic import median
from mcverify.theory.projections import score_variance

MODEL, HEADS = 512, 8
D_K = MODEL // HEADS
LAWS = {"MultiheadAttention": init.xavier("fused"), "Linear": init.uniform_fan_in()}


def by_law(layer):
    """Var(q·k/√d_k) over weights and inputs of unit variance, under the law that stands for the layer."""
    law = laws.projected(laws.normal, LAWS[layer], MODEL)
    return score_variance(MODEL, law.weight_variance(D_K), D_K) / D_K


def of_layers(seeds, layer):
    """Var(q·k/√d_k) over inputs of unit variance, for each seed's weights of a head: tr(W_Q'W_Q·W_K'W_K)/d_k."""
    import torch

    torch.set_num_threads(1)
    variances = []
    for seed in seeds:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(seed))
            if layer == "MultiheadAttention":
                both = torch.nn.MultiheadAttention(MODEL, HEADS).in_proj_weight[:2 * MODEL]
            else:
                both = torch.cat([torch.nn.Linear(MODEL, MODEL).weight for _ in range(2)])
            q, k = both[:D_K], both[MODEL:MODEL + D_K]
            variances.append(float(((q @ q.T) * (k @ k.T)).sum()) / D_K)
    return np.array(variances)


@claim(median, equals=by_law, within=relative(0.03), over=grid(layer=["MultiheadAttention", "Linear"]), decides="B1",
       needs="torch", controls=grid(equals=1.0) + grid(layer="Linear"))
def stock_layers_are_as_their_laws(seeds, layer):
    """At initialisation and for inputs of unit variance Var(q·k/√d_k) is 1/4 in a head of nn.MultiheadAttention, whose matrix is fused, and 1/9 between two of nn.Linear, as under the laws that stand for them."""
    return of_layers(seeds, layer)


@claim(median, equals=1, within=relative(0.2), over=grid(layer=["MultiheadAttention", "Linear"]), decides="B1", needs="torch",
       expect=Verdict.REFUTED)
def stock_layers_give_unit_variance(seeds, layer):
    """At initialisation and for inputs of unit variance Var(q·k/√d_k) is 1 in PyTorch's own layers."""
    return of_layers(seeds, layer)
