"""Small transformers that bodies of claims train, many at once; needs mcverify[torch]."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SCALES = ("none", "sqrt", "full")  # 1, 1/√d_k and 1/d_k
RATE = 3e-3
CONTEXT = 32


@dataclass(frozen=True)
class Model:
    """What a table says of a model, besides its d_k: its size, and how long it was trained."""

    layers: int
    width: int
    steps: int

    def __str__(self) -> str:
        return f"layers-{self.layers}-width-{self.width}-steps-{self.steps}"

    @property
    def measured(self) -> tuple[int, ...]:
        """Steps before which attention is looked at: the first, each quarter's, the last."""
        return (*range(0, self.steps, self.steps // 4), self.steps - 1)


SMALL_MODEL = Model(layers=2, width=32, steps=200)


def under_each_scale(
    seeds: Sequence[int], progress: Callable[[float], None], model: Model, initial: str, d_k: int
) -> dict[str, Any]:
    """Of a model for each seed, trained by Adam with each of SCALES on a text of characters' names:
    what ``training.train`` saw, (seeds, scales, …)."""
    from mcverify.claims.training.models.training import Condition, Plan, trained
    from mcverify.claims.training.models.transformer import Shape

    shape = Shape(model.width, d_k, 2 * model.width, model.layers, CONTEXT)
    plan = Plan(shape, initial, model.steps, RATE, measured=model.measured)
    return trained(plan, seeds, [Condition(d_k**-power) for power in (0.0, 0.5, 1.0)], progress)
