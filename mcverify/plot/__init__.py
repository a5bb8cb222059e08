"""Draw results as PNG files, with matplotlib, the extra mcverify[plot] that only this room uses."""

from collections.abc import Iterator
from pathlib import Path

from mcverify.declare.fault import UsageError
from mcverify.declare.rules import ATLAS
from mcverify.plot.claims import draw_claims
from mcverify.plot.curve import draw_curve
from mcverify.plot.overview import draw_overview
from mcverify.plot.saturation import draw_saturation
from mcverify.results.folder import Results

__all__ = ["draw_all", "draw_claims", "draw_curve"]


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
