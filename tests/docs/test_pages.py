"""Every code block of the README and of docs/ is run, and prints what stands below it.

A python block that begins with `# file: NAME` is written to that file; one that begins with
`# from PATH` stands there word for word; all others run, one after the other. A console block holds
commands and what they print; `…` stands for anything, a line of it also for no line at all.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from committed import RESULTS

from mcverify.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_does_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copytree(RESULTS, "results", ignore=shutil.ignore_patterns(".*"))
    names, printed = {}, ""
    for language, text in BLOCKS.findall(page.read_text(encoding="utf-8")):
        first = text.partition("\n")[0]
        if language == "console":
            session(text, capsys)
        elif language == "text":
            assert printed == text
        elif language == "python" and first.startswith("# file: "):
            Path(first.removeprefix("# file: ")).write_text(text, encoding="utf-8")
        elif language == "python" and first.startswith("# from "):
            home = (ROOT / first.removeprefix("# from ")).read_text(encoding="utf-8")
            assert text.partition("\n")[2] in home
        elif language == "python":
            exec(compile(text, page.name, "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert language in ("sh", "toml")  # set-up, which CI runs


def session(text, capsys):
    """Run the commands of a console block and compare what they print."""
    for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = command.partition("\n")
        words = shlex.split(line)
        assert words[0] == "mcverify"
        main([*words[1:], *(["--out", "elsewhere"] if words[1] == "run" else [])])
        found = "\n".join(x.rstrip() for x in capsys.readouterr().out.splitlines())
        pattern = re.escape(expected.strip("\n")).replace("…\\\n", "(.*\n)?").replace("…", ".*")
        assert re.fullmatch(pattern, found.strip("\n"), flags=re.DOTALL), f"{line}:\n{found}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_named_in_the_text_exist(page, capsys):
    text = BLOCKS.sub("", page.read_text(encoding="utf-8"))
    commands = re.findall(r"`(?:\.venv/bin/)?mcverify ([a-z-]+)[^`]*`", text)
    for command in set(commands):
        assert main([command, "--help"]) == 0, command


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
