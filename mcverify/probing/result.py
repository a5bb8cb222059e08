"""What a probed attention does, as a value that prints as a report."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcverify.arrays import Array, Ints


@dataclass(frozen=True, eq=False)
class Probe:
    """What an attention function makes of q·k; ``str(probe)`` is the report.

    Attributes
    ----------
    scale, low, high : what q·k is multiplied by, and the interval that rounding leaves it: numbers,
        or arrays, (heads,) where heads differ, (heads, tokens) where queries do; nan where `reason`
        says why there is none. Of normalised queries or keys, what the product of vectors of
        length 1 is multiplied by.
    formula : the name of the scale where just one fits, else "".
    formulas : all formulas whose value is in the interval, for every head.
    causal : whether no query gives weight to a key after it. This and all below it is None where
        `reason` says that nothing could be read off the outputs.
    bias_scale : what the additive bias is multiplied by; None without one, or where what was meant
        is not known: it is known of ALiBi, and of what is passed as ``bias``.
    cap : c where logits are c·tanh(s/c), else None; cap_low, cap_high : what rounding leaves it, as
        of the scale. Without a cap, cap_low is the least that would go unnoticed, cap_high inf.
    slopes : (heads,) of ALiBi: how much a logit falls with each token of distance; else None.
    key_head : (heads,) the head of keys that each head of queries reads; −1 where it is no one.
    agrees : whether the declared scale is in the interval; None if none was declared, or measured.
    reason : why there is no number, "" where there is one.
    normalised : "", "q", "k" or "q and k".
    position : what the scale is multiplied by at the nth query, such as "log(n)"; "" for nothing.
    mask : "none", "causal", "sliding window" or "other"; window : keys that a query sees, or None.
    precision : the type that weights are rounded to, whatever type they are returned in.
    findings : what else was found, a sentence each.
    declared : the declared scale as it was passed, and its number.
    """

    scale: float | Array = math.nan
    low: float | Array = math.nan
    high: float | Array = math.nan
    formula: str = ""
    formulas: tuple[str, ...] = ()
    causal: bool | None = None
    bias_scale: float | None = None
    cap: float | Array | None = None
    slopes: Array | None = None
    key_head: Ints | None = None
    agrees: bool | None = None
    reason: str = ""
    cap_low: float | Array = math.nan
    cap_high: float | Array = math.nan
    normalised: str = ""
    position: str = ""
    mask: str = "none"
    window: int | None = None
    precision: str = ""
    findings: tuple[str, ...] = ()
    declared: tuple[str, float] | None = None

    def __str__(self) -> str:
        return "\n".join(f"{name:<10}{text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>"
                       for name, text in self._lines())
        return f"<table>{rows}</table>"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("scale", self.scale_text)]
        if self.declared:
            what = {True: "agrees", False: "does NOT agree", None: "not compared"}[self.agrees]
            lines.append(("declared", f"{self.declared_text}: {what}"))
        if self.precision:
            window = f" of {self.window}" if self.window else ""
            lines += [("mask", f"{'causal ' if self.causal and window else ''}{self.mask}{window}"),
                      ("cap", self._cap()),
                      ("weights", f"in {self.precision}")]
        if self.slopes is not None:
            lines.append(("slopes", listed(self.slopes)))
        if self.bias_scale is not None:
            lines.append(("bias", f"times {self.bias_scale:.6g}"))
        return lines + [("found", finding) for finding in self.findings]

    def _cap(self) -> str:
        if self.cap is None:
            least = np.max(self.cap_low)
            return "not looked for" if np.isnan(least) else f"none below {least:.3g}"
        return with_error(self.cap, self.cap_low, self.cap_high)

    @property
    def declared_text(self) -> str:
        """The declared formula with its number; "" where none was declared."""
        said, value = self.declared or ("", math.nan)
        return said if not said or re.fullmatch(r"[-+.e\d]+", said) else f"{said} = {value:.6g}"

    @property
    def scale_text(self) -> str:
        """The scale with its error and formulas, or why there is none."""
        if self.reason:
            return f"none: {self.reason}"
        times = f" times {self.position}" if self.position else ""
        return (f"{with_error(self.scale, self.low, self.high)}{times}, "
                f"{some(self.formulas, ' or ') or 'no formula known'}")


def with_error(value: float | Array, low: float | Array, high: float | Array) -> str:
    """A number with what its interval leaves open, or that of each head.

    >>> with_error(0.12504, 0.1250, 0.1251), with_error(0.125, 0.125, 0.125)
    ('0.12504 ± 5e-05', '0.125 ± 0')
    """
    if np.ndim(value) > 1:
        return f"{np.nanmin(value):.6g} to {np.nanmax(value):.6g} (queries differ)"
    if np.ndim(value) > 0:
        return f"{listed(value)} (heads differ)"
    half = float(high - low) / 2
    number = float(value)
    digits = int(np.clip(np.log10(abs(number) / half) + 2, 3, 15)) if half > 0 else 15
    return f"{number:.{digits}g} ± {half:.2g}"


def some(formulas: Sequence[str], between: str) -> str:
    """Formulas, the first and the last of many.

    >>> some(["1", "1/d_k"], " or "), some([f"1/sqrt({n})" for n in range(3, 9)], " or ")
    ('1 or 1/d_k', '1/sqrt(3) … 1/sqrt(8) (6 formulas)')
    """
    if len(formulas) > 4:
        return f"{formulas[0]} … {formulas[-1]} ({len(formulas)} formulas)"
    return between.join(formulas)


def listed(x: float | Array) -> str:
    """One number, or that of each head.

    >>> listed(np.array([0.5, 0.25])), listed(np.arange(8.0))
    ('0.5 0.25', '0 1 2 … 7 (8 heads)')
    """
    each = [f"{float(value):.6g}" for value in np.atleast_1d(x)]
    if len(each) > 6:
        return f"{' '.join(each[:3])} … {each[-1]} ({len(each)} heads)"
    return " ".join(each)
