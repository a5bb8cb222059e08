"""Imports point down the flow of data, and the two witnesses, theory and draws, never meet."""

import ast
from functools import cache
from pathlib import Path

import pytest

import mcverify

PACKAGE = Path(mcverify.__file__).parent
# A room may import those before it. Of the side tools only the command line imports others.
FLOW = ["arrays", "attention", "laws", "statistic", "theory", "verdict", "declare", "claims",
        "judge", "results"]
TOOLS = ["diagnose", "check_claim", "plan", "selfcheck", "strategies", "plot", "probing",
         "pytest_plugin", "report"]
LAST = ["cli"]
ROOMS = [*FLOW, *TOOLS, *LAST]


def files_of(room):
    single = PACKAGE / f"{room}.py"
    return [single] if single.exists() else sorted((PACKAGE / room).rglob("*.py"))


@cache
def imported(file):
    """The rooms of mcverify that a file imports, for type checks as well."""
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mcverify":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names
                      if alias.name.startswith("mcverify.")}
    return rooms & set(ROOMS)


def test_every_room_has_its_place_in_the_flow():
    rooms = {path.stem for path in PACKAGE.iterdir()
             if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__", "__main__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_down_the_flow(room):
    allowed = {room, *(ROOMS if room in LAST else FLOW if room in TOOLS else
                       FLOW[:FLOW.index(room)])}
    for file in files_of(room):
        assert imported(file) <= allowed, f"{room}/{file.name} imports upwards"


@pytest.mark.parametrize("room", [room for room in FLOW if room not in ("theory", "claims")])
def test_only_claims_know_theory(room):
    for file in files_of(room):
        if file.name != "atlas.py":  # which sets drawn values beside exact ones
            assert "theory" not in imported(file)


def test_theory_imports_nothing_that_draws_and_no_random_numbers():
    for file in files_of("theory"):
        assert imported(file) <= {"arrays", "theory", "laws"}  # of a law its declared moments
        assert not {"random", "draw", "sample"} & {
            node.attr for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Attribute)}
