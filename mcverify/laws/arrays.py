"""From files and whatever else holds numbers to queries and keys that are fit to be measured."""

import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcverify.arrays import Array, Ints

File = str | PathLike[str]
UNREADABLE = (ValueError, EOFError, OSError, zipfile.BadZipFile)


def checked(q: Any, k: Any, groups: Any = None) -> tuple[Array, Array, Ints | None]:
    """Copies of q and k, (n_tokens, d_k), as float64, and groups, (n_tokens,), counted from 0.

    Raises ValueError for what cannot be the queries and keys of the same tokens: another rank,
    unequal shapes, whole numbers, NaN or infinities, fewer than two tokens, a group of one token.

    >>> checked([[1.0], [2.0]], [[3.0], [4.0]], groups=[7, 7])[2]
    array([0, 0])
    """
    q, k = _vectors(q, "q"), _vectors(k, "k")
    if q.shape != k.shape:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: both must hold the same tokens "
                         "at the same width; pad the narrower one, and repeat shared keys")
    return q, k, None if groups is None else _labels(groups, len(q))


def as_array(x: Any, name: str) -> NDArray[Any]:
    """What NumPy makes of x; ValueError, with the repair, for what it makes no array of."""
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors with gradients
        raise ValueError(f"{name}: {type(x).__name__} makes no array ({error}); pass a NumPy "
                         "array, e.g. x.detach().float().cpu().numpy() of a tensor") from None


def _vectors(x: Any, name: str) -> Array:
    x = as_array(x, name)
    if x.dtype.kind in "iub":
        raise ValueError(f"{name} has dtype {x.dtype}: queries and keys are real numbers, and "
                         "whole ones are almost surely token ids; pass the projected vectors, or "
                         f"{name}.astype(float) if it holds them")
    if x.dtype.kind != "f":
        raise ValueError(f"{name} has dtype {x.dtype}: queries and keys are real numbers; save "
                         "them as float32")
    if x.ndim != 2 or x.shape[1] < 1:
        raise ValueError(f"{name} has shape {x.shape}: it must be (n_tokens, d_k); of many "
                         "sequences use x.reshape(-1, x.shape[-1]), with groups saying which "
                         "sequence a token is of, and of many heads take one")
    if len(x) < 2:
        raise ValueError(f"{name} has {len(x)} tokens: a pair of different tokens needs two; pass "
                         "more")
    bad = ~np.isfinite(x)
    if bad.any():
        half = (" (float16 ends at 65504: cast to float32 before the projection)"
                if x.dtype == np.float16 else "")
        raise ValueError(f"{name} has {int(bad.sum())} NaN or infinite entries, the first at token "
                         f"{int(np.argmax(bad.any(axis=1)))}: all must be finite; leave masked "
                         f"tokens out{half}")
    return np.array(x, dtype=np.float64, order="C")


def _labels(groups: Any, tokens: int) -> Ints:
    groups = as_array(groups, "groups")
    if groups.dtype.kind not in "iu":
        raise ValueError(f"groups has dtype {groups.dtype}: a group is a whole number, e.g. the "
                         "sentence of each token; use groups.astype(int)")
    if groups.shape != (tokens,):
        raise ValueError(f"groups has shape {groups.shape}: it must be ({tokens},), a group for "
                         "each token")
    names, labels, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if sizes.min() < 2:
        raise ValueError(f"group {names[np.argmin(sizes)]} has one token: a group needs two, else "
                         "it has no pair to score; leave such tokens out, or pass no groups if "
                         "the tokens are unrelated")
    return np.asarray(labels, dtype=np.int64)


# --- files ------------------------------------------------------------------------------------


def read_arrays(
    paths: File | Sequence[File], names: Sequence[str] | None = None
) -> tuple[Any, Any, Any]:
    """(q, k, groups or None) as they stand in an .npz archive, or in two or three .npy files.

    ``names`` are those of q, k and perhaps groups in the archive (default: q and k); .npy files
    are read in that order. Nothing is unpickled. Raises ValueError for what cannot be read so.
    """
    paths = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if len(paths) == 1:
        names = ("q", "k") if names is None else names
        if len(names) not in (2, 3):
            raise ValueError(f"names {', '.join(names)}: must be those of q and k, and perhaps of "
                             "the groups")
        q, k, *groups = _read(Path(paths[0]), names)
        return q, k, groups[0] if groups else None
    if len(paths) not in (2, 3):
        raise ValueError(f"{len(paths)} files: q and k come from one .npz archive, or from two "
                         ".npy files; a third one holds the groups")
    if names is not None:
        raise ValueError(f"names {', '.join(names)} with {len(paths)} files: only an archive has "
                         "names; give one .npz file, or no names")
    q, k, *groups = [_read(Path(path), None)[0] for path in paths]
    return q, k, groups[0] if groups else None


def _read(path: Path, names: Sequence[str] | None) -> list[NDArray[Any]]:
    """The arrays of an archive that are named, or the one of an .npy file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file; check the path") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    with file:
        try:
            array = np.load(file, allow_pickle=False)
        except UNREADABLE:
            raise ValueError(f"{path}: holds no array that can be read without unpickling; save "
                             "plain numbers with numpy.save or numpy.savez") from None
        if isinstance(array, np.ndarray):
            if names is None:
                return [array]
            raise ValueError(f"{path}: holds one array, and q and k are two; give two .npy files, "
                             "or an .npz archive")
        if names is None:
            raise ValueError(f"{path}: is an archive; give it alone, with the names of q and k")
        return [_member(array, path, name) for name in names]


def _member(archive: Any, path: Path, name: str) -> NDArray[Any]:
    if name not in archive.files:
        raise ValueError(f"{path}: has no array {name!r}; it has {', '.join(archive.files)}")
    try:
        array = archive[name]
    except UNREADABLE:
        array = None
    if not isinstance(array, np.ndarray):  # e.g. the pickles in a model's checkpoint
        raise ValueError(f"{path}: {name} holds no numbers that can be read without unpickling; "
                         "save them with numpy.savez")
    return array
