"""The claims that the words of a command mean."""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from mcverify.cli.options import claim_files
from mcverify.cli.terminal import show
from mcverify.declare.claim import Claim, statement_ids
from mcverify.declare.discover import survey
from mcverify.declare.fault import UsageError
from mcverify.declare.loading import Loaded
from mcverify.declare.origins import packages, themes
from mcverify.results.folder import Results
from mcverify.results.origins import files_of, namesakes
from mcverify.results.reader import departure, outcome_of
from mcverify.results.sources import why_changed


def chosen(
    names: Sequence[str] | None, results: Results, outcome: str | None, failed: bool,
    everywhere: bool = False,
) -> tuple[list[Claim], tuple[str, ...]]:
    """As ``select`` or, where a last outcome is asked for, as ``last_judged``."""
    if outcome or failed:
        return last_judged(names, results, outcome, failed)
    return select(names, everywhere)


def select(
    selection: Sequence[str] | None = None, everywhere: bool = False
) -> tuple[list[Claim], tuple[str, ...]]:
    """The claims that the words name, each once, and the faults of the files among the words.

    A word is a name, a statement's id, a pattern such as ``dot_*`` of either, a package, a theme
    that is a folder of one, a file, or FILE.py::NAME for those of a file. No word means all of
    mcverify's own claims, or with ``everywhere`` those that installed packages offer as well.
    """
    selection, offered = selection or (), {name: str(home) for name, home in themes().items()}
    offered |= {name: str(home) for name, (_, home) in packages().items()}
    one_of = [word for word in selection if ".py::" in word]
    files = [offered.get(word, word) for word in selection
             if word in offered or word.endswith(".py") or (word and Path(word).is_dir())]
    words = [word for word in selection if word not in (*files, *offered, *one_of)]
    mine = _surveyed(files, one_of) if files or one_of else None
    own = (survey(*(_homes(words, offered) if words or everywhere else []))
           if words or not mine else None)
    known = _joined(filter(None, [mine, own]))
    claims = list(dict.fromkeys([
        *(mine.claims if mine else () if words else known.claims),
        *(claim for word in words for claim in _named(word, known.claims))]))
    counts = Counter(claim.name for claim in claims)
    if clashes := sorted(name for name, count in counts.items() if count > 1):
        raise UsageError(f"{', '.join(clashes)}: two of the chosen claims have this name; "
                         "rename one, as results are kept by name")
    return claims, known.faults


def _joined(parts: Iterable[Loaded]) -> Loaded:
    parts = list(parts)
    return Loaded(tuple(dict.fromkeys(claim for each in parts for claim in each.claims)),
                  tuple(fault for each in parts for fault in each.faults))


def _homes(words: Sequence[str], offered: Mapping[str, str]) -> Iterable[str | Path]:
    """Where claims may stand that the words mean: in a few files, if those are of their names."""
    files = claim_files()
    if words and len(packages()) == 1 and files.keys() >= set(words):
        return {files[word] for word in words}
    return [offered[name] for name in packages()]


def behind(
    results: Results, files: Iterable[str] = ()
) -> tuple[list[Claim], tuple[str, ...]]:
    """Of packages all claims, and those of the files that results are from, and of others."""
    homes = [home for _, home in packages().values()]
    known = _joined(map(survey, [*homes, *map(Path, files), *files_of(results)]))
    return list(known.claims), known.faults


def last_judged(
    names: Sequence[str] | None, results: Results, outcome: str | None, failed: bool
) -> tuple[list[Claim], tuple[str, ...]]:
    """As ``select`` those claims whose last outcome, a verdict or ERROR, is this one.

    With ``failed`` those that were not as declared: their verdict is another one, a case was an
    error, or a control was not refuted. No names means all that there are results of. Raises
    UsageError without last results.
    """
    rows = {row["claim"]: row for row in results.read("verdicts")}
    if not rows:
        raise UsageError(f"{results.folder}: holds no verdicts to choose by; make them with "
                         "`mcverify run`, or name their folder with --out")
    claims, faults = select(names) if names else behind(results)
    others = namesakes(results, claims)
    return [claim for claim in claims if (row := rows.get(claim.name)) and claim not in others
            and outcome in (None, outcome_of(row)) and (departure(row) or not failed)], faults


def only_changed(
    claims: Sequence[Claim], results: Results
) -> tuple[list[Claim], list[Claim]]:
    """The claims that are to be judged again, of which is told why, and those that need not be."""
    why = why_changed(claims, results)
    reasons = ", ".join(f"{count} for {reason}" for reason, count in Counter(why.values()).items())
    kept = [claim for claim in claims if claim not in why]
    show(f"changed: {len(why)} of {len(claims)} claims are judged"
         + (f" ({reasons})" if why else "") + f", {len(kept)} are kept", stderr=True)
    return list(why), kept


def _named(word: str, known: Sequence[Claim]) -> list[Claim]:
    """The claims of a name, a statement or a pattern."""
    named = [claim for claim in known if any(
        fnmatchcase(name, word) for name in (claim.name, *statement_ids(claim.decides)))]
    if not named:
        names = {name.lower(): name for claim in known
                 for name in (*statement_ids(claim.decides), claim.name)}
        near = [names[word.lower()]] if word.lower() in names else [
            names[name] for name in difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.6)]
        raise UsageError(f"{word or repr(word)}: no claim or statement has this name; " + (
            f"did you mean {' or '.join(near)}?" if near else "see `mcverify list`.")
            + " A claim of your own goes by its file: FILE.py or FILE.py::NAME")
    return named


def _surveyed(files: Sequence[str], one_of: Sequence[str]) -> Loaded:
    """Of files their claims, and of FILE.py::NAME those of that name or pattern."""
    parts = [survey(*files)] if files else []
    for word in one_of:
        file, _, name = word.partition("::")
        whole = survey(file)
        claims = tuple(claim for claim in whole.claims if fnmatchcase(claim.name, name))
        if not claims:
            names = ", ".join(claim.name for claim in whole.claims) or "none"
            raise UsageError(f"{word}: {file} has no claim of this name; it has {names}")
        parts.append(Loaded(claims, ()))
    return _joined(parts)
