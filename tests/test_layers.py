"""The two witnesses never meet: theory draws nothing, and what draws never knows an answer."""

import ast
from pathlib import Path

import pytest

import mcverify

PACKAGE = Path(mcverify.__file__).parent
ORDER = ["vectors", "laws", "attention", "interval", "statistic", "theory", "verdict", "prediction",
         "diagnose", "grid", "near", "rules", "declare", "discover", "world", "workers", "measure",
         "finding", "run", "quick", "results", "tables", "select", "journal", "replay", "report",
         "ledger", "atlas", "suite", "conformance", "scaffold", "selfcheck", "strategies", "plot",
         "cli", "pytest_plugin"]
SIMULATORS = ["vectors", "laws", "attention", "interval", "statistic", "verdict", "prediction",
              "grid", "near", "rules", "declare", "discover", "world", "workers", "measure",
              "finding", "run", "results"]


def files_of(layer):
    return [PACKAGE / f"{layer}.py"] if (PACKAGE / f"{layer}.py").exists() else sorted(
        (PACKAGE / layer).glob("*.py"))


def imported(file):
    """The layers of mcverify that a file imports, not counting imports for type checks alone."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mcverify":
            parts = node.module.split(".")
            names += [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
    return set(names) & set(ORDER)


def test_every_module_has_its_place_in_the_order():
    modules = {path.stem for path in PACKAGE.iterdir()
               if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert modules - {"__init__", "__main__", "claims"} == set(ORDER)


@pytest.mark.parametrize("layer", ORDER)
def test_imports_point_down_the_data_flow(layer):
    above = set(ORDER[ORDER.index(layer) + 1:])
    for file in files_of(layer):
        assert not imported(file) & above, f"{file.name} imports upwards"


@pytest.mark.parametrize("layer", SIMULATORS)
def test_no_simulator_imports_theory(layer):
    for file in files_of(layer):
        assert "theory" not in imported(file)


def test_theory_imports_nothing_that_draws_and_no_random_numbers():
    for file in files_of("theory"):
        assert imported(file) <= {"theory"}
        assert "np.random" not in file.read_text()


def test_importing_the_package_leaves_scipy_stats_alone():
    import subprocess
    import sys

    code = "import sys, mcverify.cli; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
