"""Laws that are linear images q = Az + μ_q, k = Bz' + μ_k of iid z: any mean, any covariance."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array
from mcverify.laws.base import LawBase
from mcverify.laws.coordinates import Iid
from mcverify.laws.law import Moments, Pair, Rng, Which, digest, require
from mcverify.laws.side import Side, Views

Root = Callable[[int], Array]  # d_k -> (d_k, m), or (d_k,) for a diagonal
Mean = float | tuple[float, ...]


@dataclass(frozen=True)
class Given:
    """An array as the root at its own d_k: frozen and hashable, and refused at any other width."""

    shape: tuple[int, ...]
    data: bytes

    def __call__(self, d_k: int) -> Array:
        require(d_k == self.shape[0], f"the root has {self.shape[0]} rows, one for each "
                                      f"coordinate, and d_k is {d_k}; give d_k={self.shape[0]}, "
                                      "or a root that is a function of d_k")
        return np.frombuffer(self.data).reshape(self.shape)


@dataclass(frozen=True)
class Linear(LawBase):
    """q = Az + μ_q and k = Bz' + μ_k, with z and z' independent draws of ``base``.

    A coupled one has z' = z: a token's query and key are two views of the same z. Covariances are
    AA', BB' and, if coupled, AB' times the variance of ``base``. The coordinates follow the law
    ``base`` only if it is normal; every other is mixed.

    Attributes
    ----------
    name : the readable name; the factories below see to it that it determines the draws.
    base : the law of one coordinate of z.
    root_q, root_k : A and B, as functions of d_k.
    mean_q, mean_k : one number for all coordinates, or one for each.
    """

    name: str
    base: Iid
    root_q: Root
    root_k: Root
    mean_q: Mean = 0.0
    mean_k: Mean = 0.0
    coupled: bool = False

    def __str__(self) -> str:
        return self.name

    def draw(self, rng: Rng, blocks: int, tokens: int, d_k: int) -> Pair:
        a, b = self._pair(d_k)
        z = self.base.sample(rng, (blocks, tokens, a.shape[-1]))
        q = _image(z, a, self.mean_q)
        if not self.coupled:
            z = self.base.sample(rng, (blocks, tokens, b.shape[-1]))
        return q, _image(z, b, self.mean_k)

    def _pair(self, d_k: int) -> Pair:
        a, b = (_checked(root(d_k), d_k, self.name) for root in (self.root_q, self.root_k))
        require(not self.coupled or a.shape[-1] == b.shape[-1],
                f"{self.name}: at d_k = {d_k} the roots have {a.shape[-1]} and {b.shape[-1]} "
                "columns; a joint law has one z for both")
        for mean in (self.mean_q, self.mean_k):
            require(not isinstance(mean, tuple) or len(mean) == d_k,
                    f"{self.name}: a mean has {np.size(mean)} coordinates and d_k is {d_k}; give "
                    "one number, or one for each coordinate")
        return a, b

    def moments(self, d_k: int) -> Moments:
        a, b = (np.diag(a) if a.ndim == 1 else a for a in self._pair(d_k))
        mean_q, mean_k = (self.base.mean * root.sum(axis=1) + np.asarray(mean)
                          for root, mean in ((a, self.mean_q), (b, self.mean_k)))
        if not math.isfinite(self.base.variance):
            return Moments(mean_q, mean_k, *np.full((3, d_k, d_k), math.nan))
        cross = a @ b.T if self.coupled else np.zeros((d_k, d_k))
        covs = (self.base.variance * cov for cov in (a @ a.T, b @ b.T, cross))
        return Moments(mean_q, mean_k, *covs)

    def side(self, which: Which, d_k: int) -> Side:
        root = self._pair(d_k)[which == "k"]
        mean = self.mean_q if which == "q" else self.mean_k
        image = self.base.side(which, root.shape[-1]).mapped(root)
        return Side(image=image and replace(image, mean=image.mean + np.asarray(mean)))

    def joint(self, d_k: int) -> Views | None:
        q, k = self.side("q", d_k).image, self.side("k", d_k).image
        return (q, k) if self.coupled and q is not None and k is not None else None


def _image(z: Array, root: Array, mean: Mean) -> Array:
    x: Array = z * root if root.ndim == 1 else z @ root.T
    if mean != 0.0:
        x += np.asarray(mean)
    return x


def _checked(root: Any, d_k: int, name: str) -> Array:
    a = np.asarray(root, dtype=np.float64)
    require(a.ndim in (1, 2) and len(a) == d_k and a.size > 0,
            f"{name}: at d_k = {d_k} a root has the shape {a.shape}; it must be (d_k, any "
            "number), or (d_k,) for a diagonal")
    return a


def linear(
    base: Iid,
    root_q: NDArray[Any] | Root,
    root_k: NDArray[Any] | Root | None = None,
    mean_q: float | Sequence[float] | Array = 0.0,
    mean_k: float | Sequence[float] | Array = 0.0,
    joint: bool = False,
    name: str | None = None,
) -> Linear:
    """The law of q = Az + μ_q and k = Bz' + μ_k, with A = ``root_q`` and B = ``root_k`` (or A).

    A root is a (d_k, m) array, a (d_k,) array for a diagonal, or a function of d_k that returns
    one; an array fixes d_k, and a function needs a ``name`` that says which it is. z and z' are
    independent vectors of m coordinates of ``base``; with ``joint`` they are the same. Raises
    ValueError for roots or means that do not fit.

    >>> from mcverify import laws
    >>> law = linear(laws.normal, np.array([[1.0, 0.0], [0.6, 0.8]]), mean_q=1.0)
    >>> law.moments(2).cov_k
    array([[1. , 0.6],
           [0.6, 1. ]])
    >>> str(linear(laws.normal, lambda d_k: np.arange(1.0, d_k + 1), name="rising"))
    'rising[normal]'
    """
    word = "_".join(["joint"] * joint + ([name] if name else [])) or "linear"
    roots = _root(root_q, word, name), _root(root_q if root_k is None else root_k, word, name)
    means = _mean(mean_q, word), _mean(mean_k, word)
    given = [root for root in roots if isinstance(root, Given)]
    rows = {root.shape[0] for root in given} | {len(m) for m in means if isinstance(m, tuple)}
    require(len(rows) <= 1, f"{word}: roots and means have {sorted(rows)} coordinates; q and k "
                            "need equally many")
    # What is given by its numbers is told apart by them; a function, by the name it came with.
    told = f"-{digest(*given, *means)}" if given or means != (0.0, 0.0) else ""
    return Linear(f"{word}[{base}{told}]", base, *roots, *means, joint)


def _root(root: Any, word: str, name: str | None) -> Root:
    if callable(root):
        require(name is not None, f"{word}: a root that is a function needs a name that says "
                                  "which; add name=…")
        function: Root = root
        return function
    a = np.asarray(root, dtype=np.float64)
    require(a.ndim in (1, 2) and a.size > 0 and bool(np.isfinite(a).all()),
            f"{word}: a root has the shape {a.shape}; it must be a finite (d_k, any number) or "
            "(d_k,) array, or a function of d_k")
    return Given(a.shape, a.tobytes())


def _mean(mean: Any, word: str) -> Mean:
    m = np.asarray(mean, dtype=np.float64)
    require(m.ndim <= 1 and bool(np.isfinite(m).all()), f"{word}: the mean {mean!r} must be a "
                                                        "finite number or a vector of them")
    return tuple(m.tolist()) if m.ndim else float(m)
