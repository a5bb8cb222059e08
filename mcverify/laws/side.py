"""What is known of one vector, a query or a key, beside its first two moments."""

import math
from dataclasses import dataclass, replace

import numpy as np

from mcverify.arrays import Array
from mcverify.laws.normed_alike import Products, Sizes
from mcverify.laws.normed_axes import Axes


@dataclass(frozen=True, eq=False)
class Image:
    """A vector x = r·Az + m, or one whose moments up to the fourth are those of such a vector.

    z has independent coordinates of mean 0 and variance 1, and r >= 0 is a number independent of
    z with E r² = 1. It is what the fourth moments of a score need to be known of either side.

    Attributes
    ----------
    root : A, (d_k, any number), or (d_k,) for a diagonal.
    mean : m, (d_k,).
    third, fourth : E z³ and E z⁴ of a coordinate of z; nan where they are not known, and the third
        also where neither it is 0 nor r is 1.
    scale_fourth : E r⁴, which is 1 if r is.
    round : z has a direction that is uniform on the sphere.
    """

    root: Array
    mean: Array
    third: float
    fourth: float
    scale_fourth: float = 1.0
    round: bool = False

    def mapped(self, matrix: Array) -> "Image":
        """That of the vector matrix·x, for a (d, d_k) matrix, or (d_k,) for a diagonal."""
        if matrix.ndim == 1:
            return replace(self, root=(self.root.T * matrix).T, mean=matrix * self.mean)
        root = matrix @ self.root if self.root.ndim == 2 else matrix * self.root
        return replace(self, root=root, mean=matrix @ self.mean)

    def first(self, width: int) -> "Image":
        """That of the vector's first coordinates."""
        return replace(self, root=self.root[:width], mean=self.mean[:width])

    def narrowed(self) -> "Image":
        """The same with d_k columns, if it has many more and moments depend on AA' alone."""
        if self.root.ndim == 1 or 2 * self.root.shape[0] > self.root.shape[1]:
            return self  # which a root of fewer columns would not pay for
        if (self.third, self.fourth) != (0.0, 3.0):
            return self
        return replace(self, root=root(self.root))

    @property
    def cov(self) -> Array:
        """AA', (d_k, d_k)."""
        return self.root @ self.root.T if self.root.ndim == 2 else np.diag(self.root**2)


Views = tuple[Image, Image]


@dataclass(frozen=True)
class Side:
    """What is known of one vector, a query or a key. By default it is nothing.

    Attributes
    ----------
    exchangeable : any order of the coordinates has the same law.
    symmetric : any choice of signs for the coordinates has the same law.
    independent : the coordinates are independent and identically distributed.
    all_equal, all_zero : the probability that all d_k > 1 coordinates are equal, and that all are
        0; nan if unknown.
    atoms : of independent coordinates that take finitely many values, those and their
        probabilities.
    sizes : of independent coordinates, (p, b) -> E abs(x)^p where abs(x) <= b, for p = 2 and 4,
        and P(abs(x) > b).
    image : gives the fourth moments; None where they are unknown or do not exist.
    longest : a bound on the length of the vector; inf if unknown.
    axes : of a normal vector after a norm, what gives its moments without an image.
    products : of alike coordinates after a norm, their fourth moments over those of its length.
    """

    exchangeable: bool = False
    symmetric: bool = False
    independent: bool = False
    all_equal: float = math.nan
    all_zero: float = math.nan
    atoms: tuple[tuple[float, float], ...] | None = None
    sizes: Sizes | None = None
    image: Image | None = None
    longest: float = math.inf
    axes: Axes | None = None
    products: Products | None = None

    def mapped(self, matrix: Array) -> Image | None:
        """The image of matrix·x, as in ``Image.mapped``, if that of x is known."""
        return None if self.image is None else self.image.mapped(matrix)

    def views(self, a: Array, b: Array) -> "Views | None":
        """The images of a·x and b·x, which are of the same z, if that of x is known."""
        return None if self.image is None else (self.image.mapped(a), self.image.mapped(b))

    def mixed(self, image: Image | None = None) -> "Side":
        """The same after a function of each coordinate that is odd, or sums of independent copies.

        >>> Side(symmetric=True, all_zero=0.5).mixed() == Side(symmetric=True)
        True
        """
        return replace(self, all_equal=math.nan, all_zero=math.nan, atoms=None, sizes=None,
                       image=image, longest=math.inf, axes=None, products=None)


def root(x: Array) -> Array:
    """A square L with LL' = XX': (…, n, width) -> (…, n, n), X = LO', for n up to the width.

    For normal W, XW = L(O'W) has the law of LW with W of fewer rows, since the columns of O are
    orthonormal: 40 rows instead of 512. The QR decomposition finds L where XX' is singular, too.

    >>> abs(root(np.array([[[3.0, 4.0]]])))
    array([[[5.]]])
    """
    return np.swapaxes(np.linalg.qr(np.swapaxes(x, -1, -2), mode="r"), -1, -2)
