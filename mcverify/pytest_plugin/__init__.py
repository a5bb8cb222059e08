"""Run the claims in the files that pytest collects: a test a case, an error budget, tables.

pytest imports this module at every start. What needs numpy is imported when a claim is met.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcverify.pytest_plugin.record import TERMS, Record
from mcverify.verdict import CASE_ERROR_RATE, Terms

if TYPE_CHECKING:
    from mcverify.pytest_plugin.items import ClaimTest

CLAIM_FILES = ("claim_*.py", "*_claims.py")  # collected like files of tests, if they name mcverify
HAS_TESTS = re.compile(rb"^(async )?def test|^class Test", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, which mean what they mean for `mcverify run`."""
    group = parser.getgroup("mcverify", "claims, judged by drawing queries and keys")
    group.addoption("--mcverify-seed", type=int, default=0, metavar="N",
                    help="all draws of claims descend from it (default: 0)")
    group.addoption("--mcverify-error-rate", type=float, default=CASE_ERROR_RATE, metavar="R",
                    help="of a case: how often at most its verdict may be false (default: "
                         f"{CASE_ERROR_RATE:g})")
    group.addoption("--mcverify-jobs", type=int, metavar="N",
                    help="processes that draw (default: one a core; xdist's workers draw "
                         "themselves); results do not depend on it")
    group.addoption("--mcverify-out", metavar="DIR",
                    help="write the claims' tables there, as `mcverify run --out DIR` does")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options; the process that hears of every test keeps the record."""
    config.addinivalue_line("markers", "slow: takes long or needs more packages; claims that train "
                            "models are judged by `pytest -m slow` alone")
    seed, rate, jobs = (config.getoption(f"mcverify_{name}")
                        for name in ("seed", "error_rate", "jobs"))
    try:
        config.stash[TERMS] = Terms(seed, rate)
    except ValueError as error:
        raise pytest.UsageError(f"mcverify: {error}") from None
    if jobs is not None and jobs < 1:
        raise pytest.UsageError(f"--mcverify-jobs {jobs}: must be a whole number of at least 1")
    if not hasattr(config, "workerinput"):  # which xdist's workers have
        config.pluginmanager.register(Record(config), "mcverify-record")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist whether it gets the tests of a file all together."""
    by_file = node.config.getoption("dist") in ("loadfile", "loadscope")
    node.workerinput["mcverify_by_file"] = by_file


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A claim file in a collected folder; one that is named itself comes by the next hook."""
    return None if parent.session.isinitpath(file_path) else _claim_file(file_path, parent)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """A claim file that is named itself; one that holds tests as well is pytest's."""
    return (None if HAS_TESTS.search(module_path.read_bytes()) else
            _claim_file(module_path, parent))


def _claim_file(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if (not any(path.match(name) for name in CLAIM_FILES)
            or any(path.match(name) for name in parent.config.getini("python_files"))
            or b"mcverify" not in path.read_bytes()):
        return None
    from mcverify.pytest_plugin.items import ClaimFile

    return ClaimFile.from_parent(parent, path=path)


def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> list["ClaimTest"] | None:
    """At the first of the claims that a module of pytest's defines: the tests of them all."""
    declare = sys.modules.get("mcverify.declare.claim")
    if declare is None or not isinstance(obj, declare.Claim):
        return None
    from mcverify.pytest_plugin.items import own_claims, tests_of_module

    own = own_claims(collector) if isinstance(collector, pytest.Module) else {}
    return tests_of_module(collector, own) if name == next(iter(own), None) else []


def pytest_exception_interact(node: object, call: pytest.CallInfo[Any], report: Any) -> None:
    """Broken claims in a module of pytest's are told by a line each, not by a traceback."""
    fault = sys.modules.get("mcverify.declare.fault")
    if (fault and isinstance(node, pytest.Module) and call.excinfo
            and isinstance(call.excinfo.value, fault.ClaimError)):
        from mcverify.declare.loading import load

        report.longrepr = "\n".join(load(node.path.resolve()).faults)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse, before anything is drawn, what may not be judged together."""
    items = sys.modules.get("mcverify.pytest_plugin.items")
    refusal = items.refusal(session) if items else ""
    if refusal and not hasattr(session.config, "workerinput"):
        raise pytest.UsageError(refusal)  # a worker of xdist fails test by test: it must not break
