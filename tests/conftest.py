"""What tests share: how Hypothesis draws, the findings of the selected cases."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from mcverify.results.journal import Journal
from mcverify.verdict import CASE_ERROR_RATE, check_budget

JUDGE = Path(__file__).parent / "living_proof" / "judge.py"

# No deadline: the first call of a function may import scipy. In CI every run tries the same
# examples; at home each run tries new ones.
settings.register_profile("home", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


def _cases(session):
    """The cases, controls included, whose tests were selected."""
    return [item.callspec.params["case"] for item in session.items
            if item.name.startswith(("test_claim[", "test_control["))]


def pytest_collection_modifyitems(items):
    """Claims are judged by other processes from the start, so their tests come last."""
    items.sort(key=lambda item: item.path.name == "test_claims.py")


def pytest_collection_finish(session):
    """Begin to judge the selected cases, all together as `mcverify run` does."""
    cases = _cases(session)
    if not cases or session.config.option.collectonly:
        return
    check_budget(len(cases))
    folder = tempfile.mkdtemp(prefix="mcverify-judged-")
    session.config.add_cleanup(lambda: shutil.rmtree(folder))
    session.judging = subprocess.Popen(
        [sys.executable, str(JUDGE), folder], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    session.config.add_cleanup(session.judging.kill)
    session.judging.stdin.write("\n".join(map(str, cases)))
    session.judging.stdin.close()
    session.judged_in = folder


@pytest.fixture(scope="session")
def findings(request):
    """By the case's name, the findings of all cases whose tests were selected."""
    judging = request.session.judging
    told = judging.stdout.read()
    assert judging.wait() == 0, told
    found = Journal(Path(request.session.judged_in)).finished(
        _cases(request.session), 0, CASE_ERROR_RATE)
    return {str(finding.case): finding for finding in found}
