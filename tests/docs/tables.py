"""Write what the pages show of results/: `python tests/docs/tables.py`, after `mcverify run`.

A page marks the place of a table, `<!-- NAME -->` to `<!-- /NAME -->`. test_tables.py holds that
each is current.
"""

import hashlib
import re
import tempfile
from functools import lru_cache
from pathlib import Path

import pandas as pd

from mcverify.declare.discover import discover
from mcverify.declare.origins import BUILT_IN
from mcverify.report.surprises import surprises as found_surprising
from mcverify.results.folder import Results

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "results" / "claims"
ATLAS = CLAIMS / "saturation_atlas.csv"
DRAWN_FROM = {"saturation": ATLAS, "jacobian": ATLAS, "overview": ROOT / "results" / "verdicts.csv"}
PICTURES = {name: ROOT / "docs" / f"{name}.png" for name in DRAWN_FROM}
SHOWN_KEYS = (2, 8, 32, 128, 512, 4096)
SHOWN_WIDTH = 64
THEOREMS = ("exact", "bound", "moments", "order")


def cases(claim):
    return pd.read_csv(CLAIMS / f"{claim}.csv", keep_default_na=False, na_values=["nan"])


def table(header, align, rows):
    lines = [header, align, *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


# --- What surprises ------------------------------------------------------------------------------


def surprises():
    """Ten statements of the notes, what was found, and the command that judges them."""
    return table(("said", "found", "see for yourself"), ("---",) * 3, (
        (said, found, f"`mcverify run {name}`")
        for name, said, found in found_surprising(Results(ROOT / "results"))))


# --- Other tables --------------------------------------------------------------------------------


def assumptions():
    """How each assumption is broken, with the textbook's, the true and the measured variance."""
    rows = []
    for name in ("assumptions", "harmless_assumptions"):
        for case in cases(name).itertuples():
            truth = (case.claimed_low + case.claimed_high) / 2
            error = f"{float(f'{case.stderr:.1g}'):g}"
            rows.append((case.assumption, f"{case.law}, d_k = {case.d_k}", case.pairs, case.d_k,
                         f"{truth:.4g}", f"{case.estimate:.4g} ± {error}"))
    return table(("assumption", "how it is broken", "pairs", "textbook", "truth", "measured"),
                 ("---", "---", "---", "--:", "--:", "--:"), rows)


def saturation():
    """Of some numbers of keys at one width: entropy and Jacobian, unscaled and scaled."""
    atlas = pd.read_csv(ATLAS)
    atlas = atlas[atlas["d_k"] == SHOWN_WIDTH].set_index(["keys", "scale"])
    columns = ("entropy_share", "frobenius_mean", "frobenius_median")
    rows = [[keys, *(f"{atlas.loc[(keys, scale), column]:.2g}"
                     for column in columns for scale in ("none", "sqrt"))] for keys in SHOWN_KEYS]
    header = ("keys", "entropy/ln(keys)", "scaled", "mean norm", "scaled", "median norm", "scaled")
    return table(header, ("--:",) * len(header), rows)


@lru_cache
def all_cases():
    return pd.concat([cases(name)[["basis"]] for name in pd.read_csv(
        ROOT / "results" / "verdicts.csv")["claim"]], ignore_index=True)


def bases():
    """How many cases rest on what."""
    counts = all_cases()["basis"].value_counts()
    return table(("basis", "cases", "share"), ("---", "--:", "--:"), (
        (f"`{name}`", counts.get(name, 0), f"{counts.get(name, 0) / counts.sum():.1%}")
        for name in (*THEOREMS, "calibrated")))


def theorems():
    """A sentence about all cases."""
    basis = all_cases()["basis"]
    return (f"{basis.isin(THEOREMS).sum()} of {len(basis)} cases rest on a theorem or a "
            "calculation; the others say `calibrated`.\n")


def self_check():
    """How the checks of the self-check came out, by what the interval rests on."""
    frame = pd.read_csv(ROOT / "results" / "selfcheck.csv")
    verdicts = ("ok", "open", "waits", "known to fail", "high", "low")
    counts = pd.crosstab(frame["basis"], frame["verdict"]).reindex(columns=verdicts, fill_value=0)
    return table(("basis", *verdicts), ("---", *("--:",) * len(verdicts)),
                 ((f"`{row[0]}`", *row[1:]) for row in counts.itertuples()))


def training():
    """What came out of each case of the claims about training that has been judged."""
    rows = []
    for claim in discover(BUILT_IN / "training"):
        if not (CLAIMS / f"{claim.name}.csv").exists():
            continue
        for case, row in zip(claim.cases(), cases(claim.name).itertuples(), strict=True):
            where = ", ".join(f"{name} = {value}" for name, value in case.settings
                              if name != "model")
            rows.append((f"`{claim.name}`", where, claim.statistic.name, f"{row.estimate:.3g}",
                         f"{row.low:.3g} to {row.high:.3g}", row.blocks, row.verdict))
    header = ("claim", "where", "statistic", "estimate", "interval", "runs", "verdict")
    return table(header, ("---", "---", "---", "--:", "---", "--:", "---"), rows)


TABLES = {table.__name__: table for table in
          (surprises, assumptions, saturation, bases, theorems, self_check, training)}


def files():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write():
    """Each page with the tables that results/ say."""
    for file in files():
        text = re.sub(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)",
                      lambda found: found[1] + TABLES[found[2]]() + found[3],
                      file.read_text(encoding="utf-8"), flags=re.DOTALL)
        file.write_text(text, encoding="utf-8")


# --- Pictures ------------------------------------------------------------------------------------


def source(name):
    """By which a picture says what table it was drawn from."""
    return hashlib.sha256(DRAWN_FROM[name].read_bytes()).hexdigest()


def draw():
    """Draw the pictures of the pages, which hold the digest of their table."""
    from PIL import Image, PngImagePlugin

    from mcverify.plot import draw_all

    with tempfile.TemporaryDirectory() as folder:
        for file in draw_all(Results(ROOT / "results"), Path(folder)):
            about = PngImagePlugin.PngInfo()
            about.add_text("Source", source(file.stem))
            picture = Image.open(file).convert("RGB").quantize(128)
            picture.save(PICTURES[file.stem], optimize=True, pnginfo=about)


if __name__ == "__main__":
    write()
    draw()
