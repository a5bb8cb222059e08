"""Real tokens drawn again: which pairs, how often, and what tells two laws apart."""

import hashlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcverify import laws, theory
from mcverify.attention import other_scores
from mcverify.judge.world import World
from mcverify.statistic import variance

Q = np.array([[1.0, -2.0, 0.5], [2.0, 0.0, 1.0], [4.0, 1.0, -1.0], [8.0, 3.0, 0.0],
              [16.0, -1.0, 2.5]])
K = Q[:, [0, 2, 1]] ** 2 + 1
GROUPS = np.array([7, 3, 7, 7, 3])  # sizes 2 and 3
HEADS = ["trained_l0h0", "trained_l5h3", "trained_l0h2", "init_unit_l0h0", "init_unit_l5h3",
         "init_bert_l0h0"]


def tokens_in(law, blocks, tokens, seed=0):
    """Which token each drawn query and key is, by the first coordinate of Q and of K."""
    q, k = law.draw(np.random.default_rng(seed), blocks, tokens, 3)
    found = [np.argmax(x[..., None, :1] == all_of[:, :1], axis=-2)[..., 0]
             for x, all_of in ((q, Q), (k, K))]
    np.testing.assert_array_equal(q, Q[found[0]])
    np.testing.assert_array_equal(k, K[found[1]])
    return found


# --- what is drawn ----------------------------------------------------------------------------


def test_pairs_have_their_exact_probabilities():
    law = laws.measured(Q, K, GROUPS)
    blocks = 8000
    first, second = tokens_in(law, blocks, 2)[0].T
    counts = np.zeros((5, 5))
    np.add.at(counts, (first, second), 1)
    sizes = np.array([3, 2, 3, 3, 2])
    same = GROUPS[:, None] == GROUPS
    # Any token is as likely as another, and so is any other token of its group beside it.
    exact = np.where(same & ~np.eye(5, dtype=bool), 1 / (5 * (sizes[:, None] - 1)), 0.0)
    assert exact.sum() == pytest.approx(1)
    error = np.sqrt(exact * (1 - exact) / blocks)
    assert (np.abs(counts / blocks - exact) <= 6 * error).all()


def test_without_groups_pairs_are_independent_and_may_be_a_token_with_itself():
    law = laws.measured(Q, K, GROUPS, broken=True)
    blocks = 8000
    first, second = tokens_in(law, blocks, 2)[0].T
    counts = np.zeros((5, 5))
    np.add.at(counts, (first, second), 1)
    error = np.sqrt(1 / 25 * 24 / 25 / blocks)
    assert (np.abs(counts / blocks - 1 / 25) <= 6 * error).all()


@given(st.integers(0, 2**32), st.integers(1, 2))
def test_a_block_holds_different_tokens_of_one_group_with_their_own_keys(seed, tokens):
    found_q, found_k = tokens_in(laws.measured(Q, K, GROUPS), 30, tokens, seed)
    np.testing.assert_array_equal(found_q, found_k)
    for block in found_q:
        assert len(set(block)) == tokens
        assert len(set(GROUPS[block])) == 1


def test_moments_are_those_of_the_whole_population():
    m = laws.measured(Q, K, GROUPS).moments(3)
    joint = np.cov(np.hstack([Q, K]).T, ddof=0)
    np.testing.assert_allclose(m.mean_q, Q.mean(0), rtol=1e-14)
    np.testing.assert_allclose(m.mean_k, K.mean(0), rtol=1e-14)
    np.testing.assert_allclose(m.cov_q, joint[:3, :3], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(m.cov_k, joint[3:, 3:], rtol=1e-13)
    np.testing.assert_allclose(m.cross, joint[:3, 3:], rtol=1e-13)


@pytest.mark.parametrize("head", HEADS)
def test_without_groups_the_closed_form_is_exact(head):
    # Independent tokens: every query with every key, each pair with the same probability.
    law = laws.minilm(head, broken=True)
    assert theory.dot_variance(law, 32) == pytest.approx((law.q @ law.k.T).var(), rel=1e-12)


def test_a_query_and_its_own_key_are_parted_by_independent():
    law = laws.measured(Q, K)
    apart = laws.independent(law, law)
    found_q, found_k = tokens_in(apart, 2000, 2)
    assert 0 < (found_q == found_k).mean() < 0.4  # 1/5, ± 0.013
    assert not apart.coupled
    assert law.coupled
    assert (apart.moments(3).cross == 0).all()


def test_worlds_draw_it_and_transforms_take_it():
    law = laws.minilm("trained_l0h0")
    q, k = World(law, 32, 13).draw(0, 0, 2048)
    table = variance.reduce(other_scores(q, k))
    found = variance.estimate(table, 1e-6)
    assert found.low < theory.population.score_variance(law) < found.high
    shifted = laws.shifted(law, 1.0).draw(np.random.default_rng(3), 4, 5, 32)[0]
    np.testing.assert_array_equal(shifted, law.draw(np.random.default_rng(3), 4, 5, 32)[0] + 1)


@pytest.mark.parametrize(("ask", "message"), [
    (lambda law: law.draw(np.random.default_rng(0), 1, 3, 3), "smallest group has 2, not 3; fix"),
    (lambda law: law.draw(np.random.default_rng(0), 1, 2, 4), "width 3 of its arrays, not 4; use"),
    (lambda law: law.moments(2), "width 3 of its arrays, not 2; use d_k=3"),
])
def test_what_the_arrays_do_not_hold_is_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(laws.measured(Q, K, GROUPS))


# --- a value ----------------------------------------------------------------------------------


def test_equal_numbers_make_equal_laws():
    law = laws.measured(Q, K, GROUPS, name="five")
    assert law == laws.measured(Q.tolist(), K.astype(">f8"), GROUPS - 3, name="five")
    assert isinstance(law, laws.Law)
    assert law.finite_moments == np.inf
    other = K.copy()
    other[4, 2] += 1e-12
    different = [laws.measured(Q, other, GROUPS, name="five"), laws.measured(K, Q, GROUPS, "five"),
                 laws.measured(Q, K, GROUPS[::-1], name="five"), laws.measured(Q, K, name="five"),
                 laws.measured(Q, K, GROUPS, name="cinq")]
    assert len({law, *different}) == len({str(law), *map(str, different)}) == 6
    assert different[3] == laws.measured(Q, K, GROUPS, name="five", broken=True)
    assert str(law).startswith("measured[five-2groups-")
    assert pickle.loads(pickle.dumps(law)) == law
    # The same 30 numbers cut otherwise are another law.
    assert laws.measured(Q.reshape(3, 5), K.reshape(3, 5)).digest != laws.measured(Q, K).digest


def test_the_law_keeps_its_own_copy():
    q = Q.copy()
    law = laws.measured(q, K)
    q[0] = 99
    assert law.q.max() == 16
    with pytest.raises(ValueError, match="read-only"):
        law.q[0] = 0


def test_half_precision_is_computed_in_double():
    q = np.full((2, 2), 60000, dtype=np.float16)
    law = laws.measured(q, q)
    assert theory.dot_mean(law, 2) == 7.2e9  # in half precision infinite


@pytest.mark.parametrize("name", ["", None])
def test_a_law_has_a_name(name):
    with pytest.raises(ValueError, match="must be a text"):
        laws.measured(Q, K, name=name)


# --- the encoder's heads ----------------------------------------------------------------------


def test_the_packaged_arrays_are_those_that_were_measured():
    from importlib.resources import files

    data = files("mcverify") / "data"
    digest = "36636ca6d399b428fa2e68d58bdd8b3d387dd0f35c7843deebd83a1eca7666c2"
    assert hashlib.sha256((data / "minilm_qk.npz").read_bytes()).hexdigest() == digest
    assert digest in (data / "README.md").read_text()


@pytest.mark.parametrize("head", HEADS)
def test_heads_are_laws(head):
    law = laws.minilm(head)
    assert law.q.shape == law.k.shape == (592, 32)
    assert np.bincount(law.groups).min() == 13
    assert law.draw(np.random.default_rng(0), 3, 13, 32)[0].shape == (3, 13, 32)
    assert str(laws.minilm(head, broken=True)) != str(law)


def test_another_head_is_refused_with_the_list():
    with pytest.raises(ValueError, match="no such head; use one of trained_l0h0, trained_l5h3"):
        laws.minilm("l0h0")
