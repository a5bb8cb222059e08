"""From what an attention should do to an AssertionError where it does something else."""

from typing import Any

import numpy as np

from mcverify.probing.calls import Attend
from mcverify.probing.probe import probe
from mcverify.probing.result import Probe, listed

CLOSE = 0.01  # relative error of caps, slopes and factors of a bias, which have no stated interval


def assert_attention(attend: Attend, *, scale: str | float | None = None, **expected: Any) -> Probe:
    """Raise AssertionError, with a four-line report, unless attend does what is expected.

    ``scale`` is a number or a formula. Other expectations are attributes of the Probe: causal,
    mask, window, cap, slopes, bias_scale, key_head, normalised, position, formula, findings. Only
    those named are looked at; ``cap=None`` says that there is none. All else goes to ``probe``:
    d_k, heads, dtype and so on. Caps, slopes and factors may be off by 1 %. Returns the Probe.

    Raises ValueError where probe does, and where nothing is expected.

    >>> from mcverify.attention import scores, softmax
    >>> def attend(q, k, v): return softmax(scores(q, k, 0.125)) @ v
    >>> assert_attention(attend, scale="1/sqrt(d_k)", causal=False, d_k=64).formula
    '1/sqrt(d_k)'
    >>> assert_attention(attend, scale="1/sqrt(d_k)", d_k=40)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: attention: attend with d_k=40
    expected:  scale 1/sqrt(d_k) = 0.158114
    measured:  scale 0.125 ± ..., 1/sqrt(64)
    rerun:     mcverify.probe(attend, d_k=40, declared='1/sqrt(d_k)')
    """
    wanted = {name: expected.pop(name) for name in tuple(expected) if name in CHECKED}
    if scale is None and not wanted:
        raise ValueError("assert_attention expects nothing: it must expect something; pass scale= "
                         f"or one of {', '.join(CHECKED)}")
    probed = probe(attend, declared=scale, **expected)
    wrong = [name for name, value in wanted.items() if not _same(getattr(probed, name), value)]
    if wrong or (scale is not None and not probed.agrees):
        if scale is not None:
            expected["declared"] = scale
        raise AssertionError(_report(attend, probed, wanted, wrong, expected))
    return probed


CHECKED = ("causal", "mask", "window", "cap", "slopes", "bias_scale", "key_head", "normalised",
           "position", "formula", "findings")


def _same(probed: Any, wanted: Any) -> bool:
    if probed is None or wanted is None:
        return probed is wanted
    if isinstance(wanted, str | bool | tuple):
        return bool(probed == wanted)
    a, b = np.asarray(probed, dtype=float), np.asarray(wanted, dtype=float)
    return a.ndim >= b.ndim and bool(np.allclose(a, b, rtol=CLOSE, atol=0))


def _report(attend: Attend, probed: Probe, wanted: dict[str, Any], wrong: list[str],
            arguments: dict[str, Any]) -> str:
    name = getattr(attend, "__name__", repr(attend))
    given = {key: "…" if np.ndim(value) else repr(value) for key, value in arguments.items()}
    sizes = ", ".join(f"{key}={value}" for key, value in given.items() if key != "declared")
    call = ", ".join([name, *(f"{key}={value}" for key, value in given.items())])
    said = [f"{key} {_shown(wanted[key])}" for key in wrong]
    measured = [f"{key} {_shown(getattr(probed, key))}" for key in wrong]
    if probed.declared and not probed.agrees:
        said.insert(0, f"scale {probed.declared_text}")
        measured.insert(0, f"scale {probed.scale_text}")
    measured += [f"found: {'; '.join(probed.findings)}"] if probed.findings else []
    return (f"attention: {name}{' with ' if sizes else ''}{sizes}\n"
            f"expected:  {', '.join(said)}\n"
            f"measured:  {', '.join(measured)}\n"
            f"rerun:     mcverify.probe({call})")


def _shown(x: Any) -> str:
    return str(x) if x is None or isinstance(x, str | bool | tuple) else listed(np.asarray(x))
