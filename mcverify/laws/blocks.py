"""How much a block's mean value, and its mean square, vary, for what a body may return as it is."""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mcverify.laws.base import known
from mcverify.laws.fourth_powers import spread_of_fourths
from mcverify.laws.independent_tokens import ScoreMoments, score_moments
from mcverify.laws.law import BlockMoments, FourthMoments, Law, Values
from mcverify.laws.normal_tokens import of_normal_tokens
from mcverify.laws.score_contraction import applied, product, square_of_form


def block_moments(
    law: Any, d_k: int, tokens: int, of: Values, width: int | None = None
) -> BlockMoments | None:
    """What is known of a block's scores, queries or keys; None where it is nothing.

    ``of`` says of which: the scores of "all", "other" or "matched" pairs, of the first ``width``
    coordinates if it is given, or the queries, "q", or the keys, "k"; or "mean", of one value a
    block, the mean of all its scores. An entry is nan where it is not known.

    >>> from mcverify import laws
    >>> block_moments(laws.normal, 64, 8, "all").of_means
    1.0
    >>> block_moments(laws.memory(laws.normal, 0.5), 64, 1, "all").of_squares  # 2·64² + 6·64
    8576.0
    """
    width, independent = width or d_k, known(law).tokens_independent
    normal = known(law).normal_tokens(tokens) if of == "mean" or not independent else None
    if of == "mean":  # which is the score of the mean query and the mean key
        return normal and of_normal_tokens(
            tuple(x.mean(keepdims=True) for x in normal), width, "matched")
    if independent:
        if of == "q" or of == "k":
            return _of_vectors(law, of, d_k, tokens)
        scores = _scores(law, d_k, width)
        return None if scores is None else scores.of_block(tokens, of)
    if normal is not None:
        return of_normal_tokens(normal, width, of)
    return known(law).block_moments(d_k, tokens, of, width)


@lru_cache(maxsize=256)
def _scores(law: Any, d_k: int, width: int) -> ScoreMoments | None:
    return score_moments(law, d_k, width)


def fourth_moments(law: Any, d_k: int, tokens: int) -> FourthMoments | None:
    """What is known of the kurtosis of a block's scores of all pairs; None where it is nothing.

    >>> from mcverify import laws
    >>> fourth_moments(laws.rademacher, 2, 1)  # s² is 0 or 4, (s⁴ − 8s²)/4 is 0 or −4
    FourthMoments(variance=2.0, kurtosis=2.0, of_fourths=4.0)
    """
    if not known(law).tokens_independent or law.coupled:
        return None
    q, k, scores = known(law).powers("q"), known(law).powers("k"), _scores(law, d_k, d_k)
    if q is None or k is None or scores is None:
        return None
    kurtosis = scores.fourth / scores.variance**2
    spread = spread_of_fourths(q, k, d_k, tokens, 2 * kurtosis * scores.variance)
    return FourthMoments(scores.variance, kurtosis, spread / scores.variance**4)


def _of_vectors(law: Law, which: Literal["q", "k"], d_k: int, tokens: int) -> BlockMoments:
    """Of all coordinates about their common mean; tokens are independent."""
    m, image = law.moments(d_k), known(law).side(which, d_k).image
    means, cov = (m.mean_q, m.cov_q) if which == "q" else (m.mean_k, m.cov_k)
    mean = float(means.mean())
    off, squares = means - mean, math.nan
    with np.errstate(invalid="ignore"):  # of variances that are infinite
        square = float(np.trace(cov) + off @ off)
        of_means = float(cov.sum()) / d_k**2 / tokens
    if image is not None:
        form = product(image.root, image.root)
        squares = square_of_form(form.diagonal(), float((form**2).sum()),
                                 applied(image.root, off), float(off @ off), image)
    return BlockMoments(mean, square / d_k, of_means, (squares - square**2) / d_k**2 / tokens)
