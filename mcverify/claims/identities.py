"""What holds for every row of scores: derivatives, bounds, temperature, and where exp overflows."""

import math

import numpy as np

from mcverify import Verdict, absolute, claim, grid, laws, printed
from mcverify.attention import jacobian_norm, max_weight, scores, softmax
from mcverify.statistic import exact, proportion

ROWS = grid(law=laws.normal, d_k=[8, 64], keys=[2, 8, 128])


def few_rows(q, k, keys, scale=1.0):
    """Four rows a block: an identity needs many blocks, and not many rows of each."""
    return scores(q[:, :4], k[:, :keys], scale)



@claim(exact, equals=0, within=absolute(1e-12), over=grid(gap=[0.0, 1.0, 16.0]), decides="A9")
def softmax_derivative(gap):
    """∂p_i/∂s_j = p_i(δ_ij − p_j): the largest difference from a complex step over three scores."""
    s = np.array([gap, 0.0, -0.5])
    p = softmax(s)
    steps = np.exp(s + 1e-30j * np.eye(3))
    columns = (steps / steps.sum(axis=1, keepdims=True)).imag / 1e-30
    return np.abs(columns - (np.diag(p) - np.outer(p, p))).max()


@claim(proportion, at_least=0.99, over=ROWS, decides="A3 B28", controls=grid(factor=0.25))
def jacobian_bound_by_gap(q, k, keys, factor=2.0):
    """‖J‖₂ is at most 2(n − 1)exp(−Δ), with Δ the gap between the first and the second score."""
    s = few_rows(q, k, keys)
    second, first = np.moveaxis(np.sort(s, axis=-1)[..., -2:], -1, 0)
    bound = factor * (keys - 1) * np.exp(second - first)
    return jacobian_norm(softmax(s), "spectral") <= bound * (1 + 1e-12)


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


@claim(exact, equals=printed("0.5"), over=grid(size=[0.0, 10.0, 1000.0]), decides="B27")
def only_differences_matter(size):
    """A tie has the largest Jacobian of two keys, norm 1/2, however large the inputs."""
    return jacobian_norm(softmax([size, size]))


@claim(exact, equals=printed("0.99995"), decides="B29")
def ten_and_zero_weight():
    """Inputs (10, 0) give the first key a weight of 0.99995."""
    return softmax([10.0, 0.0])[0]


@claim(exact, equals=printed("9.079e-5"), decides="B29")
def ten_and_zero_slope():
    """Inputs (10, 0) leave a Jacobian of Frobenius norm 9.079e-5, about 1e-4."""
    return jacobian_norm(softmax([10.0, 0.0]))


@claim(exact, equals=0.5, within=absolute(0.05), over=grid(first=[3.0, 1.25], second=[-3.0, 0.0]),
       decides="B30", expect=Verdict.REFUTED)
def scaled_inputs_have_norm_one_half(first, second):
    """Scaled, inputs within [−3, 3] have a gradient norm of about 1/2."""
    return jacobian_norm(softmax([first, second]))


@claim(exact, equals=printed("0.00493"), decides="B30")
def inputs_of_three_are_saturated():
    """(3, −3) leaves 0.00493, a hundredth of the maximum."""
    return jacobian_norm(softmax([3.0, -3.0]))


@claim(exact, equals=printed("0.346"), decides="B30")
def ten_and_zero_scaled_by_eight():
    """(10, 0) divided by √64 leaves 0.346."""
    return jacobian_norm(softmax([10.0 / 8, 0.0]))


@claim(exact, equals=1, within=absolute(1e-9), decides="B31")
def double_precision_overflows_too():
    """A naive exp overflows in double precision as well, between scores of 709.78 and 709.79."""
    with np.errstate(over="ignore"):
        return float(np.isfinite(np.exp(709.78)) and np.isinf(np.exp(709.79)))


@claim(exact, at_most=1e-15, over=grid(gap=[40.0, 700.0]), decides="B31", controls=grid(gap=8.0))
def nothing_overflows_and_the_gradient_vanishes(gap):
    """Where nothing overflows the Jacobian of a large gap vanishes all the same."""
    return jacobian_norm(softmax([0.0, -gap]))
