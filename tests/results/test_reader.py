"""A damaged file of a results folder is told in one line: which, what is wrong, how to mend it."""

import shutil

import pytest
from committed import RESULTS

from mcverify import load
from mcverify.cli.main import main
from mcverify.results.folder import Results
from mcverify.results.reader import DamagedError, read_rows

CLAIM = "hand_slope"
TABLES = {"verdicts.csv": "verdicts", f"claims/{CLAIM}.csv": CLAIM}
DAMAGES = {
    "empty": (lambda text: "", "is empty; remove it"),
    "binary": (lambda text: text.encode() + b"\xff\xfe\x00\n", "no table"),
    "cut in a line": (lambda text: text[:len(text) * 2 // 3].rstrip("\n"), "middle of a line"),
    "a column renamed": (lambda text: text.replace("verdict,", "veredict,", 1), "column verdict"),
    "another verdict": (lambda text: text.replace(",CONFIRMED,", ",MAYBE,", 1), "'MAYBE'"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "claims").mkdir()
    for file in ("run.json", "ledger.csv"):
        shutil.copy(RESULTS / file, tmp_path)
    for table in ("verdicts", "controls"):
        rows = (RESULTS / f"{table}.csv").read_text().splitlines(keepends=True)
        kept = [rows[0], *(row for row in rows if row.startswith(f"{CLAIM},"))]
        (tmp_path / f"{table}.csv").write_text("".join(kept))
    shutil.copy(RESULTS / "claims" / f"{CLAIM}.csv", tmp_path / "claims")
    return tmp_path


@pytest.mark.parametrize("file", TABLES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_told_by_all_who_read_it(folder, file, damage, capsys):
    change, message = DAMAGES[damage]
    text = change((folder / file).read_text())
    (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    for read in (lambda: Results(folder).read(TABLES[file]), lambda: load(folder)):
        with pytest.raises(DamagedError) as caught:
            read()
        told = str(caught.value)
        assert told.startswith(str(folder / file))
        assert message in told
        assert told.endswith("remove it, and make it anew with `mcverify run`")
    assert main(["show", CLAIM, "--out", str(folder)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_tells_of_a_damaged_table_before_it_draws_and_loses_nothing(folder, damage, capsys):
    change, message = DAMAGES[damage]
    text = change((folder / "verdicts.csv").read_text())
    (folder / "verdicts.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = {file: file.read_bytes() for file in folder.rglob("*.csv")}
    assert main(["run", CLAIM, "--out", str(folder)]) == 2
    assert message in capsys.readouterr().err
    assert {file: file.read_bytes() for file in folder.rglob("*.csv")} == before


def test_cases_that_are_missing_are_told(folder):
    file = folder / "claims" / f"{CLAIM}.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    for change in (lambda: None, file.unlink):
        change()
        rows = 2 if file.exists() else 0
        for read in (lambda: load(folder), lambda: Results(folder).read(CLAIM)):
            with pytest.raises(DamagedError, match=f"has {rows} rows, and verdicts.csv tells of 3"):
                read()
        assert main(["show", CLAIM, "--out", str(folder)]) == 2


def test_a_table_that_a_spreadsheet_has_saved_with_a_mark_is_read(folder):
    file = folder / "claims" / f"{CLAIM}.csv"
    before = read_rows(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_rows(file) == before


def test_a_damaged_run_json_is_told(folder):
    (folder / "run.json").write_text('{"seed": ')
    for read in (lambda: Results(folder).made_with(), lambda: load(folder)):
        with pytest.raises(DamagedError, match=r"run\.json: is damaged; remove its folder"):
            read()


def test_numbers_must_be_numbers(folder):
    file = folder / "claims" / f"{CLAIM}.csv"
    file.write_text(file.read_text().replace(",1e-10,", ",often,", 1))
    with pytest.raises(DamagedError, match="has 'often' in the column error_rate"):
        read_rows(file)
