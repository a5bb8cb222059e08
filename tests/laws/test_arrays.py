"""Arrays and files that are to become queries and keys: what is refused, and how."""

import zipfile

import numpy as np
import pytest

from mcverify import laws
from mcverify.laws.arrays import read_arrays

Q = np.array([[1.0, -2.0, 0.5], [2.0, 0.0, 1.0], [4.0, 1.0, -1.0]])
K = Q[:, [0, 2, 1]] ** 2 + 1
GROUPS = np.array([7, 7, 7])
ONES = np.ones((4, 2))


class Tensor:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize(("q", "k", "groups", "message"), [
    (np.ones((2, 4, 2)), ONES, None, r"q has shape \(2, 4, 2\): it must be \(n_tokens, d_k\)"),
    (ONES, np.ones(4), None, r"k has shape \(4,\): it must be"),
    (np.ones((4, 0)), np.ones((4, 0)), None, r"q has shape \(4, 0\)"),
    (ONES, np.ones((4, 3)), None, "at the same width; pad the narrower"),
    (ONES, np.ones((5, 2)), None, "must hold the same tokens"),
    (ONES[:1], ONES[:1], None, "q has 1 tokens: a pair"),
    (ONES.astype(int), ONES, None, "q has dtype int64.*token ids"),
    (ONES, ONES > 0, None, "k has dtype bool"),
    (ONES.astype(complex), ONES, None, "dtype complex128: queries and keys are real"),
    (ONES.astype(object), ONES, None, "dtype object"),
    ([[1.0], [2.0, 3.0]], ONES, None, "q: list makes no array"),
    (Tensor(), ONES, None, r"requires grad.*x\.detach\(\)"),
    (np.where(np.eye(4, 2) > 0, np.nan, 1), ONES, None, "2 NaN or infinite entries, the first at "
                                                        "token 0: all must be finite"),
    (ONES, np.array([[1, 2], [70000, 3]] * 2, dtype=np.float32), [[0]], "groups has shape"),
    (ONES, ONES, [0, 0, 1], r"groups has shape \(3,\): it must be \(4,\)"),
    (ONES, ONES, [0.0, 0.0, 1.0, 1.0], "groups has dtype float64.*astype"),
    (ONES, ONES, [0, 0, 0, 5], "group 5 has one token"),
])
def test_bad_arrays_are_refused(q, k, groups, message):
    with pytest.raises(ValueError, match=message):
        laws.measured(q, k, groups)


def test_an_overflow_of_half_precision_is_named():
    with np.errstate(over="ignore"):
        q = np.array([[70000.0], [1.0]]).astype(np.float16)
    with pytest.raises(ValueError, match=r"1 NaN or infinite .*\(float16 ends at 65504"):
        laws.measured(q, q)


# --- files ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "all.npz", q=Q, k=K, other=K + 1, sentence=GROUPS)
    for name, array in (("q", Q), ("k", K), ("sentence", GROUPS)):
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


def test_laws_come_from_files(folder):
    archive = folder / "all.npz"
    assert laws.measured_file(archive) == laws.measured(Q, K, name="all")
    law = laws.measured_file(str(archive), k="other", groups="sentence", name="x", broken=False)
    assert law == laws.measured(Q, K + 1, GROUPS, name="x")
    assert laws.measured_file(archive, groups="sentence", broken=True, name="x").groups is None
    files = [folder / f"{name}.npy" for name in ("q", "k", "sentence")]
    assert laws.measured_file(*files) == laws.measured(Q, K, GROUPS, name="q")
    assert read_arrays(files[:2])[2] is None


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


@pytest.fixture
def broken_files(folder):
    np.savez(folder / "pickled.npz", q=np.array([Bomb()]), k=K)
    np.save(folder / "pickled.npy", np.array([Bomb()]))
    (folder / "text.npy").write_text("1 2 3")
    (folder / "empty.npy").write_bytes(b"")
    whole = (folder / "all.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(folder / "checkpoint.npz", "w") as archive:
        archive.writestr("q", b"\x80\x04N.")
        archive.writestr("k", b"")
    return folder


@pytest.mark.parametrize(("files", "names", "message"), [
    (["gone.npz"], None, "there is no such file"),
    (["."], None, "cannot be read"),
    (["text.npy", "k.npy"], None, "text.npy: holds no array that can be read without unpickling"),
    (["empty.npy", "k.npy"], None, "empty.npy: holds no array"),
    (["pickled.npy", "k.npy"], None, "pickled.npy: holds no array"),
    (["cut.npz"], None, "cut.npz: holds no array"),
    (["pickled.npz"], None, "pickled.npz: q holds no numbers"),
    (["checkpoint.npz"], None, "checkpoint.npz: q holds no numbers"),
    (["all.npz"], ["q", "key"], "has no array 'key'; it has q, k, other, sentence"),
    (["all.npz"], ["q"], "must be those of q and k"),
    (["q.npy"], None, "holds one array, and q and k are two"),
    (["q.npy", "all.npz"], None, "all.npz: is an archive; give it alone"),
    (["q.npy", "k.npy"], ["q", "k"], "only an archive has names"),
    ([], None, "0 files"),
    (["q.npy"] * 4, None, "4 files"),
])
def test_what_cannot_be_read_is_said(broken_files, files, names, message):
    with pytest.raises(ValueError, match=message):
        read_arrays([broken_files / file for file in files], names)
