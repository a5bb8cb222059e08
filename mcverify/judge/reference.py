"""From a case to a reference that any process can resolve, and back."""

from collections.abc import Callable
from pathlib import Path

from mcverify.declare.claim import Case, Claim
from mcverify.declare.loading import load, loaded_from

# How a case reaches a worker: by file, name and place in the grid, since a claim's name hides its
# function from pickle. A claim that no file holds (changed by dataclasses.replace, or typed at a
# prompt) goes by value.
Reference = tuple[Path | Claim, str, int]
locate: Callable[[Path], Path] = Path  # where that file is here; set on other machines


def refer(case: Case) -> Reference:
    """The case in a form that any process can resolve."""
    claim, index = case.claim, case.claim.all_cases().index(case)
    return (loaded_from(claim) or claim, claim.name, index)


def resolve(reference: Reference) -> Case:
    """The case that a reference stands for."""
    held, name, index = reference
    claim = held if isinstance(held, Claim) else next(
        claim for claim in load(locate(held)).claims if claim.name == name)
    return claim.all_cases()[index]
