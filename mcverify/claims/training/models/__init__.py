"""Small transformers that bodies of claims train, many at once; needs mcverify[torch]."""

from collections.abc import Callable, Sequence
from typing import Any

SCALES = ("none", "sqrt", "full")  # 1, 1/√d_k and 1/d_k
STEPS, RATE = 200, 3e-3
MEASURED = (0, 50, 100, 150, 199)
WIDTH, LAYERS, CONTEXT = 32, 2, 32


def under_each_scale(
    seeds: Sequence[int], progress: Callable[[float], None], initial: str, d_k: int
) -> dict[str, Any]:
    """Of a model of 2 layers and width 32 for each seed, trained by Adam with each of SCALES:
    what ``training.train`` saw, (seeds, scales, …)."""
    from mcverify.claims.training.models.training import Condition, Plan, Shape, trained

    shape = Shape(WIDTH, d_k, 2 * WIDTH, LAYERS, CONTEXT)
    plan = Plan(shape, initial, STEPS, RATE, measured=MEASURED)
    return trained(plan, seeds, [Condition(d_k**-power) for power in (0.0, 0.5, 1.0)], progress)
