"""The report: what it tells of a folder, that it is one file, and that text stays text."""

import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import quote

import pytest
from committed import ROOT

from mcverify import Verdict, __version__, check, claim, discover, grid, laws, relative
from mcverify.attention import scores
from mcverify.cli.main import main
from mcverify.declare.grid import shown
from mcverify.report import report_on
from mcverify.report.surprises import SURPRISES, surprises
from mcverify.results.folder import Results
from mcverify.statistic import exact, variance
from mcverify.verdict import Terms

pytest.importorskip("jinja2")
HOSTILE = """</script><b title="x">bold</b> & 'quoted' {{ 6 * 7 }} <!-- \x1b"""


@claim(variance, equals=8, within=relative(0.3), over=grid(law=laws.normal, d_k=8), decides="B8")
def whitened(q, k):
    """Var(q·k) is 8."""
    return scores(q, k)


@claim(exact, equals=1, within=relative(0.1), over=grid(word=[HOSTILE, "plain"]))
def mine(word):
    """It is 1."""
    return [1.0]


@claim(exact, equals=lambda size: size, within=relative(0.1), over=grid(size=[1, 2]))
def sized(size):
    """It is the size."""
    return [float(size)]


def contradicted():
    """A claim that is REFUTED for one of its sizes."""
    return replace(sized, name="contradicted", equals=2)


def folder(path, *claims, seed=0):
    """The results of claims."""
    results = Results(path)
    judged = {each: [check(case, seed) for case in (*each.cases(), *each.control_cases())]
              for each in claims}
    with results.held():
        for each, findings in judged.items():
            results.write_claim(each, findings)
        results.write_verdicts(judged)
        results.write_run(Terms(seed), 1.5, 7)
    return results


def undrawn(results):
    """No pictures, which take most of the time."""
    forests = {row["claim"]: [("<svg>drawn</svg>", "<svg>again</svg>")]
               for row in results.read("verdicts")}
    return forests, {"overview": ("<svg/>", ""), "looks": ("<svg/>", "")}, ""


class Tags(HTMLParser):
    """The elements of a page, and its text outside of style and script."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self._code = [], "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._code = tag in ("style", "script")

    def handle_endtag(self, tag):
        self._code = False

    def handle_data(self, data):
        self.text += "" if self._code else data

    def values(self, name):
        return [attrs[name] for _, attrs in self.elements if name in attrs]


def test_a_folder_without_statements_is_told_by_its_claims(tmp_path):
    page = Tags(report_on(folder(tmp_path, mine, contradicted()), undrawn))
    assert {"mine", "contradicted"} <= set(page.values("id"))
    assert page.values("data-kind") == ["CONFIRMED", "REFUTED", "REFUTED", "CONFIRMED"]
    assert "Two short notes" not in page.text
    assert "contradicted is REFUTED, declared CONFIRMED; 2 of 2 near misses" in page.text
    assert re.search(r"mcverify run \S*test_report.py::mine", page.text)
    assert "7 cases in 1.5 s" in page.text
    assert "8 cases at 1e-10 spend 8e-10 of 1e-06" in page.text


def test_an_error_is_told_with_its_whole_reason(tmp_path):
    def breaks(size):
        raise ArithmeticError("a long reason " * 9)

    broken = replace(sized, name="breaks", body=breaks)
    page = Tags(report_on(folder(tmp_path, broken), undrawn))
    assert "breaks is ERROR, declared CONFIRMED" in page.text
    assert "Error: ArithmeticError: " + "a long reason " * 8 in page.text


def test_statements_come_before_claims_that_decide_none(tmp_path):
    page = report_on(folder(tmp_path, whitened, mine, seed=3), undrawn)
    tags = Tags(page)
    assert [tag for tag, attrs in tags.elements if attrs.get("id") in ("B8", "whitened", "mine")
            ] == ["div", "section", "div"]
    assert "One common factor cannot decorrelate" in tags.text
    assert "Claims that decide no statement" in tags.text
    assert re.search(r"mcverify run B8 \S*test_report.py::whitened --seed 3", tags.text)
    assert page.count("<svg>drawn</svg>") == 2


def test_a_claim_that_decides_two_statements_is_drawn_once(tmp_path):
    page = report_on(folder(tmp_path, replace(whitened, decides="B8 B3")), undrawn)
    assert (page.count("<svg>drawn</svg>"), page.count("<svg>again</svg>")) == (1, 1)
    assert Tags(page).values("id").count("whitened") == 1


def test_text_of_a_user_is_never_markup(tmp_path):
    pytest.importorskip("matplotlib")
    from mcverify.plot import inline

    name = """x"><b title='x'>&"""  # as a table may hold it that mcverify has not written
    results = folder(tmp_path, replace(mine, sentence=HOSTILE, name=name))
    page = report_on(results, inline)
    tags = Tags(page)
    told = HOSTILE.replace("\x1b", r"\x1b")  # so that no terminal obeys it
    assert told in tags.text
    assert told in tags.text.split("word ")[1]
    assert name in tags.values("id")
    assert f"#{quote(name)}" in tags.values("href")
    assert Counter(tag for tag, _ in tags.elements)["script"] == 1
    assert "x" not in tags.values("title")
    assert page == report_on(results, inline)  # the same bytes, when it is drawn again


def test_pictures_have_names_of_their_own_and_words_for_who_does_not_see_them(tmp_path):
    pytest.importorskip("matplotlib")
    from mcverify.plot import inline

    both = replace(whitened, decides="B8 B3")
    page = Tags(report_on(folder(tmp_path, both, mine, contradicted()), inline))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in page.values("href") if href.startswith("#")} <= set(ids)
    assert set(page.values("clip-path")) <= {f"url(#{name})" for name in ids}
    pictures = [attrs for tag, attrs in page.elements if tag == "svg"]
    assert len(pictures) == 6
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)
    assert ("Measured against claimed intervals of 2 cases of contradicted: 1 confirmed, 1 refuted."
            in page.values("aria-label"))


def test_headings_leave_no_level_out(tmp_path):
    page = Tags(report_on(folder(tmp_path, whitened, mine), undrawn))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_surprise_needs_its_numbers_and_a_statement_that_stands(tmp_path):
    one_hot, = [each for each in discover() if each.name == "large_inputs_give_one_hot"]
    results = folder(tmp_path, one_hot)
    assert [each.statement for each in surprises(results)] == ["B15", "B27"]  # B15 has no numbers
    told = report_on(results, undrawn).split("What surprises most")[1].split("</section>")[0]
    assert "(1000, 1000) has weights of 0.5, and" in told
    assert "B15" not in told  # of which no claim is in the folder
    contradicted = folder(tmp_path / "other", replace(one_hot, expect=Verdict.CONFIRMED))
    assert "What surprises most" not in report_on(contradicted, undrawn)


def test_every_surprise_names_a_case_that_there_is():
    claims = {each.name: each for each in discover()}
    for surprise, estimates in SURPRISES:
        assert surprise.measured.count("{}") == len(estimates)
        for _, name, settings in estimates:
            cases = [dict(case.settings) for case in claims[name].cases()]
            assert [all(shown(case.get(key)) == shown(value) for key, value in settings.items())
                    for case in cases].count(True) == 1, (name, settings)


@pytest.mark.parametrize(("words", "message"), [
    (["--results", "none"], "none: has no verdicts yet; run `mcverify run` first"),
    (["--out", "none/report.html"], "--out none/report.html: no file can be written there"),
    (["--out", "."], "--out .: no file can be written there"),
    (["--results", "cut"], "verdicts.csv: ends in the middle of a line"),
])
def test_mistakes_are_told_in_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "verdicts.csv").write_text("claim")
    assert main(["report", *words]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(("module", "extra"), [("jinja2", "report"), ("matplotlib", "plot")])
def test_without_an_extra_one_line_says_how_to_get_it(tmp_path, monkeypatch, capsys, module, extra):
    folder(tmp_path, mine)
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["report", "--results", str(tmp_path), "--out", str(tmp_path / "x.html")]) == 2
    out, err = capsys.readouterr()
    assert f"pip install 'mcverify[{extra}]'" in err
    assert (out, err.count("\n")) == ("", 1)


def test_the_citation_is_of_this_package(tmp_path):
    about = dict(re.findall(r'^([a-z-]+): "?([^"\n]+)"?$',
                            (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE))
    assert (about["version"], about["license"]) == (__version__, "MIT")
    page = Tags(report_on(folder(tmp_path, mine), undrawn))
    assert f"{about['title']}. Version {__version__}." in page.text
