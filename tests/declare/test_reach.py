"""What a definition depends on is what it names, wherever that stands, and nothing else."""

import gc
import os

import pytest

from mcverify.declare.parts import Part, changed, looked_at_once, text_of
from mcverify.declare.reach import reached

FILES = {
    "mine.py": '''
"""The root."""
import helpers
import numpy as np
from inner import passed, twice as double
from helpers import *  # noqa
FIRST, SECOND = 1, 2
COUNT: int = 3

def root(x):
    """A docstring."""
    from late import late
    return helpers.used(x) + late() + Kind().method() + FIRST

class Kind:
    def method(self):
        return double(COUNT)

def other():
    return helpers.unused() + SECOND + passed()

def by_module():
    return helpers

def by_text():
    import importlib
    return importlib.import_module("late")

def by_relative():
    return passed()

@helpers.register
def registered():
    return 4

for _ in ():
    looped = other
''',
    "helpers.py": '''
def used(x):
    return x

def unused():
    return HIDDEN

HIDDEN = 5

def register(function):
    return function
''',
    "late.py": "def late():\n    return 1\n",
    "inner/__init__.py": "from .part import passed, twice\nfrom .part import spare\n",
    "inner/part.py": '''
from . import other

def passed():
    return other.value

def twice(x):
    return 2 * x

def spare():
    return 0
''',
    "inner/other.py": "value = 7\nelse_ = 8\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        # without the star, by which all of a file is reached, unless a test is about it
        place.write_text(text.replace("from helpers import *  # noqa\n", ""))
    return tmp_path


def parts_of(folder, *names, file="mine.py"):
    parts, packages = reached(folder / file, list(names))
    return {f"{part.file.relative_to(folder)}:{part.name}" for part in parts}, packages


@pytest.mark.parametrize(("name", "expected", "not_there"), [
    ("root", {"mine.py:root", "helpers.py:used", "late.py:late", "mine.py:Kind", "mine.py:COUNT",
              "mine.py:FIRST", "inner/part.py:twice"},
     {"helpers.py:unused", "inner/part.py:spare", "inner/part.py:passed"}),
    ("by_module", {"helpers.py:used", "helpers.py:unused", "helpers.py:HIDDEN"}, {"late.py:late"}),
    ("by_text", {"late.py:late"}, {"helpers.py:unused"}),
    ("by_relative", {"inner/part.py:passed", "inner/other.py:value"}, {"inner/other.py:else_"}),
])
def test_a_definition_leads_to_what_it_names(folder, name, expected, not_there):
    (folder / "mine.py").write_text((folder / "mine.py").read_text().partition("for _")[0])
    parts, packages = parts_of(folder, name)
    assert expected <= parts
    assert not not_there & parts
    assert {"mine.py:", "helpers.py:register"} <= parts  # what happens in any case
    assert packages == set()


def test_what_a_file_does_besides_belongs_to_all(folder):
    assert "helpers.py:unused" in parts_of(folder, "by_relative")[0]  # by the loop


def test_a_star_imports_all(folder):
    (folder / "mine.py").write_text("from helpers import *\n\ndef root():\n    return used(1)\n")
    assert {"helpers.py:used", "helpers.py:HIDDEN"} <= parts_of(folder, "root")[0]


def test_installed_packages_are_told(folder):
    (folder / "mine.py").write_text("import math, numpy as np\nfrom scipy.special import ndtri\n"
                                    "def a():\n    return np.ones(3)\n"
                                    "def b():\n    return ndtri(math.pi)\n")
    assert [parts_of(folder, name)[1] for name in "ab"] == [{"numpy"}, {"scipy"}]


def test_mcverify_is_followed_through_its_lazy_names(folder):
    (folder / "mine.py").write_text(
        "import mcverify\nfrom mcverify import attention as a, laws, theory\n"
        "def one():\n    return laws.student_t(3)\n"
        "def two():\n    return a.scores\n"
        "def three():\n    return mcverify.theory.softmax.entropy\n")
    found = [{(part.file.parent.name, part.file.stem)
              for part in reached(folder / "mine.py", [name])[0]}
             for name in ("one", "two", "three")]
    for mine, there in enumerate([("laws", "coordinates_heavy"), ("attention", "products"),
                                  ("theory", "softmax")]):
        assert [there in each for each in found] == [index == mine for index in range(3)]


def test_comments_and_docstrings_do_not_count_and_texts_do(folder):
    def told(text, docstrings=False):
        (folder / "mine.py").write_text(text)
        root, = [part for part in reached(folder / "mine.py", ["f"])[0] if part.name == "f"]
        return text_of(root, docstrings)

    plain = told('def f():\n    return """a\n# b\n"""\n')
    assert told('# c\ndef f():\n    """Doc."""\n    # d\n\n    return """a\n# b\n"""\n') == plain
    assert told('def f():\n    return """a\n# c\n"""\n') != plain
    assert "Doc." in told('def f():\n    """Doc."""\n    return 1\n', docstrings=True)
    assert told('@g\ndef f():\n    return 1\n').startswith("@g")


def test_a_file_that_python_cannot_read_has_one_part(folder):
    (folder / "helpers.py").write_text("def (\n")
    assert "helpers.py:" in parts_of(folder, "root")[0]
    assert [text_of(part) for part in reached(folder / "helpers.py", [""])[0]] == ["def ("]


def test_files_are_looked_at_again_but_within_one_question(tmp_path):
    file = tmp_path / "file.py"
    file.write_text("a = 1\n")
    with looked_at_once():
        assert text_of(Part(file, "a")) == "a = 1"
        before = changed(file)
        os.utime(file, ns=(0, before + 10**9))
        assert changed(file) == before
        assert not gc.isenabled()
    assert changed(file) == before + 10**9
    assert gc.isenabled()
