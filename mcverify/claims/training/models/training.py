"""Train small transformers on the names of characters, many at once, and say what was seen."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from mcverify.claims.training.models.text import windows
from mcverify.claims.training.models.transformer import (
    SOFTMAX,
    Seen,
    Shape,
    Weights,
    initial,
    logits,
    losses,
)

MOMENTUM, SQUARES, EPSILON = 0.9, 0.999, 1e-8  # of Adam
VALIDATION = 32  # windows of held-out text a run
NEARLY_ONE_HOT = 1e-3  # trace of a row's softmax Jacobian, 1 - Σp², below which a row is dead

Progress = Callable[[float], None]


class Condition(NamedTuple):
    """How a run is trained, besides what all have in common."""

    scale: float
    clip: bool = False  # the norm of all gradients at 1
    warm_up: int = 0  # steps over which the rate rises
    learned: bool = False  # whether the logarithm of the scale is a parameter


class Plan(NamedTuple):
    """What all runs have in common."""

    shape: Shape
    initial: str  # how weights begin
    steps: int
    rate: float
    adam: bool = True
    batch: int = 4
    softmax: str = "stable"
    half: bool = False  # all arithmetic in float16, as a model has it that is cast whole
    measured: tuple[int, ...] = ()  # steps before which the attention is looked at


Runs = dict[str, Any]  # by what was seen: (runs, …) arrays


VECTOR = 16  # numbers that a processor computes at once, at most
KEPT = 4  # of what training gave: claims at the same settings look at the same runs
_kept: dict[Any, Runs] = {}


def trained(
    plan: Plan, seeds: Sequence[int], conditions: Sequence[Condition], progress: Progress
) -> Runs:
    """What ``train`` gives, without training again what was trained a moment ago."""
    key = (plan, tuple(seeds), tuple(conditions))
    if key not in _kept:
        while len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = train(plan, seeds, conditions, progress)
    return _kept[key]


def train(
    plan: Plan, seeds: Sequence[int], conditions: Sequence[Condition], progress: Progress
) -> Runs:
    """Train a model for each seed under each condition: arrays are (seeds, conditions, …).

    A seed has the same weights at first, and the same text in the same order, under all conditions.
    ``loss`` is that of each step before it is made, ``validation`` that of held-out text after the
    last one; ``gradient`` is the RMS of ∂L/∂W_Q and ∂L/∂W_K of each layer, (…, steps, layers, 2). What
    ``measured`` steps see is (…, measured, layers): variances of q, k and of the scaled scores,
    the share of ln n that is left of the entropy, and that of rows that are dead. A run that
    diverges has NaN from then on, and no step is made after all have.
    """
    torch.set_num_threads(1)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    each = [initial(plan.shape, plan.initial, rng) for rng in rngs]
    many = len(conditions)
    weights: Weights = {name: torch.from_numpy(np.repeat(
        np.stack([one[name] for one in each]), many, axis=0)) for name in each[0]}
    weights["log_scale"] = torch.tensor([math.log(c.scale) for c in conditions]).repeat(len(seeds))
    if plan.half:
        weights = {name: weight.half() for name, weight in weights.items()}
    learner = _Learner(plan, weights, conditions, len(seeds))
    seen: dict[str, list[Any]] = {}
    for step in range(plan.steps):
        text = _text(rngs, False, plan.batch, plan.shape.length, many)
        for name, value in learner.step(text, look=step in plan.measured).items():
            seen.setdefault(name, []).append(value)
        progress(step / plan.steps)
        if seen["loss"][-1].isnan().all():
            break
    held_out = _text(rngs, True, VALIDATION, plan.shape.length, many)
    shown = {name: torch.stack(values, dim=1) for name, values in seen.items()}
    shown["validation"] = learner.loss(held_out)
    shown["scale"] = exponential(weights["log_scale"])
    return {name: value.numpy().reshape(len(seeds), many, *value.shape[1:])
            for name, value in shown.items()}


def _text(
    rngs: Sequence[np.random.Generator], held_out: bool, count: int, length: int, many: int
) -> Any:
    drawn = np.stack([windows(rng, held_out, count, length) for rng in rngs])
    return torch.from_numpy(np.repeat(drawn, many, axis=0))


class _Learner:
    """The state of an optimiser, all of whose arithmetic is by runs."""

    def __init__(
        self, plan: Plan, weights: Weights, conditions: Sequence[Condition], seeds: int
    ) -> None:
        self.plan, self.weights, self.made = plan, weights, 0
        self.mean = {name: torch.zeros_like(x) for name, x in weights.items()}
        self.square = {name: torch.zeros_like(x) for name, x in weights.items()}

        def of(values: list[float]) -> Any:
            return torch.tensor(values).repeat(seeds)

        self.clip = of([float(c.clip) for c in conditions]) > 0
        self.warm_up = of([float(max(c.warm_up, 1)) for c in conditions])
        self.learned = of([float(c.learned) for c in conditions])

    def loss(self, text: Any) -> Any:
        """(runs,) losses, without gradients."""
        with torch.no_grad():
            return losses(self._logits(text)[0], text[..., 1:])

    def _logits(self, text: Any) -> tuple[Any, list[Seen]]:
        plan = self.plan
        return logits(plan.shape, self.weights, text[..., :-1],
                      exponential(self.weights["log_scale"]), SOFTMAX[plan.softmax])

    def step(self, text: Any, look: bool) -> dict[str, Any]:
        """Make a step, and tell what was seen before it."""
        for weight in self.weights.values():
            weight.requires_grad_()
        logits, layers = self._logits(text)
        loss = losses(logits, text[..., 1:])
        gradients = dict(zip(self.weights, torch.autograd.grad(
            loss.sum(), list(self.weights.values())), strict=True))
        for weight in self.weights.values():
            weight.requires_grad_(False)
        gradients["log_scale"] *= self.learned
        with torch.no_grad():
            told = {"loss": loss.detach(), "gradient": self._sizes(gradients)}
            told |= looked_at(layers, len(loss)) if look else {}
            self._update(gradients)
        return told

    def _sizes(self, gradients: Weights) -> Any:
        """(runs, layers, 2) root mean squares of ∂L/∂W_Q and ∂L/∂W_K."""
        return torch.stack([torch.stack([
            gradients[f"{name}{layer}"].double().square().mean(dim=(1, 2)).sqrt()
            for name in "qk"], dim=1)
            for layer in range(self.plan.shape.layers)], dim=1)

    def _update(self, gradients: Weights) -> None:
        self.made += 1
        shrink = torch.ones(len(self.clip))
        for run in self.clip.nonzero()[:, 0].tolist():  # one by one, for sums depend on their shape
            norm = torch.cat([gradient[run].ravel() for gradient in gradients.values()]).norm()
            shrink[run] = (1 / norm).clamp(max=1.0)
        rate = self.plan.rate * (self.made / self.warm_up).clamp(max=1.0)
        of_mean, of_root = 1 - MOMENTUM**self.made, math.sqrt(1 - SQUARES**self.made)
        for name, weight in self.weights.items():
            shape = (-1, *[1] * (weight.ndim - 1))
            gradient = gradients[name].mul_(shrink.view(shape))
            if self.plan.adam:
                self.mean[name].lerp_(gradient, 1 - MOMENTUM)
                self.square[name].mul_(SQUARES).addcmul_(gradient, gradient, value=1 - SQUARES)
                torch.sqrt(self.square[name], out=gradient).div_(of_root).add_(EPSILON)
                torch.div(self.mean[name], gradient, out=gradient).div_(of_mean)
            weight.sub_(gradient.mul_(rate.view(shape)))


def exponential(x: Any) -> Any:
    """exp of (runs,) numbers, none of which depends on how many there are in its last bit: whole
    vectors are computed otherwise than what is left over."""
    return x[:, None].expand(-1, VECTOR).contiguous().exp()[:, 0]


def looked_at(layers: Sequence[Seen], runs: int) -> dict[str, Any]:
    """What the attention of every layer shows: (runs, layers) each."""
    def of(function: Callable[[Seen], Any]) -> Any:
        return torch.stack([function(seen) for seen in layers], dim=1)

    return {
        "q_variance": of(lambda seen: seen.q.double().var(dim=(1, 2))),
        "k_variance": of(lambda seen: seen.k.double().var(dim=(1, 2))),
        "score_variance": of(lambda seen: _lower(seen.scores, runs).var(dim=1)),
        "entropy": of(lambda seen: _entropy_share(seen.attention).view(runs, -1).mean(1)),
        "dead": of(lambda seen: (1 - seen.attention.square().sum(2)[:, 1:] < NEARLY_ONE_HOT)
                   .float().view(runs, -1).mean(1)),
    }


def _lower(scores: Any, runs: int) -> Any:
    """Those that the softmax sees, (runs, batch · pairs)."""
    first, second = torch.tril_indices(*scores.shape[1:])
    return scores[:, first, second].reshape(runs, -1).double()


def _entropy_share(attention: Any) -> Any:
    """Of ln n for a row of n keys, from the second row on."""
    counts = torch.arange(2, attention.shape[1] + 1)
    return torch.special.entr(attention[:, 1:].double()).sum(2) / counts.log()
