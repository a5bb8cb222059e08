"""Ways to initialise a weight matrix: the variance of its entries, and draws of them.

>>> xavier("head").variance(512, 64) * 512, gaussian(0.02).variance(512, 64) * 512
(1.7777777777777777, 0.2048)
"""

import math
from dataclasses import dataclass
from typing import Literal

from mcverify.arrays import Array
from mcverify.laws.law import Rng
from mcverify.laws.parameters import Positive, check_fields, checked

Distribution = Literal["normal", "uniform"]
Fan = Literal["in", "average", "none"]
Matrix = Literal["model", "head", "fused"]


@dataclass(frozen=True)
class Initialisation:
    """Independent entries of mean 0 and variance scale/fan, the rule known as variance scaling.

    Only the entries of one head are ever needed, the E × d_k slice of its queries or of its keys;
    the matrix that the slice is cut from matters through its fan_out alone.

    Attributes
    ----------
    name : the readable name; equal names mean equal initialisations.
    scale : the variance of an entry times the fan.
    fan : "in" (E, the rows), "average" (of fan_in and fan_out), or "none" (1).
    distribution : of an entry, "normal" or "uniform".
    matrix : that the slice is cut from: "model" (E × E), "head" (E × d_k, a head's own) or "fused"
        (E × 3E, one matrix for queries, keys and values).
    """

    name: str
    scale: Positive
    fan: Fan
    distribution: Distribution = "normal"
    matrix: Matrix = "model"

    def __post_init__(self) -> None:
        check_fields(self.name, self)

    @property
    def fourth_moment(self) -> float:
        """κ = E w⁴/(E w²)² of an entry: 3 when normal, 9/5 when uniform."""
        return 3.0 if self.distribution == "normal" else 1.8

    def __str__(self) -> str:
        return self.name

    def variance(self, width: int, d_k: int) -> float:
        """Var of an entry, for inputs of ``width`` coordinates and heads of d_k.

        >>> he().variance(512, 64) * 512, xavier("fused").variance(512, 64) * 512
        (2.0, 0.5)
        """
        fan_out = {"model": width, "head": d_k, "fused": 3 * width}[self.matrix]
        return self.scale / {"in": width, "average": (width + fan_out) / 2, "none": 1}[self.fan]

    def draw(self, rng: Rng, shape: tuple[int, ...], std: float) -> Array:
        """Fresh entries of standard deviation ``std``, in an array of the given shape."""
        if self.distribution == "normal":
            w = rng.standard_normal(shape)
            w *= std
            return w
        return rng.uniform(-math.sqrt(3) * std, math.sqrt(3) * std, shape)


def xavier(matrix: Matrix = "model", distribution: Distribution = "uniform") -> Initialisation:
    """Var W = 2/(fan_in + fan_out), after Glorot and Bengio (2010); fan_out is the matrix's.

    Raises ValueError for an unknown matrix or distribution, as all of these do.

    >>> str(xavier()), str(xavier("head", "normal"))
    ('xavier_uniform', 'xavier_normal_head')
    """
    suffix = "" if matrix == "model" else f"_{matrix}"
    return Initialisation(f"xavier_{distribution}{suffix}", 1.0, "average", distribution, matrix)


def lecun(distribution: Distribution = "normal") -> Initialisation:
    """Var W = 1/fan_in, after LeCun et al., "Efficient BackProp" (1998).

    >>> str(lecun()), lecun().variance(512, 64) * 512
    ('lecun_normal', 1.0)
    """
    return Initialisation(f"lecun_{distribution}", 1.0, "in", distribution)


def he(distribution: Distribution = "normal") -> Initialisation:
    """Var W = 2/fan_in, after He et al. (2015), for inputs of which a ReLU leaves one half.

    >>> str(he("uniform")), he().variance(512, 64) * 512
    ('he_uniform', 2.0)
    """
    return Initialisation(f"he_{distribution}", 2.0, "in", distribution)


def uniform_fan_in() -> Initialisation:
    """Uniform on ±1/√fan_in, so Var W = 1/(3 fan_in): what a linear layer of PyTorch starts with.

    >>> round(uniform_fan_in().variance(512, 64) * 512, 12)
    0.333333333333
    """
    return Initialisation("uniform_fan_in", 1 / 3, "in", "uniform")


@checked
def gaussian(std: Positive) -> Initialisation:
    """N(0, std²) at every width, as BERT and GPT-2 have it with a std of 0.02.

    Raises ValueError unless std is positive and finite.

    >>> str(gaussian(0.02)), round(gaussian(0.02).variance(768, 64) * 768, 12)
    ('gaussian-0.02', 0.3072)
    """
    return Initialisation(f"gaussian-{std:.12g}", std**2, "none")
