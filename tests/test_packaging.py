"""What is installed: data, types, entry points, and just the dependencies that are used."""

import ast
import re
import sys
from importlib.metadata import entry_points, requires
from importlib.resources import files
from pathlib import Path

import pytest

import mcverify

PACKAGE = Path(mcverify.__file__).parent
EXTRAS = {"matplotlib": "plot", "jinja2": "report", "pytest": "test", "hypothesis": "test",
          "torch": "torch", "distributed": "dask"}


def imported():
    """The top-level names of all modules that the package imports."""
    names = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add((node.module or "").partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"mcverify"}


def declared(extra=None):
    marker = re.compile(r'extra == "(\w+)"')
    return {re.split(r"[\s<>=!~;\[(]", line)[0].lower() for line in requires("mcverify")
            if ((found := marker.search(line)) is None and extra is None)
            or (found is not None and found[1] == extra)}


def test_what_is_imported_is_declared_and_what_is_declared_is_used():
    assert imported() - set(EXTRAS) == declared()
    for name, extra in EXTRAS.items():
        assert name in declared(extra)


@pytest.mark.parametrize("name", ["py.typed", "claims/statements.csv", "data/minilm_qk.npz",
                                  "data/README.md", "report/page.html"])
def test_data_are_installed(name):
    assert (files("mcverify") / name).is_file()


def test_the_command_and_the_plugin_are_registered():
    plugins = {point.name: point.value for point in entry_points(group="pytest11")}
    assert plugins["mcverify"] == "mcverify.pytest_plugin"
    commands = {point.name: point.value for point in entry_points(group="console_scripts")}
    assert commands["mcverify"] == "mcverify.cli.main:main"
