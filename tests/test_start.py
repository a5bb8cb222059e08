"""One interpreter, started afresh: what imports and commands load, and what they leave alone."""

import json
import subprocess
import sys

import pytest
from scipy import stats

import mcverify
from mcverify import laws

CODE = '''
import json, sys, types
loaded = {}
def note(step): loaded[step] = sorted(sys.modules)

import mcverify
note("import mcverify")
from mcverify.cli.main import main
assert main(["--help"]) == 0
note("mcverify --help")
assert main(["run", "hand_slope", "--jobs", "1", "--out", sys.argv[1]]) == 0
note("mcverify run hand_slope")
import mcverify.laws, mcverify.plot, mcverify.report.contents
note("import all but what draws")
read = sys.modules["mcverify.laws.real_tokens"]._minilm.cache_info().currsize

assert set(mcverify.__all__) <= set(dir(mcverify))
from mcverify.declare.grid import Grid
from mcverify import *
assert isinstance(mcverify.grid, types.FunctionType) and grid is mcverify.grid
assert isinstance(mcverify.discover, types.FunctionType)
assert isinstance(grid(d_k=1), Grid)
assert isinstance(mcverify.laws, types.ModuleType) and mcverify.statistic.mean
assert all(getattr(mcverify, name) is globals()[name] for name in mcverify.__all__)

from scipy import stats
name = str(laws.iid(stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))()))
print(json.dumps([loaded, read, name]), file=sys.stderr)
'''


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """What was loaded after each step, how many data were read, the name of a law."""
    ran = subprocess.run([sys.executable, "-c", CODE, tmp_path_factory.mktemp("out")],
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stderr)


@pytest.mark.parametrize(("step", "spared"), [
    ("import mcverify", {"numpy", "scipy", "pandas", "typer"}),
    ("mcverify --help", {"numpy", "scipy", "pandas", "mcverify.plot"}),
    ("mcverify run hand_slope", {"scipy.special", "scipy.optimize", "scipy.stats", "pandas"}),
    ("import all but what draws", {"scipy.stats", "matplotlib", "jinja2"}),
])
def test_what_is_not_needed_is_not_imported(started, step, spared):
    assert "mcverify" in started[0][step]
    assert not spared & set(started[0][step])


def test_data_are_not_read_by_an_import(started):
    assert started[1] == 0


def test_a_name_is_the_same_in_another_process(started):
    assert started[2] == str(laws.iid(stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))()))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'mcverify' has no attribute 'clam'"):
        mcverify.clam  # noqa: B018
