"""The report of the committed results in headless Chromium: size, faults, tools, print."""

import re
import shutil
import subprocess

import pytest
from committed import RESULTS
from report.browser import CHROMIUM, chromium

from mcverify.cli.main import main
from mcverify.results.folder import Results

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")]
VISIBLE = "[...document.querySelectorAll('.ledger > tbody > tr')].filter(x => x.checkVisibility())"
FIRST = "document.querySelector('.ledger > tbody > tr:not([hidden]) .id').textContent"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The report of all claims."""
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    file = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", "--results", str(RESULTS), "--out", str(file)]) == 0
    return file


@pytest.fixture(scope="module")
def browser():
    with chromium() as page:
        yield page


@pytest.fixture
def page(browser):
    """The browser's page, whose console must have told of no fault in the end."""
    browser.faults.clear()
    yield browser
    assert browser.faults == []


def test_it_is_below_two_megabytes(file):
    assert file.stat().st_size < 2e6


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_it_fits_a_window_with_every_row_open(page, file, width, dark):
    page.open(file, width=width, dark=dark)
    page.run("document.getElementById('section-all').click()")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run("[...document.querySelectorAll('.ledger summary')].every(x => "
                    "x.getBoundingClientRect().right <= innerWidth)")


def test_rows_are_searched_filtered_and_sorted(page, file):
    page.open(file)
    rows = page.run(f"{VISIBLE}.length")
    page.press("/")
    page.run("document.execCommand('insertText', false, 'layernorm MEAN')")
    found = page.run(f"{VISIBLE}.map(row => row.textContent.toLowerCase())")
    assert 0 < len(found) < rows
    assert all("layernorm" in text and "mean" in text for text in found)
    page.press("Escape", 27)
    assert page.run(f"{VISIBLE}.length") == rows
    page.run("document.querySelector('.tiles a[data-kind=false]').click()")
    page.run("document.getElementById('section-note').value = 'B';"
             "document.getElementById('section-note').dispatchEvent(new Event('input'))")
    assert set(page.run(f"{VISIBLE}.map(row => row.dataset.kind + row.dataset.note)")) == {"falseB"}
    count = page.run("document.getElementById('section-count').textContent")
    assert re.fullmatch(rf"\d+ of {rows} rows", count)
    first = page.run(FIRST)
    for _ in range(2):
        page.run("document.querySelector('.ledger th button').click()")
    assert page.run(FIRST) != first
    assert page.run("document.querySelector('.ledger th').ariaSort") == "descending"


@pytest.mark.parametrize("script", [True, False])
def test_a_row_opens_by_its_address(page, file, script):
    page.open(file, "B9", script=script)
    page.send("Emulation.setScriptExecutionDisabled", value=False)
    page.run("""new Promise((done, late) => { let tries = 0; const look = () => scrollY ? done()
        : ++tries < 100 ? setTimeout(look, 50) : late("it has not scrolled"); look(); })""")
    top, opened = page.run("""[document.querySelector("[id=B9]").closest("tr")
        .getBoundingClientRect().top, [...document.querySelectorAll(".ledger details[open]")]
        .map(x => x.closest("tr").querySelector(".id").textContent)]""")
    assert opened == ["B9"]
    assert 0 <= top < 300
    assert page.run("document.querySelector('.tools').checkVisibility()") == script


def test_a_claim_has_an_address_too_and_another_row_opens_when_it_is_followed(page, file):
    claim = Results(RESULTS).read("verdicts")[0]["claim"]
    page.open(file, claim)
    assert page.run(f"document.getElementById('{claim}').checkVisibility()")
    page.run("document.getElementById('section-search').value = 'no such word';"
             "document.getElementById('section-search').dispatchEvent(new Event('input'));"
             "location.hash = '#A1'")
    page.run("new Promise(done => setTimeout(done, 100))")
    assert page.run("document.querySelector('[id=A1]').checkVisibility()")


def test_the_keyboard_goes_through_the_rows_and_opens_them(page, file):
    page.open(file)
    page.run("document.querySelector('.ledger summary').focus()")
    page.press("ArrowDown", 40)
    page.press("Enter", 13)
    at = "document.activeElement.closest('tr').querySelector('.id').textContent"
    assert page.run(at) == "A2"
    assert page.run("document.querySelector('[id=A2]').checkVisibility()")
    page.press("ArrowUp", 38)
    assert page.run(at) == "A1"


def test_a_command_is_copied(page, file):
    page.send("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    page.open(file, "B9")
    page.run("document.querySelector('[id=B9] .command button').click()")
    assert page.run("navigator.clipboard.readText()") == "mcverify run B9"


def test_text_has_contrast_in_both_themes(page, file):
    measure = """(() => {
      const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
      const light = (colour) => {
        canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((x) => x / 255)
          .map((x) => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4)
          .reduce((sum, x, i) => sum + x * [.2126, .7152, .0722][i], 0);
      };
      const probe = document.createElement("i");
      document.body.append(probe);
      const of = (name) => {
        probe.style.color = `var(--${name})`;
        return light(getComputedStyle(probe).color);
      };
      return ["ink", "soft", "confirmed", "refuted", "inconclusive", "error"].map((name) =>
        Math.min(...["paper", "raised"].map(of).map((back) => {
          const [low, high] = [back, of(name)].sort((a, b) => a - b);
          return (high + .05) / (low + .05); })));
    })()"""
    for dark in (False, True):
        page.open(file, dark=dark)
        assert min(page.run(measure)) >= 4.5  # WCAG 2.2, 1.4.3


def test_the_theme_is_chosen_and_kept(page, file):
    page.open(file)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.run(paper)
    page.run("document.getElementById('section-theme').click()")
    dark = page.run(paper)
    assert dark != light
    page.open(file)
    assert page.run(paper) == dark
    page.run("document.getElementById('section-theme').click()")
    assert page.run(paper) == light


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext is installed")
def test_it_is_printed_with_whole_tables(page, file, tmp_path):
    page.open(file, "B9", dark=True)
    (tmp_path / "report.pdf").write_bytes(page.pdf())
    text = subprocess.run(["pdftotext", "-layout", tmp_path / "report.pdf", "-"], check=True,
                          capture_output=True, text=True).stdout
    ids = page.run("[...document.querySelectorAll('.ledger a.id')].map(x => x.textContent)")
    ledger = text.split("The ledger", 1)[1]
    row = re.compile(r"^\f? *([ABC]\d+) ", re.MULTILINE)
    assert row.findall(ledger) == ids
    pages = [page for page in ledger.split("\f") if row.search(page)]
    assert len(pages) > 3
    assert all("statement, in our words" in page for page in pages)  # the head of the table
    right = page.run("""["[id=B9] .right", "tr:has([id=B15]) .in-print"].map(where =>
        document.querySelector(where).textContent)""")  # of a row that is open, and of another
    assert all(" ".join(told.split()[:4]) in text for told in right)
    assert "Search" not in text
