"""From the weights of many transformers to their losses at once: a run's never meet another's.

Arrays begin with the runs. A layer is one head of width d_k over a causal context and a ReLU layer,
each with its residual; norms have no weights.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import layer_norm, one_hot

VOCABULARY = 48  # the 39 characters of the text, and some that never come

Weights = dict[str, Any]  # by their names, (runs, …) tensors


class Shape(NamedTuple):
    """Of a transformer: its width, its head's, those of its ReLU layers, how many layers, its
    context, whether norms come first, and whether a token is hidden from itself."""

    model: int
    d_k: int
    hidden: int
    layers: int
    length: int
    pre_norm: bool = True
    blind: bool = False


def initial(shape: Shape, how: str, rng: np.random.Generator) -> dict[str, Any]:
    """One run's weights: "unit", N(0, 1/fan_in), so that q and k of normed tokens have variance 1;
    "linear", uniform(±1/√fan_in), as PyTorch's Linear has; or "small", N(0, 0.02²).
    """
    e, d, hidden = shape.model, shape.d_k, shape.hidden
    sizes = {"embedding": (VOCABULARY, e), "position": (shape.length, e), "head": (e, VOCABULARY)}
    for layer in range(shape.layers):
        sizes |= {f"q{layer}": (e, d), f"k{layer}": (e, d), f"v{layer}": (e, d),
                  f"o{layer}": (d, e), f"up{layer}": (e, hidden), f"down{layer}": (hidden, e)}
    weights = {}
    for name, size in sizes.items():
        fan_in = 1 if name in ("embedding", "position") else size[0]
        if how == "linear" and fan_in > 1:
            drawn = 2 * rng.random(size, dtype=np.float32) - 1
        else:
            drawn = rng.standard_normal(size, dtype=np.float32)
        weights[name] = drawn * np.float32(0.02 if how == "small" else fan_in**-0.5)
    return weights


def stable(scores: Any) -> Any:
    """Softmax that subtracts the maximum, as every library's does."""
    return torch.softmax(scores, dim=-1)


def naive(scores: Any) -> Any:
    """Softmax as its formula says: exponentials over their sum."""
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


SOFTMAX = {"stable": stable, "naive": naive}


class Seen(NamedTuple):
    """What a layer has: q and k, (runs, rows, d_k), and weights of attention, (runs·batch, T, T)."""

    q: Any
    k: Any
    scores: Any
    attention: Any


def logits(
    shape: Shape, weights: Weights, tokens: Any, scale: Any, softmax: Any = stable
) -> tuple[Any, list[Seen]]:
    """(runs, batch, T) tokens and (runs,) scales -> (runs, batch·T, VOCABULARY), and what is seen.
    """
    runs, batch, length = tokens.shape
    hot = one_hot(tokens.reshape(runs, -1), VOCABULARY).to(weights["head"].dtype)
    x = hot @ weights["embedding"]
    x = (x.view(runs, batch, length, -1) + weights["position"][:, None]).flatten(1, 2)
    seen = []

    def normed(y: Any) -> Any:
        return layer_norm(y, (shape.model,))

    def attended(y: Any, layer: int) -> Any:
        q, k, v = (y @ weights[f"{name}{layer}"] for name in "qkv")
        apart = [each.view(runs * batch, length, shape.d_k) for each in (q, k, v)]
        scores = apart[0] @ apart[1].transpose(1, 2)
        scores = scores * scale.repeat_interleave(batch)[:, None, None]
        ahead = torch.ones(length, length, dtype=torch.bool).triu(0 if shape.blind else 1)
        attention = softmax(scores.masked_fill(ahead, -torch.inf))
        seen.append(Seen(q, k, scores, attention))
        return (attention @ apart[2]).reshape(runs, batch * length, -1) @ weights[f"o{layer}"]

    def fed(y: Any, layer: int) -> Any:
        return torch.relu(y @ weights[f"up{layer}"]) @ weights[f"down{layer}"]

    x = x if shape.pre_norm else normed(x)
    for layer in range(shape.layers):
        for part in (attended, fed):
            x = x + part(normed(x), layer) if shape.pre_norm else normed(x + part(x, layer))
    return normed(x) @ weights["head"], seen


def losses(logits: Any, targets: Any) -> Any:
    """The mean cross-entropy of each run, (runs,), in nats.

    It is a sum in double precision, in which it does not show how many runs are summed at once.
    """
    of_each = torch.log_softmax(logits, dim=-1)
    return -of_each.gather(2, targets.reshape(len(logits), -1, 1)).double().mean(dim=(1, 2))
