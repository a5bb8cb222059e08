"""Sketch how a verdict is made: a measured interval narrows, look by look, on a claimed one."""

from pathlib import Path

from mcverify.plot.page import MARKERS, Axes, picture
from mcverify.verdict import LOOKS, Verdict, judge, looks

CLAIMED = (-1.0, 1.0)
# What is told, where the measured intervals lie, and where the truth lies.
SKETCHES = (("inside", 0.2, 0.25), ("disjoint", 2.3, 2.2),
            ("crosses an edge\nat the last look", 1.0, 1.0),
            ("the only way to err:\nthe interval misses", 0.1, 1.6))


def draw_looks(folder: Path, kind: str = ".png") -> Path:
    """Draw looks.png: three ways in which a case ends, and what a false verdict takes."""
    file = folder / f"looks{kind}"
    with picture(file, 2.7) as figure:
        panels = figure.subplots(1, len(SKETCHES), sharey=True)
        for axes, (title, middle, truth) in zip(panels, SKETCHES, strict=True):
            _sketch(axes, middle, truth)
            axes.set_title(title, loc="left", fontsize=9)
        panels[0].set_ylabel("number that is measured")
        panels[0].set_yticks([])
        for axes, y, text in ((panels[0], -0.9, "claimed"), (panels[1], 2.3, "truth")):
            axes.text(LOOKS - 0.3, y, text, ha="right")
        figure.supxlabel(f"look: {looks()[0][1]} blocks at the first, twice as many at each "
                         "further one", fontsize=9)
    return file


def _sketch(axes: Axes, middle: float, truth: float) -> None:
    """Intervals until a verdict, whose mark and word stand at the last."""
    axes.axhspan(*CLAIMED, color="0.85", lw=0, zorder=0)
    axes.axhline(truth, color="0.3", lw=1, ls=":", zorder=1)
    for look in range(LOOKS):
        half = 2.2 * 2 ** (-look / 2)
        centre = middle + (-1) ** look * half / 9
        verdict = judge((centre - half, centre + half), CLAIMED)
        last = verdict is not Verdict.INCONCLUSIVE or look == LOOKS - 1
        colour = MARKERS[verdict]["color"] if last else "0.55"
        axes.vlines(look, centre - half, centre + half, color=colour, lw=2)
        if last:
            axes.plot([look], [centre], **MARKERS[verdict], ms=6)
            axes.text(look, -1.9, str(verdict), color=colour, ha="left" if look < 5 else "right")
            break
    axes.set_xlim(-0.9, LOOKS)
    axes.set_ylim(-2.4, 4.8)
    axes.set_xticks([0, LOOKS - 1], ["1", f"{LOOKS}"])
    axes.grid(visible=False)
