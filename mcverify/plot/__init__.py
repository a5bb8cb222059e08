"""Pictures of a results folder; the only modules to use matplotlib, the extra `mcverify[plot]`."""

from mcverify.plot.claims import draw_claims
from mcverify.plot.overview import draw_overview
from mcverify.plot.saturation import draw_saturation

__all__ = ["draw_claims", "draw_overview", "draw_saturation"]
