"""What holds for every row of scores: derivatives, bounds, temperature; and two keys by hand."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, printed, relative, theory
from mcverify.attention import jacobian_norm, max_weight, rows, scores, softmax
from mcverify.claims.ranges import NORM
from mcverify.declare import near
from mcverify.statistic import exact, proportion

ROWS = grid(law=laws.normal, d_k=[8, 64], keys=[2, 8, 128])


def few_rows(q, k, keys, scale=1.0):
    """Four rows a block: an identity needs many blocks, and not many rows of each."""
    return scores(q[:, :4], k[:, :keys], scale)


@claim(exact, equals=0, within=absolute(1e-12), over=grid(gap=[0.0, 1.0, 16.0]), decides="A9",
       controls=grid(of_others=0.0) + grid(of_others=-1.0))
def softmax_derivative(gap, of_others=1.0):
    """∂p_i/∂s_j = p_i(δ_ij − p_j): the largest difference from a complex step over three scores."""
    s = np.array([gap, 0.0, -0.5])
    p = softmax(s)
    steps = np.exp(s + 1e-30j * np.eye(3))
    columns = (steps / steps.sum(axis=1, keepdims=True)).imag / 1e-30
    return np.abs(columns - (np.diag(p) - of_others * np.outer(p, p))).max()


@claim(proportion, at_least=0.99, over=ROWS, decides="A3 B28", controls=grid(factor=0.95))
def jacobian_bound_by_gap(q, k, keys, factor=1.0):
    """‖J‖₂ is at most n exp(−Δ), with Δ the gap between the first and the second of n scores."""
    s = few_rows(q, k, keys)
    second, first = np.moveaxis(np.sort(s, axis=-1)[..., -2:], -1, 0)
    bound = factor * keys * np.exp(second - first)
    return jacobian_norm(softmax(s), "spectral") <= bound * (1 + 1e-12)


@claim(exact, equals=1, within=relative(0.01), over=grid(keys=[8, 128]), decides="A3",
       controls=grid(spread=0.1))
def jacobian_bound_by_gap_is_reached(keys, spread=0.0):
    """At a gap of 16, n − 1 scores that tie behind the first reach n exp(−Δ) to 1 %: no smaller factor will do."""
    s = np.concatenate([[0.0], -16 - spread * np.arange(keys - 1)])
    return jacobian_norm(softmax(s), "spectral") / (keys * math.exp(-16))


@claim(proportion, at_least=0.99, over=ROWS, decides="B28", controls=grid(factor=1.9))
def jacobian_bound_by_weight(q, k, keys, factor=2.0):
    """‖J‖₂ is at most 2m(1 − m) for a largest weight m, so it vanishes as softmax becomes one-hot."""
    p = softmax(few_rows(q, k, keys))
    m = max_weight(p)
    return jacobian_norm(p, "spectral") <= factor * m * (1 - m) + 1e-12


@claim(proportion, at_least=0.99, over=ROWS, decides="A19", controls=grid(power=0.51))
def scaling_is_a_temperature(q, k, keys, d_k, power=0.5):
    """Dividing scores by √d_k is softmax at temperature √d_k, p ∝ exp(s)^(1/T)."""
    unscaled = softmax(few_rows(q, k, keys))
    with np.errstate(divide="ignore"):
        cooled = softmax(np.log(unscaled) / d_k**power)
    return np.isclose(cooled, softmax(few_rows(q, k, keys, scale=1 / math.sqrt(d_k))), rtol=1e-6)


@claim(exact, at_least=0.99, decides="B27", expect=Verdict.REFUTED)
def large_inputs_give_one_hot():
    """Softmax of inputs above 10 is one-hot: the largest weight of (1000, 1000)."""
    return max_weight(softmax([1000.0, 1000.0]))


@claim(exact, equals=printed("0.5"), over=grid(size=[0.0, 10.0, 1000.0]), decides="B27 B30",
       controls=grid(gap=1.0))
def only_differences_matter(size, gap=0.0):
    """A tie of two keys has a Jacobian of norm 1/2 whether its scores are 0, 10 or 1000: only differences matter."""
    return jacobian_norm(softmax([size, size - gap]))


@claim(exact, equals=printed("0.99995"), decides="B29", controls=grid(second=-10.0))
def ten_and_zero_weight(second=0.0):
    """Inputs (10, 0) give the first key a weight of 0.99995."""
    return softmax([10.0, second])[0]


NORMS = {(10.0, 0.0): "9.079e-5", (3.0, -3.0): "0.00493", (1.25, 0.0): "0.346"}


@claim(exact, equals=lambda inputs: printed(NORMS[inputs]), over=grid(inputs=[*NORMS]), decides="B29 B30",
       controls=grid(equals=4.539e-5))
def norm_of_two_inputs(inputs):
    """Inputs (10, 0) leave a Jacobian of norm 9.079e-5, twice p(1 − p); (3, −3) leave 0.00493, and (10, 0)/√64 leave 0.346."""
    return jacobian_norm(softmax(inputs))


@claim(exact, equals=0.5, within=absolute(0.05), over=grid(inputs=[(3.0, -3.0), (1.25, 0.0)]),
       decides="B30", expect=Verdict.REFUTED)
def scaled_inputs_have_norm_one_half(inputs):
    """Scaled, inputs such as (3, −3) and (10, 0)/√64 have a gradient norm of about 1/2."""
    return jacobian_norm(softmax(inputs))


@claim(NORM, equals=2 * theory.softmax.two_key_product(1.0), within=relative(0.01),
       over=grid(law=laws.independent(laws.rademacher, laws.normal), d_k=[1, 8], keys=2), decides="B30",
       controls=grid(equals=0.346) + near.query_scale(1.2))
def norm_of_two_normal_scores(q, k, keys, d_k):
    """Two independent standard normal scores leave a Jacobian of norm 0.363 in the mean, and not 1/2."""
    return jacobian_norm(softmax(rows(q, k, keys, scale=d_k**-0.5)))


@claim(exact, at_most=1e-15, over=grid(gap=[40.0, 700.0]), decides="B31", controls=grid(gap=34.0))
def nothing_overflows_and_the_gradient_vanishes(gap):
    """Where nothing overflows the Jacobian of a gap of 40 or 700 vanishes all the same: below 1e-15."""
    return jacobian_norm(softmax([0.0, -gap]))
