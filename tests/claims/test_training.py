"""The models that claims about training train: text, optimiser, softmax, and runs apart."""

import hashlib
import math

import numpy as np
import pytest

from mcverify.claims.training.models import SMALL_MODEL, Model
from mcverify.claims.training.models.text import CHARACTERS, names, pieces, windows

torch = pytest.importorskip("torch")

from mcverify.claims.training.models.training import Condition, Plan, train  # noqa: E402
from mcverify.claims.training.models.transformer import (  # noqa: E402
    Shape,
    initial,
    logits,
    losses,
    naive,
    stable,
)

SHAPE = Shape(model=16, d_k=16, hidden=16, layers=2, length=8)
PLAN = Plan(SHAPE, "unit", steps=6, rate=0.01, measured=(0, 5))
ALL = [Condition(1.0), Condition(0.25, clip=True), Condition(0.25, warm_up=4),
       Condition(1.0, learned=True)]


def ignore(share):
    """Nobody waits."""


def test_the_text_is_the_same_in_every_version_of_python():
    digest = hashlib.sha256(names().encode()).hexdigest()
    assert digest == "f614a7425782f6ab0b1278beb187a8f09f8be25c5bb1d73a918d85466eb78cf6"
    assert set(names()) <= set(CHARACTERS)
    trained_on, held_out = pieces()
    assert (len(trained_on), len(held_out)) == (81, 8)
    assert not {row.tobytes() for row in trained_on} & {row.tobytes() for row in held_out}
    drawn = windows(np.random.default_rng(0), True, 3, 20)
    text = names()
    assert all("".join(CHARACTERS[i] for i in row) in text for row in drawn)


def test_a_run_is_the_same_whatever_runs_beside_it():
    whole = train(PLAN, range(5), ALL, ignore)
    few = train(PLAN, [3, 0], [ALL[1], ALL[3]], ignore)
    for name, values in whole.items():
        np.testing.assert_array_equal(values[3, [1, 3]], few[name][0], err_msg=name)


def test_a_run_that_diverges_leaves_the_others_alone():
    wild, tame = Condition(math.inf), Condition(0.25)
    runs = train(PLAN, range(2), [wild, tame], ignore)
    assert np.isnan(runs["loss"][:, 0]).all()
    alone = train(PLAN, range(2), [tame], ignore)
    np.testing.assert_array_equal(runs["loss"][:, 1], alone["loss"][:, 0])
    assert train(PLAN, range(2), [wild], ignore)["loss"].shape == (2, 1, 1)  # it ends there


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("clip", [True, False])
def test_steps_are_those_of_torch(adam, clip):
    plan = PLAN._replace(adam=adam)
    found = train(plan, [7], [Condition(0.25, clip=clip)], ignore)
    rng = np.random.default_rng(7)
    weights = {name: torch.tensor(x)[None].requires_grad_()
               for name, x in initial(SHAPE, "unit", rng).items()}
    kind = torch.optim.Adam if adam else torch.optim.SGD
    optimiser, seen = kind(weights.values(), lr=plan.rate), []
    scale = torch.tensor([0.25])
    for _ in range(plan.steps):
        text = torch.tensor(windows(rng, False, plan.batch, SHAPE.length))[None]
        loss = losses(logits(SHAPE, weights, text[..., :-1], scale)[0], text[..., 1:])
        optimiser.zero_grad()
        loss.sum().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimiser.step()
        seen.append(loss.item())
    np.testing.assert_allclose(found["loss"][0, 0], seen, rtol=2e-5)


def test_a_learned_scale_moves_and_a_warm_up_is_slow_at_first():
    runs = train(PLAN, [0, 1], ALL, ignore)
    assert (runs["scale"][:, :3] == np.float32([1.0, 0.25, 0.25])).all()
    assert (runs["scale"][:, 3] != 1).all()
    assert (runs["loss"][:, 1, 0] == runs["loss"][:, 2, 0]).all()


def test_a_character_sees_those_before_it_alone():
    weights = {name: torch.tensor(x)[None]
               for name, x in initial(SHAPE, "unit", np.random.default_rng(0)).items()}
    text = torch.tensor(windows(np.random.default_rng(1), False, 1, SHAPE.length))[None, ..., :-1]
    other = text.clone()
    other[..., 5:] = 0
    one, two = (logits(SHAPE, weights, x, torch.ones(1))[0] for x in (text, other))
    torch.testing.assert_close(one[:, :5], two[:, :5])
    assert not torch.allclose(one[:, 5:], two[:, 5:])
    hidden = logits(SHAPE._replace(blind=True), weights, text, torch.ones(1))[0]
    assert hidden[:, 0].isnan().all()  # it has none before it


def test_a_naive_softmax_is_the_same_until_it_overflows():
    scores = torch.tensor([[1.0, 2.0, -torch.inf], [80.0, 81.0, 3.0]])
    torch.testing.assert_close(naive(scores), stable(scores))
    assert naive(scores + 10)[1].isnan().any()
    assert not stable(scores + 10).isnan().any()


def test_initial_weights_have_the_variance_that_is_said():
    wide = Shape(model=256, d_k=64, hidden=64, layers=1, length=8)
    for how, variance in (("unit", 1 / 256), ("linear", 1 / 768), ("small", 0.0004)):
        weights = initial(wide, how, np.random.default_rng(0))
        assert weights["q0"].var() == pytest.approx(variance, rel=0.03)
        if how == "linear":
            assert abs(weights["q0"]).max() <= 1 / 16


def test_a_model_is_named_by_its_size():
    assert str(SMALL_MODEL) == "layers-2-width-32-steps-200"
    assert Model(1, 16, 8).measured == (0, 2, 4, 6, 7)
