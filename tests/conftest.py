"""What tests share: how Hypothesis draws, the findings of the selected cases, committed tables."""

import os
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import settings

from mcverify.results import Results
from mcverify.run import run
from mcverify.verdict import check_budget

RESULTS = Path(__file__).parent.parent / "results"

# No deadline: the first call of a function may import scipy. In CI every run tries the same
# examples; at home each run tries new ones.
settings.register_profile("home", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


@pytest.fixture(scope="session")
def findings(request):
    """By the case's name, the findings of all cases whose tests were selected, judged together."""
    cases = [item.callspec.params["case"] for item in request.session.items
             if item.name.startswith(("test_claim[", "test_control["))]
    check_budget(len(cases))
    return {str(finding.case): finding for finding in run(cases)}


@lru_cache(maxsize=512)
def committed_rows(claim):
    """By the case's name, the rows of the claim's committed table."""
    rows = Results(RESULTS).read(claim.name)
    return dict(zip(map(str, claim.cases()), rows, strict=False))
