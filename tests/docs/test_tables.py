"""What the pages show of results/ is what stands there."""

import re
import runpy
from pathlib import Path

import pytest
from PIL import Image

from mcverify import discover
from mcverify.declare.claim import statement_ids

TABLES = runpy.run_path(str(Path(__file__).with_name("tables.py")))
README = (TABLES["ROOT"] / "README.md").read_text(encoding="utf-8")
AGAIN = "stale; run `python tests/docs/tables.py`"


def block(text, name):
    return text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0]


@pytest.mark.parametrize("name", TABLES["TABLES"])
def test_a_table_is_that_of_results(name):
    made = TABLES["TABLES"][name]()
    shown = [block(file.read_text(encoding="utf-8"), name) for file in TABLES["files"]()
             if f"<!-- {name} -->" in file.read_text(encoding="utf-8")]
    assert shown == [made], AGAIN


@pytest.mark.parametrize("name", TABLES["PICTURES"])
def test_a_picture_was_drawn_from_its_table_of_results(name):
    with Image.open(TABLES["PICTURES"][name]) as picture:
        assert picture.text["Source"] == TABLES["source"](name), AGAIN


def test_each_of_ten_surprises_has_a_command_whose_statement_is_decided_by_claims():
    decided = {name for claim in discover() for name in statement_ids(claim.decides)}
    named = re.findall(r"`mcverify run ([ABC]\d+)` \|$", block(README, "surprises"), re.MULTILINE)
    assert len(named) == len(set(named)) == 10
    assert set(named) <= decided


def test_the_readme_is_short():
    assert README.count("\n") <= 150
