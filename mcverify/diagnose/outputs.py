"""From recorded queries, keys, values and outputs to the scale that explains the outputs."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from mcverify.attention import bfloat16, softmax
from mcverify.laws.arrays import as_array, read_arrays
from mcverify.laws.side import Array

LEFT = 1e-3  # of the outputs' length, which may be left unexplained
LEFT_OF_BFLOAT16 = 4e-3  # the same where they hold no more digits than bfloat16, which is 2^-8 off
MASKS = ("none", "causal")
LARGEST = 65504.0  # the largest float16
ROWS, SEQUENCES = 64, 16  # of a head that are fitted: one number needs no more
SPREADS = np.geomspace(1e-3, 1e3, 61)  # of scores, between which a first scale is looked for


def explain_outputs(q: Any, k: Any, v: Any, out: Any, mask: str | None = None) -> pd.DataFrame:
    """The scale and mask that make softmax(scale·q·k)·v of each head the recorded outputs.

    q and out are (tokens, width), (sequences, tokens, width) or (batch, heads, tokens, width); k
    and v too, perhaps with fewer heads, each of which serves as many heads of queries in a row.
    A row a head: ``scale`` is nan, and ``reason`` says why, where the best leaves more than 0.001
    of the outputs' length over (0.004 of bfloat16); ``left`` is what it leaves, ``mask`` the one
    that is told, or else "none" or "causal", whichever explains more, and ``overflows`` how many
    products q·k float16 cannot hold.
    Raises ValueError for shapes that do not fit, and another mask.

    >>> q, k, v = np.random.default_rng(0).standard_normal((3, 20, 8))
    >>> found = explain_outputs(q, k, v, softmax(q @ k.T / 3) @ v).iloc[0]
    >>> round(float(found.scale), 6), found["mask"], int(found.overflows)
    (0.333333, 'none', 0)
    """
    q, k, v, out = (_four(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v"), (out, "out")))
    if mask not in (None, *MASKS):
        raise ValueError(f"mask={mask!r}: must be one of {', '.join(MASKS)}; leave it out to have "
                         "it found")
    heads, keys = q.shape[1], k.shape[1]
    if (heads % keys or q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3]
            or q.shape[3] != k.shape[3] or out.shape != (*q.shape[:3], v.shape[3])):
        raise ValueError(f"q {q.shape}, k {k.shape}, v {v.shape}, out {out.shape}: out must have "
                         "the tokens of q and the width of v, and k those of v; cut them alike")
    shared = heads // keys
    return pd.DataFrame([{"head": h} | _of_head(q[:, h], k[:, h // shared], v[:, h // shared],
                                                out[:, h], mask) for h in range(heads)])


def _four(x: Any, name: str) -> Array:
    x = as_array(x, name)
    if not 2 <= x.ndim <= 4 or x.dtype.kind != "f" or not np.isfinite(x).all():
        raise ValueError(f"{name} is {x.dtype} of shape {x.shape}: must be finite real numbers, "
                         "(tokens, width), with sequences or (batch, heads) before; cast or cut it")
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(x[:, None] if x.ndim == 3 else x.reshape((1,) * (4 - x.ndim) + x.shape))


def _of_head(q: Array, k: Array, v: Array, out: Array, told: str | None) -> dict[str, Any]:
    overflows = sum(int(np.sum(np.abs(a @ b.T) > LARGEST)) for a, b in zip(q, k, strict=True))
    some = np.unique(np.linspace(0, q.shape[1] - 1, ROWS).astype(int))
    x = q[:SEQUENCES, some] @ np.swapaxes(k[:SEQUENCES], -1, -2)
    v, out = v[:SEQUENCES], out[:SEQUENCES, some]
    seen = {"none": np.ones(x.shape[1:], dtype=bool)}
    if q.shape[1] == k.shape[1] or told == "causal":
        seen["causal"] = np.arange(x.shape[2]) <= some[:, None]
    fits = {mask: _fitted(np.where(rows, x, -np.inf), v, out) for mask, rows in seen.items()
            if told in (None, mask)}
    mask = min(fits, key=lambda name: fits[name][1])
    scale, left = fits[mask]
    single = out.astype(np.float32)
    most = LEFT_OF_BFLOAT16 if np.array_equal(bfloat16(single), out) else LEFT
    reason = "" if left <= most else (f"no scale explains the outputs: {scale:.4g} is best and "
                                      f"leaves {left:.2g} of their length over")
    return {"scale": math.nan if reason else scale, "mask": mask, "left": left,
            "overflows": overflows, "reason": reason}


def _fitted(x: Array, v: Array, out: Array) -> tuple[float, float]:
    """The scale that leaves least of the outputs over, and how much of their length it leaves."""
    size = float(np.linalg.norm(out)) or 1.0

    def left(log_scale: float) -> float:
        return float(np.linalg.norm(softmax(math.exp(log_scale) * x) @ v - out)) / size

    grid = np.log(SPREADS / (np.std(x[np.isfinite(x)]) or 1.0))
    best = int(np.argmin([left(point) for point in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(left, bounds=ends, method="bounded", options={"xatol": 1e-12})
    return math.exp(found.x), float(found.fun)


def read_outputs(paths: Sequence[str], names: Sequence[str] | None) -> tuple[Any, Any] | None:
    """Values and outputs from the archive of q and k, or from two .npy files; None without them.

    ``names`` are those in the archive, or the files; v and out of an archive need no naming.
    """
    archive = len(paths) == 1 and str(paths[0]).endswith(".npz")
    if names is None:
        if not archive or not Path(paths[0]).exists():
            return None
        with np.load(paths[0], allow_pickle=False) as found:
            if not {"v", "out"} <= set(found.files):
                return None
        names = ("v", "out")
    v, out, _ = read_arrays(list(paths), list(names)) if archive else read_arrays(list(names))
    return v, out


def text(frame: pd.DataFrame) -> str:
    """The fit of each head in a line."""
    lines = []
    for row in frame.itertuples():
        fitted = str(row.reason) or (f"{row.scale:.6g}, mask {row.mask}, leaves {row.left:.1g} of "
                                     "their length over")
        over = f"; {row.overflows} products overflow float16" if row.overflows else ""
        lines.append(f"scale of the outputs, head {row.head}: {fitted}{over}")
    return "\n".join(lines)
