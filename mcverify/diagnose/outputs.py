"""From recorded queries, keys, values and outputs to the scale that explains the outputs."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from mcverify.arrays import Array, Bools
from mcverify.attention import bfloat16, softmax
from mcverify.laws.arrays import as_array, read_arrays
from mcverify.theory.precision import LARGEST

LEFT = 1e-3  # of the outputs' length, which may be left unexplained
LEFT_OF_BFLOAT16 = 4e-3  # the same where they hold no more digits than bfloat16, which is 2^-8 off
MASKS = ("none", "causal")
ROWS, SEQUENCES = 64, 16  # of a head that are fitted: one number needs no more
SPREADS = np.geomspace(1e-6, 1e12, 91)  # of scores, between which a first scale is looked for


def explain_outputs(q: Any, k: Any, v: Any, out: Any, mask: Any = None) -> pd.DataFrame:
    """The scale and mask that make softmax(scale·q·k)·v of each head the recorded outputs.

    q and out are (tokens, width), (sequences, tokens, width) or (batch, heads, tokens, width); k
    and v too, perhaps with fewer heads, each of which serves as many heads of queries in a row.
    ``mask`` is "none", "causal", or what each query sees: true or false, of a shape that broadcasts
    to (batch, heads, tokens, keys). Left out, it is found: none or causal, whichever explains more.
    Where there are more keys than queries, the queries are the last tokens.

    A row a head: ``scale`` is nan, and ``reason`` says why, where the best leaves more than 0.001
    of the outputs' length over (0.004 of bfloat16), or half of it and twice it leave no more.
    ``left`` is what it leaves, ``mask`` its name, or "told", and ``overflows`` how many products
    q·k float16 cannot hold. Raises ValueError for shapes that do not fit, and another mask.

    >>> q, k, v = np.random.default_rng(0).standard_normal((3, 20, 8))
    >>> fit = explain_outputs(q, k, v, softmax(q @ k.T / 3) @ v).iloc[0]
    >>> round(float(fit.scale), 6), fit["mask"], int(fit.overflows)
    (0.333333, 'none', 0)
    """
    q, k, v, out = (_four(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v"), (out, "out")))
    heads, keys = q.shape[1], k.shape[1]
    if (heads % keys or q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3]
            or q.shape[3] != k.shape[3] or out.shape != (*q.shape[:3], v.shape[3])):
        raise ValueError(f"q {q.shape}, k {k.shape}, v {v.shape}, out {out.shape}: out must have "
                         "the tokens of q and the width of v, and k those of v; cut them alike")
    masks, shared = _masks((*q.shape[:3], k.shape[2]), mask), heads // keys
    return pd.DataFrame([
        {"head": h} | _of_head(q[:, h], k[:, h // shared], v[:, h // shared], out[:, h],
                               {name: seen[:, h] for name, seen in masks.items()})
        for h in range(heads)])


def _four(x: Any, name: str) -> Array:
    x = as_array(x, name)
    if not 2 <= x.ndim <= 4 or x.dtype.kind != "f" or not np.isfinite(x).all():
        raise ValueError(f"{name} is {x.dtype} of shape {x.shape}: must be finite real numbers, "
                         "(tokens, width), with sequences or (batch, heads) before; cast or cut it")
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(x[:, None] if x.ndim == 3 else x.reshape((1,) * (4 - x.ndim) + x.shape))


def _masks(shape: tuple[int, ...], wanted: Any) -> dict[str, Bools]:
    """What each query sees, (batch, heads, tokens, keys), by name: as wanted, or all tried ones."""
    if wanted is not None and not isinstance(wanted, str):
        wanted = as_array(wanted, "mask")
        try:
            if wanted.dtype == bool and (seen := np.broadcast_to(wanted, shape)).any(axis=-1).all():
                return {"told": seen}
        except ValueError:
            pass
        raise ValueError(f"mask is {wanted.dtype} of shape {wanted.shape}: must be true where a "
                         "query sees a key, which each must, and broadcast to (batch, heads, "
                         f"tokens, keys) = {shape}; cast it to bool, or cut it")
    if wanted not in (None, *MASKS):
        raise ValueError(f"mask={wanted!r}: must be {' or '.join(MASKS)}, or an array; leave it "
                         "out to have it found")
    ahead = np.arange(shape[3]) - np.arange(shape[2])[:, None]
    masks = {"none": np.ones(shape, dtype=bool),
             "causal": np.broadcast_to(ahead <= max(0, shape[3] - shape[2]), shape)}
    return {name: seen for name, seen in masks.items() if wanted in (None, name)}


def _of_head(q: Array, k: Array, v: Array, out: Array, masks: dict[str, Bools]) -> dict[str, Any]:
    overflows = sum(int(np.sum(np.abs(a @ b.T) > LARGEST["float16"]))
                    for a, b in zip(q, k, strict=True))
    some = np.unique(np.linspace(0, q.shape[1] - 1, ROWS).astype(int))
    x = q[:SEQUENCES, some] @ np.swapaxes(k[:SEQUENCES], -1, -2)
    v, out = v[:SEQUENCES], out[:SEQUENCES, some]
    fits = {mask: _fitted(np.where(seen[:SEQUENCES, some], x, -np.inf), v, out)
            for mask, seen in masks.items()}
    mask = min(fits, key=lambda name: fits[name][1])
    scale, left, around = fits[mask]
    most = LEFT_OF_BFLOAT16 if np.array_equal(bfloat16(out.astype(np.float32)), out) else LEFT
    reason = ""
    if left > most:
        reason = (f"no scale above 0 explains the outputs: {scale:.4g} is best and leaves "
                  f"{left:.2g} of their length over")
    elif around <= most:
        reason = ("the outputs do not tell the scale: half of it or twice it leaves "
                  f"{around:.2g} of their length over, too; record some whose weights are neither "
                  "alike nor 0 and 1")
    return {"scale": math.nan if reason else scale, "mask": mask, "left": left,
            "overflows": overflows, "reason": reason}


def _fitted(x: Array, v: Array, out: Array) -> tuple[float, float, float]:
    """The scale that leaves least of the outputs over, and how much of their length it leaves.

    And the less that half of it, or twice it, leaves.
    """
    size = float(np.linalg.norm(out)) or 1.0

    def left(log_scale: float) -> float:
        return float(np.linalg.norm(softmax(math.exp(log_scale) * x) @ v - out)) / size

    grid = np.log(SPREADS / (np.std(x[np.isfinite(x)]) or 1.0))
    best = int(np.argmin([left(point) for point in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    fit = minimize_scalar(left, bounds=ends, method="bounded", options={"xatol": 1e-12})
    around = min(left(fit.x + step) for step in (-math.log(2), math.log(2)))
    return math.exp(fit.x), float(fit.fun), around


def read_outputs(paths: Sequence[str], names: Sequence[str] | None, mask: str | None
                 ) -> tuple[Any, Any, Any] | None:
    """Values, outputs and mask from the archive of q and k, or from .npy files; None without them.

    ``names`` are those in the archive, or the files; v and out of an archive need no naming. A mask
    that is no name of one is such a name, too.
    """
    archive = len(paths) == 1 and str(paths[0]).endswith(".npz")
    if names is None:
        if not archive or not Path(paths[0]).exists():
            return None
        with np.load(paths[0], allow_pickle=False) as file:
            if not {"v", "out"} <= set(file.files):
                return None
        names = ("v", "out")
    of_mask = [] if mask is None or mask in MASKS else [mask]
    arrays = [*names, *of_mask]
    v, out, own = read_arrays(list(paths), arrays) if archive else read_arrays(arrays)
    return v, out, own if of_mask else mask


def text(frame: pd.DataFrame) -> str:
    """The fit of each head in a line."""
    return "\n".join(f"scale of the outputs, head {row.head}: "
                     f"{'' if row.reason else f'{row.scale:.6g}, '}{_note(row)}"
                     for row in frame.itertuples())


def as_quantities(frame: pd.DataFrame, d_k: int) -> pd.DataFrame:
    """The fit of each head as a row of what ``diagnose`` returns."""
    return pd.DataFrame([
        {"head": row.head, "quantity": "scale of the outputs", "formula": "softmax(s·q·k)·v",
         "value": row.scale, "textbook": d_k**-0.5,
         "note": _note(row)} for row in frame.itertuples()])


def _note(row: Any) -> str:
    overflow = f"; {row.overflows} products overflow float16" if row.overflows else ""
    return (row.reason or f"mask {row.mask}, leaves {row.left:.1g} of their length over") + overflow
