"""From the prose of the ledger to its numbers, and to the claims and settings that decide them."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from numbers import Real

from mcverify import Verdict
from mcverify.declare.claim import statement_ids
from mcverify.declare.prediction import Printed

# Digits that are part of a name, and years.
NAMES = re.compile(r"\b(?:[ABC]\d+|b?float\d+|L2|ViT-22B|T5|section [\d.]+\b|footnote \d+"
                   r"|et al\. \d{4}|\d×\d)|\"[^\"]*\"")
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
NUMBER = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:e-?\d+)?")
# What an expression is made of; a word, a comma or a sign of equality ends it.
SYMBOL = r"(?:ln|exp|tr|cos|fan_\w+|L_\w+|[b-zB-HJ-Z](?:_\w+)?|[Α-Ωα-ω∂](?:_\w+)?|_\w+)(?!\w)"
EXPRESSION = re.compile(rf"(?:(?<!\w){SYMBOL}|{NUMBER.pattern}|[-+·/^()√‖|±\s])+")


@dataclass(frozen=True)
class Number:
    """A number of the prose: its value, half a unit of its last digit, and whether in percent."""

    text: str
    value: float
    unit: float
    percent: bool

    def rounds(self, value: float) -> bool:
        """Whether it is ``value`` to the digits given; x % is also a ratio of 1 ± x/100."""
        shares = [100 * value, 100 * (value - 1), 100 * (1 - value)] if self.percent else [value]
        return any(abs(share - self.value) <= self.unit + 1e-9 * abs(self.value)
                   for share in (*shares, *(-share for share in shares)))


def numbers(prose: str) -> Iterator[tuple[Number, ...]]:
    """The expressions of numbers alone, each as its value, or else as the numbers it is made of.

    An expression with a symbol in it, as 2(n − 1)e^−Δ, is a formula and holds no number.

    >>> [[number.text for number in found] for found in numbers("1/d_k: 64/512 = .125 for 2 keys")]
    [['64/512', '64', '512'], ['.125'], ['2']]
    """
    prose = NAMES.sub(";", prose).replace("−", "-")
    prose = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda m: "^" + m[0].translate(SUPERSCRIPTS), prose)
    for found in EXPRESSION.finditer(prose):
        text = found[0].strip()
        if re.search(SYMBOL, NUMBER.sub("0", text)) or not NUMBER.search(text):
            continue
        percent = prose[found.end():].startswith("%")
        parts = tuple(_number(part, percent) for part in NUMBER.findall(text))
        whole = _evaluated(text)
        yield parts if len(parts) == 1 and "^" not in text else (
            *([Number(text, whole, 0.0, percent)] if whole is not None else []), *parts)


def _number(text: str, percent: bool) -> Number:
    digits, _, exponent = text.partition("e")
    decimals = len(digits.partition(".")[2])
    return Number(text, float(text), 0.5 * 10.0 ** (int(exponent or 0) - decimals), percent)


def _evaluated(text: str) -> float | None:
    text = re.sub(r"√([\d.]+)", r"sqrt(\1)", text).replace("√", "sqrt")
    try:
        return float(eval(text.replace("^", "**").replace("·", "*"), {"sqrt": math.sqrt}))
    except (SyntaxError, TypeError, NameError):
        return None


def undecided(row, claims) -> list[str]:
    """The numbers of a row's correction that no claim which decides the row has.

    A number is decided by a prediction of a CONFIRMED claim (a value, or the edge of a bound)
    that rounds to it, or is a setting of a claim. An expression may be decided as a whole, or by
    its parts.
    """
    known, left = sources(row, claims), []
    for first, *parts in numbers(row["correction"]):
        if not decided(first, known):
            left += [part.text for part in parts or [first] if not decided(part, known)]
    return left


def decided(number: Number, known: list[tuple[float, bool]]) -> bool:
    """Whether one of the known numbers is, or rounds to, this one."""
    unit = 100 if number.percent else 1
    return any(number.value in (value, unit * value) if setting else number.rounds(value)
               for value, setting in known)


def sources(row, claims) -> list[tuple[float, bool]]:
    """The numbers of the claims that decide a row: (value, whether it is a setting)."""
    return [number for claim in claims if row["id"] in statement_ids(claim.decides)
            for number in of_claim(claim)]


@cache
def of_claim(claim) -> list[tuple[float, bool]]:
    """The numbers of a claim: its settings, and its predictions if it is CONFIRMED."""
    found = [(number, True) for case in claim.cases() for _, value in case.settings
             for number in _settings(value)]
    if claim.expect is Verdict.CONFIRMED:
        found += [(edge, False) for case in claim.cases() for edge in _predicted(case)]
    return found


def _settings(value) -> Iterator[float]:
    if isinstance(value, tuple):
        for part in value:
            yield from _settings(part)
    elif isinstance(value, Real):
        yield float(value)
    elif not isinstance(value, str):  # a law, whose name holds what it is made with
        yield from (float(part) for part in re.findall(r"(?<=-)\d+(?:\.\d+)?", str(value)))


def _predicted(case) -> list[float]:
    predicted = case.predicted
    if isinstance(predicted, Printed):
        return [predicted.value]
    edges = predicted if isinstance(predicted, tuple) else (predicted,)
    return [float(edge) for edge in edges]
