"""`mcverify compare OLD NEW` tells what differs by more than chance, and nothing else."""

import csv
import shutil
from pathlib import Path

import pytest

from mcverify.cli.main import main
from mcverify.results.compare import compare
from mcverify.results.folder import Results

CLAIMS = '''
from mcverify import absolute, claim, grid, laws
from mcverify.statistic import mean

@claim(mean, equals=0, within=absolute(0.5), over=grid(law=laws.normal, d_k=[2, 4]))
def centred(q):
    """The mean is 0."""
    return q

@claim(mean, at_least=1, over=grid(law=laws.normal, d_k=2))
def positive(q):
    """The mean is above 1."""
    return q
'''


def run(folder, *options):
    assert main(["run", str(folder / "mine.py"), "--jobs", "1", *options]) == 1


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "mine.py").write_text(CLAIMS)
    run(folder, "--out", str(folder / "old"))
    run(folder, "--seed", "1", "--out", str(folder / "other"))
    return folder


@pytest.fixture
def two(made, tmp_path, capsys):
    """Two equal folders, and what `compare` says of them: its status and its lines."""
    for name in ("old", "new"):
        shutil.copytree(made / "old", tmp_path / name)

    class Two:
        old, new = tmp_path / "old", tmp_path / "new"

        def compare(self):
            capsys.readouterr()
            status = main(["compare", str(self.old), str(self.new)])
            out, err = capsys.readouterr()
            return status, out + err

        def edit(self, table, row, folder="new", **cells):
            file = tmp_path / folder / table
            rows = rows_of(file)
            rows[row] |= cells
            write(file, rows)

    return Two()


def rows_of(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def write(file, rows):
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def found(two):
    return [(each.claim, each.case, each.what, each.old, each.new)
            for each in compare(Results(two.old), Results(two.new)).differences]


def test_nothing_differs_from_itself(two):
    status, said = two.compare()
    assert status == 0
    assert said.splitlines() == [
        "compared 2 claims and 5 cases with near misses; differ: verdicts 0, declarations 0, "
        "estimates 0; only in one: 0",
        "an estimate is told if the measured intervals are disjoint; of one and the same truth "
        "that happens to any with a probability of at most 1e-09, as far as the intervals hold",
        "of one seed are 5 cases, whose draws are not independent: by the same code they have the "
        "same digits; of 0 they differ"]


def test_chance_alone_is_not_told(made, two):
    two.new = made / "other"
    status, said = two.compare()
    assert status == 0
    assert "judged on other terms: seed 0 and 1" in said
    assert "of one seed" not in said


def test_other_verdicts_and_declarations_are_told(two):
    two.edit("verdicts.csv", 0, verdict="REFUTED")
    two.edit("claims/centred.csv", 1, verdict="REFUTED", expected="REFUTED")
    two.edit("controls.csv", 0, verdict="INCONCLUSIVE")
    near = rows_of(two.new / "controls.csv")[0]["case"]
    assert found(two) == [
        ("centred", "", "verdict", "CONFIRMED", "REFUTED"),
        ("centred", near, "verdict", "REFUTED", "INCONCLUSIVE"),
        ("centred", "law:normal d_k:4", "verdict", "CONFIRMED", "REFUTED"),
        ("centred", "law:normal d_k:4", "declared", "CONFIRMED", "REFUTED"),
    ]
    status, said = two.compare()
    assert status == 1
    assert "differ: verdicts 3, declarations 1, estimates 0; only in one: 0" in said
    assert "centred  law:normal d_k:4" in said


def test_estimates_are_told_if_their_intervals_are_disjoint(two):
    row = rows_of(two.old / "claims/centred.csv")[0]
    low, high = float(row["low"]), float(row["high"])
    two.edit("claims/centred.csv", 0, estimate="9", low=f"{high:.9g}", high="10")
    assert found(two) == []  # they touch
    assert "of 1 they differ" in two.compare()[1]
    for cells in ({"low": f"{high + 0.001:.9g}", "high": "10"},
                  {"low": "-10", "high": f"{low - 0.001:.9g}"}):
        two.edit("claims/centred.csv", 0, **cells)
        (_, case, what, old, new), = found(two)
        assert (case, what) == ("law:normal d_k:2", "estimate")
        assert old == f"{row['estimate']} in [{row['low']}, {row['high']}]"
        assert new == f"9 in [{cells['low']}, {cells['high']}]"
        assert two.compare()[0] == 1


def test_what_only_one_has_is_told(two):
    rows = rows_of(two.new / "verdicts.csv")
    write(two.new / "verdicts.csv", rows[:1])  # of centred
    assert found(two) == [("positive", "", "there", "REFUTED", "")]
    two.old, two.new = two.new, two.old
    assert found(two) == [("positive", "", "there", "", "REFUTED")]
    assert two.compare()[0] == 1


def test_cases_that_only_one_has_are_told(two):
    rows = rows_of(two.new / "claims/centred.csv")
    write(two.new / "claims/centred.csv", rows[:1])
    two.edit("verdicts.csv", 0, cases="1")
    assert found(two) == [("centred", "law:normal d_k:4", "there", "CONFIRMED", "")]


def test_older_folders_are_read(two):
    for file in two.old.rglob("*.csv"):
        rows = rows_of(file)
        write(file, [{name: value for name, value in row.items()
                      if name not in ("basis", "origin")} for row in rows])
    (two.old / "sources.csv").unlink()
    (two.old / "run.json").unlink()
    assert two.compare()[0] == 0


@pytest.mark.parametrize(("damage", "message"), [
    (lambda folder: shutil.rmtree(folder), "holds no verdicts to compare; name a folder"),
    (lambda folder: (folder / "verdicts.csv").write_text("claim,x\n1\n"), "has no column"),
    (lambda folder: (folder / "claims/centred.csv").unlink(), "has 0 rows, and verdicts.csv tells"),
    (lambda folder: (folder / "claims/centred.csv").write_bytes(
        (folder / "claims/centred.csv").read_bytes()[:-5]), "ends in the middle of a line"),
    (lambda folder: (folder / "run.json").write_text("{"), "run.json: is damaged"),
])
@pytest.mark.parametrize("which", ["old", "new"])
def test_a_folder_that_is_not_whole_is_refused_in_one_line(two, damage, message, which):
    damage(getattr(two, which))
    status, said = two.compare()
    assert status == 2
    assert message in said
    assert said.count("\n") == 1


def test_the_committed_results_are_those_of_themselves():
    results = Results(Path(__file__).parents[2] / "results")
    same = compare(results, results)
    assert not same.differences
    assert same.cases > 1000
    assert same.moved == 0
