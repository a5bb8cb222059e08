"""What tests share: how Hypothesis draws, the findings of the selected cases."""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import settings

from mcverify.results.journal import Journal
from mcverify.verdict import Terms, check_budget

JUDGED_IN = "MCVERIFY_JUDGED_IN"  # a folder, for this session and the processes that it starts
JUDGE = Path(__file__).parent / "living_proof" / "judge.py"

# A job that a shell has in its background ignores Ctrl-C, and so would what the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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


def pytest_configure(config):
    """Name a folder that the processes of xdist share, so that claims are judged once for all."""
    gc.disable()  # nothing that is collected, or imported for it, becomes garbage before the tests
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="mcverify-judged-")
        os.environ[JUDGED_IN] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_finish(session):
    """Begin to judge the selected cases, all together as `mcverify run` does; in one process of
    xdist's, since each has collected them all."""
    gc.freeze()
    gc.enable()
    cases = _cases(session)
    worker = getattr(session.config, "workerinput", {"workerid": "gw0"})["workerid"]
    if not cases or session.config.option.collectonly or worker != "gw0":
        return
    check_budget(len(cases))
    folder = Path(os.environ[JUDGED_IN])
    with (folder / "told").open("w") as told:
        judging = subprocess.Popen([sys.executable, str(JUDGE), str(folder)], text=True,
                                   stdin=subprocess.PIPE, stdout=told, stderr=told)
    session.config.add_cleanup(judging.kill)
    judging.stdin.write("\n".join(map(str, cases)))
    judging.stdin.close()
    threading.Thread(target=_tell_the_end, args=(judging, folder / "status"), daemon=True).start()


def _tell_the_end(process, file):
    status = process.wait()
    with contextlib.suppress(FileNotFoundError):  # of a session that did not wait for it
        file.with_name("ended").write_text(str(status))
        file.with_name("ended").replace(file)


@pytest.fixture(scope="session")
def findings(request):
    """By the case's name, the findings of all cases whose tests were selected."""
    folder = Path(os.environ[JUDGED_IN])
    while not (folder / "status").exists():
        time.sleep(0.1)
    assert (folder / "status").read_text() == "0", (folder / "told").read_text()
    found = Journal(folder).finished(_cases(request.session), Terms())
    return {str(finding.case): finding for finding in found}
