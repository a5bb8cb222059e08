"""The table in which a plan is shown."""

from collections.abc import Iterable, Mapping

from mcverify.cli.report import print_table
from mcverify.cli.terminal import show
from mcverify.declare.claim import Claim
from mcverify.plan import Plan

NUMBERS = ("cases", "blocks", "numbers", "CPU s", "MiB", "open")


def plan_table(plans: Mapping[Claim, Plan]) -> None:
    """Print a row a claim and the sums, then the cases that will stay open, and why."""
    rows = [([*_cells(its), claim.name], "bold" if its.open else None)
            for claim, its in plans.items()]
    rows.append(([*_cells(total(plans.values())), f"{len(plans)} claims in all"], "bold"))
    print_table([*NUMBERS, "claim"], rows, right=NUMBERS, no_wrap=True)
    for its in plans.values():
        for case, why in its.open.items():
            show(f"open: {case}: {why}")


def total(plans: Iterable[Plan]) -> Plan:
    """What all claims take together.

    >>> total([Plan(blocks=2, seconds=0.5), Plan(blocks=3, seconds=1.0)])
    Plan(cases=0, blocks=5, numbers=0.0, seconds=1.5, memory=0, open={})
    """
    sums = Plan()
    for each in plans:
        sums.cases += each.cases
        sums.blocks += each.blocks
        sums.numbers += each.numbers
        sums.seconds += each.seconds
        sums.memory += each.memory
        sums.open |= each.open
    return sums


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
