"""Claims of installed packages: listed with their origin, selected by it, judged in any process."""

import sys

import pytest

from mcverify import discover
from mcverify.cli.main import main
from mcverify.declare.origins import origin, packages

SHARED = "LIMIT = 0.5\n"
CLAIMS = '''
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

from offered.shared import LIMIT

@claim(mean, equals=0, within=absolute(LIMIT), over=grid(law=laws.normal, d_k=[2, 3]))
def offered_claim(q):
    """Coordinates have mean 0."""
    return q
'''
POINTS = '[mcverify.claims]\noffered = offered.claims\ngone = nowhere.at_all\n'


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package as pip leaves it, with claims in a folder and imports among its own modules."""
    (tmp_path / "offered" / "claims").mkdir(parents=True)
    (tmp_path / "offered" / "__init__.py").write_text("")
    (tmp_path / "offered" / "shared.py").write_text(SHARED)
    (tmp_path / "offered" / "claims" / "__init__.py").write_text("")
    (tmp_path / "offered" / "claims" / "theme.py").write_text(CLAIMS)
    about = tmp_path / "offered-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for other processes
    monkeypatch.chdir(tmp_path)
    packages.cache_clear()
    yield
    packages.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "offered"]:
        del sys.modules[name]


def test_they_are_listed_with_their_origin(installed, capsys):
    assert set(packages()) == {"mcverify", "offered"}
    assert main(["list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    origins = {line[0]: line[1] for line in lines[1:]}
    assert origins["offered_claim"] == "offered"
    assert origins["dot_variance"] == "mcverify"


@pytest.mark.parametrize("word", ["offered", "offered_claim"])
def test_they_are_chosen_by_package_or_name_and_judged_in_other_processes(installed, word, capsys):
    assert main(["run", word, "--jobs", "2"]) == 0
    assert "claims 1, cases 2, not as declared 0" in capsys.readouterr().out


def test_they_are_no_part_of_mcverifys_own(installed):
    assert "offered_claim" not in {claim.name for claim in discover()}
    assert {origin(claim) for claim in discover()} == {"mcverify"}


def test_two_folders_with_modules_of_the_same_name_do_not_disturb_each_other(tmp_path):
    found = []
    for folder, value in (("one", 0.25), ("two", 0.75)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"VALUE = {value}\n")
        (tmp_path / folder / "mine.py").write_text(
            CLAIMS.replace("from offered.shared import LIMIT", "from helper import VALUE as LIMIT"))
        found += discover(tmp_path / folder / "mine.py")
    assert [claim.within.size for claim in found] == [0.25, 0.75]
