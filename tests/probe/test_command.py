"""`mcverify probe` as a user meets it: the report, and exit statuses 0, 1 and 2."""

import pytest

from mcverify.cli.main import main

SOURCE = '''
import numpy as np
from mcverify.attention import scores, softmax

def attend(q, k, v):
    return softmax(scores(q, k, 40 ** -0.5)) @ v

def noisy(q, k, v):
    return attend(q, k + np.random.default_rng().normal(size=k.shape), v)

def wrong(q, k, v):
    return attend(q, k, v)[0]

def broken(q, k, v):
    return q.nothing

def single(q, k, v):
    return softmax(q @ k.T / 8) @ v

NUMBER = 3
'''


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "own_attention.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return "own_attention.py"


@pytest.mark.parametrize("place", ["own_attention", "own_attention.py"])
def test_the_report_and_the_status(file, capsys, place):
    assert main(["probe", f"{place}:attend", "--d-k", "192", "--declared", "1/sqrt(d_k)"]) == 1
    printed = capsys.readouterr().out
    assert "1/sqrt(40)" in printed
    assert "declared  1/sqrt(d_k) = 0.0721688: does NOT agree" in printed
    assert main(["probe", f"{place}:attend", "--d-k", "40", "--declared", "1/sqrt(d_k)"]) == 0
    assert "agrees" in capsys.readouterr().out


def test_without_a_declared_scale_a_number_is_enough(file, capsys):
    assert main(["probe", f"{file}:attend", "--heads", "2", "--dtype", "float32"]) == 0
    assert "weights   in float32" in capsys.readouterr().out
    assert main(["probe", f"{file}:noisy"]) == 1
    assert "none: two calls on the same arrays differ" in capsys.readouterr().out


def test_one_head_of_tokens_and_width_and_more_keys_than_queries(file, capsys):
    assert main(["probe", f"{file}:single", "--axes", "2", "--tokens", "3", "--keys", "9"]) == 0
    assert "1/sqrt(d_k)" in capsys.readouterr().out
    assert main(["probe", f"{file}:single", "--axes", "3"]) == 2
    assert "axes=4, or (tokens, width), axes=2" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "told"), [
    (["own_attention.py:nothing"], "own_attention.py has no nothing; name a function"),
    (["own_attention.py:NUMBER"], "has, but not as a function, NUMBER"),
    (["nowhere.py:attend"], "nowhere.py cannot be imported: FileNotFoundError"),
    (["nowhere:attend"], "nowhere cannot be imported: ModuleNotFoundError"),
    (["own_attention"], "must name a function as module:function or file.py:function"),
    (["own_attention:wrong"], "must return an array"),
    (["own_attention:broken"], "AttributeError: 'numpy.ndarray' object has no attribute 'nothing'; "
                               "probe called attend with q (1, 1, 16, 64)"),
    (["own_attention:attend", "--tokens", "1"], "pass tokens=2 or more"),
    (["own_attention:attend", "--declared", "1/sqrt(x)"], "must be a number, or a formula"),
    (["own_attention:attend", "--dtype", "float99"], "--dtype float99: must be a type of NumPy"),
    (["own_attention:attend", "--dtype", "math.pi9"], "--dtype math.pi9: must be a type of NumPy"),
    (["own_attention:attend", "--heads", "0"], "must be a whole number of at least 1"),
])
def test_bad_usage_is_told_in_a_line(file, capsys, arguments, told):
    assert main(["probe", *arguments]) == 2
    printed = capsys.readouterr().err
    assert told in printed
    assert printed.startswith("mcverify: ")
    assert printed.count("\n") == 1
