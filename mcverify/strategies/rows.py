"""Draw rows of scores and of softmax weights, with the corners that they have."""

import math
from typing import Literal

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcverify.arrays import Array
from mcverify.attention import softmax

LISTED = 16  # scores of a row that are drawn one by one: hundreds take Hypothesis seconds
MODERATE = (30.0, 3.0)  # where softmax is neither uniform nor one-hot


def score_rows(
    keys: int | None = None, min_keys: int = 2, max_keys: int = 16,
    masked: bool | Literal["fully"] = False, size: float = 1e4,
) -> SearchStrategy[Array]:
    """Scores of one query, (keys,), of at most ``size`` in absolute value.

    ``keys`` of them, or any number from ``min_keys`` to ``max_keys``. Ties, both zeros and the
    very ends are frequent, and rows shrink to equal scores, a tie, or one score just as large as
    it must be. With ``masked`` scores may be −inf, but all of a row only if it is "fully". Most
    of a longer row of given length is equal. Raises ValueError where there is no row.

    >>> from hypothesis import find
    >>> find(score_rows(), lambda s: True)
    array([0., 0.])
    >>> float(find(score_rows(masked=True), lambda s: s.min() < -1e4).min())
    -inf
    """
    least, most = (min_keys, max_keys) if keys is None else (min(keys, LISTED), keys)
    if not (0 < size < math.inf and 1 <= least <= most):
        raise ValueError(f"score_rows(keys={keys}, min_keys={min_keys}, max_keys={max_keys}, "
                         f"size={size}): there is no such row; it needs 1 <= min_keys <= max_keys "
                         "and a size that is positive and finite")
    hidden = [-math.inf] * bool(masked)
    # The corners come last: what shrinks leaves them for the simplest number that serves as well.
    corners = [0.0, -0.0, min(1.0, size), -min(1.0, size), size, -size, *hidden]
    scores = [st.floats(-size, size) | st.sampled_from(corners)]
    scores += [st.one_of(st.floats(-s, s), *map(st.just, hidden)) for s in MODERATE if s < size]
    scores += [st.just(-math.inf)] * (masked == "fully")
    listed = st.one_of([st.lists(score, min_size=least, max_size=most) for score in scores])
    rows = listed.map(lambda s: np.array([*s, *s[:1] * ((keys or 0) - len(s))]))
    return rows.filter(lambda s: bool(s.max() > -np.inf)) if masked is True else rows


def weights(
    keys: int | None = None, min_keys: int = 2, max_keys: int = 16
) -> SearchStrategy[Array]:
    """Rows of softmax weights, (keys,): uniform, to which they shrink, to exactly one-hot.

    >>> from hypothesis import find
    >>> find(weights(), lambda p: p.min() == 0)
    array([0., 1.])
    """
    return score_rows(keys, min_keys, max_keys).map(lambda s: np.asarray(softmax(s), np.float64))
