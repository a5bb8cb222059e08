"""From words on the command line to the claims that they mean."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from mcverify.declare.claim import Claim, statement_ids
from mcverify.declare.discover import Found, packages, survey
from mcverify.declare.prediction import UsageError


def select(
    selection: Sequence[str], everywhere: bool = False
) -> tuple[list[Claim], tuple[str, ...]]:
    """The claims that the words name, each once, and the faults of the files among the words.

    FILE.py::NAME means one claim of a file. No word means all of mcverify's own claims, or with
    ``everywhere`` those that installed packages offer as well.
    """
    offered = {name: str(home) for name, (_, home) in packages().items()}
    one_of = [word for word in selection if ".py::" in word]
    files = [offered.get(word, word) for word in selection
             if word in offered or word.endswith(".py") or Path(word).is_dir()]
    words = [word for word in selection if word not in (*files, *offered, *one_of)]
    mine = _surveyed(files, one_of) if files or one_of else None
    own = (survey(*(offered.values() if words or everywhere else []))
           if words or not mine else None)
    known = [claim for found in (mine, own) if found for claim in found.claims]
    chosen = [] if words else known
    if words and mine:
        chosen = list(mine.claims)
    for word in words:
        named = [claim for claim in known
                 if word == claim.name or word in statement_ids(claim.decides)]
        if not named:
            names = [claim.name for claim in known]
            near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
            raise UsageError(f"{word}: no claim or statement has this name; " + (
                f"did you mean {' or '.join(near)}?" if near else "see `mcverify list`.")
                + " A claim of your own goes by its file: FILE.py or FILE.py::NAME")
        chosen += named
    clashes = {claim.name for claim in chosen
               if any(claim.name == other.name and claim is not other for other in chosen)}
    if clashes:
        raise UsageError(f"{', '.join(sorted(clashes))}: two of the chosen claims have this name; "
                         "rename one, as results are kept by name")
    faults = tuple(fault for found in (mine, own) if found for fault in found.faults)
    return list(dict.fromkeys(chosen)), faults


def _surveyed(files: Sequence[str], one_of: Sequence[str]) -> Found:
    """Of files their claims, and of FILE.py::NAME the one of that name."""
    found = [survey(*files)] if files else []
    for word in one_of:
        file, _, name = word.partition("::")
        whole = survey(file)
        claims = tuple(claim for claim in whole.claims if claim.name == name)
        if not claims:
            names = ", ".join(claim.name for claim in whole.claims) or "none"
            raise UsageError(f"{word}: {file} has no claim of this name; it has {names}")
        found.append(Found(claims, ()))
    return Found(tuple(dict.fromkeys(claim for each in found for claim in each.claims)),
                 tuple(fault for each in found for fault in each.faults))
