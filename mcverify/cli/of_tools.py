"""The commands of the side tools, which import what they need as they run."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mcverify.cli import options as to
from mcverify.cli import terminal
from mcverify.cli.exits import Exit, refused, report_faults, writing_to
from mcverify.declare.fault import UsageError


def diagnose(
    arrays: Annotated[list[str], Argument(metavar="FILE", help=(
        "q.npy and k.npy (and groups.npy), or one .npz, of (tokens, d_k), (blocks, tokens, d_k) "
        "or (batch, heads, tokens, d_k)"))],
    names: Annotated[tuple[str, str] | None, Option(metavar="Q K", show_default=False, help=(
        "the names of queries and keys in the .npz"))] = None,
    groups: Annotated[str | None, Option(metavar="NAME", show_default=False, help=(
        "the name of the groups in the .npz, if any"))] = None,
    outputs: Annotated[tuple[str, str] | None, Option(metavar="V OUT", show_default=False, help=(
        "values and outputs, to fit the scale that explains them: names in the .npz (default: v "
        "and out), or two .npy files"))] = None,
    mask: Annotated[str | None, Option(metavar="none|causal|NAME", show_default=False, help=(
        "the mask behind the outputs, or the name of what each query sees, true or false, in the "
        ".npz or a .npy file (default: none or causal, whichever explains more)"))] = None,
    error_rate: Annotated[float, to.rate_of("any verdict of the table")] = 1e-3,
    csv: Annotated[bool, Option("--csv", help=(
        "print all that is known as CSV, formulas and standard errors as well"))] = False,
) -> Exit:
    """Hold your own queries and keys against every assumption; of many heads, each by itself."""
    import pandas as pd

    from mcverify.diagnose import diagnose, read_arrays, table
    from mcverify.diagnose.outputs import as_quantities, explain_outputs, read_outputs, text

    if groups and not names:
        raise UsageError(f"--groups {groups}: needs --names, those of the queries and keys")
    with refused():
        q, k, labels = read_arrays(arrays, [*names, *filter(None, [groups])] if names else None)
        frame = diagnose(q, k, labels, error_rate)
        recorded = read_outputs(arrays, outputs, mask)
        explained = explain_outputs(q, k, *recorded) if recorded else None
    if csv:
        more = [] if explained is None else [as_quantities(explained, q.shape[-1])]
        frame = pd.concat([frame, *more])
        terminal.show(frame.to_csv(index=False, float_format="%.6g").rstrip())
    else:
        terminal.show(table(frame) + ("" if explained is None else f"\n\n{text(explained)}"))
    return Exit.AS_DECLARED


def probe(
    target: Annotated[str, Argument(metavar="MODULE:FUNCTION", help=(
        "attend(q, k, v) of (batch, heads, tokens, width), as module:function or file.py:function"
    ))],
    d_k: to.Size = 64,
    d_v: to.Size = 64,
    heads: to.Size = 1,
    kv_heads: to.MaybeSize = None,
    tokens: to.MaybeSize = None,
    keys: to.MaybeSize = None,
    d_model: to.MaybeSize = None,
    padded: to.MaybeSize = None,
    mscale: Annotated[float | None, Option(metavar="X", show_default=False, help=(
        "the factor of a context extension"))] = None,
    declared: Annotated[str | None, Option(metavar="SCALE", show_default=False, help=(
        'what the scale should be: a number or a formula, e.g. "1/sqrt(d_k)"'))] = None,
    dtype: Annotated[str | None, Option(metavar="TYPE", show_default=False, help=(
        "what attend is handed, e.g. float32 or torch.bfloat16; default: NumPy's float64"))] = None,
    axes: Annotated[int, Option(metavar="4|2", help=(
        "2 if attend takes (tokens, width), of one head"))] = 4,
    seed: to.Seed = 0,
) -> Exit:
    """Tell which scale an attention function of your own really uses."""
    from mcverify.probing.command import probe_command

    text, status = probe_command(
        target, dtype, d_k=d_k, d_v=d_v, heads=heads, kv_heads=kv_heads, tokens=tokens,
        keys=keys, d_model=d_model, padded=padded, mscale=mscale, declared=declared, axes=axes,
        seed=seed)
    terminal.show(text)
    return Exit(status)


def check_claim(files: to.Files) -> Exit:
    """Tell what is wrong with a claim or a law, in seconds."""
    from mcverify.check_claim import inspect, ok, report
    from mcverify.cli.waiting import patient

    with patient() as watch:
        remarks = inspect(*files, watch=watch)
    terminal.show(report(remarks))
    return Exit.AS_DECLARED if ok(remarks) else Exit.BAD_USAGE


def new(
    name: Annotated[str, Argument(metavar="NAME", help=(
        "of the claim and its file, e.g. my_claim"))],
    law: Annotated[bool, Option("--law", help="a law, with a claim on it")] = False,
    folder: Annotated[Path, to.folder_of("where to write it", "--folder")] = Path(),
) -> Exit:
    """Write a file with a claim that runs as it is."""
    from mcverify.cli.new import advice, new

    terminal.show(advice(new(name, folder, law), law))
    return Exit.AS_DECLARED


def selfcheck(
    files: Annotated[list[Path] | None, Argument(metavar="FILE", show_default=False, help=(
        "claims whose statistics are judged instead, on the blocks of their first cases"))] = None,
    short: Annotated[bool, Option("--short", help=(
        "seconds instead of minutes, into selfcheck_short.csv"))] = False,
    seed: to.Seed = 0,
    jobs: to.Jobs = None,
    out: to.Kept = to.RESULTS,
) -> Exit:
    """Judge the statistics by truths that are known."""
    from mcverify.cli.waiting import patient
    from mcverify.selfcheck import passed, report, selfcheck

    file = out.folder / f"selfcheck{'_own' if files else '_short' if short else ''}.csv"
    with writing_to(out.folder), refused(), out.held():
        with patient() as watch:
            frame = selfcheck(short, seed, jobs, files or (), watch)
        out.write_table(file, frame)
    terminal.show(f"{report(frame)}\nseed {seed}; the table is in {file}")
    return Exit.AS_DECLARED if passed(frame) else Exit.CONTRADICTED


def plot(
    names: Annotated[list[str] | None, to.names_of(
        f"{to.WHAT}; default: all verdicts on a page, and how softmax saturates")] = None,
    out: to.Last = to.RESULTS,
    pictures: to.Pictures = Path("pictures"),
) -> Exit:
    """Draw the last results (needs mcverify[plot])."""
    from mcverify.cli.selection import select
    from mcverify.plot import draw_all, draw_claims

    # A table says all that its picture shows: a claim of one's own needs no file by now.
    kept = [word for word in names or [] if out.file(word).exists()]
    words = [word for word in names or [] if word not in kept]
    claims, faults = select(words) if words else ([], ())
    kept += [claim.name for claim in claims if claim.name not in kept]
    for file in draw_claims(kept, out, pictures) if names else draw_all(out, pictures):
        terminal.show(f"wrote {file}")
    return report_faults(faults)


def report(
    results: Annotated[to.Results, to.results_in("the folder with the results", "--results")] = (
        to.RESULTS),
    out: Annotated[Path, Option(metavar="FILE", help="the HTML file to write")] = Path(
        "report.html"),
) -> Exit:
    """Write the last results as one HTML page (needs mcverify[report])."""
    from mcverify.plot import inline
    from mcverify.report import report_on

    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"--out {out}: no file can be written there; name one, e.g. report.html")
    with terminal.console(stderr=True).status("pictures"):
        page = report_on(results, inline)
    out.write_text(page, encoding="utf-8")
    terminal.show(f"wrote {out}")
    return Exit.AS_DECLARED
