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

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "results" / "claims"
ATLAS = CLAIMS / "saturation_atlas.csv"
PICTURES = {name: ROOT / "docs" / f"{name}.png" for name in ("saturation", "jacobian")}
SHOWN_KEYS = (2, 8, 32, 128, 512, 4096)
SHOWN_WIDTH = 64
THEOREMS = ("exact", "bound", "moments", "order")


def cases(claim):
    return pd.read_csv(CLAIMS / f"{claim}.csv", keep_default_na=False, na_values=["nan"])


def measured(claim, **settings):
    """The estimate of the one case of a claim that has these settings."""
    frame = cases(claim)
    for name, value in settings.items():
        frame = frame[frame[name] == value]
    return frame["estimate"].item()


def table(header, align, rows):
    lines = [header, align, *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


# --- What surprises ------------------------------------------------------------------------------


def surprises():
    """Ten statements of the notes, what was found, and the command that judges them."""
    def trained(head):
        return f"{measured('variance_of_a_trained_head', head=head):.3g}"

    def initial(kind):
        law = f"projected[normal-xavier_uniform_{kind}-512]"
        return measured("initial_score_variance", law=law)

    def normed(claim, d_k):
        return measured(claim, law="layer_norm[normal]", d_k=d_k)

    larger = "unscaled_gradient_is_larger_in_the_mean"
    rows = [
        ("Unscaled, the gradient vanishes.", "A11",
         "With 2 keys at d_k = 64 the *median* gradient at q falls from "
         f"{measured('scaled_gradient_median', d_k=64):.2f} to "
         f"{measured('unscaled_gradient_median'):.1g}, and the *mean* grows "
         f"{measured(larger, keys=2):.2g} times; with 128 keys it grows "
         f"{measured(larger, keys=128):.2g} times."),
        ("Scaled, the entropy over 128 keys is ln 128 = 4.85.", "B21",
         f"It is {measured('scaled_entropy', d_k=512, keys=128):.3g}: half a nat below "
         "that ceiling."),
        ("The variance is d_k by the central limit theorem.", "B3",
         "Variances of uncorrelated terms add, at every d_k. A random length that coordinates "
         "share keeps the variance and an excess kurtosis of "
         f"{measured('common_scale_kurtosis', d_k=64):.2g} at 64: no normal law."),
        ("Under Xavier initialisation q and k have variance 1.", "B1",
         "Only for square matrices. One head's own matrix gives scores a variance of "
         f"{initial('head'):.3g}, a fused one {initial('fused'):.2g}."),
        ("Dividing by √d_k whitens the scores.", "B8",
         "Keys correlated 0.5 leave scores correlated "
         f"{measured('correlated_keys_leave_correlated_scores', d_k=64):.1g}."),
        ("LayerNorm of q and k forces variance 1.", "B17",
         f"Without the scale it leaves {normed('layer_norm_variance', 64):.2g} at d_k = 64, and "
         f"with it d_k/(d_k − 1): {normed('layer_norm_forces_unit_variance', 8):.2f} at 8."),
        ("Longer contexts need T = √d_k·√(trained/actual length).", "B14",
         "It overshoots: at 32 times the length the entropy has gone from 5.74 nats to "
         f"{measured('root_rule', fold=32):.3g}."),
        ("The online softmax copes with longer contexts.", "B15",
         "It gives the weights of softmax, so it changes no probability."),
        ("Softmax inputs above 10 saturate.", "B27",
         "(1000, 1000) has weights of "
         f"{measured('large_inputs_give_one_hot'):.2g}, and the largest Jacobian there is."),
        ("Trained heads have unit variance, too.", "A17",
         f"{trained('trained_l0h0')}, {trained('trained_l5h3')} and {trained('trained_l0h2')} in "
         "three heads. Their means and covariances predict it for unseen sentences, to 10 % more "
         "often than not."),
    ]
    return table(("said", "found", "see for yourself"), ("---",) * 3,
                 ((said, found, f"`mcverify run {name}`") for said, name, found in rows))


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
    return pd.concat([cases(name) for name in pd.read_csv(
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


TABLES = {table.__name__: table for table in
          (surprises, assumptions, saturation, bases, theorems, self_check)}


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


def source():
    """By which a picture says what table it was drawn from."""
    return hashlib.sha256(ATLAS.read_bytes()).hexdigest()


def draw():
    """Draw the pictures of the pages, which hold the digest of their table."""
    from PIL import Image, PngImagePlugin

    from mcverify.plot.saturation import draw_saturation
    from mcverify.results.folder import Results

    about = PngImagePlugin.PngInfo()
    about.add_text("Source", source())
    with tempfile.TemporaryDirectory() as folder:
        for file in draw_saturation(Results(ROOT / "results"), Path(folder)):
            picture = Image.open(file).convert("RGB").quantize(128)
            picture.save(PICTURES[file.stem], optimize=True, pnginfo=about)


if __name__ == "__main__":
    write()
    draw()
