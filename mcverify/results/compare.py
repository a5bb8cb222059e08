"""From two results folders to what differs between them by more than chance."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from mcverify.declare.fault import UsageError
from mcverify.declare.names import COLUMNS
from mcverify.results.folder import Results
from mcverify.results.reader import CASES, check_count, read_rows
from mcverify.results.rows import Row

ROUNDING = 5e-6  # of a number with six significant digits, in proportion
Key = tuple[str, str]  # a claim and a case of it, "" for the claim itself


@dataclass(frozen=True)
class Difference:
    """What is otherwise in the new folder, of a claim or, if it has a name, of a case.

    ``what`` is "verdict", "declared", "estimate", or "there" for what only one folder has.
    """

    claim: str
    case: str
    what: str
    old: str
    new: str


@dataclass
class Comparison:
    """The differences of two folders, and of what they were looked for.

    Attributes
    ----------
    claims, cases : how many both folders have; near misses are among the cases.
    rate : how often at most one of the estimates would be among the differences by chance.
    same_draws : how many cases have one seed in both folders; moved : of those, how many have
        another estimate, standard error or number of blocks, which no chance does.
    terms : what else the folders were judged by, where it differs.
    """

    differences: list[Difference] = field(default_factory=list)
    claims: int = 0
    cases: int = 0
    rate: float = 0.0
    same_draws: int = 0
    moved: int = 0
    terms: list[str] = field(default_factory=list)


def compare(old: Results, new: Results) -> Comparison:
    """Verdicts and declarations that differ, and estimates whose measured intervals are disjoint.

    If a case has the same truth in both folders, its intervals are disjoint only if one of them
    misses it, so at most as often as their error rates say together, whether their draws are
    independent, the same, or anything between. Summed over the cases that bounds how often any
    estimate is told by chance, as far as the intervals hold. Raises UsageError for a folder without
    results, DamagedError for a table that is not whole.
    """
    comparison = Comparison(terms=_terms(old, new))
    verdicts = _verdicts(old), _verdicts(new)
    comparison.claims = len(verdicts[0].keys() & verdicts[1].keys())
    _compare_verdicts(comparison, *verdicts)
    cases = _cases(old, verdicts[0]), _cases(new, verdicts[1])
    both = cases[0].keys() & cases[1].keys()
    comparison.cases = len(both)
    whole = {claim for claim, _ in verdicts[0].keys() ^ verdicts[1].keys()}  # told of as a whole
    _compare_verdicts(comparison, *(
        {key: row for key, row in each.items() if key[0] not in whole} for each in cases))
    for key in sorted(both):
        _compare_estimates(comparison, key, cases[0][key], cases[1][key])
    comparison.differences.sort(key=lambda each: (each.claim, each.case))
    return comparison


def _compare_verdicts(
    comparison: Comparison, old: Mapping[Key, Row], new: Mapping[Key, Row]
) -> None:
    """Note what is there in one folder only, and other verdicts and declarations."""
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before is None or after is None:
            verdicts = [row["verdict"] if row else "" for row in (before, after)]
            comparison.differences.append(Difference(*key, "there", *verdicts))
            continue
        for what, column in (("verdict", "verdict"), ("declared", "expected")):
            a, b = before.get(column, ""), after.get(column, "")
            if a != b:
                comparison.differences.append(Difference(*key, what, a, b))


def _compare_estimates(comparison: Comparison, key: Key, old: Row, new: Row) -> None:
    comparison.rate += float(old["error_rate"]) + float(new["error_rate"])
    if old["seed"] == new["seed"]:
        comparison.same_draws += 1
        comparison.moved += any(old[name] != new[name] for name in ("blocks", "estimate", "stderr"))
    if apart(old, new):
        comparison.differences.append(Difference(*key, "estimate", _interval(old), _interval(new)))


def apart(old: Row, new: Row) -> bool:
    """Whether two rows' measured intervals are disjoint, whatever the rounding of their digits.

    >>> a, b = ({"low": low, "high": high} for low, high in (("1", "2"), ("2.00001", "3")))
    >>> apart(a, b), apart(a, b | {"low": "2.0001"}), apart(a, {"low": "nan", "high": "nan"})
    (False, True, False)
    """
    (low, high), (other_low, other_high) = ((float(row["low"]), float(row["high"]))
                                            for row in (old, new))
    return any(math.isfinite(b - a) and b - a > ROUNDING * (abs(a) + abs(b))
               for a, b in ((high, other_low), (other_high, low)))


def _interval(row: Row) -> str:
    return f"{row['estimate']} in [{row['low']}, {row['high']}]"


def _verdicts(results: Results) -> dict[Key, Row]:
    """The rows of claims; UsageError if there are none."""
    rows = results.read("verdicts")
    if not rows:
        raise UsageError(f"{results.folder}: holds no verdicts to compare; name a folder that "
                         "`mcverify run --out` has written")
    return {(row["claim"], ""): row for row in rows}


def _cases(results: Results, verdicts: Mapping[Key, Row]) -> dict[Key, Row]:
    """The rows of the cases of these claims, and of their near misses."""
    of_cases: dict[Key, Row] = {
        (row["claim"], row["case"]): row for row in results.read("controls")}
    for (claim, _), verdict in verdicts.items():
        file = results.file(claim)
        rows = read_rows(file, CASES)
        check_count(file, len(rows), int(verdict["cases"]))
        for row in rows:  # a setting that only other cases have is empty
            settings = [f"{name}:{value}" for name, value in row.items()
                        if name not in COLUMNS and value]
            of_cases[claim, " ".join(settings) or "its only case"] = row
    return of_cases


def _terms(old: Results, new: Results) -> list[str]:
    """On what other terms the folders were judged, as far as they tell."""
    a, b = (asdict(made) if (made := each.terms()) else {} for each in (old, new))
    return [f"{name.replace('_', ' ')} {a[name]} and {b[name]}"
            for name in a if name in b and a[name] != b[name]]
