"""Claims that train models: run where they are named, their rows kept where they are not."""

import importlib.util
import json

import pytest

from mcverify import discover
from mcverify.cli.main import main
from mcverify.cli.selection import select
from mcverify.declare.origins import BUILT_IN
from mcverify.results.folder import Results
from mcverify.verdict import Terms

FILES = {"training/__init__.py": '"""Claims about training."""\n', "training/runs.py": '''
from mcverify import claim, grid
from mcverify.statistic import proportion

@claim(proportion, at_least=0.5, over=grid(rate=1), decides="A1", needs="wave",
       controls=grid(rate=2))
def trains(seeds, rate):
    """It trains."""
    return seeds >= (0 if rate == 1 else 2**60)
''', "quick.py": '''
from mcverify import claim
from mcverify.statistic import exact

@claim(exact, at_least=2, decides="A1", controls=NAMES)
def quick(x=3):
    """Three is at least two."""
    return x
'''.replace("NAMES", "grid(x=1)").replace("import claim", "import claim, grid")}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A package that offers a quick claim and one that trains, which needs the module wave."""
    package = f"offered_{tmp_path.name}"  # for it stays imported
    for name, text in FILES.items():
        file = tmp_path / package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = {"mcverify": (package, tmp_path / package)}
    for module in ("declare.origins", "declare.loading", "declare.discover", "cli.selection",
                   "cli.suite", "results.rows"):
        monkeypatch.setattr(f"mcverify.{module}.packages", lambda: found)
    monkeypatch.setattr("mcverify.declare.discover.BUILT_IN", tmp_path / package)
    monkeypatch.setattr("mcverify.cli.selection.claim_files", dict)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def without_wave(monkeypatch):
    find = importlib.util.find_spec
    return lambda: monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "wave" else find(name))


def chosen(*words):
    return [claim.name for claim in select(words)[0]]


def test_a_theme_that_is_a_folder_is_named_as_it(home):
    assert chosen("training") == chosen("trains") == ["trains"]
    assert chosen("A1") == chosen() == ["quick", "trains"]


def test_a_slow_claim_is_judged_where_it_is_named(home, capsys):
    assert main(["run", "training", "--out", "out", "--jobs", "1"]) == 0
    rows = Results(home / "out").read("trains")
    assert [(row["rate"], row["verdict"], row["blocks"]) for row in rows] == [
        ("1", "CONFIRMED", "128")]


def test_what_was_measured_stays_in_a_run_of_what_has_changed(home, capsys, monkeypatch):
    atlases = []
    monkeypatch.setattr("mcverify.judge.atlas.atlas",
                        lambda *given: (atlases.append(1), _empty(*given))[1])
    assert main(["run", "training", "--out", "out", "--jobs", "1"]) == 0
    assert main(["run", "--out", "out", "--jobs", "1"]) == 0
    before = {file: file.read_bytes() for file in (home / "out").rglob("*.csv")}
    assert main(["run", "--changed", "--out", "out", "--jobs", "1"]) == 0
    assert "changed: 0 of 1 claims are judged, 1 are kept" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in (home / "out").rglob("*.csv")} == before
    assert len(atlases) == 1


@pytest.mark.parametrize("missing", [False, True])
def test_what_was_measured_stays(home, capsys, monkeypatch, without_wave, missing):
    """In a run of all claims, and in one of it by name where its module is missing."""
    assert main(["run", "training", "quick", "--out", "out", "--jobs", "1"]) == 0
    before = {file: file.read_bytes() for file in (home / "out").rglob("*.csv")
              if file.stem != "sources"}  # where a run of all adds that of the atlas
    if missing:
        without_wave()
        assert main(["run", "trains", "--out", "out", "--jobs", "1"]) == 3
        assert "out keeps what was measured of trains" in capsys.readouterr().err
    else:
        monkeypatch.setattr("mcverify.judge.atlas.atlas", _empty)
        assert main(["run", "--out", "out", "--jobs", "1"]) == 0
        assert "left out: 1 claims that take long" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in before} == before


def _empty(seed, jobs):
    import pandas as pd

    return pd.DataFrame({"d_k": [1]})


def test_without_its_module_a_claim_is_left_open_where_nothing_was_measured(
        home, capsys, without_wave):
    without_wave()
    assert main(["run", "trains", "--out", "out", "--jobs", "1"]) == 3
    assert "(needs wave)" in capsys.readouterr().out
    row, = Results(home / "out").read("trains")
    assert (row["verdict"], row["reason"]) == ("INCONCLUSIVE", "needs wave")


def test_run_json_tells_the_version_of_a_needed_package_until_it_is_judged_again(tmp_path):
    results = Results(tmp_path)
    results.write_run(Terms(), 1.0, 1, needs=["rich"])
    told = json.loads((tmp_path / "run.json").read_text())["rich"]
    assert told[0].isdigit()
    results.write_run(Terms(), 1.0, 2)
    about = json.loads((tmp_path / "run.json").read_text())
    assert (about["rich"], about["cases"]) == (told, 2)


def test_claims_in_a_folder_of_mcverify_are_its_own():
    inner = [claim for claim in discover() if claim.body.__module__.count(".") > 2]
    assert all(claim.slow for claim in inner)
    assert {claim.name for claim in discover(BUILT_IN)} >= {claim.name for claim in inner}
