"""The table in which a plan is shown."""

from collections.abc import Iterable, Mapping

from mcverify.cli.report import print_table
from mcverify.cli.terminal import show
from mcverify.declare.claim import Claim
from mcverify.plan import Plan

NUMBERS = ("cases", "blocks", "numbers", "CPU s", "MiB", "open")


def plan_table(plans: Mapping[Claim, Plan]) -> None:
    """Print a row a claim and the sums, then the cases that will stay open, and why."""
    rows = [([*_cells(each), claim.name], "bold" if each.open else None)
            for claim, each in plans.items()]
    rows.append(([*_cells(total(plans.values())), f"{len(plans)} claims in all"], "bold"))
    print_table([*NUMBERS, "claim"], rows, right=NUMBERS, no_wrap=True)
    for each in plans.values():
        for case, why in each.open.items():
            show(f"open: {case}: {why}")


def total(plans: Iterable[Plan]) -> Plan:
    """What all claims take together.

    >>> total([Plan(blocks=2, seconds=0.5), Plan(blocks=3, seconds=1.0)])
    Plan(cases=0, blocks=5, numbers=0.0, seconds=1.5, memory=0, open={})
    """
    plans = list(plans)
    sums = {name: sum(getattr(each, name) for each in plans)
            for name in ("cases", "blocks", "numbers", "seconds", "memory")}
    return Plan(**sums, open={case: why for each in plans for case, why in each.open.items()})


def plan_csv(plans: Mapping[Claim, Plan]) -> str:
    """A row a claim, as CSV."""
    rows = [("claim", "cases", "blocks", "numbers", "seconds", "bytes", "open")]
    rows += [(claim.name, str(each.cases), str(each.blocks), f"{each.numbers:.6g}",
              f"{each.seconds:.3g}", str(each.memory), str(len(each.open)))
             for claim, each in plans.items()]
    return "\n".join(",".join(row) for row in rows)


def _cells(each: Plan) -> list[str]:
    return [str(each.cases), f"{each.blocks:,}", f"{each.numbers:.2g}", f"{each.seconds:,.2f}",
            f"{each.memory / 2**20:,.2f}", str(len(each.open) or "")]
