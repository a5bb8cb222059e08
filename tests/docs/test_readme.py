"""The README's tables are those of results/. Run this file to write them anew."""

import re
from pathlib import Path

import pandas as pd
import pytest

from mcverify import discover
from mcverify.declare.claim import statement_ids

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def read(name):
    return pd.read_csv(ROOT / "results" / name, keep_default_na=False)


def verdicts():
    lines = ["| verdict | cases | claim | sentence |", "|---|--:|---|---|"]
    lines += [f"| {row.verdict} | {row.cases} | {row.claim} | {row.sentence} |"
              for row in read("verdicts.csv").itertuples()]
    return "\n".join(lines) + "\n"


def assumptions():
    lines = ["| assumption | how it is broken | pairs | textbook | truth | measured |",
             "|---|---|---|--:|--:|--:|"]
    for name in ("assumptions", "harmless_assumptions"):
        for row in read(f"claims/{name}.csv").itertuples():
            error = f"{float(f'{row.stderr:.1g}'):g}"
            lines.append(f"| {row.assumption} | {row.law}, d_k = {row.d_k} | {row.pairs} | "
                         f"{row.textbook:g} | {row.truth:.4g} | {row.estimate:.4g} ± {error} |")
    return "\n".join(lines) + "\n"


TABLES = {"verdicts": verdicts, "assumptions": assumptions}


def marks(name):
    return f"<!-- {name} -->\n", f"<!-- /{name} -->"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_results(name):
    begin, end = marks(name)
    table = README.split(begin)[1].split(end)[0]
    assert table == TABLES[name](), "stale; run `python tests/docs/test_readme.py`"


def test_statements_whose_claims_it_tells_to_run_have_claims():
    decided = {name for claim in discover() for name in statement_ids(claim.decides)}
    named = re.findall(r"`mcverify run ([ABC]\d+)`", README)
    assert len(named) >= 8
    assert set(named) <= decided


if __name__ == "__main__":
    text = README
    for name, table in TABLES.items():
        begin, end = marks(name)
        before, rest = text.split(begin)
        text = before + begin + table() + end + rest.split(end)[1]
    (ROOT / "README.md").write_text(text, encoding="utf-8")
