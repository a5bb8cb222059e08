"""Finding claims in files: the good ones, and a line for each bad one."""

import os
import sys
import textwrap

import pytest

from mcverify import Verdict, check, discover, relative
from mcverify.declare.discover import files_behind, survey
from mcverify.declare.fault import ClaimError
from mcverify.declare.imports import imported
from mcverify.declare.origins import source

HEAD = """
from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import mean, variance

"""
GOOD = '''
@claim(mean, equals=0, within=absolute(0.5), over=grid(law=laws.normal, d_k=8))
def {name}(q, k):
    """The mean of a coordinate is 0."""
    return q
'''


@pytest.fixture
def write(tmp_path):
    def write(name, *parts):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(HEAD + "".join(textwrap.dedent(part) for part in parts))
        return file
    return write


def test_own_claims_are_found_by_listing_the_folder():
    claims = discover()
    assert len({claim.name for claim in claims}) == len(claims) > 30
    assert {source(claim).parent.name for claim in claims} == {"claims", "training"}


def test_a_claim_that_a_later_one_replaces_is_told(write):
    file = write("mine.py", GOOD.format(name="one"), GOOD.format(name="one"))
    found = survey(file)
    assert [claim.name for claim in found.claims] == ["one"]
    assert found.faults == ("mine.py:7: one: the function of this name in line 13 replaces it; "
                            "rename one",)


@pytest.mark.parametrize(("head", "message"), [
    ("@claim", "bad: @claim stands alone; write @claim(variance, equals=…)"),
    ("@claim(mean, equal=0, within=absolute(1))", "@claim knows no equal; did you mean equals"),
    ("@claim(mean, equals=0, colour=1)", "bad: @claim knows no colour; it takes statistic, equals"),
])
def test_claim_with_the_wrong_words_is_a_fault_beside_the_good_ones(write, head, message):
    body = f'{head}\ndef bad(q):\n    """A sentence."""\n    return q\n'
    found = survey(write("mine.py", GOOD.format(name="good"), body))
    assert [claim.name for claim in found.claims] == ["good"]
    assert len(found.faults) == 1
    assert message in found.faults[0]


def test_a_folder_may_hold_files_without_claims_but_not_only_such(write):
    helper = write("some/helper.py", "X = 1")
    with pytest.raises(ClaimError, match=r"some: holds no claims"):
        discover(helper.parent)
    write("some/mine.py", GOOD.format(name="good"))
    assert [claim.name for claim in discover(helper.parent)] == ["good"]
    with pytest.raises(ClaimError, match=r"helper.py:1: holds no claims"):
        discover(helper)


def test_claims_of_a_file_keep_its_order(write):
    file = write("mine.py", GOOD.format(name="second"), GOOD.format(name="first"))
    assert [claim.name for claim in discover(file)] == ["second", "first"]
    assert [claim.name for claim in discover(file.parent)] == ["second", "first"]


def test_files_of_one_name_and_sibling_imports_live_side_by_side(write):
    one = write("a/mine.py", "from helper import NAME\n", GOOD.format(name="one"))
    (one.parent / "helper.py").write_text("NAME = 'a'\n")
    two = write("b/mine.py", GOOD.format(name="two"))
    assert [claim.name for claim in discover(one, two)] == ["one", "two"]


def test_imported_claims_belong_to_their_own_file_unless_renamed(write):
    file = write("mine.py", """
        import dataclasses
        from mcverify.claims.variance import dot_variance
        strict = dataclasses.replace(dot_variance, name="strict", within=relative(0.01))
    """)
    assert [claim.name for claim in discover(file)] == ["strict"]


def test_a_changed_claim_of_mcverifys_own_belongs_to_the_file_that_changes_it(write):
    file = write("mine.py", """
        import dataclasses
        from mcverify.claims.variance import dot_variance, dot_std
        dot_variance = dataclasses.replace(dot_variance, within=relative(0.01))
    """)
    assert [claim.within for claim in discover(file)] == [relative(0.01)]


def test_a_file_without_claims_says_so(write):
    with pytest.raises(ClaimError, match=r"mine.py:1: holds no claims; decorate a function"):
        discover(write("mine.py", "x = 1\n"))


def test_a_changed_file_is_read_anew(write, monkeypatch):
    """Also within a second, with as many bytes, which Python takes for the same file."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for moment, name in enumerate(("before", "behind", "afterwards")):
        write("names.py", f"NAME = '{name}'\n")
        file = write("mine.py", "import names\n", GOOD.format(name=name),
                     f"{name} = __import__('dataclasses').replace({name}, name=names.NAME)\n")
        for each in (file, file.with_name("names.py")):
            os.utime(each, ns=(10**9 + moment, 10**9 + moment))
        assert discover(file)[0].name == name


def test_a_claim_file_with_dataclasses_and_future_annotations_loads(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from __future__ import annotations\nimport dataclasses\n" + HEAD + '''
@dataclasses.dataclass(frozen=True)
class Doubled:
    """Twice a normal law, written by a user."""
    coupled: bool = False
    finite_moments: float = float("inf")
    def __str__(self): return "doubled"
    def moments(self, d_k): return laws.normal.moments(d_k)
    def draw(self, rng, blocks, tokens, d_k):
        return tuple(2 * x for x in laws.normal.draw(rng, blocks, tokens, d_k))

@claim(variance, equals=lambda d_k: 16 * d_k, within=relative(0.1),
       over=grid(law=Doubled(), d_k=8))
def doubled(q, k):
    """Var(q·k) of doubled coordinates is 16 d_k."""
    return scores(q, k)
''')
    assert check(discover(file)[0].cases()[0]).verdict is Verdict.CONFIRMED


def test_what_is_broken_is_told_with_file_and_line_and_the_rest_is_found(write):
    file = write("mine.py", GOOD.format(name="good"), '''
        @claim(mean, equals=0, over=grid(law=laws.normal))
        def without_margin(q, k):
            """A sentence."""
            return q

        @claim(mean, equals=0, within=absolute(1), over=grid(law=laws.normal, d_k=0))
        def no_width(q, k):
            """A sentence."""
            return q
    ''', GOOD.format(name="also_good"))
    found = survey(file)
    assert [claim.name for claim in found.claims] == ["good", "also_good"]
    assert [fault.split(":")[0] for fault in found.faults] == ["mine.py"] * 2
    assert "without within" in found.faults[0]
    assert "d_k=0" in found.faults[1]
    line = int(found.faults[0].split(":")[1])
    assert "@claim(mean, equals=0, over" in file.read_text().splitlines()[line - 1]
    with pytest.raises(ClaimError, match=r"mine.py:\d+: without_margin"):
        discover(file)


@pytest.mark.parametrize(("text", "message"), [
    ("def broken(:\n", r"mine.py:6: SyntaxError"),
    ("\nx = 1 / 0\n", r"mine.py:7: ZeroDivisionError: division by zero"),
    ("import no_such_module\n", r"mine.py:6: ModuleNotFoundError"),
    ("raise SystemExit(3)\n", r"mine.py:6: SystemExit"),
])
def test_a_broken_file_is_a_line(write, text, message):
    with pytest.raises(ClaimError, match=message):
        discover(write("mine.py", text))


def test_two_claims_of_one_name_are_refused(write):
    one = write("one.py", GOOD.format(name="same"))
    two = write("two.py", GOOD.format(name="same"))
    with pytest.raises(ClaimError, match=r"two claims are named same.*rename one"):
        discover(one, two)


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ClaimError, match="no such Python file or folder"):
        discover(tmp_path / "none.py")


@pytest.mark.parametrize(("statement", "files"), [
    ("from package import part", {"package/__init__.py", "package/part.py"}),
    ("import package.part as other", {"package/__init__.py", "package/part.py"}),
    ("from package.outer import thing", {"package/__init__.py", "package/outer.py",
                                         "package/inner.py", "package/deep/__init__.py"}),
    ("from package.deep import *", {"package/__init__.py", "package/deep/__init__.py"}),
    ("from plain import part", {"plain/part.py"}),
    ("import importlib; part = importlib.import_module('plain.part')", {"plain/part.py"}),
    ("__import__('package.part')", {"package/__init__.py", "package/part.py"}),
    ("import json, numpy.linalg; from scipy import special; from mcverify import laws", set()),
    ("from package import no_such_part", {"package/__init__.py"}),
    ("import nothing_of_this_name", set()),
    ("from ................ import above", set()),
])
def test_every_way_to_import_a_module_is_followed(tmp_path, monkeypatch, statement, files):
    monkeypatch.syspath_prepend(tmp_path / "away")
    for name, text in {"package/__init__": "", "package/part": "", "plain/part": "",
                       "package/outer": "from .inner import thing", "package/deep/__init__": "",
                       "package/inner": "from . import deep\nthing = deep"}.items():
        place = tmp_path / "away" / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for module in [name for name in sys.modules if name.partition(".")[0] in ("package", "plain")]:
        monkeypatch.delitem(sys.modules, module)  # of another test's folder
    file = tmp_path / "mine.py"
    file.write_text(f"def body():\n    {statement.replace('*', 'thing')}\n")
    found = imported(file, 0)
    assert found[0] == file
    assert {place.relative_to(tmp_path / "away").as_posix() for place in found[1:]} == files


def test_what_a_claim_may_depend_on_is_what_its_file_imports_from_anywhere(tmp_path, monkeypatch):
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    for folder in (elsewhere, here):
        folder.mkdir()
    monkeypatch.syspath_prepend(elsewhere)
    (elsewhere / "far_away.py").write_text("import farther_away\n")
    (elsewhere / "farther_away.py").write_text("FACTOR = 1\n")
    (elsewhere / "not_asked.py").write_text("")
    file = here / "mine.py"
    file.write_text("from mcverify import claim, printed\n"
                    "from mcverify.statistic import exact\n\n\n"
                    "@claim(exact, equals=printed('1'))\ndef one():\n    '''One.'''\n"
                    "    import far_away\n    return far_away.farther_away.FACTOR\n")
    names = {place.name for place in files_behind(discover(file)[0])}
    assert {"mine.py", "far_away.py", "farther_away.py"} <= names
    assert "not_asked.py" not in names
    assert not any("numpy" in str(place) for place in files_behind(discover(file)[0]))
