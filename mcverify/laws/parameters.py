"""Say, in the annotations of a law's arguments or fields, what it may be made of.

By that a law refuses all else, and ``mcverify.strategies`` draws laws.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from mcverify.laws.law import Law

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Finite numbers from ``low`` to ``high``, or above ``low``; ``rule`` says so in words.

    ``whole`` numbers are ints. Of an ``order`` absolute moments exist below that number alone.

    >>> 2.5 in Range(1, 3), 2.5 in Range(1, whole=True), 0.0 in Range(0, above=True)
    (True, False, False)
    """

    low: float = -math.inf
    high: float = math.inf
    rule: str = "finite"
    above: bool = False
    whole: bool = False
    order: bool = False

    def __contains__(self, x: Any) -> bool:
        if (self.whole and type(x) is not int) or not math.isfinite(x):
            return False
        return self.low <= x <= self.high and not (self.above and x == self.low)


@dataclass(frozen=True)
class Base:
    """What a base law must have: mean 0 and moments up to this order, or independent q and k."""

    moments: int = 0
    coupled: bool | None = None


Real = Annotated[float, Range()]
Positive = Annotated[float, Range(0, rule="positive and finite", above=True)]
NotNegative = Annotated[float, Range(0, rule="at least 0 and finite")]
Share = Annotated[float, Range(0, 1, "between 0 and 1")]
Correlation = Annotated[float, Range(-1, 1, "between -1 and 1")]


def parts(hint: Any) -> tuple[Any, Any]:
    """The type of an annotation, and the range or base that stands beside it, or None.

    >>> parts(Share)[0], parts(Share)[1].high, parts(int)
    (<class 'float'>, 1, (<class 'int'>, None))
    """
    return get_args(hint)[:2] if hasattr(hint, "__metadata__") else (hint, None)


def of_laws(kind: Any) -> bool:
    """Whether a type is one of laws."""
    return isinstance(kind, type) and hasattr(kind, "draw") and hasattr(kind, "moments")


def check(kind: str, hints: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first value that a law of this kind cannot be made of."""
    for name, hint in hints.items():
        (of, rule), value = parts(hint), values[name]
        if of_laws(of):
            _check_law(kind, of, rule or Base(), value)
        elif get_origin(of) is Literal and value not in get_args(of):
            raise ValueError(f"{kind}({name}={value!r}): {name} must be one of "
                             f"{', '.join(map(repr, get_args(of)))}")
        elif rule is not None and value is not None and value not in rule:
            raise ValueError(f"{kind}({name}={value!r}): {name} must be {rule.rule}")


def check_fields(kind: str, made: Any) -> None:
    """The same of a dataclass, by the annotations of its fields."""
    given = [field for field in fields(made) if field.init]
    check(kind, {field.name: field.type for field in given}, vars(made))


def _check_law(kind: str, of: Any, rule: Base, law: Any) -> None:
    if not isinstance(law, of):
        if not isinstance(law, Law):
            raise ValueError(f"{kind}: the base {law!r} is not a law; use laws.normal, or another "
                             "value of mcverify.laws")
        field = getattr(type(law), "__dataclass_fields__", {}).get("base")
        word = str(law).partition("[")[0]
        takes_any = field is not None and not issubclass(parts(field.type)[0], of)
        around = f", and put {word} around {kind}, not inside" if takes_any else ""
        raise ValueError(f"{kind}: the base law {law} must have independent coordinates; use "
                         f"laws.normal, or another law of one coordinate{around}")
    if rule.moments and not (law.mean == 0 and (
            rule.moments < 2 or math.isfinite(law.variance))):
        raise ValueError(f"{kind}: the base law {law} must have mean 0"
                         f"{' and a variance' if rule.moments > 1 else ''}; shift afterwards: "
                         f"shifted({kind}(…), mean)")
    if rule.coupled is not None and law.coupled != rule.coupled:
        raise ValueError(f"{kind}: under the base law {law} a query belongs to one key; use a law "
                         "with independent q and k")


def checked(make: Callable[P, T]) -> Callable[P, T]:
    """A function that makes laws, and refuses what its annotations exclude."""
    signature = inspect.signature(make)
    hints = {name: each.annotation for name, each in signature.parameters.items()}

    @wraps(make)
    def refusing(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        check(make.__name__, hints, given.arguments)
        return make(*args, **kwargs)

    return refusing
