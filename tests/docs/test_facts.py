"""Lists in the pages are complete: exit statuses, columns, rooms, bases, laws, statistics."""

import re
from pathlib import Path

from test_rooms import FLOW, ROOMS

from mcverify import laws, statistic
from mcverify.cli.exits import Exit
from mcverify.declare.names import COLUMNS
from mcverify.statistic import Basis

ROOT = Path(__file__).parents[2]


def first_cells(page, heading):
    """The words in backticks in the first column of the table below a heading."""
    text = (ROOT / page).read_text(encoding="utf-8").split(heading, 1)[1].split("\n\n|", 1)[1]
    rows = text.split("\n\n")[0].splitlines()[1:]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def test_the_exit_statuses_are_those_of_the_command_line():
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == sorted(Exit)


def test_the_columns_of_a_case_are_all_explained():
    assert sorted(first_cells("docs/results.md", "A case's row")) == sorted(COLUMNS)


def test_the_bases_are_all_explained():
    assert first_cells("docs/verdicts.md", "## What an interval rests on") == list(Basis)


def test_the_map_has_every_room_and_the_flow_in_its_order():
    shown = [name.rstrip("/").removesuffix(".py")
             for name in first_cells("docs/design.md", "## The map")]
    assert shown[:len(FLOW)] == FLOW
    assert sorted(shown) == sorted(ROOMS)


def test_every_law_and_statistic_is_named_among_what_a_claim_can_say():
    words = set(re.findall(r"\w+", (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")))
    public = {name for name in (*laws.__all__, *statistic.__all__) if name[0].islower()}
    assert public - words == {  # which are none
        "block_moments", "fourth_moments", "initialisation", "score_moments"}
