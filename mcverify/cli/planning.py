"""The table in which a plan is shown."""

from collections.abc import Iterable, Mapping

from rich.table import Table

from mcverify.cli.terminal import console, show
from mcverify.declare.claim import Claim
from mcverify.declare.text import printable
from mcverify.plan import Plan

COLUMNS = ("cases", "blocks", "numbers", "CPU s", "MiB", "open", "claim")


def plan_table(plans: Mapping[Claim, Plan]) -> None:
    """Print a row a claim and the sums, then the cases that will stay open, and why."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "claim" else "right", no_wrap=True)
    for claim, its in plans.items():
        table.add_row(*_cells(its), printable(claim.name), style="bold" if its.open else None)
    table.add_row(*_cells(total(plans.values())), f"{len(plans)} claims in all", style="bold")
    console().print(table)
    for its in plans.values():
        for case, why in its.open.items():
            show(f"open: {case}: {why}")


def total(plans: Iterable[Plan]) -> Plan:
    """What all claims take together.

    >>> total([Plan(blocks=2, seconds=0.5), Plan(blocks=3, seconds=1.0)])
    Plan(cases=0, blocks=5, numbers=0.0, seconds=1.5, memory=0, open={})
    """
    found = Plan()
    for each in plans:
        found.cases += each.cases
        found.blocks += each.blocks
        found.numbers += each.numbers
        found.seconds += each.seconds
        found.memory += each.memory
        found.open |= each.open
    return found


def plan_csv(plans: Mapping[Claim, Plan]) -> str:
    """A row a claim, as CSV."""
    rows = [("claim", "cases", "blocks", "numbers", "seconds", "bytes", "open")]
    rows += [(claim.name, str(its.cases), str(its.blocks), f"{its.numbers:.6g}",
              f"{its.seconds:.3g}", str(its.memory), str(len(its.open)))
             for claim, its in plans.items()]
    return "\n".join(",".join(row) for row in rows)


def _cells(its: Plan) -> list[str]:
    return [str(its.cases), f"{its.blocks:,}", f"{its.numbers:.2g}", f"{its.seconds:,.2f}",
            f"{its.memory / 2**20:,.2f}", str(len(its.open) or "")]
