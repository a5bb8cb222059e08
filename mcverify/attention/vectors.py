"""From a query or a key to what is done to it before the product.

Every function is pure, takes vectors on the last axis, and answers in the floating type that it is
given (half precision is computed in single and rounded once; whole numbers become float64).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from mcverify.arrays import Array
from mcverify.attention.slabs import by_slabs, inner, largest, total

PAIRINGS = ("halves", "neighbours")
MAX_BITS = 16  # more levels than this are not told apart by the 24 bits of float32 everywhere


def layer_norm(
    x: ArrayLike, gain: ArrayLike = 1.0, bias: ArrayLike = 0.0, epsilon: float = 0.0
) -> Array:
    """gain·(x − mean)/√(variance + epsilon) + bias over the last axis; same shape as x.

    The variance divides by d_k. Gain and bias are numbers or (d_k,) arrays. With epsilon 0, a
    vector whose coordinates are all equal becomes the bias: coins do that with probability
    2^(1 − d_k). Offsets far above the spread and lengths near the end of the floating range do no
    harm. Raises ValueError for a negative epsilon. Source: Ba et al. 2016, "Layer Normalization".

    >>> layer_norm([[3.0, 1.0], [7.0, 7.0]])
    array([[ 1., -1.],
           [ 0.,  0.]])
    """
    x, given = _opened(x)

    def normed(x: Array) -> Array:
        y, root = _tamed(x, epsilon)
        y -= _mean(y)
        y -= _mean(y)  # once more: the first mean was rounded
        # Many equal coordinates in single precision can leave such a rounding even so.
        y *= (largest(x) != -largest(-x))[:, None]
        _divide_by_root(y, inner(y, y)[:, None] / y.shape[1] + root * root)
        return y

    return _affine(by_slabs(normed, x), gain, bias).astype(given, copy=False)


def rms_norm(x: ArrayLike, gain: ArrayLike = 1.0, epsilon: float = 0.0) -> Array:
    """gain·x/√(mean of squares + epsilon) over the last axis; same shape as x.

    Gain is a number or a (d_k,) array. A zero vector stays zero. Raises ValueError for a negative
    epsilon. Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".

    >>> rms_norm([1.0, 7.0])
    array([0.2, 1.4])
    """
    x, given = _opened(x)

    def normed(x: Array) -> Array:
        y, root = _tamed(x, epsilon)
        _divide_by_root(y, inner(y, y)[:, None] / y.shape[1] + root * root)
        return y

    return _affine(by_slabs(normed, x), gain, 0.0).astype(given, copy=False)


def unit_norm(x: ArrayLike) -> Array:
    """x/‖x‖₂ over the last axis; same shape as x. A zero vector stays zero.

    >>> unit_norm([[3e200, 4e200], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    x, given = _opened(x)

    def normed(x: Array) -> Array:
        y, _ = _tamed(x, 0.0)
        _divide_by_root(y, inner(y, y)[:, None])
        return y

    return by_slabs(normed, x).astype(given, copy=False)


def clip(x: ArrayLike, bound: float) -> Array:
    """Every coordinate moved to the nearest point of [−bound, bound]; same shape as x.

    Raises ValueError unless bound > 0.

    >>> clip([-3.0, 0.5, 2.0], 1.0)
    array([-1. ,  0.5,  1. ])
    """
    _require(bound > 0, f"clip(bound={bound}): the bound must be above 0")
    x, given = _opened(x)
    return np.clip(x, -x.dtype.type(bound), x.dtype.type(bound)).astype(given, copy=False)


def quantise(x: ArrayLike, bits: int, bound: float) -> Array:
    """Every coordinate moved to the nearest of 2^bits − 1 levels; same shape as x.

    The levels are j·bound/n for j = −n, …, n with n = 2^(bits − 1) − 1; beyond the bound it is
    the outermost one, and half-way the one of even j. Quantised networks call it symmetric uniform
    quantisation of restricted range (8 bits: −127 to 127), signal processing a mid-tread
    quantiser. Raises ValueError unless bits is whole, 2 to 16, and the bound positive and finite.
    Source: Krishnamoorthi 2018, arXiv 1806.08342, section 2.2.

    >>> quantise([-9.0, -0.6, 0.2, 0.8], bits=3, bound=1.5)
    array([-1.5, -0.5,  0. ,  1. ])
    """
    _require(bits in range(2, MAX_BITS + 1),
             f"quantise(bits={bits}): bits must be a whole number from 2 to {MAX_BITS}")
    _require(0 < bound < math.inf, f"quantise(bound={bound}): must be positive and finite")
    x, given = _opened(x)
    top, n = x.dtype.type(bound), x.dtype.type(2 ** (bits - 1) - 1)
    j = np.rint(np.clip(x, -top, top) / (top / n))
    return (j / n * top).astype(given, copy=False)  # in this order ±n gives the bound itself


def rotate(
    x: ArrayLike, positions: ArrayLike, theta: float = 10000.0, pairing: str = "halves"
) -> Array:
    """Rotary position embedding: pair i of the coordinates turned by position·theta^(−2i/d_k).

    ``positions`` broadcasts against the leading axes of x: (blocks, tokens, d_k) with (tokens,) or
    a number -> (blocks, tokens, d_k). The pairs are (i, i + d_k/2) for "halves" (GPT-NeoX, Llama)
    and (2i, 2i + 1) for "neighbours" (RoFormer, GPT-J), the same up to the order of coordinates.
    Angles are computed in float64 at least: those of far positions need it. Raises ValueError for
    odd d_k, another pairing, theta not positive and finite, or positions that are not finite.
    Source: Su et al. 2021, "RoFormer", section 3.2.2.

    >>> rotate([1.0, 0.0], positions=[0, 1]).round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]])
    """
    x, given = _opened(x)
    d_k = x.shape[-1]
    _require(d_k % 2 == 0, f"rotate: d_k is {d_k}, and coordinates turn in pairs, so it must be "
                           f"even; pad to {d_k + 1}")
    _require(pairing in PAIRINGS, f"rotate(pairing={pairing!r}): must be one of {PAIRINGS}")
    _require(0 < theta < math.inf, f"rotate(theta={theta}): theta must be positive and finite")
    fine = np.result_type(x.dtype, np.float64)
    places = np.asarray(positions, fine)
    _require(bool(np.isfinite(places).all()), "rotate: positions must all be finite")
    angles = places[..., None] * fine.type(theta) ** (-np.arange(0, d_k, 2, dtype=fine) / d_k)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    first, second = _pairs(d_k, pairing)
    a, b = x[..., first], x[..., second]
    y = np.empty_like(x, shape=(*np.broadcast_shapes(places.shape, x.shape[:-1]), d_k))
    y[..., first] = a * cos - b * sin
    y[..., second] = a * sin + b * cos
    return y.astype(given, copy=False)


def pad(x: ArrayLike, width: int) -> Array:
    """x with zeros after its coordinates, up to ``width`` of them: (…, d_k) -> (…, width).

    Raises ValueError unless width >= d_k.

    >>> pad([[1.0, 2.0]], 4)
    array([[1., 2., 0., 0.]])
    """
    x = np.asanyarray(x)
    d_k = x.shape[-1]
    _require(width >= d_k, f"pad(width={width}): vectors have {d_k} coordinates already; the width "
                           "must be at least that")
    y: Array = np.zeros_like(x, _float_type(x), shape=(*x.shape[:-1], width))
    y[..., :d_k] = x
    return y


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _float_type(x: NDArray[Any]) -> np.dtype[Any]:
    return x.dtype if np.issubdtype(x.dtype, np.floating) else np.dtype(np.float64)


def _opened(x: ArrayLike) -> tuple[Array, DTypeLike]:
    """x in the type to compute in, and the type to answer in."""
    x = np.asanyarray(x)  # draws of a chunk stay such
    given = _float_type(x)
    return x.astype(np.float32 if given == np.float16 else given, copy=False), given


def _tamed(x: Array, epsilon: float) -> tuple[Array, Array]:
    """A copy of rows, and √epsilon, times the power of two that brings the largest into [1/2, 1).

    A power of two rounds nothing, and what is left can be summed and squared. Where squares are far
    from the ends of the floating range already, they are left as they are, with the same result.
    """
    _require(0 <= epsilon < math.inf, f"epsilon is {epsilon}: it must be at least 0, and finite")
    root = x.dtype.type(math.sqrt(epsilon))
    far = np.sqrt(np.finfo(x.dtype).max)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = inner(x, x)
    if root * root < far and 1 / far < squares.min(initial=1) and squares.max(initial=1) < far:
        return x.copy(), np.asarray(root)
    _, exponent = np.frexp(np.maximum(largest(np.abs(x))[:, None], root))
    most = -int(np.finfo(x.dtype).minexp)  # 2^most is finite
    scale = np.ldexp(x.dtype.type(1), np.minimum(-exponent, most))
    return x * scale, root * scale


def _mean(y: Array) -> Array:
    return total(y)[:, None] / y.dtype.type(y.shape[1])


def _affine(y: Array, gain: ArrayLike, bias: ArrayLike) -> Array:
    """gain·y + bias, in place."""
    for operation, neutral, by in ((np.multiply, 1.0, gain), (np.add, 0.0, bias)):
        if not (np.isscalar(by) and by == neutral):
            operation(y, np.asarray(by, y.dtype), out=y)
    return y


def _divide_by_root(y: Array, square: Array) -> None:
    root = np.sqrt(square)
    y /= np.where(root == 0, y.dtype.type(1), root)


def _pairs(d_k: int, pairing: str) -> tuple[slice, slice]:
    if pairing == "halves":
        return slice(None, d_k // 2), slice(d_k // 2, None)
    return slice(0, None, 2), slice(1, None, 2)
