"""The diagnosis: unbiased estimates, sound verdicts, and a text that fits."""

import io
import itertools
import math
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from mcverify import laws, theory
from mcverify.cli.main import main
from mcverify.diagnose import diagnose, table
from mcverify.diagnose.blocks import block_sums
from mcverify.diagnose.population import tokens_of
from mcverify.diagnose.report import VERDICTS
from mcverify.diagnose.sample import least_blocks, number_of_blocks
from mcverify.statistic import kurtosis
from mcverify.statistic.studentised import CAUTION, studentised

# By so many jackknife errors of 16 parts an estimate misses at a rate of 1e-7.
MISS = -special.stdtrit(15, 0.5e-7)


@pytest.fixture(autouse=True)
def short_sequences(monkeypatch):
    """Without groups all tokens are one sequence, whose entropy would take most of the time."""
    monkeypatch.setattr("mcverify.diagnose.rows.KEYS", 100)


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal((2, *shape))


def rows(frame):
    return frame.set_index("quantity")


# --- unbiased numbers of a block --------------------------------------------------------------


def half_by_pairs(q, k, groups, units):
    """Means over ordered pairs of different units, of sums over all pairs of their tokens."""
    i, j = np.nonzero(np.isin(groups, units)[:, None] & np.isin(groups, units)
                      & (groups[:, None] != groups))
    ways, sizes = len(units) * (len(units) - 1), np.bincount(groups)

    def outer(x, y):
        return np.einsum("pa,pb->ab", x, y) / ways

    t = {g: [sum((q[a] @ k[b]) ** power for a in np.flatnonzero(groups == g)
                 for b in np.flatnonzero(groups == g) if a != b) / max(sizes[g] - 1, 1)
             for power in (1, 2)] for g in units}
    return {
        "pairs": len(i) / ways,
        "cov_q": outer(q[i] - q[j], q[i] - q[j]) / 2, "cov_k": outer(k[i] - k[j], k[i] - k[j]) / 2,
        "cross": outer(q[i] - q[j], k[i] - k[j]) / 2,
        "mean_q": outer(q[i], q[j]), "mean_k": outer(k[i], k[j]),
        "variance": sum(t[g][1] * sizes[h] - t[g][0] * t[h][0]
                        for g in units for h in units if g != h) / ways,
    }


def by_pairs(q, k, groups, *halves):
    a, b = (half_by_pairs(q, k, groups, units) for units in halves)
    i, j = np.nonzero(np.isin(groups, halves[0])[:, None] & np.isin(groups, halves[1]))
    ways = len(halves[0]) * len(halves[1])

    def both_ways(x, y):
        return (np.sum(a[x] * b[y]) + np.sum(b[x] * a[y])) / 2

    exact = {
        "tokens": len(i) / ways, "pairs": a["pairs"] * b["pairs"],
        "mean_q": np.sum(q[i] * q[j]) / ways, "mean_k": np.sum(k[i] * k[j]) / ways,
        "trace_q": np.sum((q[i] - q[j]) ** 2) / 2 / ways,
        "trace_k": np.sum((k[i] - k[j]) ** 2) / 2 / ways,
        "cross": np.sum(a["cross"] * b["cross"]),
        "both": both_ways("cov_q", "cov_k"),
        "full": both_ways("cov_q", "cov_k") + both_ways("mean_q", "cov_k")
        + both_ways("cov_q", "mean_k"),
        "traces": (np.trace(a["cov_q"]) * np.trace(b["cov_k"])
                   + np.trace(b["cov_q"]) * np.trace(a["cov_k"])) / 2,
        "measured": both_ways("variance", "pairs"),
    }
    for side in "qk":
        first, second = a[f"cov_{side}"], b[f"cov_{side}"]
        exact[f"squares_{side}"] = np.sum(first * second)
        exact[f"diagonal_{side}"] = np.diag(first) @ np.diag(second)
        exact[f"off_{side}"] = exact[f"squares_{side}"] - exact[f"diagonal_{side}"]
        exact[f"traces_{side}"] = np.trace(first) * np.trace(second)
    return exact


@given(st.integers(0, 2**32), st.lists(st.integers(2, 6), min_size=4, max_size=6),
       st.integers(1, 5), st.booleans())
def test_sums_of_a_block_are_those_of_pairs_of_units(seed, sizes, d_k, grouped):
    q, k = normals(seed, sum(sizes), d_k) + np.array([3, -2])[:, None, None]
    groups = np.repeat(np.arange(len(sizes)), sizes) if grouped else np.arange(len(q))
    found = block_sums(tokens_of(q, k, groups if grouped else None), 1)
    units = np.random.default_rng(0).permutation(groups.max() + 1)
    exact = by_pairs(q, k, groups, units[0::2], units[1::2])
    assert set(found) == set(exact)
    for name in exact if grouped else set(exact) - {"measured"}:
        assert found[name].item() == pytest.approx(exact[name], rel=1e-7, abs=1e-7), name


def test_quotients_of_expected_sums_are_the_numbers_of_the_law():
    """Over all ways to draw four units of three unequal groups."""
    q, k = normals(1, 9, 2) + np.array([1, -2])[:, None, None]
    cut = [slice(0, 2), slice(2, 5), slice(5, 9)]
    sums = []
    for units in itertools.product(cut, repeat=4):
        groups = np.repeat(np.arange(4), [unit.stop - unit.start for unit in units])
        drawn = (np.concatenate([x[unit] for unit in units]) for x in (q, k))
        sums.append(block_sums(tokens_of(*drawn, groups), 1))
    expected = {name: np.mean([each[name].item() for each in sums]) for name in sums[0]}
    law = laws.measured(q, k, [0, 0, 1, 1, 1, 2, 2, 2, 2])
    m, variance = law.moments(2), theory.population.score_variance(law)
    predicted = theory.predicted_variances(m)
    for top, bottom, exact in (
        ("mean_q", "trace_q", m.mean_q @ m.mean_q / np.trace(m.cov_q)),
        ("trace_k", "tokens", np.trace(m.cov_k)),
        ("off_q", "diagonal_q", np.sum(m.cov_q**2) / np.sum(np.diag(m.cov_q) ** 2) - 1),
        ("traces_k", "squares_k", theory.effective_rank(m.cov_k)),
        ("both", "traces", theory.alignment(m.cov_q, m.cov_k) / 2),
        ("cross", "pairs", np.sum(m.cross**2)),
        ("traces", "pairs", 2 * predicted["variances"]),
        ("full", "pairs", predicted["means"]),
        ("measured", "pairs", variance), ("measured", "full", variance / predicted["means"]),
    ):
        assert expected[top] / expected[bottom] == pytest.approx(exact, rel=1e-9), (top, bottom)


def test_the_effective_rank_is_not_that_of_noise():
    row = rows(diagnose(*normals(2, 592, 32))).loc["effective rank of q"]
    assert abs(row.estimate - 32) < MISS * row.stderr
    assert row.value < 32 - MISS * row.stderr  # its mean is 32/(1 + 33/592 + …) = 30.3


# --- verdicts ---------------------------------------------------------------------------------


@lru_cache
def diagnosed(name):
    """The table of 8000 to 16 000 tokens of width 16 of a law, or with a group's own vector."""
    q, k = normals(3, 10000, 16)
    if name == "normal":
        return rows(diagnose(*normals(3, 16000, 16), np.arange(16000) // 8))
    if name == "topic":
        shared = np.repeat(normals(4, 2500, 16)[0], 4, axis=0)
        return rows(diagnose(*math.sqrt(0.5) * (np.stack([q, k]) + shared), np.arange(10000) // 4))
    if name == "spikes":  # ±√10 with probability 1/10, else 0: no tail, but a fourth moment of 10
        return rows(diagnose(math.sqrt(10) * np.sign(q) * (np.abs(k) > 1.6448536), k))
    q, k = LAWS[name].draw(np.random.default_rng(5), 1, 8000, 16)
    return rows(diagnose(q[0], k[0]))


LAWS = {
    "equicorrelated": laws.independent(laws.equicorrelated(laws.normal, 0.3), laws.normal),
    "shifted": laws.independent(laws.shifted(laws.normal, 0.5), laws.normal),
    "identical": laws.identical(laws.rademacher),
    "wide": laws.independent(laws.normal, laws.scaled(laws.normal, 1.5, 1.5)),
}
ASSUMPTIONS = ["mean of q", "mean of k", "variance of q", "variance of k", "correlations in q",
               "correlations in k", "own key", "kurtosis of q", "kurtosis of k",
               "dependence of tokens"]


def test_all_that_the_textbook_assumes_is_confirmed_of_normal_vectors():
    found = diagnosed("normal")
    assert list(found.index[found.verdict != ""]) == ASSUMPTIONS
    assert len(ASSUMPTIONS) == VERDICTS
    assert set(found.verdict[ASSUMPTIONS]) == {"CONFIRMED"}
    judged = found[np.isfinite(found.high)]
    assert (judged.low < judged.estimate).all()
    assert (judged.estimate < judged.high).all()
    entropy = found.loc["entropy at 1/√d_k"]
    assert entropy.low < entropy.textbook < entropy.high


@pytest.mark.parametrize(("name", "refuted", "confirmed"), [
    ("equicorrelated", "correlations in q", "correlations in k"),
    ("shifted", "mean of q", "mean of k"),
    ("identical", "own key", "mean of q"),
    ("wide", "variance of k", "variance of q"),
    ("spikes", "kurtosis of q", "kurtosis of k"),
    ("topic", "dependence of tokens", "variance of q"),
    ("topic", "own key", "mean of k"),
])
def test_an_assumption_that_fails_is_refuted_and_no_other(name, refuted, confirmed):
    found = diagnosed(name)
    assert found.verdict[refuted] == "REFUTED"
    assert found.verdict[confirmed] == "CONFIRMED"


@pytest.mark.parametrize(("name", "quantity", "exact"), [
    ("equicorrelated", "correlations in q", 15 * 0.3**2),
    ("equicorrelated", "effective rank of q", 16 / (1 + 15 * 0.3**2)),
    ("shifted", "mean of q", 0.25), ("wide", "variance of k", 2.25), ("identical", "own key", 1.0),
    ("topic", "own key", 0.5**2),
    ("topic", "dependence of tokens", theory.topic_variance(0.5, 3.0, 1)),
    ("shifted", "Var/d_k by means", 1.25), ("wide", "Var/d_k by variances", 2.25),
    ("equicorrelated", "Var/d_k by correlations", 1.0), ("normal", "alignment", 1.0),
    ("normal", "Var/d_k, measured", 1.0), ("spikes", "kurtosis of q", 10.0),
])
def test_estimates_and_intervals_are_about_the_law(name, quantity, exact):
    row = diagnosed(name).loc[quantity]
    assert row.low <= exact <= row.high
    assert abs(row.estimate - exact) < MISS * row.stderr


def test_the_error_of_a_kurtosis_is_that_of_so_many_normal_numbers():
    found = [diagnosed("normal").stderr[f"kurtosis of {side}"] for side in "qk"]
    assert np.mean(found) == pytest.approx(math.sqrt(24 / 256000), rel=0.05)


def test_without_groups_nothing_is_said_of_the_dependence_of_tokens():
    row = diagnosed("shifted").loc["dependence of tokens"]
    assert (row.verdict, row.takes) == ("INCONCLUSIVE", 0)
    assert row.note.startswith("no groups")
    assert "taken for independent" in diagnosed("shifted").note["independent units"]


@pytest.mark.parametrize("rate", [1e-4, 1e-7])
@pytest.mark.parametrize("caution", [CAUTION, kurtosis.caution])
def test_so_many_blocks_are_needed(rate, caution):
    least = least_blocks(rate, caution)
    for blocks, enough in ((least - 1, False), (least, True), (least + 1, True)):
        found = studentised(0.0, np.resize([1.0, -1.0], blocks), rate, caution=caution)
        assert ("too few" not in found.reason) == enough
    if caution is CAUTION:
        assert number_of_blocks(4 * least, rate) == least
        assert number_of_blocks(10**5, rate) >= least


@pytest.mark.parametrize("units", [2, 3, 4, 519, 520])
def test_there_are_intervals_from_so_many_units_on_as_the_row_takes(units):
    row = rows(diagnose(*normals(7, 2 * units, 16), np.arange(2 * units) // 2)).loc["mean of q"]
    enough = units >= 4 * least_blocks(1e-4)
    assert np.isfinite(row.high) == enough
    assert row.takes == (0 if enough else 4 * least_blocks(1e-4))
    assert row.verdict == ("CONFIRMED" if enough else "INCONCLUSIVE")


def test_a_smaller_error_rate_widens_and_a_larger_margin_confirms():
    q, k = normals(8, 2000, 8)
    q += np.sqrt(0.05)
    wide, usual, loose = (rows(diagnose(q, k, **options)).loc["mean of q"] for options in (
        {"error_rate": 1e-6}, {}, {"margin": 0.2}))
    assert wide.high - wide.low > usual.high - usual.low
    assert (usual.verdict, loose.verdict) == ("INCONCLUSIVE", "CONFIRMED")
    assert "reaches across" in usual.note
    assert loose.within == "≤ 0.2"


# --- exact values -----------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_a_rotation_or_a_change_of_units_changes_what_it_should(seed):
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 40, 3)) + 1
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    columns = ["value", "estimate"]
    base, turned, scaled = (rows(diagnose(a, b))[columns] for a, b in (
        (q, k), (q @ turn, k @ turn), (3 * q, k / 3)))
    invariant = ["mean of q", "effective rank of k", "alignment", "own key",
                 "own key, by coordinate", "Var/d_k by means", "Var/d_k, measured",
                 "scale for unit variance"]
    np.testing.assert_allclose(turned.loc[invariant], base.loc[invariant], rtol=1e-6)
    np.testing.assert_allclose(scaled.loc[invariant], base.loc[invariant], rtol=1e-6)
    np.testing.assert_allclose(scaled.loc["variance of q"], 9 * base.loc["variance of q"])


def test_the_scale_gives_the_scores_of_a_real_head_unit_variance():
    law = laws.minilm("trained_l0h0")
    scale = rows(diagnose(law.q, law.k, law.groups)).value["scale for unit variance"]
    scaled = laws.measured(law.q * scale, law.k, law.groups)
    assert theory.population.score_variance(scaled) == pytest.approx(1)


@pytest.mark.parametrize("keys", [2, 50])
def test_entropy_is_that_of_the_rows_of_a_group(keys):
    q, k = normals(1, 100, 9)
    s = np.einsum("gid,gjd->gij", *(x.reshape(-1, keys, 9) for x in (q, k))) / 3
    exact = special.entr(special.softmax(s, axis=-1)).sum(-1).mean() / math.log(keys)
    row = rows(diagnose(q, k, np.arange(100) // keys)).loc["entropy at 1/√d_k"]
    assert row.value == pytest.approx(exact, rel=1e-12)
    assert row.textbook == pytest.approx(theory.softmax.entropy(keys, 1.0, d_k=9) / math.log(keys))


def test_of_a_longer_sequence_some_tokens_enter_the_entropy():
    q, k = normals(1, 199, 9)
    row, thinned = (rows(diagnose(*x)).loc["entropy at 1/√d_k"]
                    for x in ((q, k), (q[::2], k[::2], np.zeros(100, int))))
    assert row.value == pytest.approx(thinned.value, rel=1e-12)
    assert row.note == "a query with all keys; textbook: normal, 100 keys; 100 of 199 tokens"


def test_padded_coordinates_are_left_out_of_the_tails():
    q, k = normals(9, 50, 3)
    padded = rows(diagnose(np.pad(q, ((0, 0), (0, 2)), constant_values=0.1),
                           np.pad(k, ((0, 0), (0, 2)))))
    plain = rows(diagnose(q, k))
    for quantity in ("kurtosis of q", "largest mean in q"):
        assert padded.value[quantity] == pytest.approx(plain.value[quantity])
    assert padded.value["smallest variance in q"] == 0
    assert padded.note["kurtosis of q"].startswith("2 constant coordinates left out")


def test_one_coordinate_has_no_correlations():
    found = rows(diagnose(*normals(10, 50, 1)))
    assert found.verdict["correlations in q"] == "CONFIRMED"
    assert found.value["effective rank of q"] == pytest.approx(1)


# --- heads, and the text ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist])
def test_blocks_are_groups_and_every_head_is_diagnosed_by_itself(kind):
    q, k = normals(11, 5, 3, 4, 2)  # (batch, heads, tokens, d_k)
    found = diagnose(kind(q), kind(k), error_rate=3e-3)
    for head, frame in found.groupby("head"):
        flat = q[:, head].reshape(-1, 2), k[:, head].reshape(-1, 2), np.arange(20) // 4
        for alone in (diagnose(*flat), diagnose(kind(q[:, head]), kind(k[:, head]))):
            assert frame.reset_index(drop=True).equals(alone.assign(head=head))


def test_the_text_of_several_heads_has_a_line_a_head():
    q, k = normals(12, 700, 2, 2, 3)
    lines = table(diagnose(q, k + 1)).splitlines()
    assert lines[0].split()[0] == "head"
    assert [line.split()[0] for line in lines[1:3]] == ["0", "1"]
    assert "/no" in lines[1]
    assert lines[3] == ""


@pytest.mark.parametrize(("scale", "groups"), [
    (1, np.arange(4000) // 2), (1, np.arange(4000) // 1000), (1, None), (1e-19, None), (1e19, None),
])
def test_the_text_fits_and_says_once_that_units_are_too_few(scale, groups):
    q, k = normals(13, 4000, 2)
    frame = diagnose(q * scale, k * scale, groups)
    text = table(frame)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.split("  ")[0] for line in lines[1:len(frame) + 1]] == list(frame.quantity)
    assert lines[1].split() == ["tokens", "4,000"]
    assert "nan" not in text
    assert "inf" not in text
    few = groups is not None and groups.max() < 10
    assert text.count("too few") == few


def test_the_command_prints_the_text_or_all_as_csv(tmp_path, capsys):
    q, k = normals(14, 4, 3, 5, 2)
    np.savez(tmp_path / "x.npz", queries=q, keys=k)
    command = ["diagnose", "--names", "queries", "keys", str(tmp_path / "x.npz")]
    assert main(command) == 0
    assert capsys.readouterr().out == table(diagnose(q, k)) + "\n"
    assert main([*command, "--csv"]) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False)
    assert list(printed) == list(diagnose(q, k))
    assert printed["head"].max() == 2


# --- what cannot be diagnosed -----------------------------------------------------------------


@pytest.mark.parametrize(("change", "message"), [
    ({"error_rate": 0}, "error_rate=0: must be between 0 and 1; use e.g. 0.001"),
    ({"margin": 1.0}, "margin=1.0: must be between 0 and 1; use e.g. 0.05"),
    ({"k": np.ones((9, 2))}, "k is the same for all tokens"),
    ({"k": 1e30 * normals(0, 9, 2)[0]}, "k has entries up to .* scale to between 1e-20 and 1e"),
    ({"k": 1e-30 * normals(0, 9, 2)[0]}, "scale to between"),
    ({"k": np.ones((9, 3))}, "same width"),
    ({"groups": [0] * 8 + [1]}, "group 1 has one token"),
    ({"q": [[1.0], [1.0, 2.0]]}, "q: list makes no array"),
    ({"k": normals(0, 3, 3, 2)[0]}, r"k \(3, 3, 2\): both must be \(n_tokens, d_k\), \(blocks"),
    (dict(zip("qk", normals(0, 1, 1, 3, 3, 2), strict=True)), "both must be"),
    (dict(zip("qk", normals(0, 3, 3, 2), strict=True), groups=[0, 1, 2]), "each block is a group"),
    ({"q": normals(0, 2, 3, 3, 2)[0], "k": np.pad(normals(0, 2, 2, 3, 2)[1], (
        (0, 0), (0, 1), (0, 0), (0, 0)), constant_values=np.nan)}, "head 2: k has 12 NaN"),
])
def test_what_cannot_be_diagnosed_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        diagnose(**{"q": normals(0, 9, 2)[0], "k": normals(0, 9, 2)[1], **change})
