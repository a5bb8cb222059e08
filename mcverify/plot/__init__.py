"""Draw results, with matplotlib, the extra mcverify[plot] that only this room uses."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from mcverify.declare.fault import UsageError
from mcverify.declare.names import ATLAS
from mcverify.plot.claims import draw_claims
from mcverify.plot.curve import draw_curve
from mcverify.plot.looks import draw_looks
from mcverify.plot.overview import draw_overview
from mcverify.plot.saturation import draw_saturation
from mcverify.plot.svg import Part, Sheet
from mcverify.results.folder import Results

__all__ = ["draw_all", "draw_claims", "draw_curve", "inline"]

ABOUT = {  # the pictures of all, for who does not see them
    "overview": "Each statement with a mark for every claim that decides it: a blue dot if it is "
                "CONFIRMED, an orange square if REFUTED, a white diamond if INCONCLUSIVE.",
    "looks": "Four sketches of a measured interval that narrows from look to look. It comes to lie "
             "inside the claimed band: CONFIRMED. It leaves the band: REFUTED. It still crosses an "
             "edge at the last look: INCONCLUSIVE. A false verdict: the interval lies inside the "
             "band and misses the truth, which lies outside.",
    "saturation": "Mean entropy of the attention weights over ln(keys) against the width d_k, for "
                  "2 to 4096 keys. Unscaled it falls from about 0.9 towards 0; divided by √d_k it "
                  "stays flat; divided by d_k it rises to 1.",
}


def draw_all(results: Results, folder: Path) -> Iterator[Path]:
    """Draw what there is of a run: all verdicts on a page, and how softmax saturates.

    UsageError if there is neither.
    """
    drawn = False
    for table, draw in (("verdicts", draw_overview), (ATLAS, draw_saturation)):
        if results.file(table).exists():
            drawn = True
            yield from draw(results, folder)
    if not drawn:
        raise UsageError(f"{results.folder}: has no verdicts yet; run `mcverify run` first")


def inline(results: Results) -> tuple[dict[str, list[Part]], dict[str, Part], str]:
    """Pictures of a run for one HTML page: of each claim, of all, and their style sheet.

    A claim has a forest plot for each 100 of its cases. Of all there are ``overview`` and ``looks``
    and, after a run of all claims, ``saturation``. UsageError for a table that is missing or
    damaged.
    """
    sheet, rows = Sheet(), results.read("verdicts")
    with TemporaryDirectory() as name, warnings.catch_warnings():
        # A page has more letters than the font by which its pictures are laid out.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        folder = Path(name)

        def part(file: Path, alt: str) -> Part:
            return sheet.part(file.read_text(encoding="utf-8"), alt)

        forests = {row["claim"]: [part(file, _about(row)) for file in draw_claims(
            [row["claim"]], results, folder, ".svg")] for row in rows}
        drawn = [*draw_overview(results, folder, ".svg"), draw_looks(folder, ".svg")]
        if results.file(ATLAS).exists():
            drawn.append(next(draw_saturation(results, folder, ".svg")))
        others = {file.stem: part(file, ABOUT[file.stem]) for file in drawn}
    return forests, others, sheet.css()


def _about(row: dict[str, str]) -> str:
    """What a forest plot shows, for who does not see it."""
    counts = ", ".join(f"{row[name]} {name}" for name in (
        "confirmed", "refuted", "inconclusive", "errors") if row[name] != "0")
    return (f"Measured against claimed intervals of {row['cases']} cases of {row['claim']}: "
            f"{counts}.")
