"""What `mcverify new` writes runs, is free of problems, and is refused where it would do harm."""

import shutil
import subprocess

import pytest

from mcverify import Verdict, discover
from mcverify.check_claim import inspect
from mcverify.cli import new as scaffold
from mcverify.declare.fault import ClaimError
from mcverify.judge.run import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("new")


@pytest.fixture(scope="module")
def files(folder):
    return [scaffold.new("my_claim", folder), scaffold.new("my_law", str(folder), law=True)]


def test_every_case_is_confirmed_and_every_control_refuted(files):
    for file, name in zip(files, ["my_claim", "variance_under_my_law"], strict=True):
        [claim] = discover(file)
        assert claim.name == name
        assert len(claim.controls.points) == 1
        assert {f.verdict for f in run(claim.cases(), jobs=1)} == {Verdict.CONFIRMED}
        controls = claim.control_cases()
        assert len(controls) == 3  # its own, and the value off to both sides
        assert {f.verdict for f in run(controls, jobs=1)} == {Verdict.REFUTED}


@pytest.mark.slow
def test_nothing_is_wrong_with_them(files, folder):
    remarks = inspect(folder)
    assert [remark.place.split(":")[0] for remark in remarks] == ["my_claim.py", "my_law.py"]
    assert {remark.kind for remark in remarks} == {"note"}, remarks


def test_the_law_has_its_name_and_its_parameter(files):
    law = dict(discover(files[1])[0].cases()[-1].settings)["law"]
    assert (type(law).__name__, str(law)) == ("MyLaw", "my_law-0.3")
    assert law.moments(2).cov_q.tolist() == [[1.0, 0.3], [0.3, 1.0]]


@pytest.mark.skipif(shutil.which("ruff") is None, reason="needs ruff")
def test_ruff_finds_nothing(files, folder):
    rules = ["--isolated", "--line-length", "100", "--select", "E,F,I,B,UP,NPY,PT,RUF"]
    found = subprocess.run(["ruff", "check", *rules, folder], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_a_file_that_is_there_is_left_alone(files):
    files[0].write_text(before := files[0].read_text() + "# mine\n")
    with pytest.raises(ClaimError, match=r"my_claim\.py: is there already; choose another name"):
        scaffold.new("my_claim", files[0].parent)
    assert files[0].read_text() == before


@pytest.mark.parametrize(("name", "message"), [
    ("", "must be a Python name"),
    ("2nd", "must be a Python name"),
    ("my claim", "must be a Python name"),
    ("../mine", "must be a Python name"),
    ("class", "must be a Python name"),
    ("__", "must be a Python name"),
    ("ledger", "is the name of a table of results"),
    ("dot_variance", "is a claim of mcverify's own"),
    ("scores", "is a name that the file itself uses"),
    ("moments", "is a name that the file itself uses"),  # as the law's class
    ("json", "is the name of a module"),
    ("numpy", "is the name of a module"),
    ("mcverify", "is the name of a module"),
])
def test_names_that_do_harm_are_refused(tmp_path, name, message):
    for law in (False, True):
        with pytest.raises(ClaimError, match=message):
            scaffold.new(name, tmp_path, law)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ClaimError, match="nowhere: is no folder; make it"):
        scaffold.new("my_claim", tmp_path / "nowhere")


@pytest.mark.parametrize(("name", "kind"), [
    ("x", "X"), ("my_law", "MyLaw"), ("MyLaw", "MyLaw"), ("_heavy_t5", "HeavyT5"),
])
def test_a_law_is_named_in_camel_case(tmp_path, name, kind):
    file = scaffold.new(name, tmp_path, law=True)
    assert f"class {kind}:" in file.read_text()
    assert "the law (its name" in scaffold.advice(file, law=True)
    [claim] = discover(file)
    assert {type(dict(case.settings)["law"]).__name__ for case in claim.cases()} == {kind}
