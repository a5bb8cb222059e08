"""The scale that recorded outputs were made with, and what no scale explains."""

import math

import numpy as np
import pytest

from mcverify.attention import bfloat16, softmax
from mcverify.cli.main import main
from mcverify.diagnose.outputs import explain_outputs

RNG = np.random.default_rng(0)
Q, K, V = RNG.standard_normal((3, 2, 4, 40, 16))
FUTURE = np.where(np.tri(40), 0, -np.inf)


def outputs(scales, mask=0.0, q=Q, k=K, v=V, cap=None):
    s = np.asarray(scales)[:, None, None] * q @ np.swapaxes(k, -1, -2)
    s = s if cap is None else cap * np.tanh(s / cap)
    return softmax(s + mask) @ v


@pytest.mark.parametrize(("mask", "name"), [(0.0, "none"), (FUTURE, "causal")])
def test_every_head_has_its_scale_and_mask(mask, name):
    scales = [0.25, 1 / 16, 1.0, 40**-0.5]
    found = explain_outputs(Q, K, V, outputs(scales, mask))
    np.testing.assert_allclose(found["scale"], scales, rtol=1e-6)
    assert set(found["mask"]) == {name}
    assert found["left"].max() < 1e-6
    assert list(found["head"]) == [0, 1, 2, 3]


@pytest.mark.parametrize(("round_to", "error"), [
    (lambda x: x.astype(np.float32), 1e-6), (lambda x: x.astype(np.float16), 1e-3),
    (lambda x: bfloat16(x.astype(np.float32)), 1e-2)])
def test_outputs_may_be_rounded(round_to, error):
    found = explain_outputs(Q, K, V, round_to(outputs([0.25] * 4)))
    np.testing.assert_allclose(found["scale"], 0.25, rtol=error)


def test_shared_heads_of_keys_and_single_heads():
    k, v = (np.repeat(x[:, :2], 2, axis=1) for x in (K, V))
    found = explain_outputs(Q, K[:, :2], V[:, :2], outputs([0.25] * 4, k=k, v=v))
    np.testing.assert_allclose(found["scale"], 0.25, rtol=1e-6)
    for cut in ((0, 0), (slice(None), 0)):
        found = explain_outputs(Q[cut], K[cut], V[cut], outputs([0.25] * 4)[cut])
        np.testing.assert_allclose(found["scale"], [0.25], rtol=1e-6)


@pytest.mark.parametrize("out", [outputs([1.0] * 4, cap=2.0), RNG.standard_normal(V.shape),
                                 1.01 * outputs([0.25] * 4)])
def test_what_no_scale_explains_is_refused(out):
    found = explain_outputs(Q, K, V, out)
    assert all(math.isnan(scale) for scale in found["scale"])
    assert found["reason"].str.startswith("no scale above 0 explains the outputs: ").all()
    assert found["left"].min() > 1e-3


def test_products_that_overflow_float16_are_counted():
    q = np.zeros_like(Q)
    q[0, 1, :3, 0], k = 65504.0, np.ones_like(K)
    k[:, :, 5, 0] = 1.5
    found = explain_outputs(q, k, V, outputs([1e-5] * 4, q=q, k=k))
    assert list(found["overflows"]) == [0, 3, 0, 0]


def test_shapes_that_do_not_fit_are_told():
    for arrays in ((Q, K, V[..., :3, :], V), (Q, K, V, V[..., :4]), (Q[0], K, V, V)):
        with pytest.raises(ValueError, match="cut them alike"):
            explain_outputs(*arrays)
    with pytest.raises(ValueError, match="v is int64 of shape"):
        explain_outputs(Q, K, np.ones(3, dtype=int), V)


def test_the_command_reads_values_and_outputs_beside_queries_and_keys(tmp_path, capsys):
    arrays = {"q": Q, "k": K, "v": V, "out": outputs([0.25] * 4, FUTURE)}
    np.savez(tmp_path / "all.npz", **arrays)
    assert main(["diagnose", str(tmp_path / "all.npz")]) == 0
    printed = capsys.readouterr().out
    assert "scale of the outputs, head 3: 0.25, mask causal, leaves" in printed
    for name, x in arrays.items():
        np.save(tmp_path / f"{name}.npy", x)
    files = [str(tmp_path / f"{name}.npy") for name in arrays]
    assert main(["diagnose", *files[:2], "--outputs", *files[2:]]) == 0
    assert "scale of the outputs, head 0: 0.25, mask causal" in capsys.readouterr().out
    assert main(["diagnose", *files[:2]]) == 0
    assert "scale of the outputs" not in capsys.readouterr().out
    assert main(["diagnose", *files[:2], "--outputs", files[2], files[0] + "x"]) == 2


def test_a_mask_that_is_told_is_the_one_that_is_fitted():
    q, k, v = np.random.default_rng(3).standard_normal((3, 24, 8))
    s = np.where(np.tri(24, dtype=bool), q @ k.T / 3, -np.inf)
    out = softmax(s) @ v
    told = explain_outputs(q, k, v, out, mask="causal").iloc[0]
    assert (told["mask"], round(float(told["scale"]), 6)) == ("causal", round(1 / 3, 6))
    wrong = explain_outputs(q, k, v, out, mask="none").iloc[0]
    assert wrong["mask"] == "none"
    assert "no scale above 0 explains the outputs" in wrong["reason"]
    with pytest.raises(ValueError, match="mask='window': must be none or causal, or an array"):
        explain_outputs(q, k, v, out, mask="window")


WINDOW = (np.tri(40) > 0) & (np.tri(40, k=-5) == 0)


def test_any_mask_may_be_told_as_an_array():
    out = outputs([0.25] * 4, np.where(WINDOW, 0, -np.inf))
    assert explain_outputs(Q, K, V, out)["scale"].isna().all()
    for told in (WINDOW, np.broadcast_to(WINDOW, (2, 4, 40, 40))):
        found = explain_outputs(Q, K, V, out, mask=told)
        np.testing.assert_allclose(found["scale"], 0.25, rtol=1e-6)
        assert set(found["mask"]) == {"told"}
    for wrong in (WINDOW[:, :9], WINDOW.astype(float), np.tri(40, k=-1) > 0):
        with pytest.raises(ValueError, match="must be true where a query sees a key, which each"):
            explain_outputs(Q, K, V, out, mask=wrong)


def test_the_last_queries_of_a_causal_mask():
    out = outputs([0.25] * 4, FUTURE)
    found = explain_outputs(Q[:, :, -7:], K, V, out[:, :, -7:])
    np.testing.assert_allclose(found["scale"], 0.25, rtol=1e-6)
    assert set(found["mask"]) == {"causal"}


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_outputs_that_do_not_tell_the_scale_are_refused(scale):
    found = explain_outputs(Q, K, V, outputs([scale] * 4))
    assert found["scale"].isna().all()
    assert found["reason"].str.startswith("the outputs do not tell the scale: ").all()
    alone = explain_outputs(Q[..., :1, :], K[..., :1, :], V[..., :1, :], V[..., :1, :])
    assert alone["scale"].isna().all()


def test_the_command_takes_shared_heads_and_a_mask_and_prints_csv(tmp_path, capsys):
    k, v = (np.repeat(x[:, :2], 2, axis=1) for x in (K, V))
    out = outputs([0.25] * 4, np.where(WINDOW, 0, -np.inf), k=k, v=v)
    file = str(tmp_path / "all.npz")
    np.savez(file, q=Q, k=K[:, :2], v=V[:, :2], out=out, seen=WINDOW)
    assert main(["diagnose", file, "--mask", "seen"]) == 0
    assert "scale of the outputs, head 3: 0.25, mask told, leaves" in capsys.readouterr().out
    assert main(["diagnose", file, "--mask", "seen", "--csv"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("3,scale of the outputs,softmax(s·q·k)·v,0.25,0.25,")
    assert main(["diagnose", file, "--mask", "nothing"]) == 2
