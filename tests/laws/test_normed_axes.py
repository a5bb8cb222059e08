"""Moments of normal vectors after a norm: closed forms, and quadrature over directions."""

import math

import numpy as np
import pytest

from mcverify import laws
from mcverify.laws import score_moments
from mcverify.laws.normed_axes import normed


def directions(m, nodes=400):
    """Uniform directions, (points, m) for m = 2 or 3, with shares by which means are exact."""
    angle = 2 * math.pi * np.arange(nodes) / nodes
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if m == 2:
        return circle, np.full(nodes, 1 / nodes)
    height, weight = np.polynomial.legendre.leggauss(60)
    radius = np.sqrt(1 - height**2)
    points = np.concatenate([np.column_stack([r * circle, np.full(nodes, h)])
                             for r, h in zip(radius, height, strict=True)])
    return points, np.repeat(weight / 2, nodes) / nodes


@pytest.mark.parametrize("m", [1, 2, 5, 64])
def test_equal_variances_leave_a_uniform_direction(m):
    axes = normed(3.0 * np.eye(m), 2.0)
    assert axes.squares == pytest.approx(np.full(m, 4 / m))
    assert axes.fourths == pytest.approx(16 * (1 + 2 * np.eye(m)) / (m * (m + 2)))


@pytest.mark.parametrize("variances", [(4.0, 1.0), (1.0, 100.0), (5.0, 2.0, 1.0)])
def test_unequal_variances_by_quadrature_over_directions(variances):
    u, p = directions(len(variances))
    squares = u**2 * variances / (u**2 @ np.array(variances))[:, None]
    axes = normed(np.diag(np.sqrt(variances)), 1.0)
    order = np.argsort(variances)
    assert axes.squares == pytest.approx((p @ squares)[order])
    assert axes.fourths == pytest.approx(((squares.T * p) @ squares)[order][:, order])


@pytest.mark.parametrize(("norm", "base", "d_k"), [
    (laws.unit_norm, laws.unequal(laws.normal, 1), 2),
    (laws.rms_norm, laws.gaussian(np.array([[2.0, 0.5], [0.5, 1.0]])), 2),
    (laws.layer_norm, laws.gaussian(np.diag([3.0, 1.0, 0.2])), 3),
    (laws.layer_norm, laws.shifted(laws.autoregressive(laws.normal, 0.7), 1.5), 3),
], ids=str)
def test_scores_after_a_norm_by_quadrature_over_directions(norm, base, d_k):
    law = norm(base)
    root = base.side("q", d_k).image.root
    root = np.diag(root) if root.ndim == 1 else root
    if norm is laws.layer_norm:  # of three coordinates less their mean, which span two dimensions
        left, singular, _ = np.linalg.svd(root - root.mean(axis=0))
        root = left[:, :2] * singular[:2]
    u, p = directions(2)
    x = law.function(u @ root.T)  # whose length does not matter
    s = x @ x.T
    found = score_moments(law, d_k)
    assert law.moments(d_k).cov_q == pytest.approx((x.T * p) @ x, rel=1e-9, abs=1e-9)
    for name, value in {"mean": 0.0, "variance": p @ s**2 @ p, "fourth": p @ s**4 @ p,
                        "shared_query": p @ (s**2 @ p) ** 2,
                        "shared_key": (p @ s**2) ** 2 @ p}.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-9), name


def test_what_has_no_axes():
    for law in (laws.rms_norm(laws.shifted(laws.unequal(laws.normal, 1), 1.0)),
                laws.layer_norm(laws.unequal(laws.laplace, 1)),
                laws.layer_norm(laws.unequal(laws.normal, 1), epsilon=1.0),
                laws.scaled(laws.layer_norm(laws.unequal(laws.normal, 1)), 2.0, 1.0)):
        assert law.side("q", 4).axes is None
    mixed = laws.independent(laws.rms_norm(laws.unequal(laws.normal, 1)),
                             laws.rms_norm(laws.autoregressive(laws.normal, 0.5)))
    found = score_moments(mixed, 4)  # by lengths alone, along axes of two kinds
    assert found.fourth == pytest.approx(16 * found.variance)


def test_where_a_shared_side_tells_nothing_rounding_does_no_harm():
    for gain in (1.0, 3.0, 1000.0):
        law = laws.layer_norm(laws.scaled(laws.identical(laws.normal), gain, gain))
        found = score_moments(law, 64)
        assert found.of_block(4, "other").of_squares == pytest.approx(
            2 * (found.fourth - found.variance**2) / 12, rel=1e-6)
