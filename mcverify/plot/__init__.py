"""Pictures of a results folder; the only modules to use matplotlib, the extra `mcverify[plot]`."""

from collections.abc import Iterator
from pathlib import Path

from mcverify.plot.claims import draw_claims
from mcverify.plot.overview import draw_overview
from mcverify.plot.saturation import draw_saturation
from mcverify.results.folder import Results

__all__ = ["draw_all", "draw_claims", "draw_overview", "draw_saturation"]


def draw_all(results: Results, folder: Path) -> Iterator[Path]:
    """Draw what tells of a whole run: how softmax saturates, and all verdicts if there are any."""
    yield from draw_saturation(results, folder)
    if results.read("verdicts"):
        yield from draw_overview(results, folder)
