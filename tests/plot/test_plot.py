"""Pictures: they are written, all their text can be read, and mistakes cost one line."""

import itertools
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from mcverify import plot
from mcverify.cli.main import main
from mcverify.plot import page
from mcverify.results.folder import Results

PNG = b"\x89PNG\r\n\x1a\n"
NAN, INF = math.nan, math.inf
COLUMNS = ["estimate", "low", "high", "claimed_low", "claimed_high", "verdict", "reason"]
CONFIRMED = (1.0, 0.99, 1.01, 0.98, 1.02, "CONFIRMED", "")
REFUTED = (3.0, 2.9, 3.1, 0.98, 1.02, "REFUTED", "")
OPEN = (1.01, 0.99, 1.03, 0.98, 1.02, "INCONCLUSIVE", "the measured interval still crosses an edge")
SKEWED = (1.01, -INF, INF, 0.98, 1.02, "INCONCLUSIVE", "the blocks are too skew")
ERROR = (NAN, -INF, INF, 0.98, 1.02, "INCONCLUSIVE", "error: KeyError: 'gone' (seed 0, " + 9 * "x ")
BROKEN = (NAN, -INF, INF, NAN, NAN, "ERROR", "the prediction is $x_1$, $x_2$")
ABOVE = (0.5, 0.4, 0.6, 0.25, INF, "CONFIRMED", "")
BELOW = (0.5, 0.4, 0.6, -INF, 0.25, "REFUTED", "")
EXACT = (5, 5, 5, 5, 5, "CONFIRMED", "")
PRINTED = (1.12535e-07, 1.12535e-07, 1.12535e-07, 1.05e-07, 1.15e-07, "CONFIRMED", "")
ZERO = (0, 0, 0, 0, 0, "CONFIRMED", "")

SHAPES = {
    "one_case": [CONFIRMED], "three_verdicts": [CONFIRMED, REFUTED, OPEN], "skewed": [SKEWED],
    "errors": [CONFIRMED, ERROR, BROKEN], "nothing_but_errors": [BROKEN], "above": [ABOVE, ABOVE],
    "below": [BELOW], "both_half_lines": [ABOVE, BELOW, SKEWED], "exact": [EXACT],
    "exact_printed": [EXACT, PRINTED], "printed": [PRINTED], "zero": [ZERO],
    "far_off": [(1e9, 1e9, 1.1e9, 0.98, 1.02, "REFUTED", ""), CONFIRMED,
                (-1e3, -2e3, -1e2, 0.98, 1.02, "REFUTED", "")],
    "powers": [(10.0**n, 10.0**n, 2 * 10.0**n, 5.0**n, INF, "CONFIRMED", "") for n in range(6)],
    "sixty_cases": [CONFIRMED, OPEN] * 30,
}


def write_claim(out, name, rows, **settings):
    """A claim's table; settings default to a d_k of its own for each case."""
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(
        stderr=0.1, seed=0, error_rate=1e-10, blocks=512, expected="CONFIRMED",
        **(settings or {"law": "normal", "d_k": range(len(rows))}))
    (out / "claims").mkdir(parents=True, exist_ok=True)
    frame.to_csv(out / "claims" / f"{name}.csv", index=False, na_rep="nan")


def write_atlas(out, widths=tuple(2**n for n in range(11)), keys=(2, 8, 32, 4096)):
    powers = {"none": 1.0, "sqrt": 0.5, "full": 0.0}
    rows = [{"d_k": d_k, "keys": n, "scale": scale, "entropy_share_stderr": 0.01,
             "frobenius_mean": 0.3 * (n / 30) ** (power - 0.5), "frobenius_mean_stderr": 0.01,
             "frobenius_median": 0.2 * n ** (power - 0.5),
             "entropy_share": d_k**-power, "exact_entropy_share": d_k**-power}
            for d_k, n, (scale, power) in itertools.product(widths, keys, powers.items())]
    (out / "claims").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(out / "claims" / "saturation_atlas.csv", index=False)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, each found legible at that time."""
    pytest.importorskip("matplotlib")
    figures, save = [], page.save

    def looked_at(figure, file):
        check_legible(figure)
        figure.set_layout_engine("none")  # it has done its work
        figures.append(figure)
        return save(figure, file)

    for module in ("saturation", "claims"):
        monkeypatch.setattr(f"mcverify.plot.{module}.save", looked_at)
    return figures


def check_legible(figure):
    """No text leaves the picture or is below 9 pt, and no two labels of an axis overlap."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    sheet = figure.bbox.padded(1)
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent()
            inside = sheet.x0 <= box.x0 and box.x1 <= sheet.x1 and sheet.y0 <= box.y0 <= sheet.y1
            assert inside or text.get_clip_on(), text
            assert text.get_fontsize() >= 9, text
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other), axis


def is_png(file):
    return Path(file).read_bytes().startswith(PNG)


def shapes(figure):
    """How often each marker stands in the panel."""
    return Counter(line.get_marker() for line in figure.axes[0].lines)


def test_the_saturation_pictures_are_written_and_named(tmp_path, capsys, drawn):
    write_atlas(tmp_path)
    to = tmp_path / "new" / "pictures"
    assert main(["plot", "--out", str(tmp_path), "--to", str(to)]) == 0
    files = [to / "saturation.png", to / "jacobian.png"]
    assert capsys.readouterr() == ("".join(f"wrote {file}\n" for file in files), "")
    assert all(map(is_png, files))
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert [title.split(":")[1] for title in titles] == [" falls", " flat", " rises to 1"]
    texts = [text.get_text() for text in drawn[1].axes[1].texts]
    assert "the means cross at\nabout 30 keys" in texts


def test_an_atlas_of_one_point_is_drawn(tmp_path, drawn):
    write_atlas(tmp_path, widths=(64,), keys=(2,))
    assert all(map(is_png, plot.draw_saturation(Results(tmp_path), tmp_path)))
    assert len(drawn) == 2


@pytest.mark.parametrize(("widths", "keys", "message"), [
    ((1, 8), (2, 8), "has no row with d_k 64"), ((64,), (4,), "has no row with keys 2"),
])
def test_an_atlas_without_what_is_to_be_shown_is_refused(tmp_path, capsys, widths, keys, message):
    write_atlas(tmp_path, widths, keys)
    assert main(["plot", "--out", str(tmp_path), "--to", str(tmp_path / "to")]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("name", SHAPES)
def test_claims_of_all_shapes_are_drawn(tmp_path, capsys, drawn, name):
    write_claim(tmp_path, name, SHAPES[name])
    to = tmp_path / "pictures"
    assert main(["plot", name, "--out", str(tmp_path), "--to", str(to)]) == 0
    assert capsys.readouterr() == (f"wrote {to / name}.png\n", "")
    assert is_png(to / f"{name}.png")
    assert len(drawn[0].axes[0].get_yticks()) == len(SHAPES[name])


def test_verdicts_differ_in_shape_and_surprises_are_told(tmp_path, drawn):
    write_claim(tmp_path, "all", [CONFIRMED, CONFIRMED, REFUTED, OPEN, ERROR])
    list(plot.draw_claims(["all"], Results(tmp_path), tmp_path))
    count = shapes(drawn[0])
    assert [count[marker] for marker in "osDX"] == [2, 1, 1, 1]
    texts = [text.get_text() for text in drawn[0].axes[0].texts]
    assert [text for text in texts if "declared" in text] == [
        "3 not as declared", "1.01 not as declared", "not as declared"]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == [
        "CONFIRMED", "REFUTED", "INCONCLUSIVE", "ERROR", "claimed"]


def test_cases_are_labelled_by_what_varies(tmp_path, drawn):
    write_claim(tmp_path, "mine", [CONFIRMED, REFUTED], law=["normal", "a_$very$_long_law" * 4],
                d_k=64, keys=[2, 8])
    sentence = "A sentence of √d_k and $x_1$ words. " * 5
    pd.DataFrame([{"claim": "mine", "sentence": sentence}]).to_csv(tmp_path / "verdicts.csv",
                                                                   index=False)
    list(plot.draw_claims(["mine"], Results(tmp_path), tmp_path))
    labels = [label.get_text() for label in drawn[0].axes[0].get_yticklabels()]
    assert labels == ["normal, keys 2", "a_$very$_long_law" * 4 + ", keys 8"]
    assert "In all cases: d_k 64." in drawn[0].get_suptitle()
    assert "mine: A sentence of √d_k and $x_1$ words." in drawn[0].get_suptitle()


def test_an_interval_lies_where_it_was_measured_relative_to_what_is_claimed(tmp_path, drawn):
    write_claim(tmp_path, "inside", [(63.36, 62.72, 64, 62.72, 65.28, "CONFIRMED", "")])
    write_claim(tmp_path, "above", [ABOVE])
    list(plot.draw_claims(["inside", "above"], Results(tmp_path), tmp_path))
    places = [[list(line.get_xdata()) for line in figure.axes[0].lines
               if not math.isinf(line.get_xdata()[0])] for figure in drawn]
    assert places[0] == [pytest.approx(x) for x in ([-1, -1], [1, 1], [-1, 0], [-0.5])]
    assert places[1] == [pytest.approx(x) for x in ([0.25, 0.25], [0.4, 0.6], [0.5])]


def test_many_cases_go_on_in_a_second_picture(tmp_path, monkeypatch, drawn):
    monkeypatch.setattr("mcverify.plot.claims.MOST", 4)
    write_claim(tmp_path, "many", [CONFIRMED] * 6)
    files = list(plot.draw_claims(["many"], Results(tmp_path), tmp_path))
    assert [file.name for file in files] == ["many.png", "many_2.png"]
    assert [len(figure.axes[0].get_yticks()) for figure in drawn] == [4, 2]


def test_claims_are_also_named_by_statement(tmp_path, capsys, drawn):
    write_claim(tmp_path, "hand_dot_product", [EXACT], d_k=2)
    assert main(["plot", "A1", "--out", str(tmp_path), "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'hand_dot_product.png'}\n"


@pytest.mark.parametrize(("words", "message"), [
    ([], "saturation_atlas.csv: no such table; run `mcverify run` first"),
    (["hand_slope"], "hand_slope.csv: no such table; run `mcverify run` first"),
    (["whole", "hand_slope"], "hand_slope.csv: no such table; run `mcverify run` first"),
    (["saturation_atlas"], "saturation_atlas: no claim or statement has this name"),
    (["part"], "part.csv: has no column low; run `mcverify run` first"),
    (["hand_slop"], "hand_slop: no claim or statement has this name; did you mean hand_slope"),
])
def test_missing_tables_are_told_in_one_line_before_anything_is_drawn(
        tmp_path, capsys, words, message):
    write_claim(tmp_path, "whole", [CONFIRMED])
    write_claim(tmp_path, "part", [CONFIRMED])
    file = tmp_path / "claims" / "part.csv"
    pd.read_csv(file).drop(columns="low").to_csv(file, index=False)
    to = tmp_path / "pictures"
    assert main(["plot", *words, "--out", str(tmp_path), "--to", str(to)]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), to.exists()) == ("", 1, False)


def test_a_folder_that_cannot_be_written_to_is_told_in_one_line(tmp_path, capsys, drawn):
    write_claim(tmp_path, "whole", [CONFIRMED])
    (tmp_path / "file").write_text("")
    to = str(tmp_path / "file" / "x")
    assert main(["plot", "whole", "--out", str(tmp_path), "--to", to]) == 2
    err = capsys.readouterr().err
    assert "cannot be written to" in err
    assert err.count("\n") == 1


def test_without_matplotlib_one_line_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    write_claim(tmp_path, "whole", [CONFIRMED])
    write_atlas(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for words in ([], ["whole"]):
        assert main(["plot", *words, "--out", str(tmp_path), "--to", str(tmp_path / "to")]) == 2
        out, err = capsys.readouterr()
        assert "pip install 'mcverify[plot]'" in err
        assert (out, err.count("\n")) == ("", 1)


def test_neither_the_command_line_nor_this_module_imports_matplotlib_before_it_draws():
    code = ("import sys, mcverify.cli.main; assert 'mcverify.plot' not in sys.modules\n"
            "import mcverify.plot; assert 'matplotlib' not in sys.modules")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_pictures_keep_no_state(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    write_claim(tmp_path, "whole", [CONFIRMED])
    before = {name: matplotlib.rcParams[name] for name in matplotlib.rcParams
              if name != "backend"}  # to ask for it is to choose one, through pyplot
    for _ in plot.draw_claims(["whole"], Results(tmp_path), tmp_path):
        assert [name for name in before if matplotlib.rcParams[name] != before[name]] == []
    assert "matplotlib.pyplot" not in sys.modules
