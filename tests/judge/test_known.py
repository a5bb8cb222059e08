"""What a law knows of what a body returned."""

import math

import pytest

from mcverify import laws
from mcverify.attention.chunk import Scores, Vectors
from mcverify.judge.known import known_values
from mcverify.judge.world import World


def test_scaled_scores_of_independent_coordinates():
    known = known_values(World(laws.normal, 64, 8), Scores("all", 0.125))
    assert (known.mean, known.of_means) == (0.0, 1 / 64)
    # [Var s² + 7(C_q + C_k)]/8² with E s⁴ = 3·64² + 6·64 and E s_1² s_2² = 64² + 2·64, times c⁴.
    assert known.of_squares == pytest.approx((8576 + 7 * 2 * 128) / 64 / 4096)


def test_a_token_with_itself_has_another_mean_and_all_pairs_mix_them():
    world = World(laws.correlated(laws.normal, 0.5), 64, 8)
    assert known_values(world, Scores("matched", 1.0)).mean == 32
    assert known_values(world, Scores("matched", 1.0)).of_means == pytest.approx(80 / 8)
    assert known_values(world, Scores("other", 1.0)).mean == 0
    assert known_values(world, Scores("all", 1.0)) is None


@pytest.mark.parametrize("law", [laws.student_t(3), laws.common_scale(laws.normal, 4)], ids=str)
def test_without_fourth_moments_only_means_are_known(law):
    known = known_values(World(law, 4, 8), Scores("all", 1.0))
    assert known.of_squares is None
    assert 0 < known.of_means < math.inf


@pytest.mark.parametrize("law", [laws.student_t(1), laws.memory(laws.laplace, 0.5),
                                 laws.topic(laws.laplace, 0.5)], ids=str)
def test_nothing_is_known_where_there_is_no_mean_or_tokens_are_tied(law):
    assert known_values(World(law, 4, 8), Scores("other", 1.0)) is None
    assert known_values(World(law, 4, 8), None) is None


def test_kurtosis_is_known_of_all_pairs_whatever_the_scale():
    world = World(laws.normal, 64, 8)
    known = known_values(world, Scores("all", 0.125), power=4)
    assert known.fourths == (1.0, 3 + 6 / 64)
    assert known.of_fourths == pytest.approx(laws.fourth_moments(laws.normal, 64, 8).of_fourths)
    assert known_values(world, Scores("all", 0.125), power=2).of_fourths is None
    for made in (Scores("other", 1.0), Scores("all", 1.0, 8), Vectors("q")):
        assert known_values(world, made, power=4).of_fourths is None


def test_queries_and_scores_at_several_widths():
    world = World(laws.shifted(laws.normal, 0.5), 64, 8)
    assert known_values(world, Vectors("q")).mean == 0.5
    # Of x² for x = z + 1/2 less its mean: Var z² = 2, over 64 coordinates of 8 tokens.
    assert known_values(world, Vectors("k")).of_squares == pytest.approx(2 / 64 / 8)
    narrow, wide = known_values(world, (Scores("all", 1.0, 8), Scores("all", 1.0, 64)))
    assert narrow == pytest.approx(known_values(World(world.law, 8, 8), Scores("all", 1.0)))
    assert wide == known_values(world, Scores("all", 1.0))
