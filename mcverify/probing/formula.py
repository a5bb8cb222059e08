"""From a scale's interval to the formulas it allows, and from a formula to its number."""

import ast
import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from mcverify.arrays import Array, Bools
from mcverify.probing.rounding import HALVES

WIDEST = 2**14  # N of 1/sqrt(N): no vector of queries is wider
LEAST_RATIO = 1.1  # ratio of two scales that every type tells apart

OPERATIONS: dict[type, Callable[..., float]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b, ast.Pow: lambda a, b: a**b, ast.USub: lambda a: -a,
    ast.UAdd: lambda a: a,
}
FUNCTIONS = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}
NAMED = ("1/sqrt(d_k)", "1/d_k", "1", "1/sqrt(d_model)", "1/sqrt(heads)", "1/sqrt(padded)",
         "d_k^(-1/4)", "log(n)/sqrt(d_k)")


def value_of(formula: str, names: dict[str, float]) -> float:
    """The number that a formula says, such as "1/sqrt(d_k)", "d_k^(-1/4)*mscale^2" or "0.125".

    Raises ValueError for a name that is not among those given, and for anything but arithmetic.

    >>> value_of("1/sqrt(d_k)", {"d_k": 64}), value_of("16^(-1/4)", {})
    (0.125, 0.5)
    """
    try:
        value = _value(ast.parse(formula.strip().replace("^", "**"), mode="eval").body, names)
        if math.isfinite(value):
            return value
    except (ValueError, SyntaxError, ArithmeticError, TypeError, RecursionError):
        pass
    raise ValueError(f"scale {formula!r}: must be a number, or a formula of {', '.join(names)} "
                     f"with + - * / ^ and {', '.join(FUNCTIONS)}; d_model=, padded= and mscale= "
                     "give those names their numbers") from None


def _value(node: ast.AST, names: dict[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in names:
            return float(names[name])
        case ast.BinOp(left=a, op=op, right=b) if type(op) in OPERATIONS:
            return float(OPERATIONS[type(op)](_value(a, names), _value(b, names)))
        case ast.UnaryOp(op=op, operand=a) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](_value(a, names))
        case ast.Call(func=ast.Name(id=name), args=[a]) if name in FUNCTIONS:
            return FUNCTIONS[name](_value(a, names))
    raise ValueError


Interval = tuple[float, float]


def named(intervals: list[Interval], names: dict[str, float], precision: str) -> list[str]:
    """The formulas that have a name and a value in one of the intervals.

    A function that works in a half precision may hold its scale in it, so there the value as that
    type holds it counts, too.

    >>> named([(0.1249, 0.1251)], {"d_k": 64, "heads": 8, "d_model": 512}, "float32")
    ['1/sqrt(d_k)']
    """
    return [name + more for more in _extensions(names) for name in NAMED
            if _says_something(name, names)
            and fits(value_of(name + more, names), intervals, precision)]


def whole(interval: Interval, names: dict[str, float], precision: str) -> list[str]:
    """The formulas 1/sqrt(N) that are in an interval, N up to WIDEST.

    >>> whole((0.1581, 0.1582), {"d_k": 192}, "float32")
    ['1/sqrt(40)']
    """
    formulas: list[str] = []
    low, high = interval
    for more in _extensions(names) if 0 < low <= high else ():
        factor = value_of("1" + more, names)
        first, last = 0.98 * (factor / high) ** 2, 1.02 * (factor / low) ** 2  # more than roundings
        if first > WIDEST:
            continue
        numbers = np.arange(max(2, math.ceil(first)), min(last, WIDEST) + 1)
        formulas += [f"1/sqrt({n:.0f}){more}"
                     for n in numbers[fits(factor / np.sqrt(numbers), [interval], precision)]]
    return formulas


def _extensions(names: dict[str, float]) -> tuple[str, ...]:
    return ("", "*mscale", "*mscale^2") if names.get("mscale", 1) != 1 else ("",)


def _says_something(name: str, names: dict[str, float]) -> bool:
    """Whether all that a formula names is known, and one head is not taken for a formula."""
    return name != "1/sqrt(heads)" * (names.get("heads", 1) == 1) and all(
        word in names for word in re.findall(r"d_model|heads|padded|\bn\b", name))


def fits(value: ArrayLike, intervals: list[Interval], precision: str) -> Bools:
    """Whether scales, or what a half precision holds for them, are in one of the intervals."""
    value = np.asarray(value, dtype=np.float64)
    return np.asarray(np.any([(low <= x) & (x <= high) for x in _held(value, precision)
                              for low, high in intervals], axis=0))


def fits_everywhere(formula: str, low: Array, high: Array, names: dict[str, float]) -> bool:
    """Whether a formula of n is between low and high (tokens,) at n = 1, 2, …, where known.

    >>> fits_everywhere("log(n)/8", np.array([0, 0.08, 0.13]), np.array([0, 0.09, 0.14]), {})
    True
    """
    return all(lo <= value_of(formula, names | {"n": n}) <= hi
               for n, lo, hi in zip(range(1, len(low) + 1), low, high, strict=True)
               if not math.isnan(lo))


def _held(value: Array, precision: str) -> Iterator[Array]:
    """Scales as given, and as a half precision may hold them, their inverses or square roots."""
    yield value
    if rounded := HALVES.get(precision):
        with np.errstate(all="ignore"):  # of a scale that is 0, below 0 or too large
            inverse, root = 1 / rounded(1 / value), rounded(np.sqrt(value)) ** 2
            yield from [rounded(value), inverse, rounded(inverse), root, rounded(root)]


def telling_sizes(formulas: list[str], names: dict[str, float]) -> str:
    """Sizes at which these formulas differ, as keywords of probe, or "" if there are none.

    >>> telling_sizes(["1/sqrt(d_k)", "1/sqrt(d_model)"], {"d_k": 64, "heads": 1, "d_model": 64})
    'd_k=64, heads=3, d_model=192'
    """
    d_k = int(names["d_k"])
    for width in (d_k, 48, 80, 40):
        for heads in (int(names["heads"]), 3, 6):
            tried = names | {"d_k": width, "heads": heads, "padded": 4 * width // 3 + 8}
            tried |= {"d_model": heads * width}
            values = sorted(value_of(formula, tried) for formula in formulas)
            if all(b > LEAST_RATIO * a for a, b in pairwise(values)):
                shown = ["d_k", "heads", *(x for x in ("d_model", "padded") if x in names)]
                return ", ".join(f"{name}={tried[name]}" for name in shown)
    return ""
