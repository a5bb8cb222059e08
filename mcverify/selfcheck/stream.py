"""From a seed and a name to random numbers of their own, the same in every run and process."""

import numpy as np


def stream(seed: int, *name: object) -> np.random.Generator:
    """A generator whose numbers depend on the seed and the parts of the name alone.

    >>> a, b = stream(0, "mean", 512), stream(0, "mean", 512)
    >>> bool(a.integers(2**32) == b.integers(2**32))
    True
    """
    key = [part if isinstance(part, int) else int.from_bytes(str(part).encode()) for part in name]
    return np.random.default_rng(np.random.SeedSequence([seed, *key]))
