"""The saturation atlas: its halves against each other, and each against a direct calculation."""

import math

import numpy as np
import pandas as pd
import pytest

from mcverify.attention import entropy, jacobian_norm, max_weight, softmax
from mcverify.judge.atlas import (
    BLOCKS,
    EXACT,
    KEYS,
    MEASURED,
    POINT,
    POWERS,
    QUERIES,
    WIDTHS,
    atlas,
    exact,
    measured,
)
from mcverify.judge.world import generator
from mcverify.theory import softmax as theory

GRID = {"widths": [1, 3, 8, 64], "keys": [2, 16, 512]}


@pytest.fixture(scope="module")
def frame():
    return atlas(seed=0, jobs=1, **GRID)


def at(frame, d_k, keys, scale):
    return frame.set_index(POINT).loc[(d_k, keys, scale)]


def test_a_row_a_point_in_order_and_the_columns(frame):
    assert list(frame.columns) == [
        "d_k", "keys", "scale", "blocks", "rows", "entropy_share", "entropy_share_stderr",
        "max_weight", "max_weight_stderr", "frobenius_mean", "frobenius_mean_stderr",
        "frobenius_median", "spectral_mean", "spectral_mean_stderr", "spectral_median",
        "saturated_share", "saturated_share_stderr", "exact_entropy_share", "exact_max_weight",
        "exact_frobenius_rms",
    ]  # fmt: skip
    assert list(frame.columns) == MEASURED + EXACT[len(POINT):]
    points = [(d_k, n, scale) for d_k in GRID["widths"] for n in GRID["keys"] for scale in POWERS]
    assert list(frame[POINT].itertuples(index=False, name=None)) == points
    assert len(WIDTHS) * len(KEYS) * len(POWERS) == 396
    assert (WIDTHS[0], WIDTHS[-1], KEYS[0], KEYS[-1]) == (1, 1024, 2, 4096)
    assert np.isfinite(frame.drop(columns="scale").to_numpy()).all()
    assert (frame["blocks"] == BLOCKS).all()


@pytest.mark.parametrize("column", ["entropy_share", "max_weight"])
def test_measured_agrees_with_exact(frame, column):
    z = (frame[column] - frame[f"exact_{column}"]) / frame[f"{column}_stderr"]
    assert (z.abs() < 6).all()
    assert 0.5 < z.std() < 2  # the standard errors are neither idle nor too small


def test_norms_keep_their_inequalities(frame):
    frobenius, stderr = frame["frobenius_mean"], frame["frobenius_mean_stderr"]
    assert (frobenius <= frame["exact_frobenius_rms"] + 6 * stderr).all()
    assert (frame["spectral_mean"] <= frobenius * (1 + 1e-12)).all()
    assert (frame["spectral_median"] <= frame["frobenius_median"] * (1 + 1e-12)).all()


def test_at_a_width_of_one_all_scales_are_the_same(frame):
    first, *others = (part.drop(columns="scale").reset_index(drop=True)
                      for _, part in frame[frame["d_k"] == 1].groupby("scale"))
    for other in others:
        pd.testing.assert_frame_equal(first, other)


@pytest.mark.slow
def test_measured_is_the_same_in_any_processes_and_company(frame):
    whole = measured(seed=0, jobs=2, **GRID)
    pd.testing.assert_frame_equal(whole, frame[MEASURED], check_exact=True)
    part = measured(seed=0, jobs=1, widths=[8], keys=[16])
    expected = frame.loc[(frame["d_k"] == 8) & (frame["keys"] == 16), MEASURED]
    pd.testing.assert_frame_equal(part, expected.reset_index(drop=True), check_exact=True)
    other = measured(seed=1, jobs=1, widths=[8], keys=[16])
    assert (other["entropy_share"] != part["entropy_share"]).all()


def drawn(block, d_k):
    """Queries and keys of a block at a width: coordinates 0, 1, 2 to 3, 4 to 7 and so on."""
    parts = [[], []]
    for start in (0, 1, 2, 4, 8, 16, 32):
        stream = generator(0, "saturation atlas", block, start)
        rng = np.random.Generator(stream.bit_generator)
        for part, vectors in zip(parts, (QUERIES, 512), strict=True):
            part.append(rng.standard_normal((vectors, max(1, start))))
    return (np.concatenate(part, axis=1)[:, :d_k] for part in parts)


def rows_of(block, d_k, n):
    """Every query with 64 keys in groups, others in turn; or 48 of the queries with all 512."""
    q, k = drawn(block, d_k)
    if n == 512:
        return q[:48] @ k.T
    return np.array([q[i] @ k[n * g:n * g + n].T for i in range(QUERIES)
                     for g in ((64 // n * i + j) % (512 // n) for j in range(64 // n))])


@pytest.mark.parametrize(("d_k", "n", "scale", "step"), [
    (8, 2, "none", 1), (64, 16, "sqrt", 1), (64, 16, "none", 4), (3, 16, "full", 4),
    (8, 512, "none", 1), (64, 512, "full", 4)])
def test_measured_against_rows_put_together_one_by_one(frame, d_k, n, scale, step):
    s = np.stack([rows_of(block, d_k, n)[::step] for block in range(BLOCKS)])
    p, row = softmax(s * d_k**-POWERS[scale]), at(frame, d_k, n, scale)
    assert row["rows"] == p[..., 0].size
    for name, values in {
        "entropy_share": entropy(p) / math.log(n),
        "max_weight": max_weight(p),
        "frobenius_mean": jacobian_norm(p),
        "spectral_mean": jacobian_norm(p, "spectral"),
        "saturated_share": max_weight(p) > 0.99,
    }.items():
        stderr = values.mean(axis=1).std(ddof=1) / math.sqrt(BLOCKS)
        assert row[name] == pytest.approx(values.mean(), rel=1e-12, abs=1e-15)
        assert row[f"{name}_stderr"] == pytest.approx(stderr, rel=1e-9)
    for kind in ("frobenius", "spectral"):
        assert row[f"{kind}_median"] == pytest.approx(np.median(jacobian_norm(p, kind)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("widths", "keys"), [([1], [64]), ([1024], [2, 4096]), ([3], [5])])
def test_exact_against_theory_point_by_point(widths, keys):
    for d_k, n, scale, *found in exact(widths, keys).itertuples(index=False):
        sigma = d_k ** (0.5 - POWERS[scale])
        expected = [theory.entropy(n, sigma, d_k) / math.log(n), theory.max_weight(n, sigma, d_k),
                    math.sqrt(theory.jacobian_frobenius_squared(n, sigma, d_k))]
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_known_values():
    table = exact(widths=[64], keys=[2, 8, 128, 4096])
    for n, weight in {2: 0.951, 8: 0.875, 128: 0.768, 4096: 0.669}.items():
        assert round(at(table, 64, n, "none")["exact_max_weight"], 3) == weight
    for scale, nats in {"sqrt": 4.366, "none": 0.668}.items():
        assert round(at(table, 64, 128, scale)["exact_entropy_share"] * math.log(128), 3) == nats


def test_a_bad_seed_is_refused():
    with pytest.raises(ValueError, match="negative"):
        measured(seed=-1, jobs=1, widths=[1], keys=[2])
