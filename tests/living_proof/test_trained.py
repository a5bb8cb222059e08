"""The sums that claims on trained heads are made of are those of the arrays themselves."""

import numpy as np
import pytest

from mcverify import laws, theory
from mcverify.claims.trained import WIDTH, moments_of, score_variance


@pytest.mark.parametrize("sentences", [[0], [3, 1, 20], list(range(21))])
def test_moments_of_some_sentences_are_those_of_their_tokens(sentences):
    law = laws.minilm("trained_l5h3")
    tokens = np.concatenate([law.members[i] for i in sentences])
    part = laws.measured(law.q[tokens], law.k[tokens], np.asarray(law.groups)[tokens])
    found, expected = moments_of(law, sentences), part.moments(WIDTH)
    for name in ("mean_q", "mean_k", "cov_q", "cov_k", "cross"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    assert score_variance(law, sentences) == pytest.approx(
        theory.population.score_variance(part), rel=1e-9)
