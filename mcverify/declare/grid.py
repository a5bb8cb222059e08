"""From settings and their values to the points at which a claim is tried."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcverify.declare.fault import ClaimError
from mcverify.declare.text import printable

Point = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Grid:
    """The points at which a claim is tried; two grids add up to the points of both."""

    points: tuple[Point, ...]

    def __add__(self, other: "Grid") -> "Grid":
        return Grid(self.points + other.points)


MAX_POINTS = 10**6  # a hundred times what a claim may have, which it tells itself
NOWHERE = Grid(((),))  # names nothing: of a claim that leaves all to the defaults, or draws nothing


def grid(**settings: Any) -> Grid:
    """All combinations of the settings' values; a value that is no list or tuple stands alone.

    ClaimError for more combinations than could ever be tried.

    >>> [dict(point) for point in grid(d_k=[1, 8], scale=0.5).points]
    [{'d_k': 1, 'scale': 0.5}, {'d_k': 8, 'scale': 0.5}]
    """
    given = [v.tolist() if isinstance(v, np.ndarray | np.generic) else v for v in settings.values()]
    values = [v if isinstance(v, list | tuple | range) else (v,) for v in given]
    if (count := math.prod(map(len, values))) > MAX_POINTS:
        raise ClaimError(f"grid: {count} points are more than memory holds and any error budget "
                         f"pays for; name at most {MAX_POINTS}")
    values = [[x.item() if isinstance(x, np.generic) else x for x in v] for v in values]
    return Grid(tuple(tuple(zip(settings, point, strict=True))
                      for point in itertools.product(*values)))


def shown(value: Any) -> str:
    """A setting as ids and tables show it, its control characters made visible.

    >>> shown(1 / 3), shown("red \\x1b[31m")
    ('0.333333', 'red \\\\x1b[31m')
    """
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))
