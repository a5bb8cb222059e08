"""Pictures: they are written, all their text can be read, and mistakes cost one line."""

import itertools
import math
import re
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from mcverify import plot
from mcverify.cli.main import main
from mcverify.plot.page import MARKERS
from mcverify.results.folder import Results
from mcverify.results.rows import VERDICT_COLUMNS
from mcverify.statistic.estimate import Estimate, no_interval
from mcverify.verdict import COLOURS

PNG = b"\x89PNG\r\n\x1a\n"
NAN, INF = math.nan, math.inf
COLUMNS = ["estimate", "low", "high", "claimed_low", "claimed_high", "verdict", "reason"]
CONFIRMED = (1.0, 0.99, 1.01, 0.98, 1.02, "CONFIRMED", "")
REFUTED = (3.0, 2.9, 3.1, 0.98, 1.02, "REFUTED", "")
OPEN = (1.01, 0.99, 1.03, 0.98, 1.02, "INCONCLUSIVE", "the measured interval still crosses an edge")
SKEWED = (1.01, -INF, INF, 0.98, 1.02, "INCONCLUSIVE", "the blocks are too skew")
ERROR = (NAN, -INF, INF, 0.98, 1.02, "ERROR", "KeyError: 'gone' (seed 0, " + 9 * "x ")
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


def write_verdicts(out, *rows, **more):
    """verdicts.csv of a claim for each (statements, verdict, expected, errors)."""
    pd.DataFrame([dict.fromkeys(VERDICT_COLUMNS, 0) | {
        "claim": f"claim_{index}", "sentence": "It is so.", "decides": decides, "verdict": verdict,
        "expected": expected, "errors": errors, **more,
    } for index, (decides, verdict, expected, errors) in enumerate(rows)]).to_csv(
        out / "verdicts.csv", index=False)


def write_atlas(out, widths=tuple(2**n for n in range(11)), keys=(2, 8, 32, 4096)):
    powers = {"none": 1.0, "sqrt": 0.5, "full": 0.0}
    rows = [{"d_k": d_k, "keys": n, "scale": scale, "entropy_share_stderr": 0.01,
             "frobenius_mean": 0.3 * (n / 30) ** (power - 0.5), "frobenius_mean_stderr": 0.01,
             "frobenius_median": 0.2 * n ** (power - 0.5),
             "entropy_share": d_k**-power, "exact_entropy_share": d_k**-power}
            for d_k, n, (scale, power) in itertools.product(widths, keys, powers.items())]
    (out / "claims").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(out / "claims" / "saturation_atlas.csv", index=False)


def write_point(out):
    """An atlas of one point."""
    write_atlas(out, widths=(64,), keys=(2,))


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are drawn, each found legible; files stay empty, which takes less time."""
    figure = pytest.importorskip("matplotlib.figure")
    figures = []

    def look_at(self, file, **_):
        check_legible(self)
        self.set_layout_engine("none")  # it has done its work
        figures.append(self)
        file.touch()

    monkeypatch.setattr(figure.Figure, "savefig", look_at)
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
        check_apart([label for label in axis.get_ticklabels() if label.get_text()])


def check_apart(artists):
    boxes = [artist.get_window_extent() for artist in artists]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def marks_of(axes):
    """How often each marker stands in the panel."""
    return Counter(line.get_marker() for line in axes.lines for _ in line.get_xdata())


# --- claims -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_claims_of_all_shapes_are_drawn(tmp_path, capsys, drawn, name):
    write_claim(tmp_path, name, SHAPES[name])
    assert main(["plot", name, "--out", str(tmp_path), "--to", str(tmp_path / "new" / "to")]) == 0
    assert capsys.readouterr() == (f"wrote {tmp_path / 'new' / 'to' / name}.png\n", "")
    assert len(drawn[0].axes[0].get_yticks()) == len(SHAPES[name])


def test_verdicts_differ_in_shape_and_surprises_are_told(tmp_path, drawn):
    write_claim(tmp_path, "all", [CONFIRMED, CONFIRMED, REFUTED, OPEN, ERROR])
    list(plot.draw_claims(["all"], Results(tmp_path), tmp_path))
    assert [marks_of(drawn[0].axes[0])[marker] for marker in "osDX"] == [2, 1, 1, 1]
    assert [text for text in texts_of(drawn[0].axes[0]) if "declared" in text] == [
        "3 not as declared", "1.01 not as declared", "not as declared"]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == [*COLOURS, "claimed"]


def test_estimates_below_a_million_are_told_without_powers_of_ten(tmp_path, drawn):
    write_claim(tmp_path, "powers", SHAPES["powers"][4:])
    list(plot.draw_claims(["powers"], Results(tmp_path), tmp_path))
    assert texts_of(drawn[0].axes[0])[1:] == ["10000", "100000"]


def test_cases_are_labelled_by_what_varies(tmp_path, drawn):
    write_claim(tmp_path, "mine", [CONFIRMED, REFUTED], law=["normal", "a_$very$_long_law" * 4],
                d_k=64, keys=[2, ""])
    sentence = "A sentence of √d_k and $x_1$ words. " * 5
    write_verdicts(tmp_path, ("A1", "CONFIRMED", "CONFIRMED", 0), claim="mine", sentence=sentence,
                   cases=2)
    list(plot.draw_claims(["mine"], Results(tmp_path), tmp_path))
    labels = [label.get_text() for label in drawn[0].axes[0].get_yticklabels()]
    assert labels == ["normal, keys 2", "a_$very$_long_law" * 4]
    assert "In all cases: d_k 64." in drawn[0].get_suptitle()
    assert "mine: A sentence of √d_k and $x_1$ words." in drawn[0].get_suptitle()


def test_an_interval_lies_where_it_was_measured_relative_to_what_is_claimed(tmp_path, drawn):
    write_claim(tmp_path, "inside", [(63.36, 62.72, 64, 62.72, 65.28, "CONFIRMED", "")])
    write_claim(tmp_path, "above", [ABOVE])
    list(plot.draw_claims(["inside", "above"], Results(tmp_path), tmp_path))
    for figure, edges, interval, estimate in ((drawn[0], [-1, 1], [-1, 0], -0.5),
                                              (drawn[1], [0.25], [0.4, 0.6], 0.5)):
        lines = [collection.get_segments() for collection in figure.axes[0].collections
                 if hasattr(collection, "get_segments")]
        ends = [[[x for x, _ in segment] for segment in segments] for segments in lines if segments]
        assert [x for of_an_edge in ends[:-1] for x, _ in of_an_edge] == pytest.approx(edges)
        assert ends[-1][0] == pytest.approx(interval)
        drawn_at = [x for line in figure.axes[0].lines for x in line.get_xdata()]
        assert drawn_at == pytest.approx([estimate])


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


def test_a_colour_blind_reader_can_tell_verdicts_apart():
    # Machado, Oliveira and Fernandes (2009), severity 1: protanopia, deuteranopia; and none.
    sights = np.array([
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.01182, 0.04294, 0.968881]], np.eye(3)])
    rgb = np.array([[int(c[i:i + 2], 16) for i in (1, 3, 5)] for c in COLOURS.values()]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722],
                       [0.0193, 0.1192, 0.9505]]) / np.array([[0.9505], [1], [1.089]])
    for sight in sights:
        xyz = np.cbrt(np.clip(linear @ sight.T, 0, 1) @ to_xyz.T)
        lab = np.stack([116 * xyz[:, 1], 500 * (xyz[:, 0] - xyz[:, 1]),
                        200 * (xyz[:, 1] - xyz[:, 2])], axis=1)
        for one, other in itertools.combinations(lab, 2):
            assert np.linalg.norm(one - other) > 10 * 2.3  # times what is just noticed


# --- all verdicts on a page, and the atlas ----------------------------------------------------


def test_every_claim_has_a_mark_for_each_statement_and_none_touches_another(tmp_path, drawn):
    write_verdicts(tmp_path, *40 * [("A5", "REFUTED", "REFUTED", 0)],
                   ("A5 B3", "CONFIRMED", "CONFIRMED", 0), ("", "REFUTED", "CONFIRMED", 0),
                   ("Z9", "INCONCLUSIVE", "CONFIRMED", 1))
    list(plot.draw_all(Results(tmp_path), tmp_path))
    axes, = drawn[0].axes
    marks = [line for line in axes.lines if len(line.get_xdata())]
    assert Counter(line.get_marker() for line in marks) == {"s": 41, "o": 2, "X": 1}
    check_apart(marks)
    check_apart(axes.texts)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "CONFIRMED 1", "REFUTED 41", "ERROR 1", "not as declared 2"]
    ringed = [line.get_marker() for line in marks if line.get_markeredgecolor() == "black"]
    assert ringed == ["s", "X"]
    assert texts_of(axes)[0] == "2 statements (1 holds, 1 false), by 43 claims"
    assert {"A5", "✓ holds", "B3", "✗ false", "no statement"} < set(texts_of(axes))


def test_claims_that_decide_no_statement_are_shown_without_statements(tmp_path, drawn):
    write_verdicts(tmp_path, ("", "CONFIRMED", "CONFIRMED", 0))
    list(plot.draw_all(Results(tmp_path), tmp_path))
    assert texts_of(drawn[0].axes[0]) == ["1 claims", "no statement"]


@pytest.mark.parametrize(("tables", "files"), [
    ([write_verdicts], ["overview"]), ([write_point], ["saturation", "jacobian"]),
])
def test_without_names_what_there_is_of_a_run_is_drawn(tmp_path, capsys, drawn, tables, files):
    for write in tables:
        write(tmp_path, *[("", "CONFIRMED", "CONFIRMED", 0)] if write is write_verdicts else [])
    assert main(["plot", "--out", str(tmp_path), "--to", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("".join(f"wrote {tmp_path / f}.png\n" for f in files), "")


def test_the_atlas_says_what_scaling_does_and_where_the_means_cross(tmp_path, drawn):
    write_atlas(tmp_path)
    list(plot.draw_all(Results(tmp_path), tmp_path))
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert [title.split(":")[1] for title in titles] == [" falls", " flat", " rises"]
    assert "the means cross at\nabout 30 keys" in texts_of(drawn[1].axes[1])


# --- in a page --------------------------------------------------------------------------------


def test_pictures_of_a_page_name_their_colours_and_are_small(tmp_path):
    pytest.importorskip("matplotlib")
    write_verdicts(tmp_path, ("B8", "REFUTED", "REFUTED", 0), claim="three", cases=3)
    write_claim(tmp_path, "three", SHAPES["three_verdicts"], law=["<&>", "\x1b", "中"])
    write_point(tmp_path)
    forests, others, css = plot.inline(Results(tmp_path))
    assert set(others) == {"overview", "looks", "saturation"}
    svg, again = forests["three"][0]
    assert all(f"var(--{verdict.lower()})" in css for verdict in COLOURS if verdict != "ERROR")
    assert "#" not in re.sub(r'light-dark\(.*?\)\)', "", css)
    assert len(svg) < 6000
    assert again.endswith('<use href="#fig-0" /></svg>')
    assert [word in svg for word in ("&lt;&amp;&gt;", "\N{REPLACEMENT CHARACTER}", "中", "metadata",
                                     "font-family", "DejaVu")] == [True] * 3 + [False] * 3


def test_a_band_a_line_and_a_mark_survive_what_is_left_out(tmp_path):
    pytest.importorskip("matplotlib")
    write_verdicts(tmp_path, ("", "CONFIRMED", "CONFIRMED", 0), claim="one", cases=1)
    write_claim(tmp_path, "one", [(0.5, 0.25, 0.75, 0, 1, "CONFIRMED", "")])
    forests, _, css = plot.inline(Results(tmp_path))
    svg = forests["one"][0].svg
    looks = dict(re.findall(r"\.(s\d+)\{(.*?)\}", css))
    paths = {looks[style]: [float(x) for x in re.findall(r"[ML](\S+) ", path)]
             for path, style in re.findall(r'<path d="([^"]*)"[^>]*class="(s\d+)"', svg)}
    band = paths["fill:var(--band)"]
    line = paths["fill:none;stroke:var(--confirmed);stroke-width:2"]
    middle = (band[0] + band[1]) / 2
    assert line == pytest.approx([(band[0] + middle) / 2, (middle + band[1]) / 2], abs=0.1)
    mark, = [float(x) for x, style in re.findall(r'<use [^>]*x="([^"]*)"[^>]*class="(s\d+)"', svg)
             if looks[style] == "fill:var(--confirmed);stroke:var(--confirmed)"][:1]
    assert mark == pytest.approx(middle, abs=0.1)


def test_how_a_verdict_is_made_is_drawn_by_the_rule_itself(tmp_path, drawn):
    plot.draw_looks(tmp_path)
    assert [text for axes in drawn[0].axes for text in texts_of(axes) if text.isupper()] == [
        "CONFIRMED", "REFUTED", "INCONCLUSIVE", "CONFIRMED"]


# --- curves -----------------------------------------------------------------------------------

ESTIMATES = [Estimate(1.0, 0.1, 0.5, 1.5), no_interval(50.0, 1.0, "too few"),
             Estimate(70.0, 0.1, 60.0, 80.0)]


def test_estimates_are_drawn_over_a_setting(tmp_path, drawn):
    file = plot.draw_curve(tmp_path / "x.png", [1, 8, 64], ESTIMATES, quantity="$x", formula=float)
    assert file.exists()
    axes, = drawn[0].axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("d_k", "$x")
    assert list(axes.lines[0].get_ydata()) == [1.0, 50.0, 70.0]
    bars = [bar.get_segments()[0][:, 1].tolist() for bar in axes.collections]
    assert bars == [[0.5, 1.5], [60.0, 80.0]]
    white = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in white] == [[8]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["measured", "formula"]


def test_several_curves_are_told_apart_and_need_no_estimate(tmp_path, drawn):
    none = [no_interval(NAN, NAN, "no moments")] * 2
    plot.draw_curve(tmp_path / "x.png", [2, 4], {r"$\no$": ESTIMATES[1:], "heavy": none}, "keys")
    axes, = drawn[0].axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        r"$\no$", "heavy: no estimates"]
    with pytest.raises(ValueError, match="measured: 3 estimates at 1 values of d_k"):
        plot.draw_curve(tmp_path / "y.png", [2], ESTIMATES)


# --- mistakes ---------------------------------------------------------------------------------


DAMAGE = {
    "whole": lambda table: table,
    "no_column": lambda table: table.replace(b"low", b"lower"),
    "no_number": lambda table: table.replace(b"0.99", b"gone"),
    "maybe": lambda table: table.replace(b"CONFIRMED", b"MAYBE"),
    "cut": lambda table: table[:table.index(b"CONFIRMED") - 3],
    "open_quote": lambda table: table.replace(b"CONFIRMED", b'"CONFIRMED'),
    "binary": lambda table: bytes(range(256)),
    "no_rows": lambda table: table.partition(b"\n")[0] + b"\n",
    "empty": lambda table: b"",
}


@pytest.mark.parametrize(("words", "message"), [
    ([], "has no verdicts yet; run `mcverify run` first"),
    (["hand_slope"], "hand_slope.csv: no such table"),
    (["whole", "hand_slope"], "hand_slope.csv: no such table"),
    (["saturation_atlas"], "saturation_atlas: no claim or statement has this name"),
    (["hand_slop"], "hand_slop: no claim or statement has this name; did you mean hand_slope"),
    (["no_column"], "no_column.csv: has no column low; remove it, and make it anew"),
    (["whole", "no_number"], "no_number.csv: has 'gone' in the column low, no number"),
    (["whole", "maybe"], "maybe.csv: has 'MAYBE' in the column verdict, no verdict"),
    (["cut"], "cut.csv: ends in the middle of a line"),
    (["open_quote"], "open_quote.csv: has 8 cells in row 1, and 14 columns"),
    (["binary"], "binary.csv: is no table"),
    (["no_rows"], "no_rows.csv: has no rows"),
    (["empty"], "empty.csv: is empty"),
])
def test_mistakes_are_told_in_one_line_before_anything_is_drawn(tmp_path, capsys, words, message):
    for name, damage in DAMAGE.items():
        write_claim(tmp_path, name, [CONFIRMED])
        file = tmp_path / "claims" / f"{name}.csv"
        file.write_bytes(damage(file.read_bytes()))
    to = tmp_path / "pictures"
    assert main(["plot", *words, "--out", str(tmp_path), "--to", str(to)]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n"), to.exists()) == ("", 1, False)


@pytest.mark.parametrize(("widths", "keys", "message"), [
    ((1, 8), (2, 8), "has no row with d_k 64"), ((64,), (4,), "has no row with keys 2"),
])
def test_an_atlas_without_what_is_to_be_shown_is_refused(tmp_path, capsys, widths, keys, message):
    write_atlas(tmp_path, widths, keys)
    assert main(["plot", "--out", str(tmp_path), "--to", str(tmp_path / "to")]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_folder_that_cannot_be_written_to_is_told_in_one_line(tmp_path, capsys):
    pytest.importorskip("matplotlib")
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


def test_pictures_are_files_that_can_be_opened_and_keep_no_state(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    write_claim(tmp_path, "whole", [CONFIRMED])
    before = {name: matplotlib.rcParams[name] for name in matplotlib.rcParams
              if name != "backend"}  # to ask for it is to choose one, through pyplot
    for file in plot.draw_claims(["whole"], Results(tmp_path), tmp_path):
        assert file.read_bytes().startswith(PNG)
        assert [name for name in before if matplotlib.rcParams[name] != before[name]] == []
    assert "matplotlib.pyplot" not in sys.modules
    assert set(MARKERS) == set(COLOURS)
