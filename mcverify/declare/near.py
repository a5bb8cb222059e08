"""From a claim's law to near misses of it: settings for ``controls``, under which it must fail.

>>> from mcverify.laws import normal
>>> [(name, str(change(normal))) for point in coordinate_mean(0.2).points for name, change in point]
[('law', 'shifted[normal-0.2]')]
"""

from mcverify import laws
from mcverify.declare.grid import Grid, grid


def query_scale(factor: float) -> Grid:
    """Queries ``factor`` times as long: by √d_k, it is the scale that was forgotten."""
    return grid(law=lambda law: laws.scaled(law, factor, 1.0))


def coordinate_mean(mean: float) -> Grid:
    """A mean added to every coordinate of q and of k."""
    return grid(law=lambda law: laws.shifted(law, mean))


def law(law: laws.Law) -> Grid:
    """Another law altogether."""
    return grid(law=law)
