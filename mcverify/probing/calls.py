"""From queries, keys and a user's attention function to the weights that it must have used."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.probing.rounding import HALVES

TOKENS = 16  # enough for positions to differ, few enough to be quick
Attend = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Sizes:
    """The shape of a call; batches are as many as an experiment needs."""

    d_k: int
    d_v: int
    heads: int
    kv_heads: int
    tokens: int
    keys: int

    @classmethod
    def given(
        cls, d_k: int, d_v: int, heads: int, kv_heads: int | None, tokens: int | None,
        keys: int | None = None,
    ) -> "Sizes":
        """With as many heads of keys as of queries, 16 tokens, and a key each, if none are given.
        """
        tokens = TOKENS if tokens is None else tokens
        return cls(d_k, d_v, heads, heads if kv_heads is None else kv_heads, tokens,
                   tokens if keys is None else keys)

    def __post_init__(self) -> None:
        for name in ("d_k", "d_v", "heads", "kv_heads", "tokens", "keys"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"probe({name}={value!r}): must be a whole number, 1 or more; "
                                 "pass the width or number that attend takes")
        if self.keys < 2:
            raise ValueError(f"probe with {self.keys} key: a softmax over one key gives it weight "
                             "1 whatever the scale; pass tokens=2 or more")
        if self.heads % self.kv_heads:
            raise ValueError(f"probe(heads={self.heads}, kv_heads={self.kv_heads}): heads must be "
                             "a multiple of kv_heads; pass the number of heads that k and v have")


@dataclass(frozen=True)
class Caller:
    """A function, the sizes it is called with, and the type that it is handed."""

    attend: Attend
    sizes: Sizes
    dtype: Any = None
    axes: int = 4

    def __post_init__(self) -> None:
        if self.axes not in (2, 4):
            raise ValueError(f"probe(axes={self.axes!r}): attend takes (batch, heads, tokens, "
                             "width), axes=4, or (tokens, width), axes=2; wrap any other")
        if self.axes == 2 and self.sizes.heads > 1:
            raise ValueError(f"probe(axes=2, heads={self.sizes.heads}): (tokens, width) arrays "
                             "hold one head; leave heads out, or pass axes=4")

    def weights(self, q: Array, k: Array) -> tuple[Array, Array]:
        """q (batch, heads, tokens, d_k), k (batch, 1 or kv_heads, keys, d_k) -> weights, and spare.

        Weights are (batch, heads, tokens, keys).

        They are read off the outputs: values are one-hot, a piece of d_v keys at a time, each
        piece a batch of its own. The spare outputs are those of columns that hold values of 0.
        """
        s = self.sizes
        pieces = -(-s.keys // s.d_v)
        v = np.zeros((pieces, s.keys, s.d_v))
        v[np.arange(s.keys) // s.d_v, np.arange(s.keys), np.arange(s.keys) % s.d_v] = 1
        batch = len(q)
        out = self(np.repeat(q, pieces, axis=0), np.repeat(k, pieces, axis=0),
                   np.tile(v, (batch, 1, 1))[:, None])
        out = out.reshape(batch, pieces, s.heads, s.tokens, s.d_v)
        flat = np.moveaxis(out, 1, 3).reshape(batch, s.heads, s.tokens, pieces * s.d_v)
        return flat[..., : s.keys], flat[..., s.keys :]

    def __call__(self, q: Array, k: Array, v: Array) -> Array:
        """attend of fresh arrays, in float64; k and v of one head serve all heads of keys."""
        s = self.sizes
        k, v = (np.broadcast_to(x, (len(q), s.kv_heads, *x.shape[2:])) for x in (k, v))
        with np.errstate(all="ignore"):  # the widest logits may overflow on purpose
            try:
                out = self._attended(q, k, v)
            except Exception as error:
                error.add_note(
                    f"probe called attend with q {q.shape}, k {k.shape} and v {v.shape} of "
                    f"{self.dtype or 'NumPy float64'}; pass dtype= or d_v= if it wants others")
                raise
        wanted = (len(q), s.heads, s.tokens, s.d_v)
        shape = getattr(out, "shape", None)
        if shape is None or tuple(shape) != wanted:
            what = f"{type(out).__name__}" if shape is None else f"shape {tuple(shape)}"
            raise ValueError(f"attend returned {what}: must return an array (batch, heads, tokens, "
                             f"d_v) = {wanted}; wrap it so that it takes and gives these axes")
        return as_float64(out)

    def _attended(self, q: Array, k: Array, v: Array) -> Any:
        if self.axes == 4:
            return self.attend(*(handed(x, self.dtype) for x in (q, k, v)))
        outs = [self.attend(*(handed(x[0], self.dtype) for x in one))
                for one in zip(q, k, v, strict=True)]
        shapes = {tuple(getattr(out, "shape", ())) for out in outs}
        if len(shapes) > 1 or any(len(shape) != 2 for shape in shapes):
            raise ValueError(f"attend returned {' and '.join(map(str, shapes))} of (tokens, width) "
                             "arrays: must return (tokens, d_v); or pass axes=4")
        return np.stack([as_float64(out) for out in outs])[:, None]


def handed(x: Array, dtype: Any) -> Any:
    """A copy of x as NumPy array, or as tensor where the type is one of PyTorch."""
    if type(dtype).__module__ == "torch":
        return sys.modules["torch"].as_tensor(x.copy()).to(dtype)
    return np.array(x, dtype=np.float64 if dtype is None else dtype)


def as_float64(x: Any) -> Array:
    """Numbers of NumPy, PyTorch, JAX, or whatever offers `__array__` or DLPack, as float64."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().double()
    if not isinstance(x, np.ndarray):
        try:
            x = np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)
        except (RuntimeError, BufferError) as error:
            raise ValueError(f"attend returned a {type(x).__name__} that NumPy cannot read, since "
                             f"{error}: must have __array__, or be of a type of NumPy, on the CPU; "
                             "cast it to float32") from error
    return np.asarray(x, dtype=np.float64)


def precision(x: Array) -> str:
    """The coarsest type that holds all these numbers: what they were rounded to last.

    A function may compute in bfloat16 and return float32, so its outputs are asked, not their type.

    >>> [precision(x) for x in ([0.5, 0.1], np.float32([0.5, 0.1]), np.float16([0.5, 0.1]))]
    ['float64', 'float32', 'float16']
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore"):
        if not np.array_equal(x.astype(np.float32), x):
            return "float64"
        for name, rounded in HALVES.items():
            if np.array_equal(rounded(x), x):
                return name
    return "float32"
