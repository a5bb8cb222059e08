"""What is printed is what a user wrote, on whatever it is printed."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcverify.cli import options
from mcverify.cli.main import main
from mcverify.cli.terminal import console, show
from mcverify.declare.text import printable

CLAIM = '''
from mcverify import absolute, claim, grid, laws
from mcverify.attention import scores
from mcverify.statistic import mean

@claim(mean, PREDICTION, within=absolute(0.5), over=grid(law=laws.normal, d_k=2, word=WORD))
def named(q):
    """SENTENCE"""
    return q
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(sentence="Means are 0.", prediction="equals=0", word='"x"'):
        Path("mine.py").write_text(CLAIM.replace("SENTENCE", sentence).replace(
            "PREDICTION", prediction).replace("WORD", word), encoding="utf-8")
        return "mine.py"
    return write


@pytest.mark.parametrize("sentence", [
    "Entries in [a, b] are 0.", "A tag that closes nothing [/nope] is no tag.",
    "[bold]Means[/bold] are :smile: and [link=x]0[/link].",
])
def test_brackets_and_colons_in_a_sentence_are_no_markup(mine, capsys, sentence):
    file = mine(sentence, "equals=3")  # refuted, so that the report of a case is printed, too
    assert main(["run", file, "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert out.count(sentence) == 2  # of the claim, of the case
    for command in (["list", file], ["show", file]):
        assert main(command) == 0
        assert sentence in capsys.readouterr().out


def test_a_setting_that_spells_an_emoji_or_a_tag_is_printed_as_it_is(mine, capsys):
    assert main(["run", mine(prediction="equals=3", word='":100:[/red]"'), "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "named-normal-d_k:2-word::100:[/red]" in out


def test_what_moves_a_cursor_is_made_visible(mine, capsys):
    file = mine(word='"\\x1b[31mred\\x9b"', prediction="equals=3")
    assert main(["run", file, "--jobs", "1"]) == 1
    assert "word:\\x1b[31mred\\x9b" in capsys.readouterr().out
    assert printable("a\tb\nc\r") == "a\tb\nc\\x0d"


def test_nothing_is_markup_on_either_stream(capsys):
    for stderr in (False, True):
        show("[/nope] :100: [b]", stderr=stderr)
        console(stderr).print("[/nope]", ":100:")
    assert capsys.readouterr() == ("[/nope] :100: [b]\n[/nope] :100:\n",) * 2


@pytest.mark.parametrize(("encoding", "shown"), [
    ("ascii", r"The mean is 0 \xb7 \u221ad_k."), ("cp1252", r"The mean is 0 · \u221ad_k."),
])
def test_a_pipe_of_another_encoding_gets_every_verdict(mine, monkeypatch, encoding, shown):
    file = mine("The mean is 0 · √d_k.", "equals=3")
    for status, command in ((1, ["run", file, "--jobs", "1"]), (0, ["show", file])):
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        assert main(command) == status
        printed = sys.stdout.buffer.getvalue().decode(encoding)
        assert shown in printed
        assert "REFUTED " in printed


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_pipe_that_is_closed_changes_neither_results_nor_the_status(
        mine, monkeypatch, capsys, stream):
    monkeypatch.setattr(options, "cores", lambda: 1)
    command = ["run", mine(prediction="equals=3"), "--jobs", "99"]  # which prints on both
    nobody, end = os.pipe()
    os.close(nobody)
    with open(end, "w") as closed:
        monkeypatch.setattr(sys, stream, closed)
        assert main(command) == 1
    printed = capsys.readouterr()
    assert ("--jobs 99" in printed.err) == (stream == "stdout")
    assert ("REFUTED" in printed.out) == (stream == "stderr")
    assert {file.name for file in Path("results").rglob("*.csv")} == {
        "verdicts.csv", "controls.csv", "sources.csv", "named.csv"}


def test_help_that_nobody_reads_is_no_fault():
    with subprocess.Popen([sys.executable, "-m", "mcverify", "--help"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as ran:
        ran.stdout.close()
        assert ran.stderr.read() == b""
    assert ran.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_in_one_line():
    with open("/dev/full", "wb", buffering=0) as full:
        ran = subprocess.run([sys.executable, "-m", "mcverify", "--version"], stdout=full,
                             stderr=subprocess.PIPE)
    assert ran.returncode == 2
    assert ran.stderr == b"mcverify: output: No space left on device; choose another place\n"


def test_a_text_in_a_table_is_no_formula_and_no_escape_and_is_replayed(mine, capsys):
    file = mine("=cmd() is a sentence.", word='["=cmd()", "+1", "-x", "@a", "\\x1b[31m"]')
    assert main(["run", file, "--jobs", "1"]) == 0
    for table in ("verdicts", "controls", "claims/named"):
        text = Path(f"results/{table}.csv").read_text(encoding="utf-8")
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert "\x1b" not in text
        assert not [cell for cell in cells if cell[:1] in ("=", "@", "+") and cell != "+1"]
    words = [row["word"] for row in csv.DictReader(io.StringIO(text))]
    assert words == ["'=cmd()", "+1", "'-x", "'@a", "\\x1b[31m"]
    assert main(["replay", "results/claims/named.csv", file]) == 0
    assert capsys.readouterr().out.count("every digit is reproduced") == 5
