"""The variance of additive scores, by quadrature."""

import math

import numpy as np

from mcverify.arrays import Array

STEP = 0.05  # of w: the nearest pole is at distance 1 (d_k = 1), so a trapezoid errs by e^-125
REACH = 30.0  # where w / sinh(pi w / 2) is below 1e-18


def additive_variance(width: int, output_variance: float, d_k: int | None = None) -> float:
    """Var v·tanh(W_q q + W_k k) over weights and tokens: width · σ_v² · E tanh²(z).

    The entries of W_q and W_k are N(0, 1/d_k), those of v have mean 0 and variance σ_v² =
    ``output_variance``; all are drawn anew with the tokens. d_k None: |q|² = |k|² = d_k, as for
    coins and unit-norm vectors times √d_k, so z ~ N(0, 2) at every d_k; otherwise q and k are
    standard normal with d_k coordinates each, so z is N(0, χ²(2d_k)/d_k). Whatever the laws of
    q and k and the scale of W_q and W_k, the variance is at most width · σ_v². Raises ValueError
    for a width or d_k below 1 or a negative variance.
    Source: E tanh² = 1 − E sech², and Parseval: sech² has the transform πw/sinh(πw/2), the law of
    z (1 + w²/d_k)^−d_k, or e^−w² without d_k.

    >>> round(additive_variance(64, 1 / 64), 4)
    0.52
    >>> round(additive_variance(1, 1.0, d_k=1), 12) == round(2 - math.pi / 2, 12)
    True
    """
    if not width >= 1 or not output_variance >= 0 or not (d_k is None or d_k >= 1):
        raise ValueError(f"additive_variance(width={width}, output_variance={output_variance}, "
                         f"d_k={d_k}): width and d_k are 1 or more, a variance not negative; "
                         "leave d_k out for vectors of |q|² = |k|² = d_k")
    w: Array = np.arange(1, round(REACH / STEP) + 1) * STEP
    kernel = w / np.sinh(math.pi / 2 * w)  # 2/π at w = 0
    # E e^{iwz} = E exp(−w²(|q|² + |k|²)/(2d_k))
    law = np.exp(-(w**2) if d_k is None else -d_k * np.log1p(w**2 / d_k))
    sech_squares = STEP * (1 / math.pi + float(kernel @ law))
    return width * output_variance * (1 - sech_squares)
